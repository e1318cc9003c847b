//! Nodes, labels and links do not overlap, tested on random graphs.

use crate::graph::layout::{Area, PlacedGraph, Point, lay_out_graph};
use crate::graph::model::{Graph, Link, LinkStyle, Node, NodeKind};
use crate::testing::{piece, registry};

/// A deterministic pseudo-random generator.
struct Dice(u64);

impl Dice {
    fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((self.0 >> 33) % bound as u64) as usize
    }

    fn words(&mut self, most: usize) -> String {
        const WORDS: [&str; 6] = ["review", "the", "implementation", "again", "ok", "needs_more_work_first"];
        let words: Vec<&str> = (0..=self.below(most)).map(|_| WORDS[self.below(WORDS.len())]).collect();
        words.join(" ")
    }
}

fn node(dice: &mut Dice, at: usize, kind: NodeKind) -> Node {
    let title = (dice.below(3) == 0).then(|| dice.words(6));
    let name = format!("{}-{at}", dice.words(2).replace(' ', "-"));
    Node { name, title, kind, entry: at == 0, parent: None, marks: Vec::new() }
}

fn random(seed: u64) -> Graph {
    const KINDS: [NodeKind; 7] = [
        NodeKind::Work,
        NodeKind::Work,
        NodeKind::Judge,
        NodeKind::Check,
        NodeKind::Parallel,
        NodeKind::Commands,
        NodeKind::Person,
    ];
    let mut dice = Dice(seed);
    let steps = 1 + dice.below(24);
    let mut nodes: Vec<Node> = (0..steps)
        .map(|at| {
            let kind = KINDS[dice.below(KINDS.len())];
            node(&mut dice, at, kind)
        })
        .collect();
    nodes.push(node(&mut dice, steps, NodeKind::Completed));
    nodes.push(node(&mut dice, steps + 1, NodeKind::Failed));
    let (mut links, outer) = (Vec::new(), nodes.len());
    for from in 0..steps {
        for _ in 0..1 + dice.below(4) {
            // Mostly forward, sometimes far, back, or to itself.
            let to =
                if dice.below(3) > 0 { (from + 1 + dice.below(3)).min(outer - 1) } else { dice.below(outer) };
            let label = (0..dice.below(3)).map(|_| dice.words(14)).collect();
            let line = [LinkStyle::Plain, LinkStyle::Remedy, LinkStyle::Asks][dice.below(3)];
            if !links.iter().any(|link: &Link| (link.from, link.to, link.line) == (from, to, line)) {
                links.push(Link { from, to, label, line });
            }
        }
    }
    for parent in (0..steps).filter(|at| nodes[*at].kind == NodeKind::Parallel).collect::<Vec<_>>() {
        for index in 0..2 + dice.below(8) {
            let mut member = node(&mut dice, nodes.len(), NodeKind::Work);
            member.parent = Some(parent);
            let label = if index == 0 { vec!["2 at a time".to_owned()] } else { Vec::new() };
            links.push(Link { from: parent, to: nodes.len(), label, line: LinkStyle::Asks });
            nodes.push(member);
        }
    }
    let (name, dialect) = ("random".to_owned(), "example".to_owned());
    Graph { name, dialect, nodes, links, notes: Vec::new() }
}

fn apart(one: &Area, other: &Area) -> bool {
    one.right() <= other.left() + 0.5
        || other.right() <= one.left() + 0.5
        || one.bottom() <= other.top() + 0.5
        || other.bottom() <= one.top() + 0.5
}

/// Whether the segment between two points crosses an area, excluding its border.
fn crosses(from: Point, to: Point, area: &Area) -> bool {
    let (mut enters, mut leaves) = (0.0_f64, 1.0_f64);
    let sides = [
        (to.x - from.x, from.x, area.left() + 1.0, area.right() - 1.0),
        (to.y - from.y, from.y, area.top() + 1.0, area.bottom() - 1.0),
    ];
    for (way, at, low, high) in sides {
        if way.abs() < 1e-9 {
            if at <= low || at >= high {
                return false;
            }
            continue;
        }
        let (one, other) = ((low - at) / way, (high - at) / way);
        enters = enters.max(one.min(other));
        leaves = leaves.min(one.max(other));
    }
    enters < leaves
}

