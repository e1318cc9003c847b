//! Actions that agents request in blocks of their answers, and schema checks of answers.

use cuegate_engine::{CommandId, EffectKind, Event};
use cuegate_flow::{Str, model::BlobRef};
use serde_json::{Value, json};

/// An action that an agent requested and the definition handles.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EffectRow {
    /// The id of the effect in the run.
    pub id: CommandId,
    /// The step whose answer requested it.
    pub step: Str,
    /// The name of the action.
    pub action: Str,
    /// The handler: `log`, `exec:PATH`.
    pub handler: EffectKind,
    /// The block of the answer.
    pub value: BlobRef,
    /// The progress of the effect.
    pub state: EffectState,
    /// How its program ended: `exit 1`.
    pub ended: Option<String>,
    /// What a step of the finalization did, or why it could not.
    pub said: Option<String>,
    /// The files that its program changed.
    pub changed_files: Vec<String>,
}

/// The progress of an effect.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EffectState {
    /// The handler has not run yet.
    Pending,
    /// The handler succeeded.
    Done,
    /// The handler failed.
    Failed,
    /// This version does not support the handler.
    Skipped,
}

impl EffectState {
    /// The printed word.
    pub fn as_str(self) -> &'static str {
        match self {
            EffectState::Pending => "pending",
            EffectState::Done => "done",
            EffectState::Failed => "failed",
            EffectState::Skipped => "skipped",
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
pub struct Acts {
    /// Requested actions, in order.
    pub effects: Vec<EffectRow>,
    /// Schema checks, in order.
    pub inspections: Vec<InspectionRow>,
    /// Questions that the definition answered.
    pub answered_questions: u64,
}

impl Acts {
    /// Applies an event of a record.
    pub(crate) fn apply(&mut self, seq: u64, event: &Event) {
        match event {
            Event::ActionFound { step, index, action, value, handler: Some(handler), .. } => {
                let state = match handler {
                    EffectKind::Log => EffectState::Done,
                    EffectKind::Exec { .. } | EffectKind::Git => EffectState::Pending,
                    EffectKind::Unsupported { .. } => EffectState::Skipped,
                };
                self.effects.push(EffectRow {
                    id: CommandId::Effect { seq, index: *index },
                    step: step.clone(),
                    action: action.clone(),
                    handler: handler.clone(),
                    value: value.clone(),
                    state,
                    ended: None,
                    said: None,
                    changed_files: Vec::new(),
                });
            }
            Event::FinalizeRequested { steps } => {
                for (index, step) in (0..).zip(steps) {
                    self.effects.push(EffectRow {
                        id: CommandId::Effect { seq, index },
                        step: "".into(),
                        action: step.as_str().into(),
                        handler: EffectKind::Git,
                        value: BlobRef::for_bytes(b""),
                        state: EffectState::Pending,
                        ended: None,
                        said: None,
                    said: None,
                        changed_files: Vec::new(),
                    });
                }
            }
            Event::EffectFinished { effect, done, ended, changed_files, finalized, .. } => {
                if let Some(row) = self.effects.iter_mut().find(|row| row.id == *effect) {
                    row.state = if *done { EffectState::Done } else { EffectState::Failed };
                    row.ended = Some(ended.clone());
                    row.said.clone_from(finalized);
                    row.changed_files.clone_from(changed_files);
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
            let kind = match &row.handler {
                EffectKind::Log => "log".to_owned(),
                EffectKind::Exec { .. } => "exec".to_owned(),
                EffectKind::Git => format!("git.{}", row.action),
                // `github:label` has the kind `github.label`.
                EffectKind::Unsupported { name } => name.replace(':', "."),
            };
            json!({
                "kind": kind,
                "key": format!("{run}/{}", row.id),
                "state": row.state.as_str(),
                "step": row.step,
                "action": row.action,
                "ended": row.ended,
                "said": row.said,
                "changed_files": row.changed_files,
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
