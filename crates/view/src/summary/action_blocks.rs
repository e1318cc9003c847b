//! What agents asked for in blocks of their answers, and how answers compare with their schemas.

use cuegate_engine::{CommandId, Event};
use cuegate_flow::{Str, model::BlobRef};
use serde_json::{Value, json};

/// Something that an agent asked for and the definition has a handler for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EffectRow {
    /// Its name in the run.
    pub id: CommandId,
    /// The step whose answer asked for it.
    pub step: Str,
    /// What is asked for.
    pub action: Str,
    /// What acts on it: `log`, `exec:PATH`.
    pub handler: Str,
    /// The block.
    pub value: BlobRef,
    /// How far it is.
    pub state: EffectState,
    /// How its program ended, in words.
    pub ended: Option<String>,
}

/// How far an effect is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EffectState {
    /// It is still to be done.
    Pending,
    /// It is done.
    Done,
    /// It was tried and did not succeed.
    Failed,
    /// This version does not do it.
    Skipped,
}

impl EffectState {
    /// The word that is printed.
    pub fn as_str(self) -> &'static str {
        match self {
            EffectState::Pending => "pending",
            EffectState::Done => "done",
            EffectState::Failed => "failed",
            EffectState::Skipped => "skipped",
        }
    }
}

/// How an answer compares with its schema.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InspectionRow {
    /// The record of the answer.
    pub seq: u64,
    /// The step that was asked.
    pub step: Str,
    /// Whether a JSON object was found in the answer.
    pub found: bool,
    /// What is wrong with it.
    pub problems: Vec<String>,
}

/// What was asked for and looked at so far.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Acts {
    /// What was asked for, in order.
    pub effects: Vec<EffectRow>,
    /// Inspected answers, in order.
    pub inspections: Vec<InspectionRow>,
    /// Questions that were answered without a person.
    pub answered_questions: u64,
}

impl Acts {
    /// Folds an event of a record in.
    pub(crate) fn apply(&mut self, seq: u64, event: &Event) {
        match event {
            Event::ActionFound { step, index, action, value, handler: Some(handler), .. } => {
                let state = match handler.as_ref() {
                    "log" => EffectState::Done,
                    exec if exec.starts_with("exec:") => EffectState::Pending,
                    _ => EffectState::Skipped,
                };
                self.effects.push(EffectRow {
                    id: CommandId::effect(seq, *index),
                    step: step.clone(),
                    action: action.clone(),
                    handler: handler.clone(),
                    value: value.clone(),
                    state,
                    ended: None,
                });
            }
            Event::EffectFinished { effect, done, ended, .. } => {
                if let Some(row) = self.effects.iter_mut().find(|row| row.id == *effect) {
                    row.state = if *done { EffectState::Done } else { EffectState::Failed };
                    row.ended = Some(ended.clone());
                }
            }
            Event::Inspected { step, found, problems, .. } => {
                let (step, problems) = (step.clone(), problems.clone());
                self.inspections.push(InspectionRow { seq, step, found: *found, problems });
            }
            Event::QuestionAnswered { .. } => self.answered_questions += 1,
            _ => {}
        }
    }

    /// The effects as `cuegate/run/v1` has them.
    pub(crate) fn effects_json(&self, run: &str) -> Value {
        let effect = |row: &EffectRow| {
            // `exec:PATH` is of the kind `exec`, `github:label` is `github.label`.
            let kind = match row.handler.starts_with("exec:") {
                true => "exec".to_owned(),
                false => row.handler.replace(':', "."),
            };
            json!({
                "kind": kind,
                "key": format!("{run}/{}", row.id),
                "state": row.state.as_str(),
                "step": row.step,
                "action": row.action,
                "ended": row.ended,
            })
        };
        self.effects.iter().map(effect).collect()
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
