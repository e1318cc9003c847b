//! The result of a simulation, as `cuegate/simulate/v1` and as text.

use std::collections::BTreeMap;

use cuegate_engine::{EndState, State, WaitKind};
use cuegate_flow::{analysis::cost_bound::Certificate, diagnostics::Sources};
use serde_json::{Map, Value, json};

use super::{CoverItem, CoverKind, Coverage, ObservedCounts, items::UNREACHABLE};
use crate::{
    format::{format_count, plural},
    text::{Alignment, align_table, clean_to_one_line, format_labelled_line, wrap_text},
};

/// The width of a list of names.
const COLUMNS_MAX: usize = 98;

#[derive(Debug, Clone)]
pub struct FinishedSimulation<'s> {
    /// The definition's name.
    pub flow: &'s str,
    /// The format of the definition.
    pub dialect: &'s str,
    pub seed: u64,
    /// The iteration limit of its runs.
    pub iterations_max: u32,
    /// The definition's own limit, which may differ.
    pub own_iterations_max: u32,
    /// Generated parameter values by name.
    pub made_up: &'s BTreeMap<String, String>,
    /// The agents and their results.
    pub agents: &'s [AgentRow],
    /// The coverage of its runs.
    pub coverage: &'s Coverage,
    /// The sources of the definition.
    pub sources: &'s Sources,
    /// The bound on each count.
    pub bound: &'s Certificate,
    /// The highest count in any run.
    pub observed: &'s ObservedCounts,
    /// Violated invariants.
    pub bugs: &'s [BugRow],
    /// The required coverage, in percent.
    pub min_coverage: Option<f64>,
    /// The agents that the time limit stopped.
    pub stopped: &'s [&'static str],
}

/// Names with commas and an `and`.
fn join_names_with_and(names: &[&str]) -> String {
    match names {
        [names @ .., last] if !names.is_empty() => format!("{} and {last}", names.join(", ")),
        names => names.concat(),
    }
}

/// The results of one agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgentRow {
    pub agent: &'static str,
    /// The number of runs.
    pub runs: u64,
    /// The number of runs by result: `completed`, `failed`, `waiting for a person` and so on.
    pub ends: BTreeMap<&'static str, u64>,
    /// The number of items that its runs covered.
    pub covered: usize,
}

/// A violated invariant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BugRow {
    pub agent: &'static str,
    /// The number of the run, from 1.
    pub run: u64,
    /// The description.
    pub what: String,
}

/// The result of a run that is no longer driven; `None` if it has none.
pub fn end_of(state: &State) -> Option<&'static str> {
    match state {
        State::Ended { state, .. } => Some(match state {
            EndState::Completed => "completed",
            EndState::Aborted => "aborted",
            EndState::Failed => "failed",
            EndState::Exhausted => "exhausted",
            EndState::Cancelled => "cancelled",
        }),
        State::Suspended(waiting) => Some(match waiting.kind {
            WaitKind::Person => "waiting for a person",
            WaitKind::Quota => "waiting for a quota",
            WaitKind::Environment => "waiting for an agent",
            WaitKind::Interrupted => "interrupted",
        }),
        State::New | State::Running => None,
    }
}

