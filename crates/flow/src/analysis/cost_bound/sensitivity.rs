//! Sensitivity: the single key whose reduction lowers a bound most.
//!
//! Each key is tried at half of its value, rounded down, but not below its minimum, so that keys of different size are
//! compared by the same relative change. The result is the key with the fewest asks, or with the least money if the
//! cost differs between asks. Among equals the first one wins; keys of the definition precede settings.

use std::borrow::Cow;
use std::cell::OnceCell;

use super::unroll::STEPS_MAX;
use super::variants::Variant;
use super::verdict_counters::iterations_of;
use super::weights::Measure;
use super::{Terms, WalkMeasure, WalkedGraph, bound_money, tries_of, walk};
use crate::{
    Str,
    diagnostics::Span,
    model::{Act, CounterId, Flow, LimitKey, LimitTarget, StepId, Verdict},
};

/// The most keys that are tried.
const KEYS_MAX: usize = 32;
/// The most places on which keys are tried, in total. For larger flows fewer keys are tried, but at least the iteration
/// limit and one more.
const STEPS_TRIED_MAX: usize = 64 * STEPS_MAX;

/// A key, and the effect of lowering it.
#[derive(Debug, Clone, PartialEq)]
pub struct Sensitivity {
    /// Its name as written.
    pub key: Str,
    /// Where it is written; `None` for a setting.
    pub span: Option<Span>,
    /// Its value.
    pub from: u64,
    /// The lower value.
    pub to: u64,
    /// The most asks with the lower value.
    pub asks: u64,
    /// The most tokens with the lower value; `None` = not bounded.
    pub tokens: Option<u64>,
    /// The most millionths of a US dollar with the lower value; `None` = not bounded.
    pub usd_micro: Option<u64>,
}

