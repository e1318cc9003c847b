//! The one key that would lower a bound most.
//!
//! Each key is tried at half of its value, rounded down, and never below what it can have: so keys of different size are
//! compared by what the same change does. The one with the fewest asks then is named; of equal ones the first, and keys of
//! the definition come before settings.

use super::unroll::STEPS_MAX;
use super::weights::Measure;
use super::{Certificate, Terms, Walked, money, tries_of};
use crate::{Act, Flow, Key, Span, Str, Turn, Verdict};

/// How many keys are tried.
const KEYS_MAX: usize = 32;
/// How many steps they are tried on, all together, unrolled ones where a flow is unrolled: of a flow with more of them
/// fewer keys are tried, and at least the limit of iterations and one more.
const STEPS_TRIED_MAX: usize = 64 * STEPS_MAX;

/// A key, and what lowering it does.
#[derive(Debug, Clone, PartialEq)]
pub struct Lever {
    /// What it is called where it is written.
    pub key: Str,
    /// Where it is written; `None` for a setting.
    pub span: Option<Span>,
    /// Its value.
    pub from: u64,
    /// A lower one.
    pub to: u64,
    /// The most asks with that.
    pub asks: u64,
    /// The most tokens with that; `None` = not bounded.
    pub tokens: Option<u64>,
    /// The most millionths of a US dollar with that; `None` = not bounded.
    pub usd_micro: Option<u64>,
}

/// The key whose half would lower the number of asks most; `None` when no key lowers it.
pub(super) fn best(flow: &Flow, terms: &Terms, (now, walked): (&Certificate, &Walked<'_>)) -> Option<Lever> {
    let mut best: Option<(u64, Key, u32)> = None;
    let mut keys = keys(flow, terms);
    // A counter that is not followed lowers nothing.
    let loose = walked.followed.as_ref().map_or(&[][..], |followed| &followed.loose);
    let is_loose = |turn: &Turn| match turn {
        Turn::Counter(counter) => loose.contains(&flow.counter(*counter).name),
        _ => false,
    };
    keys.retain(|key| key.turns.is_empty() || !key.turns.iter().all(is_loose));
    let tried = (STEPS_TRIED_MAX / walked.flow.steps.len().max(1)).clamp(2, KEYS_MAX);
    if keys.len() > tried {
        // The limit and the repairs are about all of a run, so that they come first where not all can be tried.
        keys.sort_by_key(|key| !(key.turns.is_empty() || key.turns == [Turn::Iterations]));
        keys.truncate(tried);
    }
    for key in keys {
        let to = (key.value / 2).max(key.least);
        if to >= key.value {
            continue;
        }
        let (flow, terms) = lowered(flow, terms, &key, to);
        let walked = Walked::like(&flow, &terms, walked);
        let terms = Terms { iterations_max: walked.iterations_max, ..terms };
        let asks = walked.most(&terms, Measure::Asks).min(terms.asks.unwrap_or(u64::MAX));
        if asks < best.as_ref().map_or(now.asks, |(asks, ..)| *asks) {
            best = Some((asks, key, to));
        }
    }
    let (asks, key, to) = best?;
    let (flow, terms) = lowered(flow, terms, &key, to);
    let walked = Walked::like(&flow, &terms, walked);
    let terms = Terms { iterations_max: walked.iterations_max, ..terms };
    let tries = tries_of(walked.most(&terms, Measure::Asks), &terms);
    Some(Lever {
        key: key.name,
        span: key.span,
        from: u64::from(key.value),
        to: u64::from(to),
        asks,
        tokens: terms.tokens_of(tries),
        usd_micro: money(&flow, &terms, tries, || walked.most(&terms, Measure::Money)),
    })
}

/// The keys that can be lowered: those of the definition, then what the run is begun with.
fn keys(flow: &Flow, terms: &Terms) -> Vec<Key> {
    // Where a flow has too many steps for what it counts to be followed, no counter and no monitor lowers anything.
    let followed = flow.steps.len() <= STEPS_MAX;
    let counts = |key: &Key| {
        key.turns.iter().all(|turn| matches!(turn, Turn::Counter(_) | Turn::Monitor(_)))
            && !key.turns.is_empty()
    };
    let holds = |key: &&Key| match key.turns.as_slice() {
        [Turn::Iterations] => key.value == terms.iterations_max,
        _ => followed || !counts(key),
    };
    let mut keys: Vec<Key> = flow.keys.iter().filter(holds).cloned().collect();
    let setting =
        |name: &str, value, least, turns| Key { name: name.into(), span: None, value, least, turns };
    if !keys.iter().any(|key| key.turns == [Turn::Iterations]) {
        keys.push(setting("--max-iterations", terms.iterations_max, 1, vec![Turn::Iterations]));
    }
    keys.push(setting("repairs_max", terms.repairs_max, 0, Vec::new()));
    keys
}

/// A flow and terms with a key at another value.
fn lowered(flow: &Flow, terms: &Terms, key: &Key, to: u32) -> (Flow, Terms) {
    let (mut flow, mut terms) = (flow.clone(), terms.clone());
    let less = key.value - to;
    if key.turns.is_empty() {
        terms.repairs_max = to;
    }
    for turn in &key.turns {
        match turn {
            Turn::Iterations => {
                terms.iterations_max = terms.iterations_max.min(to);
                lower(&mut flow.verdict, to);
            }
            Turn::Monitor(at) => {
                let monitor = flow.monitors.get_mut(*at as usize);
                monitor.into_iter().for_each(|monitor| monitor.threshold = to);
            }
            Turn::Counter(counter) => {
                let edges = flow.steps.iter_mut().flat_map(|step| &mut step.edges);
                let bounds = edges.filter_map(|edge| edge.bound.as_mut());
                let counted = bounds.filter(|bound| bound.counter == *counter);
                counted.for_each(|bound| bound.max = bound.max.saturating_sub(less));
            }
            Turn::Mends => {
                for step in &mut flow.steps {
                    if let Act::Ask(ask) = &mut step.act {
                        ask.guard.iter_mut().for_each(|guard| guard.mends_max = guard.mends_max.min(to));
                    }
                }
            }
        }
    }
    (flow, terms)
}

/// A limit of iterations stands in the verdict, too.
fn lower(verdict: &mut Verdict, to: u32) {
    match verdict {
        Verdict::Iterations(max) => *max = (*max).min(to),
        Verdict::Any(parts) | Verdict::First(parts) | Verdict::Every(parts) => {
            parts.iter_mut().for_each(|part| lower(part, to));
        }
        _ => {}
    }
}
