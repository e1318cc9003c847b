//! Mermaid flowcharts, which code hosts render in Markdown.

use cuegate_flow::diagnostics::Severity;

use super::labels::{add_outcome_bullets, sanitize_graph_texts};
use super::model::{Graph, LinkStyle, Node, NodeKind, colour_of_severity};

/// A flow as a Mermaid flowchart.
pub fn render_mermaid(graph: &Graph) -> String {
    let graph = &sanitize_graph_texts(graph);
    let mut text = String::from("flowchart TD\n");
    let notes = [&[graph.name.clone()][..], &graph.notes].concat();
    text.push_str(&format!("  notes[\"{}\"]\n", escape_label_lines(&notes)));
    for (index, node) in graph.nodes.iter().enumerate() {
        text.push_str(&format!("  {}\n", render_mermaid_node(index, node)));
    }
    for link in &graph.links {
        let arrow = match link.line {
            LinkStyle::Plain => "-->",
            LinkStyle::Remedy => "==>",
            LinkStyle::Asks => "-.->",
        };
        let label = match link.label.is_empty() {
            true => String::new(),
            false => format!("|\"{}\"|", escape_label_lines(&add_outcome_bullets(&link.label))),
        };
        text.push_str(&format!("  n{} {arrow}{label} n{}\n", link.from, link.to));
    }
    text.push_str("  classDef entry stroke-width:3px\n");
    text.push_str(&format!(
        "  classDef error stroke:{},stroke-width:3px\n",
        colour_of_severity(Severity::Error)
    ));
    text.push_str(&format!(
        "  classDef warning stroke:{},stroke-width:2px\n",
        colour_of_severity(Severity::Warning)
    ));
    text.push_str("  classDef notes fill:none,stroke-dasharray:3 3\n");
    let marked_as = |severity| ids_of_matching_nodes(graph, |node| node.gravest() == Some(severity));
    let classes = [
        ("entry", ids_of_matching_nodes(graph, |node| node.entry)),
        ("error", marked_as(Severity::Error)),
        ("warning", marked_as(Severity::Warning)),
        ("notes", vec!["notes".to_owned()]),
    ];
    for (class, wanted) in classes.into_iter().filter(|(_, wanted)| !wanted.is_empty()) {
        text.push_str(&format!("  class {} {class}\n", wanted.join(",")));
    }
    text
}

fn ids_of_matching_nodes(graph: &Graph, wanted: impl Fn(&Node) -> bool) -> Vec<String> {
    let nodes = graph.nodes.iter().enumerate();
    nodes.filter(|(_, node)| wanted(node)).map(|(index, _)| format!("n{index}")).collect()
}

fn render_mermaid_node(index: usize, node: &Node) -> String {
    let mut words = vec![node.name.clone()];
    words.extend(node.title.clone());
    words.extend(node.marks.iter().map(|mark| mark.words()));
    let label = escape_label_lines(&words);
    let (open, close) = match node.kind {
        NodeKind::Work => ("[", "]"),
        NodeKind::Check => ("([", "])"),
        NodeKind::Judge => ("{", "}"),
        NodeKind::Parallel => ("[[", "]]"),
        NodeKind::Commands => ("{{", "}}"),
        NodeKind::Person => ("[/", "/]"),
        NodeKind::System => ("[[", "]]"),
        NodeKind::Completed | NodeKind::Aborted | NodeKind::Failed => ("((", "))"),
        NodeKind::Unknown => (">", "]"),
    };
    format!("n{index}{open}\"{label}\"{close}")
}

/// Lines of a label, escaped: text of a definition must not be parsed as Mermaid or HTML.
fn escape_label_lines(words: &[String]) -> String {
    words.iter().map(|word| escape_mermaid_text(word)).collect::<Vec<_>>().join("<br/>")
}

fn escape_mermaid_text(text: &str) -> String {
    let line = one_line(text);
    let mut escaped = String::new();
    let mut before = None;
    for (at, letter) in line.char_indices() {
        let after = line[at + letter.len_utf8()..].chars().next();
        let is_syntax = match letter {
            // Percent signs and braces form a directive anywhere, even in comments and labels; two dollars start a
            // formula.
            '"' | '<' | '>' | '&' | '#' | '`' | '\\' | ';' | '%' | '{' | '}' | '$' => true,
            // Mermaid parses labels as Markdown.
            '*' | '~' => true,
            '_' => !is_inside(before) || !is_inside(after),
            '-' | '+' => line[..at].trim().is_empty(),
            '.' | ')' => is_number(line[..at].trim_start()),
            _ => false,
        };
        // Two escaped dollars start a formula too.
        if letter == '$' && before == Some('$') {
            escaped.push_str("#8203;");
        }
        if is_syntax {
            escaped.push_str(&format!("#{};", u32::from(letter)));
        } else {
            escaped.push(letter);
        }
        before = Some(letter);
    }
    escaped
}

/// Whether a letter next to an underscore keeps Markdown from reading emphasis.
fn is_inside(letter: Option<char>) -> bool {
    letter.is_some_and(|letter| letter.is_alphanumeric() || letter == '_')
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

fn one_line(text: &str) -> String {
    text.chars().map(|letter| if crate::text::is_unsafe(letter) { ' ' } else { letter }).collect()
}
