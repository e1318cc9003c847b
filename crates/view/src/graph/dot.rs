//! Graphviz DOT.

use super::labels::spelled;
use super::model::{Graph, Kind, Line, colour};

/// A flow as a DOT digraph.
pub fn dot(graph: &Graph) -> String {
    let graph = &spelled(graph);
    let mut text = format!("digraph {} {{\n", quoted(&graph.name));
    text.push_str("  graph [fontname=\"Helvetica\"]\n");
    text.push_str("  node [fontname=\"Helvetica\" shape=box style=rounded]\n  edge [fontname=\"Helvetica\" fontsize=10]\n");
    text.push_str(&format!(
        "  label={}\n",
        quoted(&[&[graph.name.clone()][..], &graph.notes].concat().join("\n"))
    ));
    for (index, node) in graph.nodes.iter().enumerate() {
        let mut words = vec![node.name.clone()];
        words.extend(node.title.clone());
        words.extend(node.marks.iter().map(|mark| mark.words()));
        let mut attributes = format!("label={}", quoted(&words.join("\n")));
        let shape = match node.kind {
            Kind::Work => "",
            Kind::Check => " shape=ellipse",
            Kind::Judge => " shape=diamond",
            Kind::Parallel => " shape=box peripheries=2",
            Kind::Commands => " shape=hexagon",
            Kind::Person => " shape=parallelogram",
            Kind::Completed => " shape=doublecircle",
            Kind::Aborted | Kind::Failed => " shape=octagon",
            Kind::Unknown => " shape=note style=dashed",
        };
        attributes.push_str(shape);
        if node.entry {
            attributes.push_str(" penwidth=3");
        }
        if let Some(severity) = node.gravest() {
            attributes.push_str(&format!(" color=\"{}\"", colour(severity)));
        }
        text.push_str(&format!("  n{index} [{attributes}]\n"));
    }
    for link in &graph.links {
        let mut attributes = format!("label={}", quoted(&link.label.join("\n")));
        match link.line {
            Line::Plain => {}
            Line::Remedy => attributes.push_str(" style=bold"),
            Line::Asks => attributes.push_str(" style=dashed"),
        }
        text.push_str(&format!("  n{} -> n{} [{attributes}]\n", link.from, link.to));
    }
    for (index, node) in graph.nodes.iter().enumerate().filter(|(_, node)| node.kind == Kind::Parallel) {
        let members: Vec<String> = graph
            .nodes
            .iter()
            .enumerate()
            .filter(|(_, member)| member.parent == Some(index))
            .map(|(member, _)| format!("n{member}"))
            .collect();
        text.push_str(&format!(
            "  subgraph {} {{ label={} {} }}\n",
            quoted(&format!("cluster_{index}")),
            quoted(&node.name),
            members.join("; ")
        ));
    }
    text.push_str("}\n");
    text
}

/// A quoted string; line breaks are kept.
fn quoted(text: &str) -> String {
    let mut quoted = String::from("\"");
    for letter in text.chars() {
        match letter {
            '"' => quoted.push_str("\\\""),
            '\\' => quoted.push_str("\\\\"),
            // Graphviz decodes HTML entities in every string.
            '&' => quoted.push_str("&amp;"),
            '\n' => quoted.push_str("\\n"),
            other if crate::text::is_unsafe(other) => quoted.push(' '),
            other => quoted.push(other),
        }
    }
    quoted.push('"');
    quoted
}