impl FinishedSimulation<'_> {
    /// Whether the coverage reaches the required value.
    pub fn is_enough(&self) -> bool {
        self.min_coverage.is_none_or(|least| self.coverage.all().percent() >= least)
    }

    fn uncovered(&self) -> impl Iterator<Item = &CoverItem> {
        self.coverage.items.iter().filter(|item| item.hits == 0 && item.barred.is_none())
    }

    fn barred(&self) -> impl Iterator<Item = (&CoverItem, &str)> {
        let items = self.coverage.items.iter().filter(|item| item.hits == 0);
        items.filter_map(|item| Some((item, item.barred.as_deref()?)))
    }

    fn runs(&self) -> u64 {
        self.agents.iter().map(|row| row.runs).sum()
    }

    fn place(&self, item: &CoverItem) -> Option<(String, u32)> {
        let file = self.sources.get(item.span.file)?;
        Some((file.given().to_owned(), self.sources.locate(item.span).line))
    }

    /// As a JSON object of `cuegate/simulate/v1`.
    pub fn json(&self) -> Value {
        let item = |item: &CoverItem| {
            let place = self.place(item);
            json!({
                "kind": item.kind.as_str(), "name": item.name, "step": item.step,
                "file": place.as_ref().map(|(file, _)| file), "line": place.as_ref().map(|(_, line)| line),
                "reason": item.barred.as_deref().or(item.takes.as_deref()),
            })
        };
        let kinds: Map<String, Value> = CoverKind::ALL
            .into_iter()
            .map(|kind| (kind, self.coverage.kind(kind)))
            .filter(|(_, covered)| covered.of > 0)
            .map(|(kind, covered)| {
                (kind.as_str().to_owned(), json!({"covered": covered.covered, "of": covered.of}))
            })
            .collect();
        let all = self.coverage.all();
        let agents: Vec<Value> = self
            .agents
            .iter()
            .map(
                |row| json!({"agent": row.agent, "runs": row.runs, "covered": row.covered, "ends": row.ends}),
            )
            .collect();
        let bugs: Vec<Value> = self
            .bugs
            .iter()
            .map(|bug| json!({"agent": bug.agent, "run": bug.run, "what": bug.what}))
            .collect();
        json!({
            "schema": "cuegate/simulate/v1",
            "flow": self.flow,
            "dialect": self.dialect,
            "seed": self.seed,
            "iterations_max": self.iterations_max,
            "made_up": self.made_up,
            "runs": self.runs(),
            "agents": agents,
            "coverage": {
                "percent": round_down_percent(all.percent()), "covered": all.covered, "of": all.of, "min": self.min_coverage,
                "enough": self.is_enough(), "by_kind": kinds,
            },
            "stopped": self.stopped,
            "uncovered": self.uncovered().map(item).collect::<Vec<Value>>(),
            "not_counted": self.barred().map(|(barred, _)| item(barred)).collect::<Vec<Value>>(),
            "bound": {"visits": self.bound.visits, "iterations": self.bound.iterations, "asks": self.bound.asks},
            "observed": {
                "visits": self.observed.visits, "iterations": self.observed.iterations,
                "asks": self.observed.asks, "asks_by_kind": self.observed.by_kind,
            },
            "bugs": bugs,
        })
    }

    /// As text.
    pub fn text(&self) -> String {
        let mut lines = vec![format!(
            "{} ({}): {}, seed {}",
            clean_to_one_line(self.flow),
            self.dialect,
            plural(self.runs(), "run"),
            self.seed
        )];
        if self.iterations_max != self.own_iterations_max {
            lines.push(format_labelled_line(
                "limit",
                &format!(
                    "at most {} iterations; the definition says {}",
                    self.iterations_max, self.own_iterations_max
                ),
            ));
        }
        let made_up: Vec<String> =
            self.made_up.iter().map(|(name, value)| clean_to_one_line(&format!("{name}={value}"))).collect();
        if !made_up.is_empty() {
            lines.push(format_labelled_line("generated", &made_up.join(", ")));
        }
        lines.push(String::new());
        lines.extend(self.agents_table());
        lines.push(String::new());
        let all = self.coverage.all();
        let share = format!("{} of {} ({}%)", all.covered, all.of, round_down_percent(all.percent()));
        lines.push(format_labelled_line("covered", &share));
        for kind in CoverKind::ALL {
            let covered = self.coverage.kind(kind);
            if covered.of > 0 {
                let label = format!("{}s", kind.as_str());
                lines.push(format_labelled_line(&label, &format!("{} of {}", covered.covered, covered.of)));
            }
        }
        lines.push(format_labelled_line(
            "bound",
            &format!(
                "at most {} iterations, {} visits, {} calls",
                format_count(self.bound.iterations),
                format_count(self.bound.visits),
                format_count(self.bound.asks)
            ),
        ));
        lines.push(format_labelled_line(
            "observed",
            &format!(
                "at most {} iterations, {} visits, {} calls in a run",
                format_count(self.observed.iterations),
                format_count(self.observed.visits),
                format_count(self.observed.asks)
            ),
        ));
        if !self.stopped.is_empty() {
            lines.push(format_labelled_line(
                "stopped",
                &format!("the time limit stopped {}", join_names_with_and(self.stopped)),
            ));
            lines.push(format_labelled_line(
                "",
                "their coverage is partial; `--time SECONDS` gives more time",
            ));
        }
        self.left(&mut lines);
        for bug in self.bugs {
            lines.push(format!(
                "bug of cuegate: {} in run {}: {}",
                bug.agent,
                bug.run,
                clean_to_one_line(&bug.what)
            ));
        }
        lines.join("\n") + "\n"
    }

    fn agents_table(&self) -> Vec<String> {
        let ends = |row: &AgentRow| {
            let ends: Vec<String> = row.ends.iter().map(|(end, times)| format!("{times} {end}")).collect();
            ends.join(", ")
        };
        let row = |row: &AgentRow| {
            vec![row.agent.to_owned(), plural(row.runs, "run"), row.covered.to_string(), ends(row)]
        };
        let rows: Vec<Vec<String>> = std::iter::once(vec!["agent", "", "covers", "ends"])
            .map(|names| names.into_iter().map(str::to_owned).collect())
            .chain(self.agents.iter().map(row))
            .collect();
        align_table(&rows, &[Alignment::Left, Alignment::Right, Alignment::Right, Alignment::Left])
    }

    /// Adds the uncovered items with their lines, and the unreachable ones.
    fn left(&self, lines: &mut Vec<String>) {
        let rows = |items: Vec<(&CoverItem, Option<&str>)>| {
            let row = |(item, reason): (&CoverItem, Option<&str>)| {
                let place = self.place(item).map(|(file, line)| format!("{file}:{line}")).unwrap_or_default();
                let mut row = vec![
                    format!("  {}", clean_to_one_line(&place)),
                    item.kind.as_str().to_owned(),
                    clean_to_one_line(&item.name),
                ];
                row.extend(reason.map(str::to_owned));
                row
            };
            let rows: Vec<Vec<String>> = items.into_iter().map(row).collect();
            align_table(&rows, &[Alignment::Left, Alignment::Left, Alignment::Left, Alignment::Left])
        };
        let uncovered: Vec<(&CoverItem, Option<&str>)> =
            self.uncovered().map(|item| (item, item.takes.as_deref())).collect();
        if !uncovered.is_empty() {
            lines.push(String::new());
            lines.push("not covered".to_owned());
            lines.extend(rows(uncovered));
        }
        let barred: Vec<(&CoverItem, &str)> = self.barred().collect();
        if barred.is_empty() {
            return;
        }
        // Items of an unreachable step are not listed: the step itself is.
        let steps = |why: &dyn Fn(&str) -> bool| -> Vec<&str> {
            let steps = barred.iter().filter(|(item, reason)| item.kind == CoverKind::Step && why(reason));
            steps.map(|(item, _)| item.name.as_str()).collect()
        };
        let all = steps(&|_| true);
        let steps = steps(&|reason| reason == UNREACHABLE);
        let is_own = |item: &&CoverItem| match item.kind {
            CoverKind::Step => !steps.contains(&item.name.as_str()),
            _ => !item.step.as_ref().is_some_and(|step| all.contains(&&**step)),
        };
        let others = barred.iter().filter(|(item, _)| is_own(item));
        let others: Vec<(&CoverItem, Option<&str>)> =
            others.map(|(item, reason)| (*item, Some(*reason))).collect();
        lines.push(String::new());
        lines.push("not counted: unreachable".to_owned());
        if !steps.is_empty() {
            let all = clean_to_one_line(&format!("steps {}", steps.join(", ")));
            lines.extend(wrap_text(&all, COLUMNS_MAX).into_iter().map(|line| format!("  {line}")));
        }
        lines.extend(rows(others));
    }
}

/// Rounds to one digit, but never up to 100.
fn round_down_percent(percent: f64) -> f64 {
    (percent * 10.0).floor() / 10.0
}
