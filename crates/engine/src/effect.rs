//! What agents ask for in blocks of their answers, and what is done about it: each effect once, before anything else
//! goes on.

use cuegate_flow::{Str, model::BlobRef};
use serde::{Deserialize, Serialize};

use crate::{
    command::CommandId,
    event::Event,
    event_types::{EndState, Hold},
    run::{Run, State},
};

/// Members of this number and above are effects of a record, not members of a parallel step.
const EFFECTS_FROM: u16 = 0x8000;

/// What handlers that are programs are called, before the path.
pub(crate) const EXEC: &str = "exec:";

/// How many blocks of one answer are looked at: a sandbox of them is no request.
pub(crate) const BLOCKS_MAX: usize = 256;

/// Something that an agent asked for and a program has to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Effect {
    /// Its name: the key under which it is done once.
    pub id: CommandId,
    /// The step whose answer asked for it.
    pub step: Str,
    /// Which visit of that step.
    pub visit: u32,
    /// Which iteration of the run.
    pub iteration: u32,
    /// What is asked for.
    pub action: Str,
    /// The block.
    pub value: BlobRef,
    /// The program, by its path in the project.
    pub path: Str,
}

/// The end that a run comes to when its last effects are done.
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

impl CommandId {
    /// The name of the effect that a block of an answer asks for.
    pub fn effect(seq: u64, index: u16) -> CommandId {
        CommandId { seq, member: EFFECTS_FROM | index }
    }
}

impl Run {
    /// Folds what is asked for and done about it in.
    pub(crate) fn acted(&mut self, event: &Event) {
        match event {
            Event::ActionFound { step, index, action, value, handler: Some(handler), .. } => {
                let Some(path) = handler.strip_prefix(EXEC) else { return };
                self.effects.push(Effect {
                    id: CommandId::effect(self.seq, *index),
                    step: step.clone(),
                    visit: self.visit.as_ref().map_or(0, |visit| visit.visit),
                    iteration: self.iterations,
                    action: action.clone(),
                    value: value.clone(),
                    path: path.into(),
                });
            }
            Event::EffectFinished { effect, changed_files, tree, .. } => {
                self.effects.retain(|known| known.id != *effect);
                self.saw(changed_files, tree);
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