/// All overlaps and crossings.
fn overlaps(graph: &Graph, placed: &PlacedGraph) -> Vec<String> {
    let mut overlaps = Vec::new();
    let outer = |at: usize| graph.nodes[at].parent.unwrap_or(at);
    let outline = |at: usize| {
        let group = placed.groups.iter().find(|(parent, _)| *parent == at);
        group.map_or(placed.nodes[at], |(_, area)| *area)
    };
    // Members are compared within their block, the block with all other nodes.
    let mut boxes: Vec<(String, Option<usize>, usize, Area)> = Vec::new();
    for at in 0..graph.nodes.len() {
        let name = graph.nodes[at].name.clone();
        match graph.nodes[at].parent {
            Some(parent) => boxes.push((name, Some(parent), at, placed.nodes[at])),
            None => boxes.push((name, None, at, outline(at))),
        }
    }
    for (at, (link, course)) in graph.links.iter().zip(&placed.links).enumerate() {
        let Some(area) = course.label else { continue };
        let within = (graph.nodes[link.to].parent == Some(link.from)).then_some(link.from);
        boxes.push((format!("label {at}"), within, usize::MAX - at, area));
    }
    for (index, (name, within, _, area)) in boxes.iter().enumerate() {
        let inside = area.left() >= 0.0 && area.right() <= placed.width && area.top() >= 0.0;
        if !inside || area.bottom() > placed.height {
            overlaps.push(format!("{name} is outside"));
        }
        for (other, where_, _, room) in boxes[index + 1..].iter().filter(|other| other.1 == *within) {
            if where_ == within && !apart(area, room) {
                overlaps.push(format!("{name} overlaps {other}"));
            }
        }
    }
    for (at, (link, course)) in graph.links.iter().zip(&placed.links).enumerate() {
        let within = (graph.nodes[link.to].parent == Some(link.from)).then_some(link.from);
        for (name, _, _, area) in boxes.iter().filter(|known| {
            let own = [outer(link.from), outer(link.to), link.from, link.to, usize::MAX - at];
            known.1 == within && !own.contains(&known.2)
        }) {
            if course.points.windows(2).any(|pair| crosses(pair[0], pair[1], area)) {
                overlaps.push(format!("the line {} → {} crosses {name}", link.from, link.to));
            }
        }
    }
    overlaps
}

#[test]
fn nothing_overlaps() {
    for flow in [registry(), piece()] {
        let graph = Graph::new(&flow, &[]);
        assert_eq!(overlaps(&graph, &lay_out_graph(&graph)), [""; 0]);
    }
    let mut all = Vec::new();
    for seed in 0..200 {
        let graph = random(seed);
        let placed = lay_out_graph(&graph);
        all.extend(overlaps(&graph, &placed).into_iter().map(|overlap| format!("{seed}: {overlap}")));
    }
    assert!(all.is_empty(), "{} overlaps: {:#?}", all.len(), &all[..all.len().min(20)]);
}

/// Members are below their step, whatever its links.
#[test]
fn members_are_below_their_step() {
    for seed in 0..200 {
        let graph = random(seed);
        let placed = lay_out_graph(&graph);
        for (at, node) in graph.nodes.iter().enumerate() {
            let Some(parent) = node.parent else { continue };
            let (head, member) = (placed.nodes[parent], placed.nodes[at]);
            let (_, room) = placed.groups.iter().find(|(group, _)| *group == parent).unwrap();
            assert!(member.top() > head.bottom() && member.left() >= room.left());
            assert!(member.right() <= room.right() + 0.5 && member.bottom() <= room.bottom() + 0.5);
        }
    }
}
