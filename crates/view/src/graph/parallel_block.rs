//! The block of a parallel step: its members below the step.

use super::layout::{Area, LinkPath, Point, label_size, size_of_node};
use super::model::{Graph, NodeKind};

/// The maximum members in one column.
const COLUMN_MAX: usize = 6;
/// Padding of a block, and the gap between its members.
const PAD: f64 = 10.0;
const GAP: f64 = 10.0;
/// The distance between members and the line that leads to them.
const INDENT: f64 = 22.0;

/// A parallel step and its members, relative to the upper left corner of the block.
pub(super) struct ParallelBlock {
    pub(super) width: f64,
    pub(super) height: f64,
    /// The step itself.
    pub(super) head: Area,
    pub(super) members: Vec<(usize, Area)>,
    /// The links to them.
    pub(super) links: Vec<(usize, LinkPath)>,
}

/// The block of a node, when it has members.
pub(super) fn lay_out_block(graph: &Graph, parent: usize) -> Option<ParallelBlock> {
    if graph.nodes[parent].kind != NodeKind::Parallel {
        return None;
    }
    let members: Vec<usize> =
        (0..graph.nodes.len()).filter(|member| graph.nodes[*member].parent == Some(parent)).collect();
    let links = graph.links.iter().enumerate().filter(|(_, link)| link.from == parent);
    let links: Vec<(usize, usize)> =
        links.filter(|(_, link)| members.contains(&link.to)).map(|(at, link)| (at, link.to)).collect();
    let labels = links.iter().map(|(at, _)| label_size(&graph.links[*at].label));
    let (label_width, label_height) =
        labels.fold((0.0, 0.0), |(w, h): (f64, f64), (width, height)| (w.max(width), h.max(height)));
    let (head_width, head_height) = size_of_node(&graph.nodes[parent]);
    let below = PAD + head_height + GAP + if label_height > 0.0 { label_height + GAP } else { 0.0 };
    let (mut placed, mut left, mut height) = (Vec::new(), PAD, below);
    for column in members.chunks(COLUMN_MAX) {
        let (mut top, mut widest) = (below, 0.0_f64);
        for member in column {
            let (width, height) = size_of_node(&graph.nodes[*member]);
            let middle = Point { x: left + INDENT + width / 2.0, y: top + height / 2.0 };
            placed.push((*member, Area { middle, width, height }));
            top += height + GAP;
            widest = widest.max(width);
        }
        left += INDENT + widest + GAP;
        height = height.max(top);
    }
    let beside_label = PAD + INDENT + label_width + PAD;
    let width = (left - GAP + PAD).max(head_width + 2.0 * PAD).max(beside_label);
    let head = Area {
        middle: Point { x: width / 2.0, y: PAD + head_height / 2.0 },
        width: width - 2.0 * PAD,
        height: head_height,
    };
    let courses = links.iter().map(|(at, to)| {
        let area = placed.iter().find(|(member, _)| member == to).map_or(head, |(_, area)| *area);
        let line = area.left() - INDENT / 2.0;
        let begin = Point { x: line, y: head.bottom() };
        let points =
            vec![begin, Point { x: line, y: area.middle.y }, Point { x: area.left(), y: area.middle.y }];
        let (width, height) = label_size(&graph.links[*at].label);
        let middle = Point { x: PAD + INDENT + width / 2.0, y: head.bottom() + GAP + height / 2.0 };
        let label = (!graph.links[*at].label.is_empty()).then_some(Area { middle, width, height });
        (*at, LinkPath { points, label })
    });
    let links = courses.collect();
    Some(ParallelBlock { width, height: height - GAP + PAD, head, members: placed, links })
}