/// The key of flow `at` whose half lowers the maximum over all flows most; `None` when no key lowers it.
pub(super) fn find_best_key(ways: &[Variant<'_>], at: usize, by: WalkMeasure) -> Option<Sensitivity> {
    let Variant { flow, terms, walked } = &ways[at];
    let mut keys = keys_of(flow, terms);
    let all_keys: Vec<Vec<LimitKey>> = ways.iter().map(|way| keys_of(way.flow, way.terms)).collect();
    let steps = walked.ways.steps.len() + walked.followed.as_ref().map_or(0, |_| flow.steps.len());
    let tried = (STEPS_TRIED_MAX / steps.max(1)).clamp(2, KEYS_MAX);
    if keys.len() > tried {
        // The iteration limit and the repairs affect the whole run, so they come first if not all keys can be tried.
        keys.sort_by_key(|key| !(key.turns.is_empty() || key.turns == [LimitTarget::Iterations]));
        keys.truncate(tried);
    }
    let nows: Vec<u64> = ways.iter().map(|way| way.dearest(by)).collect();
    let now = nows[at];
    let walks: Vec<WorstWalk<'_>> =
        ways.iter().map(|way| WorstWalk { way, by, places: OnceCell::new() }).collect();
    // A key of the same name and position is the same key in all flows.
    let own = |way: usize, key: &LimitKey| {
        let same =
            |other: &&LimitKey| (&other.name, other.span, other.value) == (&key.name, key.span, key.value);
        all_keys[way].iter().find(same)
    };
    let mut best: Option<(u64, LimitKey, u32)> = None;
    for key in keys {
        let to = (key.value / 2).max(key.least);
        let stays =
            |way: usize| nows[way] == now && own(way, &key).is_none_or(|own| walks[way].stays(own, to));
        if to >= key.value || (0..ways.len()).any(stays) {
            continue;
        }
        let lowered = |way: usize| match own(way, &key) {
            Some(own) => {
                evaluate_lowered_key(&ways[way], (own, to), |_, terms, walked| walked.dearest(terms, by))
            }
            None => nows[way],
        };
        let lowered = (0..ways.len()).map(lowered).max().unwrap_or(now);
        if lowered < best.as_ref().map_or(now, |(least, ..)| *least) {
            best = Some((lowered, key, to));
        }
    }
    let (_, key, to) = best?;
    let of = |way: usize| {
        let comes_to = |flow: &Flow, terms: &Terms, walked: &WalkedGraph<'_>| Cost::of(flow, terms, walked);
        match own(way, &key) {
            Some(own) => evaluate_lowered_key(&ways[way], (own, to), comes_to),
            None => comes_to(ways[way].flow, &ways[way].found(), &ways[way].walked),
        }
    };
    let cost = (0..ways.len()).map(of).reduce(Cost::max)?;
    Some(Sensitivity {
        from: u64::from(key.value),
        to: u64::from(to),
        asks: cost.asks,
        tokens: cost.tokens,
        usd_micro: cost.usd_micro,
        key: key.name,
        span: key.span,
    })
}

/// The maximum cost of a run.
struct Cost {
    asks: u64,
    tokens: Option<u64>,
    usd_micro: Option<u64>,
}

impl Cost {
    fn of(flow: &Flow, terms: &Terms, walked: &WalkedGraph<'_>) -> Cost {
        let asks = walked.most(terms, Measure::Asks);
        let tries = tries_of(asks, terms);
        Cost {
            asks: asks.min(terms.asks.unwrap_or(u64::MAX)),
            tokens: terms.tokens_of(tries),
            usd_micro: bound_money(flow, terms, tries, || walked.most(terms, Measure::Money)),
        }
    }

    /// The maximum of both.
    fn max(self, other: Cost) -> Cost {
        let bounded = |one: Option<u64>, other: Option<u64>| Some(one?.max(other?));
        Cost {
            asks: self.asks.max(other.asks),
            tokens: bounded(self.tokens, other.tokens),
            usd_micro: bounded(self.usd_micro, other.usd_micro),
        }
    }
}

/// Builds the graph with another value of a key.
fn evaluate_lowered_key<A>(
    Variant { flow, terms, walked }: &Variant<'_>,
    (key, to): (&LimitKey, u32),
    look: impl FnOnce(&Flow, &Terms, &WalkedGraph<'_>) -> A,
) -> A {
    let counts_visits = walked.followed.as_ref().is_some_and(|followed| followed.visits);
    let is_same = |turn: &LimitTarget| match turn {
        LimitTarget::Iterations => !counts_visits,
        LimitTarget::Mends => true,
        LimitTarget::Counter(_) | LimitTarget::Monitor(_) | LimitTarget::Part(_) => false,
    };
    let (mut other, terms) = (Cow::Borrowed(*flow), lowered_terms(terms, key, to));
    if key.turns.iter().any(|turn| *turn != LimitTarget::Iterations) {
        lower_steps(other.to_mut(), key, to);
    }
    let mut verdict = other.verdict.clone();
    if key.turns.contains(&LimitTarget::Iterations) && key.span.is_some() {
        lower_iteration_limit(&mut verdict, to);
    }
    let walked = match walked.is_settled() && key.turns.iter().all(is_same) {
        true => WalkedGraph::again(&other, &verdict, &terms, walked),
        false => {
            other.to_mut().verdict = verdict;
            WalkedGraph::like(&other, &terms, walked)
        }
    };
    let terms = Terms { iterations_max: walked.iterations_max, ..terms };
    look(walked.flow, &terms, &walked)
}

/// A worst walk and its graph.
struct WorstWalk<'d> {
    way: &'d Variant<'d>,
    /// The measure that it maximizes.
    by: WalkMeasure,
    /// Its places, computed on demand; none if unknown.
    places: OnceCell<Option<Vec<u32>>>,
}

impl WorstWalk<'_> {
    /// Whether it remains a walk of the flow with a lower value of a key, so that lowering has no effect. `false` if
    /// that takes more than a quick check.
    fn stays(&self, key: &LimitKey, to: u32) -> bool {
        let stays = |turn: &LimitTarget| match turn {
            LimitTarget::Counter(counter) => self.stays_below(*counter, key.value - to),
            LimitTarget::Monitor(at) => self.sets_off_none(*at),
            LimitTarget::Iterations | LimitTarget::Mends | LimitTarget::Part(_) => false,
        };
        // Counters that are not tracked now may be tracked with lower numbers.
        self.way.walked.is_settled() && !key.turns.is_empty() && key.turns.iter().all(stays)
    }

    /// Whether the walk stays within the bounds of a counter that are lower by `less`.
    fn stays_below(&self, counter: CounterId, less: u32) -> bool {
        let edges = self.way.flow.steps.iter().flat_map(|step| &step.edges);
        let bounds = edges.filter_map(|edge| edge.bound).filter(|bound| bound.counter == counter);
        let Some(least) = bounds.map(|bound| bound.max.saturating_sub(less)).min() else { return true };
        let spent = match &self.way.walked.followed {
            // Without any counts, only closed edges make a difference.
            None => Some(0),
            Some(followed) => self.places().and_then(|places| followed.spent(counter, places)),
        };
        spent.is_some_and(|spent| spent < least)
    }

    /// Whether a monitor never acts, however few rounds it waits for.
    fn sets_off_none(&self, monitor: u32) -> bool {
        // If monitors are not tracked, fewer rounds mean more judge asks.
        if self.way.walked.followed.is_none() {
            return true;
        }
        let (Some(monitor), Some(places)) = (self.way.flow.monitors.get(monitor as usize), self.places())
        else {
            return false;
        };
        let is_missed =
            |step: &StepId| !places.iter().any(|at| self.way.walked.ways.steps[*at as usize] == *step);
        monitor.cycle.iter().any(|stage| stage.iter().all(is_missed))
    }

    fn places(&self) -> Option<&[u32]> {
        let find = || {
            let terms = self.way.found();
            let measure = self.by.measure();
            let weights = self.way.walked.weights(&terms, measure).at(&self.way.walked.ways.steps);
            let found =
                walk::find_worst_places(&self.way.walked.ways, &weights, self.way.walked.iterations_max);
            // Separately counted judges of monitors are not part of a walk.
            found.filter(|(cost, _)| *cost >= self.way.walked.most(&terms, measure)).map(|(_, places)| places)
        };
        self.places.get_or_init(find).as_deref()
    }
}

