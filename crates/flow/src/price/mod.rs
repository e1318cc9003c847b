//! The most that a run can do: a certificate, not an estimate.
//!
//! A run is a walk over the steps of its flow, one iteration a step that counts. Its limit makes walks finite, so that
//! the dearest one can be found exactly: iteration by iteration, for each step the most that a walk to it can have
//! cost. Counters of bounded edges are not followed, a walk may take such an edge as often as it likes; that makes the
//! bound an upper one, never a lower one.

mod components;
mod graph;
mod search;
mod terms;
mod walk;
mod weights;

pub use terms::{Rate, Terms};
pub use weights::AskRole;

use std::collections::BTreeSet;

use crate::{Act, CounterId, Flow, Str, Verdict};
use graph::Ways;
use weights::{Measure, Weights};

/// The most that a run can do and cost.
#[derive(Debug, Clone, PartialEq)]
pub struct Certificate {
    /// Visits of steps: members of a parallel step each, the parallel step itself not.
    pub visits: u64,
    /// Iterations.
    pub iterations: u64,
    /// Asks, whatever for.
    pub asks: u64,
    /// Asks by what they are for. Each is the most of its kind; together they can be more than [`Certificate::asks`].
    pub by_role: Vec<(AskRole, u64)>,
    /// Tokens, read and written ones together; `None` = not bounded.
    pub tokens: Option<u64>,
    /// Millionths of a US dollar; `None` = not bounded.
    pub usd_micro: Option<u64>,
    /// What the numbers rest on, a sentence each.
    pub assumptions: Vec<String>,
    /// Why something is not bounded, a sentence each.
    pub unbounded_because: Vec<String>,
    /// Whether some steps lead to each other without an iteration between them: then visits and asks are not bounded.
    pub endless: bool,
    /// A walk with the most asks: steps in order, and how often each is done back to back.
    pub path: Vec<(Str, u64)>,
    /// What ends that walk.
    pub bounded_by: BoundedBy,
    /// The one setting that would lower the number of asks most.
    pub lever: Option<Lever>,
}

/// What ends the dearest walk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BoundedBy {
    /// The limit of iterations.
    Iterations,
    /// The flow: no walk is longer.
    Shape,
    /// The budget's number of asks.
    Budget,
}

/// A setting, and what lowering it does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lever {
    /// The setting.
    pub key: &'static str,
    /// Its value.
    pub from: u64,
    /// A lower one.
    pub to: u64,
    /// The most asks with that.
    pub asks: u64,
}

/// The most that a run of a flow can do under some terms.
///
/// Exact but for counters, which it does not follow. It counts what follows by itself: people who answer questions and
/// resume with more can make a run do more. Takes time in proportion to
/// iterations × edges where that is little, and mostly to the edges alone where it is much.
pub fn price(flow: &Flow, terms: &Terms) -> Certificate {
    let ways = Ways::of(flow);
    let mut terms = terms.clone();
    if let (Some(max), Some(remedies)) = (iterations_of(&flow.verdict), remedies_max(flow)) {
        terms.iterations_max = terms.iterations_max.min(max.saturating_add(remedies));
    }
    let terms = &terms;
    let most = |terms: &Terms, measure: Measure| most(flow, &ways, terms, measure);
    let asks = most(terms, Measure::Asks);
    let budget = terms.asks.unwrap_or(u64::MAX);
    let by_role = AskRole::ALL
        .into_iter()
        .map(|role| (role, most(terms, Measure::Role(role)).min(budget)))
        .filter(|(_, most)| *most > 0)
        .collect();
    let walk = walk::dearest(flow, &ways, &Weights::new(flow, terms, Measure::Asks), terms.iterations_max);
    let mut certificate = Certificate {
        visits: most(terms, Measure::Visits),
        iterations: walk.iterations,
        asks: asks.min(budget),
        by_role,
        tokens: terms.tokens_of(asks.min(budget)),
        usd_micro: money(flow, &ways, terms, asks.min(budget)),
        assumptions: terms.assumptions(flow),
        unbounded_because: Vec::new(),
        endless: !ways.endless.is_empty(),
        path: walk.legs,
        bounded_by: match () {
            () if asks > budget => BoundedBy::Budget,
            () if walk.iterations >= u64::from(terms.iterations_max) => BoundedBy::Iterations,
            () => BoundedBy::Shape,
        },
        lever: lever(terms, asks, |terms| most(terms, Measure::Asks)),
    };
    certificate.unbounded_because = terms.unbounded(flow, &certificate);
    if !ways.endless.is_empty() {
        let names: Vec<&str> = ways.endless.iter().map(|id| &*flow.step(*id).name).collect();
        certificate.unbounded_because.push(format!(
            "{} lead to each other without an iteration between them: nothing counts how often",
            names.join(", ")
        ));
    }
    certificate
}

