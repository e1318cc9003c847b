//! `cuegate/graph/v1`.

use serde_json::{Value, json};

use super::model::Graph;

/// A graph as a JSON object of `cuegate/graph/v1`: nodes and links by name, without a layout.
pub fn graph_json(graph: &Graph) -> Value {
    let name = |index: usize| &graph.nodes[index].name;
    let nodes: Vec<Value> = graph
        .nodes
        .iter()
        .map(|node| {
            let marks: Vec<Value> = node
                .marks
                .iter()
                .map(|mark| json!({"severity": mark.severity.as_str(), "code": mark.code}))
                .collect();
            json!({
                "name": node.name, "title": node.title, "kind": node.kind.as_str(), "entry": node.entry,
                "parent": node.parent.map(name), "findings": marks,
            })
        })
        .collect();
    let links: Vec<Value> = graph
        .links
        .iter()
        .map(|link| {
            json!({"from": name(link.from), "to": name(link.to), "line": link.line.as_str(), "labels": link.label})
        })
        .collect();
    json!({
        "schema": "cuegate/graph/v1", "name": graph.name, "dialect": graph.dialect,
        "notes": graph.notes, "nodes": nodes, "links": links,
    })
}
