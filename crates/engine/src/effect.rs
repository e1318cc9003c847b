//! Effects that agents request in action blocks of their answers. Each is done once, before the run goes on.

use std::fmt;

use cuegate_flow::{
    Str,
    model::{BlobRef, Reaction},
};
use serde::{Deserialize, Serialize};

use crate::{
    command::CommandId,
    event::Event,
    event_types::{EndState, Hold},
    run::{Run, State},
};

/// The maximum number of action blocks that are read from one answer.
pub(crate) const BLOCKS_MAX: usize = 256;

/// The handler of an action block.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum EffectKind {
    /// The block is only logged.
    Log,
    /// A program of the definition receives the block.
    Exec {
        /// Its path in the project.
        path: Str,
    },
    /// Git, for a step of the finalization.
    Git,
    /// A handler that this version does not support; `check` has reported it.
    Unsupported {
        /// Its name in the definition.
        name: Str,
    },
}

/// What is done with the work of a run that completed in a worktree of its own.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Finalize {
    /// Whether its branch is merged into the branch from which it started.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub merge: bool,
    /// The remote to which the result is pushed: the merged branch, or the branch of the run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub push: Option<String>,
}

impl Finalize {
    /// Its steps, in order.
    pub fn steps(&self) -> Vec<FinalizeStep> {
        let merge = self.merge.then_some(FinalizeStep::Merge);
        let push = self.push.as_ref().map(|_| FinalizeStep::Push);
        std::iter::once(FinalizeStep::Commit).chain(merge).chain(push).collect()
    }
}

/// A step of [`Finalize`]. Each looks first whether it is done, so it may be started again after a crash.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FinalizeStep {
    /// Commit what is not committed, on the branch of the run.
    Commit,
    /// Merge that branch into the branch from which the run started.
    Merge,
    /// Push the result.
    Push,
}

impl FinalizeStep {
    /// The word in events, results and on screen.
    pub fn as_str(self) -> &'static str {
        match self {
            FinalizeStep::Commit => "commit",
            FinalizeStep::Merge => "merge",
            FinalizeStep::Push => "push",
        }
    }
}

impl From<&Reaction> for EffectKind {
    fn from(reaction: &Reaction) -> EffectKind {
        match reaction {
            Reaction::Log => EffectKind::Log,
            Reaction::Exec(program) => EffectKind::Exec { path: program.path.clone() },
            Reaction::Unsupported(name) => EffectKind::Unsupported { name: name.clone() },
        }
    }
}

impl fmt::Display for EffectKind {
    /// The handler as definitions write it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            EffectKind::Log => f.write_str("log"),
            EffectKind::Exec { path } => write!(f, "exec:{path}"),
            EffectKind::Git => f.write_str("git"),
            EffectKind::Unsupported { name } => f.write_str(name),
        }
    }
}

/// A requested effect that is not done yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Effect {
    /// Its id, the idempotency key.
    pub id: CommandId,
    /// The step whose answer requests it.
    pub step: Str,
    /// Which visit of that step.
    pub visit: u32,
    /// Which iteration of the run.
    pub iteration: u32,
    /// The requested action.
    pub action: Str,
    /// The block.
    pub value: BlobRef,
    /// The program, by its path in the project; empty for a step of the finalization.
    pub path: Str,
    /// The step of the finalization, if it is one.
    pub finalize: Option<FinalizeStep>,
}

/// The end of a run whose last effects are still pending.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ending {
    /// How.
    pub state: EndState,
    /// Why.
    pub reason: String,
    /// Whether every validator that guards this end passed.
    pub validated: bool,
    /// Where an exhausted run goes on with a higher limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hold: Option<Hold>,
}

impl Run {
    /// Applies an event to the requested effects.
    pub(crate) fn acted(&mut self, event: &Event) {
        match event {
            Event::ActionFound {
                step,
                index,
                action,
                value,
                handler: Some(EffectKind::Exec { path }),
                ..
            } => {
                self.effects.push(Effect {
                    id: CommandId::Effect { seq: self.seq, index: *index },
                    step: step.clone(),
                    visit: self.visit.as_ref().map_or(0, |visit| visit.visit),
                    iteration: self.iterations,
                    action: action.clone(),
                    value: value.clone(),
                    path: path.clone(),
                    finalize: None,
                });
            }
            Event::FinalizeRequested { steps } => {
                let step = self.last_step.clone().unwrap_or_else(|| "".into());
                for (index, finalize) in (0..).zip(steps) {
                    self.effects.push(Effect {
                        id: CommandId::Effect { seq: self.seq, index },
                        step: step.clone(),
                        visit: 0,
                        iteration: self.iterations,
                        action: finalize.as_str().into(),
                        value: BlobRef::for_bytes(b""),
                        path: "".into(),
                        finalize: Some(*finalize),
                    });
                }
            }
            Event::EffectFinished { effect, tree, .. } => {
                self.effects.retain(|known| known.id != *effect);
                // The changed files belong to the effect, not to the visit that is open meanwhile.
                self.saw(&[], tree);
            }
            Event::Ending(ending) => {
                self.node = None;
                self.visit = None;
                self.ending = Some(ending.clone());
            }
            Event::Ended { state, .. } => {
                let ending = self.ending.take();
                // A retry of a run whose work could not be merged or pushed repeats just that.
                self.unfinalized = ending.filter(|ending| ending.state != *state);
                self.effects.retain(|effect| effect.finalize.is_none());
                if matches!(&self.state, State::Ended { state: EndState::Cancelled, .. }) {
                    self.effects.clear();
                }
            }
            Event::QuestionAnswered { .. } => self.questions += 1,
            Event::StepEntered { .. } => self.questions = 0,
            _ => {}
        }
    }
}
