//! The layout of a graph.
//!
//! Steps are in layers, from top to bottom. A parallel step and its members form one block. Links run vertically
//! through a layer and slant only between layers.

use dagre::graph::{Graph as Canvas, GraphOptions};
use dagre::layout::types::LabelPos;
use dagre::{EdgeLabel, LayoutOptions, NodeLabel, layout};

use super::labels::{label_lines, node_lines};
use super::lanes::route_links;
use super::model::{Graph, Node, NodeKind};
use super::parallel_block::{ParallelBlock, lay_out_block};
use crate::text::count_columns;

/// The average width of a lower-case letter in pixels; fonts differ, so it is an overestimate.
pub(super) const LETTER: f64 = 7.6;
/// The same for the smaller letters of labels.
pub(super) const SMALL_LETTER: f64 = 6.6;
/// The height of a line in a node.
pub(super) const LINE: f64 = 17.0;
/// The height of a line in a label.
pub(super) const SMALL_LINE: f64 = 14.0;
/// The width that an incoming or outgoing link needs at a node.
const PORT: f64 = 9.0;
/// The margin around the graph.
const MARGIN: f64 = 24.0;

#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Point {
    pub(super) x: f64,
    pub(super) y: f64,
}

/// A rectangle by its centre.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Area {
    pub(super) middle: Point,
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

    /// The same size elsewhere.
    pub(super) fn moved(self, x: f64, y: f64) -> Area {
        Area { middle: Point { x: self.middle.x + x, y: self.middle.y + y }, ..self }
    }
}

/// A link as it is drawn.
#[derive(Debug, Clone)]
pub(super) struct LinkPath {
    /// From node to node.
    pub(super) points: Vec<Point>,
    /// The area of its label.
    pub(super) label: Option<Area>,
}

/// A graph with positions.
#[derive(Debug, Clone)]
pub(super) struct PlacedGraph {
    pub(super) width: f64,
    pub(super) height: f64,
    /// By node.
    pub(super) nodes: Vec<Area>,
    /// By link.
    pub(super) links: Vec<LinkPath>,
    /// Parallel steps with the areas of their blocks.
    pub(super) groups: Vec<(usize, Area)>,
}

/// Lays out a graph in layers, from top to bottom.
pub(super) fn lay_out_graph(graph: &Graph) -> PlacedGraph {
    let options = GraphOptions { directed: true, multigraph: true, compound: false };
    let mut canvas: Canvas<NodeLabel, EdgeLabel> = Canvas::with_options(options);
    let blocks: Vec<Option<ParallelBlock>> =
        (0..graph.nodes.len()).map(|index| lay_out_block(graph, index)).collect();
    for (index, node) in graph.nodes.iter().enumerate().filter(|(_, node)| node.parent.is_none()) {
        let (width, height) = match &blocks[index] {
            Some(block) => (block.width, block.height),
            None => size_of_node(node),
        };
        // Links enter and leave side by side.
        let ends = graph.links.iter().filter(|link| link.from == index || link.to == index).count();
        let width = width.max(ends as f64 * PORT + 28.0);
        canvas.set_node(id_of_node(index), Some(NodeLabel { width, height, ..NodeLabel::default() }));
    }
    let outer = |index: usize| graph.nodes[index].parent.unwrap_or(index);
    for (index, link) in graph.links.iter().enumerate().filter(|(_, link)| !is_within(graph, link)) {
        let (width, height) = label_size(&link.label);
        let label = EdgeLabel { width, height, labelpos: LabelPos::Center, ..EdgeLabel::default() };
        canvas.set_edge(
            id_of_node(outer(link.from)),
            id_of_node(outer(link.to)),
            Some(label),
            Some(&index.to_string()),
        );
    }
    let spacing = LayoutOptions {
        nodesep: 24.0,
        edgesep: 14.0,
        ranksep: 56.0,
        marginx: MARGIN,
        marginy: MARGIN,
        ..LayoutOptions::default()
    };
    layout(&mut canvas, Some(spacing));
    read_placed_graph(graph, &canvas, &blocks)
}

/// Whether a link leads from a parallel step to its member, inside the block.
pub(super) fn is_within(graph: &Graph, link: &super::model::Link) -> bool {
    graph.nodes[link.to].parent == Some(link.from)
}

