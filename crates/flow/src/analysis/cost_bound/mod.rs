//! The maximum that a run can do: a certificate, not an estimate.
//!
//! A run is a walk over the steps of its flow; each step that counts is one iteration. The iteration limit makes walks
//! finite, so the worst walk can be computed exactly: iteration by iteration, the maximum cost of a walk to each step.
//! The memory of the run (counters and so on) is unrolled first: one place for each state of a step. With too many
//! states, walks may take bounded edges without limit; the bound is then an upper bound, never too low.

mod edges;
mod memory;
mod one_pass;
mod sensitivity;
mod successors;
mod terms;
mod unroll;
mod variants;
mod verdict_counters;
mod walk;
mod weights;

pub use one_pass::calls_of_one_pass;
pub use sensitivity::Sensitivity;
pub use terms::{ConfiguredModel, PricedModel, Rate, Terms};
pub use variants::price_any;
pub use weights::AskRole;

use std::{
    cell::RefCell,
    collections::{BTreeMap, BTreeSet},
    rc::Rc,
};

use crate::{
    Str,
    model::{Act, Flow, StepId, Verdict},
};
use edges::PlaceGraph;
use terms::{IgnoredCounters, drop_saturated_amount};
use unroll::{TrackedMemory, UnrolledFlow, is_unrolled};
use verdict_counters::{iterations_of, may_wait};
use weights::{Measure, Weights};

/// The most tries of an ask whose agent call fails; the usage of each try is paid.
pub const TRIES_MAX: u64 = 3;

/// The maximum that a run can do and cost.
#[derive(Debug, Clone, PartialEq)]
pub struct Certificate {
    /// Visits of steps; of a parallel step, only its members count.
    pub visits: u64,
    pub iterations: u64,
    /// Asks of all kinds.
    pub asks: u64,
    /// Asks by kind. Each is the maximum of its kind; their sum can exceed [`Certificate::asks`].
    pub by_role: Vec<(AskRole, u64)>,
    /// Input and output tokens together; `None` = not bounded.
    pub tokens: Option<u64>,
    /// Millionths of a US dollar; `None` = not bounded.
    pub usd_micro: Option<u64>,
    /// The assumptions behind the numbers, one sentence each.
    pub assumptions: Vec<String>,
    /// Why something is not bounded, one sentence each.
    pub unbounded_because: Vec<String>,
    /// Whether a cycle of uncounted steps exists; visits and asks are then not bounded.
    pub endless: bool,
    /// A worst walk: its steps in order, with the number of consecutive repetitions.
    pub path: Vec<(Str, u64)>,
    /// The measure that was maximized: money if it is bounded and differs between asks, otherwise asks.
    pub by: WalkMeasure,
    /// What ends that walk.
    pub bounded_by: WalkEnd,
    /// The single key whose reduction lowers the bound most.
    pub lever: Option<Sensitivity>,
}

/// The measure by which walks are compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WalkMeasure {
    /// The number of asks.
    Asks,
    /// The cost of the asks.
    Money,
}

impl WalkMeasure {
    fn measure(self) -> Measure {
        match self {
            WalkMeasure::Asks => Measure::Asks,
            WalkMeasure::Money => Measure::Money,
        }
    }
}

impl Certificate {
    /// The most asks of a run; `None` if nothing bounds them.
    pub fn asks_max(&self) -> Option<u64> {
        (!self.endless).then_some(self.asks)
    }
}

/// What ends the worst walk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WalkEnd {
    /// The iteration limit.
    Iterations,
    /// The flow: no walk is longer.
    Shape,
    /// The budget's number of asks.
    Budget,
}

/// The walked graph: the flow with its memory unrolled, or the flow itself if that is too large.
struct WalkedGraph<'f> {
    flow: &'f Flow,
    ways: Rc<PlaceGraph>,
    /// The most iterations.
    iterations_max: u32,
    /// The counters that are ignored.
    loose: IgnoredCounters,
    /// By step: whether answers of it may be rejected and retried.
    rejected: Rc<[bool]>,
    /// Cached maxima by step costs, which are divided by their common divisor.
    known: RefCell<BTreeMap<Vec<u64>, u64>>,
    /// What the unrolled graph tracks, if the flow is unrolled.
    followed: Option<Rc<TrackedMemory>>,
}

