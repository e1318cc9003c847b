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
    /// A handler that this version does not support; `check` has reported it.
    Unsupported {
        /// Its name in the definition.
        name: Str,
    },
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
    /// The program, by its path in the project.
    pub path: Str,
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
                });
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
            Event::Ended { .. } => {
                self.ending = None;
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
