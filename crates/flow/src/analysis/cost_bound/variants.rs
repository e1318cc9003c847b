//! The bound over several variants of a flow, any of which may run.

use super::{Certificate, Terms, WalkMeasure, WalkedGraph, build_certificate, sensitivity};
use crate::model::Flow;

/// A flow, its terms, and its graph.
pub(super) struct Variant<'w> {
    pub(super) flow: &'w Flow,
    pub(super) terms: &'w Terms,
    pub(super) walked: WalkedGraph<'w>,
}

impl<'w> Variant<'w> {
    fn of((flow, terms): (&'w Flow, &'w Terms)) -> Variant<'w> {
        Variant { flow, terms, walked: WalkedGraph::of(flow, terms) }
    }

    /// The terms with the walked number of iterations.
    pub(super) fn found(&self) -> Terms {
        Terms { iterations_max: self.walked.iterations_max, ..self.terms.clone() }
    }

    /// The maximum of the measure.
    pub(super) fn dearest(&self, by: WalkMeasure) -> u64 {
        self.walked.dearest(&self.found(), by)
    }
}

/// The maximum over runs of a flow and of its variants: each number is the maximum of all of them. The second part is
/// the index of the variant with the worst walk, 0 being the first. That walk is reported, and its best key; the effect
/// of the key holds for all variants.
pub fn price_any(first: (&Flow, &Terms), others: &[(&Flow, &Terms)]) -> (Certificate, usize) {
    let all = std::iter::once(first).chain(others.iter().copied());
    let ways: Vec<Variant<'_>> = all.map(Variant::of).collect();
    let by = WalkMeasure::of_all(&ways);
    let dearest = match ways.len() {
        1 => 0,
        _ => (0..ways.len()).rev().max_by_key(|at| ways[*at].dearest(by)).unwrap_or(0),
    };
    let of = |way: &Variant<'_>| build_certificate(way.flow, way.terms, &way.walked, by);
    let mut found = of(&ways[dearest]);
    for (_, other) in ways.iter().enumerate().filter(|(at, _)| *at != dearest) {
        found = at_most(found, of(other));
    }
    found.lever = sensitivity::find_best_key(&ways, dearest, by);
    (found, dearest)
}

impl WalkMeasure {
    /// The measure by which the walks of all flows are compared.
    fn of_all(ways: &[Variant<'_>]) -> WalkMeasure {
        let differs = ways.iter().any(|way| way.walked.dear(way.terms) == WalkMeasure::Money);
        let is_known = |way: &Variant<'_>| super::is_known(way.flow, way.terms);
        if differs && ways.iter().all(is_known) { WalkMeasure::Money } else { WalkMeasure::Asks }
    }
}

/// The maximum of two certificates: the walk and what ends it are those of the first.
fn at_most(one: Certificate, other: Certificate) -> Certificate {
    let by_role = super::AskRole::ALL.into_iter().filter_map(|role| {
        let of = |found: &Certificate| {
            found.by_role.iter().find(|(known, _)| *known == role).map(|(_, most)| *most)
        };
        Some((role, of(&one).max(of(&other))?))
    });
    let by_role = by_role.collect();
    // A number that is unbounded in one of them is unbounded.
    let bounded = |one: Option<u64>, other: Option<u64>| Some(one?.max(other?));
    let both = |one: Vec<String>, other: Vec<String>| {
        let mut all = one;
        let new: Vec<String> = other.into_iter().filter(|said| !all.contains(said)).collect();
        all.extend(new);
        all
    };
    Certificate {
        visits: one.visits.max(other.visits),
        iterations: one.iterations.max(other.iterations),
        asks: one.asks.max(other.asks),
        by_role,
        tokens: bounded(one.tokens, other.tokens),
        usd_micro: bounded(one.usd_micro, other.usd_micro),
        assumptions: both(one.assumptions, other.assumptions),
        unbounded_because: both(one.unbounded_because, other.unbounded_because),
        endless: one.endless || other.endless,
        ..one
    }
}
