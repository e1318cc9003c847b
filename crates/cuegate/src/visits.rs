//! Finds a moment of a run by what a person types: a visit of a step, or the number of a record.

use std::collections::BTreeSet;

use cuegate_engine::{Event, Run, TreeState};
use cuegate_flow::diagnostics::find_nearest_name;
use cuegate_journal::{Journal, RunId};
use cuegate_runner::{read_each_record, worktree::Trees};
use cuegate_view::{SpanKind, Spans, StampedRecord};

use crate::{Failure, project::first_tree, run_changes::RunChanges};

/// What a person names: a visit or a record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RunPart {
    /// In words: ``visit 2 of `fix` ``.
    pub(crate) name: String,
    /// The record after which it began, and its last one. What happens in the record that enters a step belongs to the step
    /// before.
    pub(crate) records: (u64, u64),
}

/// The working tree before and after a part of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TreesAround {
    pub(crate) before: TreeState,
    pub(crate) after: TreeState,
    /// Trees before and after what others changed in between: while the run waited, or with a step that only reads.
    pub(crate) waits: Vec<(String, String)>,
}

impl TreesAround {
    /// What the run changed in between.
    ///
    /// # Errors
    /// When git fails.
    pub(crate) fn changes(self, trees: &Trees) -> Result<RunChanges, Failure> {
        let mut others = BTreeSet::new();
        for (before, after) in &self.waits {
            others.extend(trees.changes(before, after)?.into_iter().map(|change| change.path));
        }
        let changed = trees.changes(&self.before.tree, &self.after.tree)?;
        let own: Vec<String> =
            changed.into_iter().map(|change| change.path).filter(|path| !others.contains(path)).collect();
        let own_tree = match others.is_empty() {
            true => None,
            false => Some(trees.with_entries_of(&self.before.tree, &self.after.tree, &own)?),
        };
        let mut changes = RunChanges::between(self.before, self.after);
        changes.own_tree = own_tree;
        Ok(changes)
    }
}

/// Finds `fix`, its last visit; `fix#2`; or `37`, the record of this number.
///
/// # Errors
/// When the journal cannot be read, or the run has no such visit or record.
pub(crate) fn find_moment(journal: &dyn Journal, id: &RunId, typed: &str) -> Result<RunPart, Failure> {
    let (mut spans, mut count) = (Spans::default(), 0);
    read_each_record(journal, id, 0, |entry| {
        let record = StampedRecord { seq: entry.seq, at_ms: entry.at_ms, events: entry.events };
        spans.apply(&record);
        count = record.seq + 1;
    })?;
    if let Ok(seq) = typed.parse::<u64>() {
        if seq < count {
            return Ok(RunPart { name: format!("record {seq}"), records: (seq.saturating_sub(1), seq) });
        }
        let hint =
            format!("its records are 0 to {}; `cuegate log {id} --json` shows them", count.saturating_sub(1));
        return Err(Failure::usage(format!("run {id} has no record {seq}"), hint));
    }
    let (step, number) = match typed.rsplit_once('#') {
        Some((step, number)) => match number.parse::<u32>() {
            Ok(number) => (step, Some(number)),
            Err(_) => {
                let hint = "write STEP, STEP#VISIT or the number of a record";
                return Err(Failure::usage(format!("`{typed}` names no visit"), hint));
            }
        },
        None => (typed, None),
    };
    let visits = || (0..spans.visits()).filter_map(|index| spans.visit(index));
    let of_step = || visits().filter(|span| span.kind == SpanKind::Visit && *span.name == *step);
    let Some(last) = of_step().next_back() else {
        // Members and judges work within the visit of a step.
        let inner = spans.all().iter().rev().find(|span| span.kind == SpanKind::Ask && *span.name == *step);
        if let Some(outer) = inner.and_then(|span| spans.all().get(span.parent?)) {
            return Err(Failure::usage(
                format!("`{step}` worked within visits of `{}`", outer.name),
                format!("name such a visit: `{}#{}`", outer.name, outer.visit),
            ));
        }
        let names = visits().map(|span| &*span.name);
        let hint = match find_nearest_name(step, names.clone()) {
            Some(meant) => format!("did you mean `{meant}`?"),
            None => {
                let mut names: Vec<&str> = names.collect();
                names.sort_unstable();
                names.dedup();
                format!("it visited {}", names.join(", "))
            }
        };
        return Err(Failure::usage(format!("run {id} never visited `{step}`"), hint));
    };
    // Attempts of one visit are one part.
    let number = number.unwrap_or(last.visit);
    let attempts = || of_step().filter(|span| span.visit == number);
    let (Some(first), Some(last_attempt)) = (attempts().next(), attempts().next_back()) else {
        let message = format!("run {id} has no visit {number} of `{step}`");
        return Err(Failure::usage(message, format!("the last one is `{step}#{}`", last.visit)));
    };
    let name = format!("visit {number} of `{step}`");
    Ok(match last_attempt.to_seq {
        Some(end) => RunPart { name, records: (first.from_seq, end) },
        None => {
            let records = (first.from_seq, count.saturating_sub(1));
            RunPart { name: format!("{name}, as far as it is recorded"), records }
        }
    })
}

/// The working tree after a record and after a later one; `None` if the run recorded no trees.
///
/// # Errors
/// When the journal cannot be read.
pub(crate) fn trees_around(
    journal: &dyn Journal,
    id: &RunId,
    (from_seq, to_seq): (u64, u64),
) -> Result<Option<TreesAround>, Failure> {
    let (mut before, mut run, mut waits) = (None, Run::default(), Vec::new());
    read_each_record(journal, id, 0, |entry| {
        if entry.seq > to_seq {
            return;
        }
        let former = run.tree.as_ref().map(|tree| tree.tree.clone());
        run.apply_record(&entry.events);
        if entry.seq <= from_seq {
            before.clone_from(&run.tree);
            return;
        }
        let by_others = |event: &Event| {
            use Event::{ChangedByOthers, Forked, PersonAnswered, Resumed};
            matches!(event, Forked(_) | Resumed(_) | PersonAnswered { .. } | ChangedByOthers { .. })
        };
        if let (Some(former), Some(now)) = (former, &run.tree)
            && former != now.tree
            && entry.events.iter().any(by_others)
        {
            waits.push((former, now.tree.clone()));
        }
    })?;
    let before = match before {
        None if from_seq == 0 => first_tree(journal, run.started())?,
        before => before,
    };
    Ok(before.zip(run.tree).map(|(before, after)| TreesAround { before, after, waits }))
}
