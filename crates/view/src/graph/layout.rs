//! Where the parts of a picture are put.

use dagre::graph::{Graph as Canvas, GraphOptions};
use dagre::layout::types::LabelPos;
use dagre::{EdgeLabel, LayoutOptions, NodeLabel, layout};

use super::model::{Graph, Kind, Node};
use crate::text::columns;

/// How wide a letter is, on the average, in pixels; fonts differ, so it is rather too much.
const LETTER: f64 = 7.6;
/// The same for the smaller letters of labels.
pub(super) const SMALL_LETTER: f64 = 6.6;
/// How high a line of a node is.
pub(super) const LINE: f64 = 17.0;
/// How high a line of a label is.
pub(super) const SMALL_LINE: f64 = 14.0;
/// Room around the picture.
const MARGIN: f64 = 24.0;

/// A point.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct At {
    pub(super) x: f64,
    pub(super) y: f64,
}

/// A rectangle by its centre.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Area {
    pub(super) middle: At,
    pub(super) width: f64,
    pub(super) height: f64,
}

impl Area {
    pub(super) fn left(self) -> f64 {
        self.middle.x - self.width / 2.0
    }

    pub(super) fn top(self) -> f64 {
        self.middle.y - self.height / 2.0
    }

    pub(super) fn right(self) -> f64 {
        self.middle.x + self.width / 2.0
    }

    pub(super) fn bottom(self) -> f64 {
        self.middle.y + self.height / 2.0
    }
}

/// A link as it is drawn.
#[derive(Debug, Clone)]
pub(super) struct Course {
    /// From node to node.
    pub(super) points: Vec<At>,
    /// Where its label stands.
    pub(super) label: Option<Area>,
}

/// A picture whose parts have places.
#[derive(Debug, Clone)]
pub(super) struct Placed {
    pub(super) width: f64,
    pub(super) height: f64,
    /// By node.
    pub(super) nodes: Vec<Area>,
    /// By link.
    pub(super) links: Vec<Course>,
    /// Parallel steps, and the room of their members.
    pub(super) groups: Vec<(usize, Area)>,
}

/// Lays a picture out in layers, from the top down.
pub(super) fn place(graph: &Graph) -> Placed {
    let options = GraphOptions { directed: true, multigraph: true, compound: true };
    let mut canvas: Canvas<NodeLabel, EdgeLabel> = Canvas::with_options(options);
    for (index, node) in graph.nodes.iter().enumerate() {
        let (width, height) = size(node);
        canvas.set_node(id(index), Some(NodeLabel { width, height, ..NodeLabel::default() }));
    }
    for (index, node) in graph.nodes.iter().enumerate() {
        if let Some(parent) = node.parent {
            if !canvas.has_node(&group(parent)) {
                canvas.set_node(group(parent), Some(NodeLabel::default()));
            }
            canvas.set_parent(&id(index), Some(&group(parent)));
        }
    }
    for (index, link) in graph.links.iter().enumerate() {
        let longest = link.label.iter().map(|line| columns(line)).max().unwrap_or(0);
        let label = EdgeLabel {
            width: longest as f64 * SMALL_LETTER,
            height: link.label.len() as f64 * SMALL_LINE,
            labelpos: LabelPos::Center,
            ..EdgeLabel::default()
        };
        canvas.set_edge(id(link.from), id(link.to), Some(label), Some(&index.to_string()));
    }
    let spacing = LayoutOptions {
        nodesep: 36.0,
        edgesep: 18.0,
        ranksep: 34.0,
        marginx: MARGIN,
        marginy: MARGIN,
        ..LayoutOptions::default()
    };
    layout(&mut canvas, Some(spacing));
    placed(graph, &canvas)
}

fn placed(graph: &Graph, canvas: &Canvas<NodeLabel, EdgeLabel>) -> Placed {
    let area = |name: &str| {
        let node = canvas.node(name)?;
        let middle = At { x: node.x?, y: node.y? };
        Some(Area { middle, width: node.width, height: node.height })
    };
    let nowhere = Area { middle: At { x: 0.0, y: 0.0 }, width: 0.0, height: 0.0 };
    let nodes: Vec<Area> = (0..graph.nodes.len()).map(|index| area(&id(index)).unwrap_or(nowhere)).collect();
    let links: Vec<Course> = graph
        .links
        .iter()
        .enumerate()
        .map(|(index, link)| {
            let edge = canvas.edge(&id(link.from), &id(link.to), Some(&index.to_string()));
            let points = edge.map(|edge| &edge.points).into_iter().flatten();
            let label = edge.filter(|_| !link.label.is_empty()).and_then(|edge| {
                Some(Area { middle: At { x: edge.x?, y: edge.y? }, width: edge.width, height: edge.height })
            });
            Course { points: points.map(|point| At { x: point.x, y: point.y }).collect(), label }
        })
        .collect();
    let groups: Vec<(usize, Area)> = (0..graph.nodes.len())
        .filter(|index| graph.nodes[*index].kind == Kind::Parallel)
        .filter_map(|index| Some((index, area(&group(index))?)))
        .collect();
    let areas = || {
        let labels = links.iter().filter_map(|link| link.label.as_ref());
        nodes.iter().chain(groups.iter().map(|(_, area)| area)).chain(labels)
    };
    let points = || links.iter().flat_map(|link| &link.points);
    let width = areas().map(|area| area.right()).chain(points().map(|at| at.x)).fold(0.0, f64::max);
    let height = areas().map(|area| area.bottom()).chain(points().map(|at| at.y)).fold(0.0, f64::max);
    Placed { width: width + MARGIN, height: height + MARGIN, nodes, links, groups }
}

fn id(node: usize) -> String {
    format!("n{node}")
}

fn group(node: usize) -> String {
    format!("g{node}")
}

/// The lines that a node shows: its name, its title, what was found about it.
pub(super) fn lines(node: &Node) -> Vec<String> {
    let mut lines = vec![node.name.clone()];
    lines.extend(node.title.clone());
    lines.extend(node.marks.iter().map(|mark| format!("{}: {}", mark.severity.as_str(), mark.code)));
    lines
}

fn size(node: &Node) -> (f64, f64) {
    let lines = lines(node);
    let longest = lines.iter().map(|line| columns(line)).max().unwrap_or(0);
    let (width, height) = (longest as f64 * LETTER + 28.0, lines.len() as f64 * LINE + 16.0);
    match node.kind {
        // Their corners are cut off.
        Kind::Judge => (width * 1.3 + 10.0, height * 1.5 + 14.0),
        Kind::Commands | Kind::Person | Kind::Unknown => (width + 26.0, height),
        _ => (width, height),
    }
}