/// After how many iterations a verdict ends every run.
fn iterations_of(verdict: &Verdict) -> Option<u32> {
    match verdict {
        Verdict::Iterations(max) => Some(*max),
        Verdict::Any(parts) | Verdict::First(parts) => parts.iter().filter_map(iterations_of).min(),
        Verdict::Every(parts) if !parts.is_empty() => {
            parts.iter().map(iterations_of).collect::<Option<Vec<u32>>>()?.into_iter().max()
        }
        _ => None,
    }
}

/// How often a validator that has just failed can put its remedy before the verdict's word; `None` without a limit.
fn remedies_max(flow: &Flow) -> Option<u32> {
    let execs = flow.steps.iter().filter(|step| matches!(step.act, Act::Exec { .. }));
    let remedies = execs.flat_map(|step| &step.edges).filter(|edge| edge.remedy.is_some() || edge.again);
    let bounds: Option<BTreeSet<(CounterId, u32)>> =
        remedies.map(|edge| edge.bound.map(|bound| (bound.counter, bound.max))).collect();
    let bounds = bounds?;
    let resets =
        |counter| flow.steps.iter().flat_map(|step| &step.edges).any(|edge| edge.resets.contains(&counter));
    if bounds.iter().any(|(counter, _)| resets(*counter)) {
        return None;
    }
    Some(bounds.iter().fold(0, |sum, (_, max)| sum.saturating_add(*max)))
}

/// The most of one measure, what monitors' judges add included.
fn most(flow: &Flow, ways: &Ways, terms: &Terms, measure: Measure) -> u64 {
    let weights = Weights::new(flow, terms, measure);
    let walked = walk::most(flow, ways, &weights, terms.iterations_max);
    walked.saturating_add(weights.of_monitors(flow, terms.iterations_max))
}

/// What the dearest walk costs: each ask at its cap, never more than the budget.
fn money(flow: &Flow, ways: &Ways, terms: &Terms, asks: u64) -> Option<u64> {
    let unknown = flow.steps.iter().any(|step| match &step.act {
        Act::Ask(ask) => terms.usd_of(flow, ask).is_none(),
        _ => false,
    });
    let walked = (!unknown).then(|| most(flow, ways, terms, Measure::Money));
    // A budget of asks bounds money as well: so many of the dearest.
    let by_asks = terms.asks.and_then(|_| terms.dearest(flow)).map(|dearest| dearest.saturating_mul(asks));
    [walked, by_asks, terms.usd_micro].into_iter().flatten().min()
}

fn lever(terms: &Terms, asks: u64, most: impl Fn(&Terms) -> u64) -> Option<Lever> {
    let mut levers = Vec::new();
    if terms.iterations_max > 1 {
        let to = terms.iterations_max / 2;
        let lower = Terms { iterations_max: to, ..terms.clone() };
        let (from, to) = (u64::from(terms.iterations_max), u64::from(to));
        levers.push(Lever { key: "iterations", from, to, asks: most(&lower) });
    }
    if terms.repairs_max > 0 {
        let lower = Terms { repairs_max: terms.repairs_max - 1, ..terms.clone() };
        let (from, to) = (u64::from(terms.repairs_max), u64::from(terms.repairs_max - 1));
        levers.push(Lever { key: "repairs", from, to, asks: most(&lower) });
    }
    levers.into_iter().filter(|lever| lever.asks < asks).min_by_key(|lever| lever.asks)
}

#[cfg(test)]
mod tests;