impl<'f> WalkedGraph<'f> {
    fn of(flow: &'f Flow, terms: &Terms) -> WalkedGraph<'f> {
        let unrolled = UnrolledFlow::of(flow, terms.iterations_max, None);
        WalkedGraph::unrolled((flow, weights::mark_rejectable_steps(flow).into()), terms, unrolled)
    }

    /// A graph for a flow that differs from `other` only in numbers: it tracks everything that the other one tracks,
    /// and possibly more.
    fn like<'o>(flow: &'o Flow, terms: &Terms, other: &WalkedGraph<'_>) -> WalkedGraph<'o> {
        let like = other.followed.as_deref().filter(|followed| followed.is_all);
        let unrolled = UnrolledFlow::of(flow, terms.iterations_max, like);
        WalkedGraph::unrolled((flow, other.rejected.clone()), terms, unrolled)
    }

    /// Whether lower numbers would not allow more to be tracked.
    fn is_settled(&self) -> bool {
        let is_all = self.followed.as_ref().is_some_and(|followed| followed.is_all);
        is_all || !is_unrolled(self.flow)
    }

    /// The same graph for a flow that differs only in visit costs, and for fewer iterations.
    fn again<'o>(
        flow: &'o Flow,
        verdict: &Verdict,
        terms: &Terms,
        other: &WalkedGraph<'_>,
    ) -> WalkedGraph<'o> {
        let counts_visits = other.followed.as_ref().is_some_and(|followed| followed.visits);
        WalkedGraph {
            flow,
            ways: other.ways.clone(),
            iterations_max: iterations_max(flow, verdict, terms, counts_visits),
            loose: other.loose.clone(),
            rejected: other.rejected.clone(),
            known: RefCell::default(),
            followed: other.followed.clone(),
        }
    }

    fn unrolled(
        (flow, rejected): (&'f Flow, Rc<[bool]>),
        terms: &Terms,
        unrolled: Option<UnrolledFlow>,
    ) -> WalkedGraph<'f> {
        let counts_visits = unrolled.as_ref().is_some_and(|unrolled| unrolled.followed.visits);
        let iterations_max = iterations_max(flow, &flow.verdict, terms, counts_visits);
        let Some(UnrolledFlow { ways, followed }) = unrolled else {
            return WalkedGraph::loosely((flow, rejected), PlaceGraph::of(flow), iterations_max);
        };
        let loose = match followed.loose.as_slice() {
            [] => IgnoredCounters::Nothing,
            loose => IgnoredCounters::Counters(loose.to_vec()),
        };
        let (ways, known, followed) = (Rc::new(ways), RefCell::default(), Some(Rc::new(followed)));
        WalkedGraph { flow, ways, iterations_max, loose, rejected, known, followed }
    }

    /// A graph without counters, monitors and origins.
    fn loosely(
        (flow, rejected): (&'f Flow, Rc<[bool]>),
        ways: PlaceGraph,
        iterations_max: u32,
    ) -> WalkedGraph<'f> {
        let loose = match flow.counters.is_empty() && flow.monitors.is_empty() {
            true => IgnoredCounters::Nothing,
            false => IgnoredCounters::All,
        };
        let (ways, known) = (Rc::new(ways), RefCell::default());
        WalkedGraph { flow, ways, iterations_max, loose, rejected, known, followed: None }
    }

    /// The cost of each step. In an unrolled flow, control moves to judges.
    fn weights(&self, terms: &Terms, measure: Measure) -> Weights {
        Weights::new((self.flow, &self.rejected), self.followed.is_some(), terms, measure)
    }

    /// The measure to maximize.
    fn dear(&self, terms: &Terms) -> WalkMeasure {
        let shape = |measure| self.weights(terms, measure).shape().map(|(_, shape)| shape);
        let differs = || shape(Measure::Money).is_some_and(|money| shape(Measure::Asks) != Some(money));
        if is_known(self.flow, terms) && differs() { WalkMeasure::Money } else { WalkMeasure::Asks }
    }

    /// The maximum of the measure, capped by the budget.
    fn dearest(&self, terms: &Terms, by: WalkMeasure) -> u64 {
        let asks = || self.most(terms, Measure::Asks);
        match by {
            WalkMeasure::Asks => asks().min(terms.asks.unwrap_or(u64::MAX)),
            WalkMeasure::Money => {
                let tries = if terms.asks.is_some() { tries_of(asks(), terms) } else { u64::MAX };
                bound_money(self.flow, terms, tries, || self.most(terms, Measure::Money)).unwrap_or(u64::MAX)
            }
        }
    }

    /// The maximum of one measure, including the judges of monitors.
    fn most(&self, terms: &Terms, measure: Measure) -> u64 {
        let weights = self.weights(terms, measure);
        let walked = self.walked(&weights);
        walked.saturating_add(weights.of_monitors(self.flow, self.iterations_max))
    }

    /// The maximum cost of a walk. Measures are often proportional to each other at every step, so that walk costs are
    /// too.
    fn walked(&self, weights: &Weights) -> u64 {
        let most =
            || walk::maximize_walk_cost(&self.ways, &weights.at(&self.ways.steps), self.iterations_max);
        // The result is exact only for walks that are followed to their end.
        if self.iterations_max > walk::followed_max(&self.ways) {
            return most();
        }
        let Some((unit, shape)) = weights.shape() else { return 0 };
        if let Some(known) = self.known.borrow().get(&shape) {
            return known.saturating_mul(unit);
        }
        let found = most();
        // A saturated result has no proportion.
        if found < u64::MAX {
            self.known.borrow_mut().insert(shape, found / unit);
        }
        found
    }
}