/// The keys that can be lowered: those of the definition, then the settings of the run.
fn keys_of(flow: &Flow, terms: &Terms) -> Vec<LimitKey> {
    // If the flow is too large to track counters, no counter and no monitor lowers anything.
    let followed = flow.steps.len() <= STEPS_MAX;
    let counts = |key: &LimitKey| {
        key.turns.iter().all(|turn| matches!(turn, LimitTarget::Counter(_) | LimitTarget::Monitor(_)))
            && !key.turns.is_empty()
    };
    let holds = |key: &&LimitKey| match key.turns.as_slice() {
        // A limit given for the run precedes the definition's limit; the verdict still counts up to the latter.
        [LimitTarget::Iterations] => !terms.given || iterations_of(&flow.verdict).is_some(),
        _ => followed || !counts(key),
    };
    let mut keys: Vec<LimitKey> = flow.keys.iter().filter(holds).cloned().collect();
    let setting =
        |name: &str, value, least, turns| LimitKey { name: name.into(), span: None, value, least, turns };
    if terms.given || !keys.iter().any(|key| key.turns == [LimitTarget::Iterations]) {
        keys.push(setting("--max-iterations", terms.iterations_max, 1, vec![LimitTarget::Iterations]));
    }
    keys.push(setting("repairs_max", terms.repairs_max, 0, Vec::new()));
    keys
}

/// The terms with another value of a key.
fn lowered_terms(terms: &Terms, key: &LimitKey, to: u32) -> Terms {
    let mut terms = terms.clone();
    if key.turns.is_empty() {
        terms.repairs_max = to;
    }
    if key.turns.contains(&LimitTarget::Iterations) && (key.span.is_none() || !terms.given) {
        terms.iterations_max = terms.iterations_max.min(to);
    }
    terms
}

/// Sets another value of a key in all steps and monitors.
fn lower_steps(flow: &mut Flow, key: &LimitKey, to: u32) {
    let less = key.value - to;
    for turn in &key.turns {
        match turn {
            LimitTarget::Iterations => {}
            LimitTarget::Part(at) => lower_part(&mut flow.verdict, &mut { *at }, to),
            LimitTarget::Monitor(at) => {
                let monitor = flow.monitors.get_mut(*at as usize);
                monitor.into_iter().for_each(|monitor| monitor.threshold = to);
            }
            LimitTarget::Counter(counter) => {
                let edges = flow.steps.iter_mut().flat_map(|step| &mut step.edges);
                let bounds = edges.filter_map(|edge| edge.bound.as_mut());
                let counted = bounds.filter(|bound| bound.counter == *counter);
                counted.for_each(|bound| bound.max = bound.max.saturating_sub(less));
            }
            LimitTarget::Mends => {
                for step in &mut flow.steps {
                    if let Act::Ask(ask) = &mut step.act {
                        ask.guard.iter_mut().for_each(|guard| guard.mends_max = guard.mends_max.min(to));
                    }
                }
            }
        }
    }
}

/// Sets another count in a verdict part; `at`: the number of parts before it.
fn lower_part(verdict: &mut Verdict, at: &mut u32, to: u32) {
    let is_it = *at == 0;
    *at = at.wrapping_sub(1);
    match verdict {
        Verdict::Iterations(max) | Verdict::Checks { max, .. } if is_it => *max = to,
        Verdict::Any(parts) | Verdict::First(parts) | Verdict::Every(parts) => {
            parts.iter_mut().for_each(|part| lower_part(part, at, to));
        }
        _ => {}
    }
}

/// The iteration limit is also part of the verdict.
fn lower_iteration_limit(verdict: &mut Verdict, to: u32) {
    match verdict {
        Verdict::Iterations(max) => *max = (*max).min(to),
        Verdict::Any(parts) | Verdict::First(parts) | Verdict::Every(parts) => {
            parts.iter_mut().for_each(|part| lower_iteration_limit(part, to));
        }
        _ => {}
    }
}