fn read_placed_graph(
    graph: &Graph,
    canvas: &Canvas<NodeLabel, EdgeLabel>,
    blocks: &[Option<ParallelBlock>],
) -> PlacedGraph {
    let outer = |index: usize| graph.nodes[index].parent.unwrap_or(index);
    let area = |index: usize| {
        let node = canvas.node(&id_of_node(index))?;
        Some(Area { middle: Point { x: node.x?, y: node.y? }, width: node.width, height: node.height })
    };
    let nowhere = Area { middle: Point { x: 0.0, y: 0.0 }, width: 0.0, height: 0.0 };
    let outlines: Vec<Area> =
        (0..graph.nodes.len()).map(|index| area(outer(index)).unwrap_or(nowhere)).collect();
    let mut nodes = outlines.clone();
    let mut links: Vec<LinkPath> = graph
        .links
        .iter()
        .enumerate()
        .map(|(index, link)| {
            let edge = canvas.edge(
                &id_of_node(outer(link.from)),
                &id_of_node(outer(link.to)),
                Some(&index.to_string()),
            );
            let points = edge.map(|edge| &edge.points).into_iter().flatten();
            let label = edge.filter(|_| !link.label.is_empty()).and_then(|edge| {
                Some(Area {
                    middle: Point { x: edge.x?, y: edge.y? },
                    width: edge.width,
                    height: edge.height,
                })
            });
            LinkPath { points: points.map(|point| Point { x: point.x, y: point.y }).collect(), label }
        })
        .collect();
    route_links(graph, &outlines, &mut links);
    let mut groups = Vec::new();
    for (index, block) in blocks.iter().enumerate() {
        let Some(block) = block else { continue };
        let room = outlines[index];
        groups.push((index, room));
        let (x, y) = (room.left(), room.top());
        nodes[index] = block.head.moved(x, y);
        for (member, area) in &block.members {
            nodes[*member] = area.moved(x, y);
        }
        for (link, course) in &block.links {
            let points = course.points.iter().map(|at| Point { x: at.x + x, y: at.y + y }).collect();
            links[*link] = LinkPath { points, label: course.label.map(|label| label.moved(x, y)) };
        }
    }
    let areas = || {
        let labels = links.iter().filter_map(|link| link.label.as_ref());
        nodes.iter().chain(groups.iter().map(|(_, area)| area)).chain(labels)
    };
    let points = || links.iter().flat_map(|link| &link.points);
    let width = areas().map(|area| area.right()).chain(points().map(|at| at.x)).fold(0.0, f64::max);
    let height = areas().map(|area| area.bottom()).chain(points().map(|at| at.y)).fold(0.0, f64::max);
    PlacedGraph { width: width + MARGIN, height: height + MARGIN, nodes, links, groups }
}

fn id_of_node(node: usize) -> String {
    format!("n{node}")
}

pub(super) fn label_size(label: &[String]) -> (f64, f64) {
    let lines = label_lines(label);
    let longest = lines.iter().map(|line| estimate_text_width(line, SMALL_LETTER)).fold(0.0, f64::max);
    (longest, lines.len() as f64 * SMALL_LINE)
}

/// Joins two emoji into one.
const JOINER: char = '\u{200d}';

/// An upper bound on the width of a text, by the width of a lower-case letter; texts without [`is_sure`] may be wider.
pub(super) fn estimate_text_width(text: &str, letter: f64) -> f64 {
    let mut before = None;
    let letters: f64 = text
        .chars()
        .map(|c| match c {
            // Parts of one emoji.
            _ if before.replace(c) == Some(JOINER) => 0.0,
            JOINER | '\u{1f3fb}'..='\u{1f3ff}' => 0.0,
            '\u{1f1e6}'..='\u{1f1ff}' => 1.25,
            'W' | 'M' | 'm' | 'w' | '@' | '%' => 1.7,
            'A'..='Z' => 1.35,
            '0'..='9' | '_' | '&' => 1.25,
            c if c.is_ascii() => 1.0,
            'Ш' | 'Щ' | 'Ж' | 'Ю' | 'Ф' | 'Ы' | 'М' | 'Љ' | 'Њ' | 'Æ' | 'Œ' => 2.35,
            'ш' | 'щ' | 'ж' | 'ю' | 'ф' | 'ы' | 'м' | 'љ' | 'њ' | 'æ' | 'œ' => 1.85,
            c => match count_columns(c.encode_utf8(&mut [0; 4])) {
                1 if c.is_lowercase() => 1.4,
                1 => 1.7,
                columns => 1.25 * columns as f64,
            },
        })
        .sum();
    letters * letter
}

/// Whether [`estimate_text_width`] is an upper bound in every font: not for sentence ligatures, long dashes and rare scripts.
pub(super) fn is_sure(text: &str) -> bool {
    text.chars().all(|c| {
        matches!(c as u32, 0..=0x06FF | 0x0E00..=0x0E7F | 0x1E00..=0x27BF | 0x1F1E6..=0x1F1FF)
            || count_columns(c.encode_utf8(&mut [0; 4])) != 1
    })
}

pub(super) fn size_of_node(node: &Node) -> (f64, f64) {
    let lines = node_lines(node);
    let longest = lines.iter().map(|line| estimate_text_width(line, LETTER)).fold(0.0, f64::max);
    let (width, height) = (longest + 28.0, lines.len() as f64 * LINE + 16.0);
    match node.kind {
        // A diamond holds less text than its bounding box.
        NodeKind::Judge => (width * 1.3 + 10.0, height * 1.5 + 14.0),
        NodeKind::Commands | NodeKind::Person | NodeKind::Unknown => (width + 26.0, height),
        _ => (width, height),
    }
}
