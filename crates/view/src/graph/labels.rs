//! The texts of nodes and labels, wrapped and cut.

use super::model::{FindingMark, Graph, Node};
use crate::text::{count_columns, shorten_end, shorten_middle, take_columns};

/// The maximum columns of a line in a node.
const NODE_COLUMNS: usize = 30;
/// The maximum columns of a line in a label.
const LABEL_COLUMNS: usize = 20;
/// The maximum lines of one outcome in a label, and of a label.
const OUTCOME_LINES: usize = 4;
const LABEL_LINES: usize = 7;

/// The maximum combining marks on one letter: languages use up to two, and stacks overlap other lines.
const MARKS_MAX: usize = 2;

/// A graph with directional characters spelled out and stacks of combining marks cut.
pub(super) fn sanitize_graph_texts(graph: &Graph) -> Graph {
    let mut graph = graph.clone();
    let nodes = graph.nodes.iter_mut().flat_map(|node| [Some(&mut node.name), node.title.as_mut()]).flatten();
    let labels = graph.links.iter_mut().flat_map(|link| &mut link.label);
    for text in nodes.chain(labels).chain(&mut graph.notes).chain([&mut graph.name, &mut graph.dialect]) {
        if text.contains(is_directional) {
            *text = text.chars().map(spell_directional_letter).collect();
        }
        if text.contains(is_mark) {
            let mut marks = 0;
            text.retain(|letter| {
                marks = if is_mark(letter) { marks + 1 } else { 0 };
                marks <= MARKS_MAX
            });
        }
    }
    graph
}

/// Whether a character is invisible and changes the direction of the text around it.
fn is_directional(letter: char) -> bool {
    matches!(letter, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// Whether a character is a combining mark.
fn is_mark(letter: char) -> bool {
    matches!(letter, '\u{300}'..='\u{36f}' | '\u{483}'..='\u{489}' | '\u{1ab0}'..='\u{1aff}' | '\u{1dc0}'..='\u{1dff}' | '\u{20d0}'..='\u{20ff}' | '\u{fe20}'..='\u{fe2f}')
}

fn spell_directional_letter(letter: char) -> String {
    if is_directional(letter) { format!("[U+{:04X}]", u32::from(letter)) } else { letter.to_string() }
}

/// The lines of a node: its name, its title, its findings.
pub(super) fn node_lines(node: &Node) -> Vec<String> {
    let mut lines = vec![shorten_middle(&node.name, NODE_COLUMNS)];
    lines.extend(node.title.as_ref().map(|title| shorten_end(title, NODE_COLUMNS + 4)));
    lines.extend(node.marks.iter().map(FindingMark::words));
    lines
}

/// The lines of a label: its outcomes, long ones wrapped.
pub(super) fn label_lines(label: &[String]) -> Vec<String> {
    let mut lines: Vec<String> = label.iter().flat_map(|outcome| wrap_outcome_text(outcome)).collect();
    if lines.len() > label.len() {
        lines = add_outcome_bullets(label).iter().flat_map(|outcome| wrap_outcome_text(outcome)).collect();
    }
    if lines.len() > LABEL_LINES {
        lines.truncate(LABEL_LINES - 1);
        lines.push("…".to_owned());
    }
    lines
}

/// The outcomes of a label, with bullets when there are several.
pub(super) fn add_outcome_bullets(label: &[String]) -> Vec<String> {
    match label {
        [_, _, ..] => label.iter().map(|outcome| format!("• {outcome}")).collect(),
        _ => label.to_vec(),
    }
}

/// The whole text of a label whose lines are cut.
pub(super) fn label_title(label: &[String]) -> Option<String> {
    let shown = label_lines(label);
    let is_cut = shown.iter().any(|line| line.ends_with('…'));
    is_cut.then(|| label.join("\n"))
}

/// Wraps a text between words and cuts what exceeds the lines.
fn wrap_outcome_text(text: &str) -> Vec<String> {
    let mut lines = vec![String::new()];
    let text = text.replace("(≤ ", "(≤\u{2060}");
    for word in text.split_whitespace().map(|word| word.replace('\u{2060}', " ")) {
        let last = lines.last().map_or(0, |line| count_columns(line));
        if last > 0 && last + 1 + count_columns(&word) > LABEL_COLUMNS {
            lines.push(String::new());
        }
        if let Some(line) = lines.last_mut() {
            if !line.is_empty() {
                line.push(' ');
            }
            line.push_str(&shorten_end(&word, LABEL_COLUMNS));
        }
    }
    if lines.len() > OUTCOME_LINES {
        lines.truncate(OUTCOME_LINES);
        if let Some(last) = lines.last_mut() {
            *last = format!("{}…", take_columns(last, LABEL_COLUMNS - 1).trim_end());
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::{label_lines, label_title};

    fn label(outcomes: &[&str]) -> Vec<String> {
        outcomes.iter().map(|outcome| (*outcome).to_owned()).collect()
    }

    #[test]
    fn short_labels_are_unchanged() {
        let short = label(&["next", "repeat (≤ 2×)"]);
        assert_eq!(label_lines(&short), ["next", "repeat (≤ 2×)"]);
        assert_eq!(label_title(&short), None);
        // A bound is not split.
        assert_eq!(label_lines(&label(&["tests-pass fails (≤ 3×)"])), ["tests-pass fails", "(≤ 3×)"]);
    }

    #[test]
    fn long_labels_are_wrapped_and_whole_in_the_title() {
        let text =
            "The reviewers found at least one thing that has to be mended before it can be merged at all";
        let long = label(&[text]);
        let shown = label_lines(&long);
        assert_eq!(
            shown,
            ["The reviewers found", "at least one thing", "that has to be", "mended before it ca…"]
        );
        assert_eq!(label_title(&long).as_deref(), Some(text));
        let many: Vec<String> = (0..9).map(|at| format!("o{at}")).collect();
        assert_eq!(label_lines(&many).last().map(String::as_str), Some("…"));
        assert_eq!(label_lines(&many).len(), 7);
        assert!(label_title(&many).is_some_and(|title| title.ends_with("o8")));
        assert!(label_lines(&label(&[&"x".repeat(80)]))[0].chars().count() <= 20);
    }
}
