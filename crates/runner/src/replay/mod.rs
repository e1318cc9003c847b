//! Replays a run: every decision is made again from the journal, and compared with what was recorded.

mod edited;

use std::{ops::ControlFlow, sync::Arc};

use cuegate_engine::{
    Completion, Event, FenceKey, Moment, RecordedDecision, Run, RunStarted, UnreadableRecord,
};
use cuegate_flow::model::{BlobRef, Flow};
use cuegate_journal::{Journal, RunId};
use serde_json::Value;

use crate::{error::Error, prompt_text::read_stored_text};

pub use edited::{EditedReplay, ReplayStop, replay_in_flow};

/// A record as it was decided, with its place.
#[derive(Debug, Clone, PartialEq)]
pub struct StampedDecision {
    /// Its number.
    pub seq: u64,
    /// When it was decided, in milliseconds since 1970.
    pub at_ms: i64,
    /// What was decided about, and what followed.
    pub decided: RecordedDecision,
}

impl StampedDecision {
    /// The time of the decision. The time that a limited run was driven is the first thing that such a record says.
    pub fn moment(&self) -> Moment {
        let driven_ms = match self.decided.events.first() {
            Some(Event::TimePassed { ms }) => *ms,
            _ => 0,
        };
        Moment { at_ms: self.at_ms, driven_ms }
    }
}

/// A decision that differs today.
#[derive(Debug, Clone, PartialEq)]
pub struct Divergence {
    /// The number of the record.
    pub seq: u64,
    /// When it was written, in milliseconds since 1970.
    pub at_ms: i64,
    /// What was decided about.
    pub completion: Completion,
    /// The step that the run was at, and the number of its visit.
    pub at: Option<(String, u32)>,
    /// The first event of the record that differs; `None` if it has fewer events.
    pub recorded: Option<Event>,
    /// The same of today's decision.
    pub decided: Option<Event>,
}

/// Hands out the records of a run with what was decided about, in order.
///
/// # Errors
/// When the journal cannot be read, or a record does not say what was decided about.
pub fn read_each_decision(
    journal: &dyn Journal,
    run: &RunId,
    mut each: impl FnMut(StampedDecision) -> ControlFlow<()>,
) -> Result<(), Error> {
    let mut failed = None;
    journal.read_each(run, 0, &mut |row| {
        let mut unread = None;
        let mut texts = |digest: &str| {
            let blob = BlobRef { digest: digest.to_owned(), len: 0 };
            read_stored_text(journal, run, &blob).map_err(|error| unread = Some(error)).ok()
        };
        match RecordedDecision::parse(&row.body, &mut texts) {
            Ok(decided) => each(StampedDecision { seq: row.seq, at_ms: row.at_ms, decided }),
            Err(source) => {
                // What the journal says about a damaged text is more than that it is missing.
                failed = Some(match (unread, source) {
                    (Some(error), UnreadableRecord::NoText { .. }) => error,
                    (_, source) => Error::Record { run: run.to_string(), seq: row.seq, source },
                });
                ControlFlow::Break(())
            }
        }
    })?;
    failed.map_or(Ok(()), Err)
}

/// The flow of a run that goes on with an edited definition, by what it was started with then; `None` fails the replay.
pub type FlowLoader<'l> = dyn FnMut(&RunStarted) -> Option<Arc<Flow>> + 'l;

/// The flow in which a completion is decided: an adopted definition holds from its own record on.
fn flow_for(
    run: &Run,
    completion: &Completion,
    flow: &Arc<Flow>,
    load: &mut FlowLoader<'_>,
) -> Option<Arc<Flow>> {
    match completion {
        Completion::Resumed(resume) if resume.definition.is_some() => {
            let mut started = run.started().clone();
            resume.definition.iter().for_each(|adopted| started.adopt(adopted));
            load(&started)
        }
        _ => Some(flow.clone()),
    }
}

/// Whether two events differ in the ids of fences alone.
fn is_same_without_fences(one: &Event, other: &Event) -> bool {
    let without = |event: &Event| serde_json::to_value(event).map(remove_fence_ids).ok();
    without(one).is_some_and(|one| without(other) == Some(one))
}

/// Removes the ids of fences from all texts of a value.
fn remove_fence_ids(value: Value) -> Value {
    match value {
        Value::String(text) => Value::String(FenceKey::remove_ids(&text)),
        Value::Array(values) => values.into_iter().map(remove_fence_ids).collect(),
        Value::Object(values) => {
            values.into_iter().map(|(key, value)| (key, remove_fence_ids(value))).collect()
        }
        other => other,
    }
}

/// Decides every record of a run again, which was started with `flow`. Returns the number of records that are as recorded,
/// and the first that is not.
///
/// # Errors
/// As [`read_each_decision`].
pub fn replay_run(
    journal: &dyn Journal,
    run: &RunId,
    flow: &Arc<Flow>,
    load: &mut FlowLoader<'_>,
) -> Result<(u64, Option<Box<Divergence>>), Error> {
    let (mut state, mut same, mut divergence) = (Run::default(), 0, None);
    let (mut flow, mut unloaded) = (flow.clone(), None);
    read_each_decision(journal, run, |record| {
        let at = state.progress.visit.as_ref().map(|visit| (visit.step.to_string(), visit.visit));
        let moment = record.moment();
        let StampedDecision { seq, at_ms, decided: RecordedDecision { completion, events: recorded } } =
            record;
        let Some(now) = flow_for(&state, &completion, &flow, load) else {
            unloaded = Some(Error::Definition { run: run.to_string(), seq });
            return ControlFlow::Break(());
        };
        flow = now;
        let decided = state.advance(&flow, moment, completion.clone()).events;
        // An exported run has no key for the fences in its prompts.
        let is_keyless = state.started().fence_key == FenceKey::default();
        let is_same = |recorded: &Event, decided: &Event| {
            recorded == decided || is_keyless && is_same_without_fences(recorded, decided)
        };
        let pairs = || recorded.iter().zip(&decided);
        if recorded.len() == decided.len() && pairs().all(|(recorded, decided)| is_same(recorded, decided)) {
            same += 1;
            return ControlFlow::Continue(());
        }
        let differs = pairs().take_while(|(recorded, decided)| is_same(recorded, decided)).count();
        let (recorded, decided) = (recorded.into_iter().nth(differs), decided.into_iter().nth(differs));
        divergence = Some(Box::new(Divergence { seq, at_ms, completion, at, recorded, decided }));
        ControlFlow::Break(())
    })?;
    unloaded.map_or(Ok((same, divergence)), Err)
}
