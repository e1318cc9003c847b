//! Rows of visits that have not ended.

use std::collections::{BTreeMap, BTreeSet};

use cuegate_engine::{AskKind, RowEnd, Usage};
use cuegate_flow::Str;

use super::fold::RunFold;
use super::view::{CheckOutcome, REPEATS_MIN, VisitRow};

#[derive(Debug, Clone)]
pub(crate) struct PendingAsk {
    /// The step that waits for the answer: the judged step when a judge is asked.
    pub(crate) step: Str,
    pub(crate) member: Option<u16>,
    pub(super) kind: AskKind,
    pub(super) since_ms: i64,
    pub(super) not_before_ms: Option<i64>,
    /// The agent, if not the usual one.
    pub(super) agent: Option<String>,
    /// Whether it repeats an interrupted ask. No agent works on it until the run is resumed.
    pub(super) repeats_cut: bool,
}

/// The row of a visit that has not ended.
#[derive(Debug, Clone, Default)]
pub(crate) struct OpenRow {
    pub(crate) step: Str,
    pub(crate) visit: u32,
    pub(super) attempt: u32,
    pub(super) iteration: Option<u32>,
    pub(super) entered_ms: i64,
    pub(super) remedy: Option<Str>,
    pub(super) asks: u64,
    pub(super) usage: Usage,
    pub(super) changed: BTreeSet<String>,
    pub(super) violations: Vec<String>,
    pub(super) session: Option<Str>,
    pub(super) agent: Option<Str>,
    pub(super) model: Option<Str>,
    pub(super) check: Option<Box<CheckOutcome>>,
    /// The digest of its last answer.
    pub(super) answer: Option<String>,
    /// The kind of the first ask of a step that does not count.
    pub(super) asked: Option<AskKind>,
    pub(super) members: BTreeMap<u16, OpenRow>,
}

impl OpenRow {
    pub(super) fn new(step: &Str, visit: u32, attempt: u32, iteration: Option<u32>, at_ms: i64) -> OpenRow {
        OpenRow { step: step.clone(), visit, attempt, iteration, entered_ms: at_ms, ..OpenRow::default() }
    }

    pub(super) fn row(&self, seq: u64, at_ms: i64) -> VisitRow {
        VisitRow {
            seq,
            step: self.step.clone(),
            visit: self.visit,
            attempt: self.attempt,
            iteration: self.iteration,
            outcome: None,
            target: None,
            overridden_by: None,
            remedy: self.remedy.clone(),
            session: self.session.clone(),
            agent: self.agent.clone(),
            model: self.model.clone(),
            asks: self.asks,
            usage: self.usage,
            changed_files: self.changed.iter().cloned().collect(),
            violations: self.violations.as_slice().into(),
            entered_ms: self.entered_ms,
            ended_ms: at_ms,
            parent: None,
            why: None,
            check: self.check.clone(),
        }
    }
}

impl RunFold {
    /// Keeps the row of a visit that has ended. A long run has many of them, so they share their texts.
    pub(super) fn push_row(&mut self, mut row: VisitRow) {
        let names = &mut self.names;
        row.step = names.share(&row.step);
        let VisitRow { outcome, target, overridden_by, remedy, agent, model, parent, why, .. } = &mut row;
        for name in [outcome, target, overridden_by, remedy, agent, model, parent, why] {
            names.share_in(name);
        }
        // Steps that go on with a conversation follow each other.
        if let Some(last) = self.view.rows.last().filter(|last| last.session == row.session) {
            row.session.clone_from(&last.session);
        }
        self.view.rows.push(row);
        self.view.ended_visits += 1;
    }

    /// Counts how often a step gave the same answer in a row and changed no file.
    pub(super) fn count_repetition(&mut self, track: &OpenRow) {
        let times = match (&track.answer, track.changed.is_empty()) {
            (Some(answer), true) => {
                let (known, times) = self.repeats.entry(self.names.share(&track.step)).or_default();
                *times = if known == answer { *times + 1 } else { 1 };
                known.clone_from(answer);
                *times
            }
            // Whoever answers the same about other files does not repeat itself.
            (_, false) => {
                self.repeats.clear();
                0
            }
            (None, true) => {
                self.repeats.remove(&track.step);
                0
            }
        };
        self.view.repeats = (times >= REPEATS_MIN).then(|| (track.step.clone(), times));
        if track.changed.is_empty() {
            return;
        }
        if let Some(tree) = self.tree.clone() {
            let this = (self.names.share(&track.step), track.visit);
            let first = self.trees.entry(tree).or_insert_with(|| this.clone()).clone();
            self.view.circle = (first != this).then_some((this, first));
        }
    }
}

/// A row with its outcome and target.
pub(super) fn apply_row_end(row: VisitRow, end: &RowEnd) -> VisitRow {
    VisitRow {
        outcome: end.outcome.clone(),
        target: end.target.clone(),
        overridden_by: end.overridden_by.clone(),
        ..row
    }
}

/// The sum of input and output tokens.
pub(crate) fn tokens_of(usage: &Usage) -> u64 {
    usage.input_tokens.saturating_add(usage.output_tokens)
}

/// Adds usage; an unknown cost adds nothing.
pub(super) fn add_usage_saturating(sum: &mut Usage, usage: &Usage) {
    // Services may report nonsense: the sum saturates, so that the run can still be shown.
    sum.input_tokens = sum.input_tokens.saturating_add(usage.input_tokens);
    sum.output_tokens = sum.output_tokens.saturating_add(usage.output_tokens);
    sum.is_estimated |= usage.is_estimated;
    if let Some(cost) = usage.cost_usd {
        sum.cost_usd = Some(sum.cost_usd.unwrap_or(0.0) + cost);
    }
}

/// Whether an ask used tokens at an unknown price. One that was rejected before it read a token costs nothing.
pub(super) fn is_unpriced(usage: &Usage) -> bool {
    usage.cost_usd.is_none() && tokens_of(usage) > 0
}