/// The most iterations of a run: its limit, or fewer if the verdict ends it by counting visits that the graph does not
/// track.
fn iterations_max(flow: &Flow, verdict: &Verdict, terms: &Terms, counts_visits: bool) -> u32 {
    let max = terms.iterations_max;
    let visits = iterations_of(verdict).filter(|_| !counts_visits && !may_wait(flow));
    visits.map_or(max, |visits| max.min(visits))
}

/// The maximum that a run of a flow can do under some terms.
///
/// Tracks counters, monitors, judges, origins and the visits that a verdict counts, so that each number is the exact
/// maximum of some run. With too many states, first the largest counters and then all memory is ignored; an assumption
/// then says so. Handoff values are assumed to be any possible value. The bound covers an unattended run: a person who
/// answers questions or extends the run can exceed it.
///
/// The time is proportional to iterations × edges.
pub fn price_flow(flow: &Flow, terms: &Terms) -> Certificate {
    price_any((flow, terms), &[]).0
}

/// As [`price_flow`], without the sensitivity analysis.
pub fn price_without_sensitivity(flow: &Flow, terms: &Terms) -> Certificate {
    let walked = WalkedGraph::of(flow, terms);
    build_certificate(flow, terms, &walked, walked.dear(terms))
}

/// The certificate for a graph, and the measure that it maximizes.
fn build_certificate(flow: &Flow, terms: &Terms, walked: &WalkedGraph<'_>, by: WalkMeasure) -> Certificate {
    let terms = &Terms { iterations_max: walked.iterations_max, ..terms.clone() };
    let most = |measure: Measure| walked.most(terms, measure);
    let asks = most(Measure::Asks);
    let budget = terms.asks.unwrap_or(u64::MAX);
    let tries = tries_of(asks, terms);
    let by_role = AskRole::ALL
        .into_iter()
        .map(|role| (role, most(Measure::Role(role)).min(budget)))
        .filter(|(_, most)| *most > 0)
        .collect();
    let dearest = |by: WalkMeasure| {
        let weights = walked.weights(terms, by.measure()).at(&walked.ways.steps);
        walk::find_worst_walk(flow, &walked.ways, &weights, terms.iterations_max)
    };
    let walk = dearest(by);
    let iterations = match by {
        WalkMeasure::Asks => walk.iterations,
        WalkMeasure::Money => dearest(WalkMeasure::Asks).iterations.max(walk.iterations),
    };
    let mut certificate = Certificate {
        visits: most(Measure::Visits),
        iterations,
        asks: asks.min(budget),
        by_role,
        tokens: terms.tokens_of(tries),
        usd_micro: bound_money(flow, terms, tries, || most(Measure::Money)),
        assumptions: terms.assumptions(flow, &walked.loose),
        unbounded_because: Vec::new(),
        endless: !walked.ways.endless.is_empty(),
        path: walk.legs,
        by,
        bounded_by: match () {
            () if asks > budget => WalkEnd::Budget,
            () if walk.iterations >= u64::from(terms.iterations_max) => WalkEnd::Iterations,
            () => WalkEnd::Shape,
        },
        lever: None,
    };
    if terms.iterations_max > walk::followed_max(&walked.ways) {
        let said = "the iterations are too many to follow one by one: the bound may be too high".to_owned();
        certificate.assumptions.push(said);
    }
    certificate.unbounded_because = terms.unbounded(flow, &certificate);
    if certificate.endless {
        let names: BTreeSet<&str> =
            walked.ways.endless.iter().map(|place| &*walked.ways.step(flow, *place).name).collect();
        let names: Vec<&str> = names.into_iter().collect();
        certificate.unbounded_because.push(format!(
            "{} lead to each other without an iteration between them: nothing counts how often",
            names.join(", ")
        ));
    }
    certificate
}

