//! Mermaid's flowcharts, as code hosts draw them in Markdown.

use super::model::{Graph, Kind, Line, Node};
use super::words::spelled;

/// A flow as a Mermaid flowchart.
pub fn mermaid(graph: &Graph) -> String {
    let graph = &spelled(graph);
    let mut text = String::from("flowchart TD\n");
    for note in &graph.notes {
        text.push_str(&format!("  %% {}\n", comment(note)));
    }
    for (index, node) in graph.nodes.iter().enumerate() {
        text.push_str(&format!("  {}\n", shape(index, node)));
    }
    for link in &graph.links {
        let arrow = match link.line {
            Line::Plain => "-->",
            Line::Remedy => "==>",
            Line::Asks => "-.->",
        };
        let label = match link.label.is_empty() {
            true => String::new(),
            false => format!("|\"{}\"|", lines(&link.label)),
        };
        text.push_str(&format!("  n{} {arrow}{label} n{}\n", link.from, link.to));
    }
    text.push_str("  classDef entry stroke-width:3px\n");
    text.push_str("  classDef found stroke:#b3261e,stroke-width:3px\n");
    for (class, wanted) in [("entry", entries(graph)), ("found", marked(graph))] {
        if !wanted.is_empty() {
            text.push_str(&format!("  class {} {class}\n", wanted.join(",")));
        }
    }
    text
}

fn entries(graph: &Graph) -> Vec<String> {
    named(graph, |node| node.entry)
}

fn marked(graph: &Graph) -> Vec<String> {
    named(graph, |node| !node.marks.is_empty())
}

fn named(graph: &Graph, wanted: impl Fn(&Node) -> bool) -> Vec<String> {
    let nodes = graph.nodes.iter().enumerate();
    nodes.filter(|(_, node)| wanted(node)).map(|(index, _)| format!("n{index}")).collect()
}

fn shape(index: usize, node: &Node) -> String {
    let mut words = vec![node.name.clone()];
    words.extend(node.title.clone());
    words.extend(node.marks.iter().map(|mark| format!("⚠ {}", mark.code)));
    let label = lines(&words);
    let (open, close) = match node.kind {
        Kind::Work => ("[", "]"),
        Kind::Check => ("([", "])"),
        Kind::Judge => ("{", "}"),
        Kind::Parallel => ("[[", "]]"),
        Kind::Commands => ("{{", "}}"),
        Kind::Person => ("[/", "/]"),
        Kind::Completed | Kind::Aborted | Kind::Failed => ("((", "))"),
        Kind::Unknown => (">", "]"),
    };
    format!("n{index}{open}\"{label}\"{close}")
}

/// Lines of a label; what a definition says is shown and never read as Mermaid or HTML.
fn lines(words: &[String]) -> String {
    words.iter().map(|word| escaped(word)).collect::<Vec<_>>().join("<br/>")
}

fn escaped(text: &str) -> String {
    let line = one_line(text);
    let mut escaped = String::new();
    let mut before = None;
    for (at, letter) in line.char_indices() {
        let after = line[at + letter.len_utf8()..].chars().next();
        let is_read = match letter {
            // Percent signs and braces make a directive wherever they stand, in comments and labels too; two dollars a
            // formula.
            '"' | '<' | '>' | '&' | '#' | '`' | '\\' | ';' | '%' | '{' | '}' | '$' => true,
            // Labels are read as Markdown.
            '*' | '~' => true,
            '_' => !is_inside(before) || !is_inside(after),
            '-' | '+' => line[..at].trim().is_empty(),
            '.' | ')' => is_number(line[..at].trim_start()),
            _ => false,
        };
        if is_read {
            escaped.push_str(&format!("#{};", u32::from(letter)));
        } else {
            escaped.push(letter);
        }
        before = Some(letter);
    }
    escaped
}

/// Whether a letter beside an underscore keeps it from being emphasis.
fn is_inside(letter: Option<char>) -> bool {
    letter.is_some_and(|letter| letter.is_alphanumeric() || letter == '_')
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

/// A comment: nobody is shown it, so that only what would be read all the same is escaped.
fn comment(text: &str) -> String {
    one_line(text).replace('%', "#37;").replace('{', "#123;").replace('}', "#125;")
}

fn one_line(text: &str) -> String {
    text.chars().map(|letter| if letter.is_control() { ' ' } else { letter }).collect()
}
