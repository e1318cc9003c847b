//! The routes of links: vertical through a layer, slanted only between layers, so that they do not cross nodes.

use super::layout::{Area, LinkPath, Point};
use super::model::{Graph, NodeKind};

/// The distance of links from the corners of nodes.
const CORNER: f64 = 14.0;

/// The straight length of a link at both ends, so that its arrowhead points at the node.
const STUB: f64 = 10.0;

/// The vertical extent of a layer.
#[derive(Debug, Clone, Copy)]
struct Layer {
    top: f64,
    bottom: f64,
}

/// Routes links between the outlines of their nodes. Self-links stay unchanged.
pub(super) fn route_links(graph: &Graph, outlines: &[Area], links: &mut [LinkPath]) {
    let layers = find_layers(graph, outlines, links);
    let outer = |index: usize| graph.nodes[index].parent.unwrap_or(index);
    let between: Vec<usize> = (0..links.len())
        .filter(|at| {
            let link = &graph.links[*at];
            links[*at].points.len() >= 2 && outer(link.from) != outer(link.to)
        })
        .collect();
    let ports = spread_link_ends(graph, outlines, links, &between);
    for at in between {
        let link = &graph.links[at];
        let (from, to) = (outlines[outer(link.from)], outlines[outer(link.to)]);
        let down = from.middle.y < to.middle.y;
        let (begin, end) = ports[at];
        let course = &mut links[at];
        let rim = |node: usize, x: f64, below: bool| {
            rim_y_of_shape(graph.nodes[outer(node)].kind, outlines[outer(node)], x, below)
        };
        let mut points = vec![Point { x: begin, y: rim(link.from, begin, down) }];
        points.push(Point { x: begin, y: points[0].y + if down { STUB } else { -STUB } });
        let mut through = |x: f64, layer: Layer, entered: bool, left: bool| {
            let (first, last) = if down { (layer.top, layer.bottom) } else { (layer.bottom, layer.top) };
            points.extend(entered.then_some(Point { x, y: first }));
            points.extend(left.then_some(Point { x, y: last }));
        };
        through(begin, layer_at(&layers, from.middle.y), false, true);
        let inner = course.points[1..course.points.len() - 1].iter();
        for bend in inner.filter(|bend| is_between(bend.y, from.middle.y, to.middle.y)) {
            through(bend.x, layer_at(&layers, bend.y), true, true);
        }
        through(end, layer_at(&layers, to.middle.y), true, false);
        let tip = Point { x: end, y: rim(link.to, end, !down) };
        points.extend([Point { x: end, y: tip.y - if down { STUB } else { -STUB } }, tip]);
        // Points are in vertical order: a node lower than its layer already has a straight part there.
        points.sort_by(|one, other| if down { one.y.total_cmp(&other.y) } else { other.y.total_cmp(&one.y) });
        points.dedup_by(|a, b| (a.x - b.x).abs() < 0.05 && (a.y - b.y).abs() < 0.05);
        course.points = points;
    }
}

fn is_between(y: f64, one: f64, other: f64) -> bool {
    y > one.min(other) + 0.5 && y < one.max(other) - 0.5
}

/// Nodes and labels with one centre height form a layer, as high as the highest of them.
fn find_layers(graph: &Graph, outlines: &[Area], links: &[LinkPath]) -> Vec<(f64, Layer)> {
    let mut found: Vec<(f64, Layer)> = Vec::new();
    let own = outlines.iter().zip(&graph.nodes).filter(|(_, node)| node.parent.is_none());
    let labels = links.iter().filter_map(|link| link.label.as_ref());
    for area in own.map(|(area, _)| area).chain(labels) {
        let layer = Layer { top: area.top(), bottom: area.bottom() };
        match found.iter_mut().find(|(middle, _)| (middle - area.middle.y).abs() < 0.5) {
            Some((_, known)) => {
                known.top = known.top.min(layer.top);
                known.bottom = known.bottom.max(layer.bottom);
            }
            None => found.push((area.middle.y, layer)),
        }
    }
    found
}

/// The layer of a height, else a layer of zero height.
fn layer_at(layers: &[(f64, Layer)], y: f64) -> Layer {
    let known = layers.iter().find(|(middle, _)| (middle - y).abs() < 0.5);
    known.map_or(Layer { top: y, bottom: y }, |(_, layer)| *layer)
}

/// The x positions of both ends of each link. Ends at one side of a node are spread out, in the order of their targets.
fn spread_link_ends(
    graph: &Graph,
    outlines: &[Area],
    links: &[LinkPath],
    between: &[usize],
) -> Vec<(f64, f64)> {
    let outer = |index: usize| graph.nodes[index].parent.unwrap_or(index);
    let mut ports = vec![(0.0, 0.0); links.len()];
    for (node, area) in outlines.iter().enumerate().filter(|(node, _)| outer(*node) == *node) {
        for below in [false, true] {
            let mut ends: Vec<(f64, usize, bool)> = Vec::new();
            for at in between {
                let (from, to) = (outer(graph.links[*at].from), outer(graph.links[*at].to));
                let points = &links[*at].points;
                let down = outlines[from].middle.y < outlines[to].middle.y;
                if from == node && down == below {
                    ends.push((points[1].x, *at, true));
                } else if to == node && down != below {
                    ends.push((points[points.len() - 2].x, *at, false));
                }
            }
            ends.sort_by(|one, other| one.0.total_cmp(&other.0).then(one.1.cmp(&other.1)));
            let inset = insets_of_shape(graph.nodes[node].kind, *area, below);
            let (left, right) = (area.left() + inset.0, area.right() - inset.1);
            let count = ends.len();
            for (place, (x, at, begins)) in ends.into_iter().enumerate() {
                let slot = left + (right - left) * (place as f64 + 0.5) / count as f64;
                let half = ((right - left) / (2.0 * count as f64)).max(0.0);
                let port = match graph.nodes[node].kind {
                    NodeKind::Judge if count == 1 => area.middle.x,
                    _ => x.clamp(slot - half * 0.6, slot + half * 0.6),
                };
                if begins {
                    ports[at].0 = port;
                } else {
                    ports[at].1 = port;
                }
            }
        }
    }
    ports
}

/// The y position where a link from above or below meets a shape.
fn rim_y_of_shape(kind: NodeKind, area: Area, x: f64, below: bool) -> f64 {
    let aside = (x - area.middle.x).abs() / (area.width / 2.0).max(1.0);
    let inwards = if kind == NodeKind::Judge { aside.min(1.0) * area.height / 2.0 } else { 0.0 };
    if below { area.bottom() - inwards } else { area.top() + inwards }
}

/// The insets from the left and right at which the side of a shape is straight.
fn insets_of_shape(kind: NodeKind, area: Area, below: bool) -> (f64, f64) {
    let round = (area.height / 2.0).min(area.width / 2.0);
    let corner = CORNER.min(area.width / 2.0);
    match kind {
        // Near the corner of the diamond, where its sides are still close to it.
        NodeKind::Judge => (area.width * 0.36, area.width * 0.36),
        NodeKind::Check | NodeKind::Completed | NodeKind::Aborted | NodeKind::Failed => (round, round),
        NodeKind::Person if below => (4.0, corner),
        NodeKind::Person => (corner, 4.0),
        NodeKind::Work | NodeKind::Parallel | NodeKind::Commands | NodeKind::System | NodeKind::Unknown => {
            (corner, corner)
        }
    }
}
