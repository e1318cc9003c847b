//! What runs of a definition usually cost: by the journal, else by the shortest way through the definition.

use std::collections::BTreeMap;

use cuegate_engine::EndState;
use cuegate_flow::{analysis::cost_bound::calls_of_one_pass, model::Flow};
use cuegate_journal::Journal;
use cuegate_view::{RunState, format_money, plural};

use crate::project;

/// How many runs are compared, and among how many of the newest they are looked for.
const RUNS_MAX: usize = 7;
const NEWEST: usize = 60;

/// What the last completed runs of a definition cost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct KnownCosts {
    runs: usize,
    /// In millionths of a US dollar.
    least: u64,
    most: u64,
}

impl KnownCosts {
    /// The costs of the last completed runs of a definition with this agent; `None` if there is none of known cost.
    pub(crate) fn find(journal: &dyn Journal, flow: &str, agent: &str) -> Option<KnownCosts> {
        KnownCosts::find_all(journal, Some(agent)).remove(flow)
    }

    /// The same for every definition, with the given agent or any.
    pub(crate) fn find_all(journal: &dyn Journal, agent: Option<&str>) -> BTreeMap<String, KnownCosts> {
        let mut runs = journal.runs().unwrap_or_default();
        runs.retain(|run| run.has_records && run.damage.is_none());
        runs.sort_by_key(|run| std::cmp::Reverse(run.created_at_ms));
        let mut found: BTreeMap<String, KnownCosts> = BTreeMap::new();
        for run in runs.iter().take(NEWEST) {
            let Ok(view) = project::view_of(journal, &run.run) else { continue };
            let counts = agent.is_none_or(|agent| view.provider == agent)
                && view.state == RunState::Ended(EndState::Completed)
                && view.unknown == 0
                && view.unpriced == 0;
            let cost = view.usage.cost_usd.and_then(cuegate_engine::convert_usd_to_micro);
            if let Some(cost) = cost.filter(|_| counts) {
                let known = found.entry(view.flow.to_string());
                let known = known.or_insert(KnownCosts { runs: 0, least: cost, most: cost });
                if known.runs < RUNS_MAX {
                    *known = KnownCosts {
                        runs: known.runs + 1,
                        least: known.least.min(cost),
                        most: known.most.max(cost),
                    };
                }
            }
        }
        found
    }

    /// `$0.41 to $2.10`
    pub(crate) fn describe_range(&self) -> String {
        let amount = |micro: u64| format_money(Some(micro as f64 / 1e6));
        let (least, most) = (amount(self.least), amount(self.most));
        if least == most { least } else { format!("{least} to {most}") }
    }

    /// The least and the most, in US dollars.
    pub(crate) fn range_usd(&self) -> [f64; 2] {
        [self.least as f64 / 1e6, self.most as f64 / 1e6]
    }

    /// `the last 7 runs of `develop` here: $0.41 to $2.10`
    pub(crate) fn describe(&self, flow: &str) -> String {
        let range = self.describe_range();
        match self.runs {
            1 => format!("the last run of `{flow}` here: {range}"),
            runs => format!("the last {} of `{flow}` here: {range}", plural(runs as u64, "run")),
        }
    }

    /// A limit that leaves room for a run twice as costly, in whole US dollars.
    pub(crate) fn proposed_usd(&self) -> u64 {
        self.most.saturating_mul(2).div_ceil(1_000_000).max(1)
    }
}

/// The calls of a run in which all goes well, and of one in which each step but the first is asked once more; `None` if
/// that is not known.
pub(crate) fn usual_calls(flow: &Flow) -> Option<(u64, u64)> {
    let least = calls_of_one_pass(flow)?.max(1);
    Some((least, (2 * least - 1).max(least + 1)))
}

/// `usually 3–5`
pub(crate) fn describe_calls((least, most): (u64, u64)) -> String {
    format!("usually {least}–{most}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn costs_are_described_as_a_range() {
        let known = |runs, least, most| KnownCosts { runs, least, most };
        let seven = known(7, 410_000, 2_100_000);
        assert_eq!(seven.describe("develop"), "the last 7 runs of `develop` here: $0.41 to $2.10");
        assert_eq!(known(1, 410_000, 410_000).describe("develop"), "the last run of `develop` here: $0.41");
        assert_eq!((seven.proposed_usd(), known(1, 0, 0).proposed_usd()), (5, 1));
        assert_eq!(describe_calls((3, 5)), "usually 3–5");
    }
}
