//! Graphviz DOT.

use super::labels::sanitize_graph_texts;
use super::model::{Graph, LinkStyle, NodeKind, colour_of_severity};

/// A flow as a DOT digraph.
pub fn render_dot(graph: &Graph) -> String {
    let graph = &sanitize_graph_texts(graph);
    let mut text = format!("digraph {} {{\n", quote_dot_string(&graph.name));
    text.push_str("  graph [fontname=\"Helvetica\"]\n");
    text.push_str("  node [fontname=\"Helvetica\" shape=box style=rounded]\n  edge [fontname=\"Helvetica\" fontsize=10]\n");
    text.push_str(&format!(
        "  label={}\n",
        quote_dot_string(&[&[graph.name.clone()][..], &graph.notes].concat().join("\n"))
    ));
    for (index, node) in graph.nodes.iter().enumerate() {
        let mut words = vec![node.name.clone()];
        words.extend(node.title.clone());
        words.extend(node.marks.iter().map(|mark| mark.words()));
        let mut attributes = format!("label={}", quote_dot_string(&words.join("\n")));
        let shape = match node.kind {
            NodeKind::Work => "",
            NodeKind::Check => " shape=ellipse",
            NodeKind::Judge => " shape=diamond",
            NodeKind::Parallel => " shape=box peripheries=2",
            NodeKind::Commands => " shape=hexagon",
            NodeKind::Person => " shape=parallelogram",
            NodeKind::System => " shape=box peripheries=2",
            NodeKind::Completed => " shape=doublecircle",
            NodeKind::Aborted | NodeKind::Failed => " shape=octagon",
            NodeKind::Unknown => " shape=note style=dashed",
        };
        attributes.push_str(shape);
        if node.entry {
            attributes.push_str(" penwidth=3");
        }
        if let Some(severity) = node.gravest() {
            attributes.push_str(&format!(" color=\"{}\"", colour_of_severity(severity)));
        }
        text.push_str(&format!("  n{index} [{attributes}]\n"));
    }
    for link in &graph.links {
        let mut attributes = format!("label={}", quote_dot_string(&link.label.join("\n")));
        match link.line {
            LinkStyle::Plain => {}
            LinkStyle::Remedy => attributes.push_str(" style=bold"),
            LinkStyle::Asks => attributes.push_str(" style=dashed"),
        }
        text.push_str(&format!("  n{} -> n{} [{attributes}]\n", link.from, link.to));
    }
    for (index, node) in graph.nodes.iter().enumerate().filter(|(_, node)| node.kind == NodeKind::Parallel) {
        let members: Vec<String> = graph
            .nodes
            .iter()
            .enumerate()
            .filter(|(_, member)| member.parent == Some(index))
            .map(|(member, _)| format!("n{member}"))
            .collect();
        text.push_str(&format!(
            "  subgraph {} {{ label={} {} }}\n",
            quote_dot_string(&format!("cluster_{index}")),
            quote_dot_string(&node.name),
            members.join("; ")
        ));
    }
    text.push_str("}\n");
    text
}

/// A quoted string; line breaks are kept.
fn quote_dot_string(text: &str) -> String {
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