/// The most tries of some asks. A budget of asks counts each try, as the ledger does.
fn tries_of(asks: u64, terms: &Terms) -> u64 {
    asks.saturating_mul(TRIES_MAX).min(terms.asks.unwrap_or(u64::MAX))
}

/// The most asks that a run at a step can still need with the remaining iterations, whatever its memory holds, and even
/// if its present visit restarts.
///
/// An upper bound: it ignores all memory.
pub fn bound_remaining_asks(flow: &Flow, at: StepId, terms: &Terms) -> u64 {
    let ways = PlaceGraph { entry: at.0, ..PlaceGraph::of(flow) };
    let rejected = weights::mark_rejectable_steps(flow).into();
    let walked = WalkedGraph::loosely((flow, rejected), ways, terms.iterations_max.saturating_add(1));
    let most = walked.most(terms, Measure::Asks);
    // A monitor may act because of earlier visits, or be about to act.
    let dearest = walked.weights(terms, Measure::Asks).of_monitor();
    if walked.ways.endless.is_empty() { most.saturating_add(dearest) } else { u64::MAX }
}

/// The cost of the worst walk: each ask at its cap, at most the budget.
fn bound_money(flow: &Flow, terms: &Terms, tries: u64, most: impl FnOnce() -> u64) -> Option<u64> {
    let walked =
        is_known(flow, terms).then(|| most().saturating_mul(TRIES_MAX)).and_then(drop_saturated_amount);
    // A budget of asks bounds money as well: that many of the most expensive asks.
    let by_asks = terms.asks.and_then(|_| terms.dearest(flow)).map(|dearest| dearest.saturating_mul(tries));
    let by_asks = by_asks.and_then(drop_saturated_amount);
    [walked, by_asks, terms.usd_micro].into_iter().flatten().min()
}

/// Whether the maximum cost of every ask is known.
fn is_known(flow: &Flow, terms: &Terms) -> bool {
    flow.steps.iter().all(|step| match &step.act {
        Act::Ask(ask) => terms.usd_of(flow, &step.name, ask).is_some(),
        _ => true,
    })
}

#[cfg(test)]
mod tests;
