//! Actions that agents request in blocks of their answers, and schema checks of answers.

use cuegate_engine::{
    CommandId, EffectDelayed, EffectFinished, EffectKind, EffectState as Result, EffectsRequested, EndState,
    Event, StepEffect, StepEffectsRequested,
};
use cuegate_flow::{Str, model::BlobRef};
use serde_json::{Value, json};

/// An effect of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EffectRow {
    /// The id of the effect in the run.
    pub id: CommandId,
    /// The step whose answer requested it; empty if the definition did.
    pub step: Str,
    /// The name of the action.
    pub action: Str,
    /// What it does.
    pub kind: EffectKind,
    /// The block of the answer.
    pub value: BlobRef,
    /// The progress of the effect.
    pub state: EffectState,
    /// What was done, or why not: `exit 1`, `merged into main`.
    pub said: Option<String>,
    /// The address of what it created.
    pub url: Option<String>,
    /// The time of the next try, in milliseconds since 1970.
    pub until_ms: Option<i64>,
    /// The files that its program changed.
    pub changed_files: Vec<String>,
}

impl EffectRow {
    /// Whether it only tells something in the log.
    pub(crate) fn is_log(&self) -> bool {
        self.kind == EffectKind::Log
    }
}

/// The progress of an effect.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EffectState {
    /// It is not done yet.
    Pending,
    /// It is done.
    Done,
    /// It is not done and not tried again.
    Failed,
    /// Nobody knows whether it is done.
    Unknown,
}

impl EffectState {
    /// The printed word.
    pub fn as_str(self) -> &'static str {
        match self {
            EffectState::Pending => "pending",
            EffectState::Done => "done",
            EffectState::Failed => "failed",
            EffectState::Unknown => "unknown",
        }
    }
}

impl From<Result> for EffectState {
    fn from(result: Result) -> EffectState {
        match result {
            Result::Done => EffectState::Done,
            Result::Failed => EffectState::Failed,
            Result::Unknown => EffectState::Unknown,
        }
    }
}

/// The schema check of an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InspectionRow {
    /// The record of the answer.
    pub seq: u64,
    /// The step of the answer.
    pub step: Str,
    /// Whether the answer contains a JSON object.
    pub found: bool,
    /// The violations of the schema.
    pub problems: Vec<String>,
}

/// The requested actions and schema checks so far.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ActionRows {
    /// Requested actions, in order.
    pub effects: Vec<EffectRow>,
    /// Schema checks, in order.
    pub inspections: Vec<InspectionRow>,
    /// Questions that the definition answered.
    pub answered_questions: u64,
}

impl ActionRows {
    /// Applies an event of a record.
    pub(crate) fn apply(&mut self, seq: u64, event: &Event) {
        match event {
            Event::ActionFound { step, index, action, value, handler: Some(kind), .. } => {
                let row = EffectRow {
                    step: step.clone(),
                    action: action.clone(),
                    value: value.clone(),
                    ..row_of_requested_effect(seq, *index, kind)
                };
                self.effects.push(row);
            }
            Event::EffectsRequested(EffectsRequested { first, effects, .. }) => {
                let rows =
                    (*first..).zip(effects).map(|(index, kind)| row_of_requested_effect(seq, index, kind));
                self.effects.extend(rows);
            }
            Event::StepEffectsRequested(StepEffectsRequested { step, effects }) => {
                let row = |(index, effect): (u16, &StepEffect)| EffectRow {
                    step: step.clone(),
                    action: effect.name.clone(),
                    value: effect.values.clone(),
                    ..row_of_requested_effect(seq, index, &EffectKind::Step(effect.kind))
                };
                self.effects.extend((0..).zip(effects).map(row));
            }
            Event::EffectDelayed(EffectDelayed { effect, why, until_ms, .. }) => {
                if let Some(row) = self.row(*effect) {
                    row.said = Some(why.clone());
                    row.until_ms = Some(*until_ms);
                }
            }
            Event::EffectResent { effect, .. } => {
                if let Some(row) = self.row(*effect) {
                    row.state = EffectState::Pending;
                }
            }
            Event::EffectFinished(EffectFinished { effect, state, said, url, changed_files, .. }) => {
                if let Some(row) = self.row(*effect) {
                    row.state = (*state).into();
                    row.said = Some(said.clone());
                    row.url = url.clone();
                    row.until_ms = None;
                    row.changed_files.clone_from(changed_files);
                    // What follows depends on it and is requested again by a retry.
                    if row.kind.finalizes() && row.state != EffectState::Done {
                        self.effects.retain(|row| row.state != EffectState::Pending);
                    }
                }
            }
            Event::Ended { state: EndState::Cancelled, .. } => {
                self.effects.retain(|row| row.state != EffectState::Pending);
            }
            Event::Inspected { step, found, problems, .. } => {
                let (step, problems) = (step.clone(), problems.clone());
                self.inspections.push(InspectionRow { seq, step, found: *found, problems });
            }
            Event::QuestionAnswered { .. } => self.answered_questions += 1,
            _ => {}
        }
    }

    fn row(&mut self, effect: CommandId) -> Option<&mut EffectRow> {
        self.effects.iter_mut().find(|row| row.id == effect)
    }

    /// The effects as `cuegate/run/v1` has them.
    pub(crate) fn effects_json(&self, run: &str) -> Value {
        self.effects.iter().map(|row| effect_json(row, run)).collect()
    }

    /// The inspections as `cuegate/run/v1` has them.
    pub(crate) fn inspections_json(&self) -> Value {
        let inspection = |row: &InspectionRow| {
            let fits = row.found && row.problems.is_empty();
            json!({
                "seq": row.seq, "step": row.step, "fits": fits, "found": row.found, "problems": row.problems,
            })
        };
        self.inspections.iter().map(inspection).collect()
    }
}

/// An effect that is not done yet.
fn row_of_requested_effect(seq: u64, index: u16, kind: &EffectKind) -> EffectRow {
    EffectRow {
        id: CommandId::Effect { seq, index },
        step: "".into(),
        action: kind.word().into(),
        kind: kind.clone(),
        value: BlobRef::for_bytes(b""),
        state: if *kind == EffectKind::Log { EffectState::Done } else { EffectState::Pending },
        said: None,
        url: None,
        until_ms: None,
        changed_files: Vec::new(),
    }
}

/// An effect as JSON has it.
pub fn effect_json(row: &EffectRow, run: &str) -> Value {
    json!({
        "kind": row.kind.name(),
        "class": row.kind.class().as_str(),
        "key": format!("{run}/{}", row.id),
        "id": row.id.to_string(),
        "state": row.state.as_str(),
        "step": Some(&row.step).filter(|step| !step.is_empty()),
        "action": row.action,
        "said": row.said,
        "url": row.url,
        "changed_files": row.changed_files,
    })
}
