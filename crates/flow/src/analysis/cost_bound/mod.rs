//! The most that a run can do: a certificate, not an estimate.
//!
//! A run is a walk over the steps of its flow, one iteration a step that counts. Its limit makes walks finite, so that
//! the dearest one can be found exactly: iteration by iteration, for each step the most that a walk to it can have
//! cost. What else decides where a walk may go is unrolled first: a step for each state of it. Where that comes to too
//! many, a walk may take a bounded edge as often as it likes; that makes the bound an upper one, never a lower one.

mod edges;
mod memory;
mod search;
mod sensitivity;
mod successors;
mod terms;
mod unroll;
mod variants;
mod verdict_counters;
mod walk;
mod weights;

pub use sensitivity::Sensitivity;
pub use terms::{Configured, Rate, Terms};
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
use edges::Ways;
use terms::{Loose, countable};
use unroll::{Followed, Unrolled, is_unrolled};
use verdict_counters::{iterations_of, remedies_max};
use weights::{Measure, Weights};

/// How often an ask is put at most whose agent breaks off, with what it used until then paid each time.
pub const TRIES_MAX: u64 = 3;

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
    /// A dearest walk: steps in order, and how often each is done back to back.
    pub path: Vec<(Str, u64)>,
    /// What is dear: money where it is bounded and asks differ in it, else asks.
    pub by: Dear,
    /// What ends that walk.
    pub bounded_by: BoundedBy,
    /// The one key that would lower what is dear most.
    pub lever: Option<Sensitivity>,
}

/// What walks are compared by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dear {
    /// How many asks they have.
    Asks,
    /// What their asks cost.
    Money,
}

impl Dear {
    fn measure(self) -> Measure {
        match self {
            Dear::Asks => Measure::Asks,
            Dear::Money => Measure::Money,
        }
    }
}

impl Certificate {
    /// The most asks that a run may be held to; `None` where nothing bounds them.
    pub fn asks_max(&self) -> Option<u64> {
        (!self.endless).then_some(self.asks)
    }
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

/// What is walked: the flow with its memory unrolled, or as it is where that is too much.
struct Walked<'f> {
    flow: &'f Flow,
    ways: Rc<Ways>,
    /// The most iterations.
    iterations_max: u32,
    /// What is counted as if it were not there.
    loose: Loose,
    /// By step: whether answers of it may be asked again.
    rejected: Rc<[bool]>,
    /// What was found already, by what steps cost, divided by what all of that can be divided by.
    known: RefCell<BTreeMap<Vec<u64>, u64>>,
    /// What is followed, where the flow is unrolled.
    followed: Option<Rc<Followed>>,
}

