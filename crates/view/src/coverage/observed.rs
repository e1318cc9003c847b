//! Counts what a run did, to compare it with the cost bound.

use std::collections::BTreeMap;

use cuegate_engine::Event;
use cuegate_flow::{
    analysis::cost_bound::Certificate,
    model::{Act, Flow},
};

/// Counts of a run, with the same names as in a bound.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ObservedCounts {
    /// Visits of steps. Each member of a parallel step counts, the parallel step itself does not.
    pub visits: u64,
    pub iterations: u64,
    /// Answered asks.
    pub asks: u64,
    /// Answered asks by kind.
    pub by_kind: BTreeMap<&'static str, u64>,
}

impl ObservedCounts {
    /// Counts the records of a run.
    pub fn new<'e>(flow: &Flow, records: impl IntoIterator<Item = &'e [Event]>) -> ObservedCounts {
        let mut did = ObservedCounts::default();
        for event in records.into_iter().flatten() {
            match event {
                Event::Answered { kind, .. } => {
                    did.asks += 1;
                    *did.by_kind.entry(kind.as_str()).or_default() += 1;
                }
                Event::StepEntered { step, counts: true, attempt, iteration, .. } => {
                    did.iterations = u64::from(*iteration);
                    did.visits += match flow.find(step).map(|id| &flow.step(id).act) {
                        // Another attempt continues the same visit.
                        _ if *attempt > 1 => 0,
                        Some(Act::All { members, .. }) => members.len() as u64,
                        _ => 1,
                    };
                }
                _ => {}
            }
        }
        did
    }

    /// Describes the counts that exceed a bound.
    pub fn beyond(&self, bound: &Certificate) -> Vec<String> {
        let by_role = |kind: &str| {
            bound.by_role.iter().find(|(role, _)| role.as_str() == kind).map_or(0, |(_, most)| *most)
        };
        let mut all = vec![
            ("visits", self.visits, bound.visits),
            ("iterations", self.iterations, bound.iterations),
            ("asks", self.asks, bound.asks),
        ];
        all.extend(self.by_kind.iter().map(|(kind, times)| (*kind, *times, by_role(kind))));
        // If steps can loop without an iteration, only the iterations are bounded.
        let bounded = |what: &str| !bound.endless || what == "iterations";
        let beyond = all.into_iter().filter(|(what, times, most)| times > most && bounded(what));
        beyond.map(|(what, times, most)| format!("{times} {what}, at most {most}")).collect()
    }

    /// Keeps the maximum of each count.
    pub fn most(&mut self, other: &ObservedCounts) {
        self.visits = self.visits.max(other.visits);
        self.iterations = self.iterations.max(other.iterations);
        self.asks = self.asks.max(other.asks);
        for (kind, times) in &other.by_kind {
            let most = self.by_kind.entry(kind).or_default();
            *most = (*most).max(*times);
        }
    }
}