impl<'f> Walked<'f> {
    fn of(flow: &'f Flow, terms: &Terms) -> Walked<'f> {
        let unrolled = Unrolled::of(flow, terms.iterations_max, None);
        Walked::unrolled((flow, weights::rejected(flow).into()), terms, unrolled)
    }

    /// A flow that differs in numbers only: of it, too, everything is followed that was followed of the other, and what was
    /// not perhaps.
    fn like<'o>(flow: &'o Flow, terms: &Terms, other: &Walked<'_>) -> Walked<'o> {
        let like = other.followed.as_deref().filter(|followed| followed.is_all);
        let unrolled = Unrolled::of(flow, terms.iterations_max, like);
        Walked::unrolled((flow, other.rejected.clone()), terms, unrolled)
    }

    /// Whether lower numbers let nothing more be followed.
    fn is_settled(&self) -> bool {
        let is_all = self.followed.as_ref().is_some_and(|followed| followed.is_all);
        is_all || !is_unrolled(self.flow)
    }

    /// The same ways, of a flow that differs in what visits cost only, and for fewer iterations.
    fn again<'o>(flow: &'o Flow, verdict: &Verdict, terms: &Terms, other: &Walked<'_>) -> Walked<'o> {
        let counts_visits = other.followed.as_ref().is_some_and(|followed| followed.visits);
        Walked {
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
        unrolled: Option<Unrolled>,
    ) -> Walked<'f> {
        let counts_visits = unrolled.as_ref().is_some_and(|unrolled| unrolled.followed.visits);
        let iterations_max = iterations_max(flow, &flow.verdict, terms, counts_visits);
        let Some(Unrolled { ways, followed }) = unrolled else {
            return Walked::loosely((flow, rejected), Ways::of(flow), iterations_max);
        };
        let loose = match followed.loose.as_slice() {
            [] => Loose::Nothing,
            loose => Loose::Counters(loose.to_vec()),
        };
        let (ways, known, followed) = (Rc::new(ways), RefCell::default(), Some(Rc::new(followed)));
        Walked { flow, ways, iterations_max, loose, rejected, known, followed }
    }

    /// Counters, monitors and who handed off are not followed.
    fn loosely((flow, rejected): (&'f Flow, Rc<[bool]>), ways: Ways, iterations_max: u32) -> Walked<'f> {
        let loose = match flow.counters.is_empty() && flow.monitors.is_empty() {
            true => Loose::Nothing,
            false => Loose::All,
        };
        let (ways, known) = (Rc::new(ways), RefCell::default());
        Walked { flow, ways, iterations_max, loose, rejected, known, followed: None }
    }

    /// What each step costs. Control goes to judges where the flow is unrolled.
    fn weights(&self, terms: &Terms, measure: Measure) -> Weights {
        Weights::new((self.flow, &self.rejected), self.followed.is_some(), terms, measure)
    }

    /// What walks are compared by.
    fn dear(&self, terms: &Terms) -> Dear {
        let shape = |measure| self.weights(terms, measure).shape().map(|(_, shape)| shape);
        let differs = || shape(Measure::Money).is_some_and(|money| shape(Measure::Asks) != Some(money));
        if is_known(self.flow, terms) && differs() { Dear::Money } else { Dear::Asks }
    }

    /// The most of what is dear, and never more than a budget.
    fn dearest(&self, terms: &Terms, by: Dear) -> u64 {
        let asks = || self.most(terms, Measure::Asks);
        match by {
            Dear::Asks => asks().min(terms.asks.unwrap_or(u64::MAX)),
            Dear::Money => {
                let tries = if terms.asks.is_some() { tries_of(asks(), terms) } else { u64::MAX };
                money(self.flow, terms, tries, || self.most(terms, Measure::Money)).unwrap_or(u64::MAX)
            }
        }
    }

    /// The most of one measure, what monitors' judges add included.
    fn most(&self, terms: &Terms, measure: Measure) -> u64 {
        let weights = self.weights(terms, measure);
        let walked = self.walked(&weights);
        walked.saturating_add(weights.of_monitors(self.flow, self.iterations_max))
    }

    /// The most that a walk costs. Measures are often in proportion to each other at every step, and then what walks cost
    /// is, too.
    fn walked(&self, weights: &Weights) -> u64 {
        let most = || walk::most(&self.ways, &weights.at(&self.ways.steps), self.iterations_max);
        // Only what is followed to its end is exact.
        if self.iterations_max > walk::FOLLOWED_MAX {
            return most();
        }
        let Some((unit, shape)) = weights.shape() else { return 0 };
        if let Some(known) = self.known.borrow().get(&shape) {
            return known.saturating_mul(unit);
        }
        let found = most();
        // What is too much to be counted stands for no proportion.
        if found < u64::MAX {
            self.known.borrow_mut().insert(shape, found / unit);
        }
        found
    }
}

/// The most iterations of a run: those that it may have, or fewer where its verdict ends it by counting visits that are
/// not followed.
fn iterations_max(flow: &Flow, verdict: &Verdict, terms: &Terms, counts_visits: bool) -> u32 {
    let max = terms.iterations_max;
    let visits = iterations_of(verdict).filter(|_| !counts_visits);
    let bound = visits.and_then(|visits| Some(visits.saturating_add(remedies_max(flow)?)));
    bound.map_or(max, |bound| max.min(bound))
}

/// The most that a run of a flow can do under some terms.
///
/// Counters, monitors, judges, who handed off and visits that a verdict counts are followed, so that some run does as
/// much in each number; where a definition has too many of them, the largest counters and then all of it are counted as
/// if they were not there, and the bound says so. What agents hand on is taken to be anything that it can be. It counts
/// what follows by itself: people who answer questions and resume with more can make a run do more.
///
/// Takes time in proportion to iterations × edges where that is little, and mostly to the edges alone where it is much.
pub fn price(flow: &Flow, terms: &Terms) -> Certificate {
    price_any((flow, terms), &[]).0
}

/// The same without what would lower it.
pub fn bound(flow: &Flow, terms: &Terms) -> Certificate {
    let walked = Walked::of(flow, terms);
    certify(flow, terms, &walked, walked.dear(terms))
}

/// What a run costs at most, by what is walked; and by what walks are compared.
fn certify(flow: &Flow, terms: &Terms, walked: &Walked<'_>, by: Dear) -> Certificate {
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
    let dearest = |by: Dear| {
        let weights = walked.weights(terms, by.measure()).at(&walked.ways.steps);
        walk::dearest(flow, &walked.ways, &weights, terms.iterations_max)
    };
    let walk = dearest(by);
    let iterations = match by {
        Dear::Asks => walk.iterations,
        Dear::Money => dearest(Dear::Asks).iterations.max(walk.iterations),
    };
    let mut certificate = Certificate {
        visits: most(Measure::Visits),
        iterations,
        asks: asks.min(budget),
        by_role,
        tokens: terms.tokens_of(tries),
        usd_micro: money(flow, terms, tries, || most(Measure::Money)),
        assumptions: terms.assumptions(flow, &walked.loose),
        unbounded_because: Vec::new(),
        endless: !walked.ways.endless.is_empty(),
        path: walk.legs,
        by,
        bounded_by: match () {
            () if asks > budget => BoundedBy::Budget,
            () if walk.iterations >= u64::from(terms.iterations_max) => BoundedBy::Iterations,
            () => BoundedBy::Shape,
        },
        lever: None,
    };
    if terms.iterations_max > walk::FOLLOWED_MAX {
        let said = "so many iterations are not followed one by one: the bound is an upper one".to_owned();
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

/// How often something is asked at most. A budget of asks counts each try, as the ledger does.
fn tries_of(asks: u64, terms: &Terms) -> u64 {
    asks.saturating_mul(TRIES_MAX).min(terms.asks.unwrap_or(u64::MAX))
}

/// The most asks that a run can still need that stands on a step with so many iterations left, whatever it counted,
/// saw and left until then, and though its present visit is done anew.
///
/// An upper bound: nothing is followed.
pub fn rest(flow: &Flow, at: StepId, terms: &Terms) -> u64 {
    let ways = Ways { entry: at.0, ..Ways::of(flow) };
    let rejected = weights::rejected(flow).into();
    let walked = Walked::loosely((flow, rejected), ways, terms.iterations_max.saturating_add(1));
    let most = walked.most(terms, Measure::Asks);
    // A monitor may act on what it saw before, or be about to.
    let dearest = walked.weights(terms, Measure::Asks).of_monitor();
    if walked.ways.endless.is_empty() { most.saturating_add(dearest) } else { u64::MAX }
}

/// What the dearest walk costs: each ask at its cap, never more than the budget.
fn money(flow: &Flow, terms: &Terms, tries: u64, most: impl FnOnce() -> u64) -> Option<u64> {
    let walked = is_known(flow, terms).then(|| most().saturating_mul(TRIES_MAX)).and_then(countable);
    // A budget of asks bounds money as well: so many of the dearest.
    let by_asks = terms.asks.and_then(|_| terms.dearest(flow)).map(|dearest| dearest.saturating_mul(tries));
    let by_asks = by_asks.and_then(countable);
    [walked, by_asks, terms.usd_micro].into_iter().flatten().min()
}

/// Whether it is known of all asks what each costs at most.
fn is_known(flow: &Flow, terms: &Terms) -> bool {
    flow.steps.iter().all(|step| match &step.act {
        Act::Ask(ask) => terms.usd_of(flow, ask).is_some(),
        _ => true,
    })
}

#[cfg(test)]
mod tests;
