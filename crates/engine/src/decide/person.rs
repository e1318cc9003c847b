//! A person answered.

use cuegate_flow::{Gate, Outcome};

use super::{Decider, enter, leave};
use crate::{
    event::Event,
    facts::{Part, TreeState, WaitKind},
    run::{Follow, State, Work},
};

pub(super) fn answered(decider: &mut Decider<'_>, text: &str, found: Option<TreeState>) {
    let State::Suspended(waiting) = &decider.run.state else { return };
    if waiting.kind != WaitKind::Person {
        return;
    }
    let Some(node) = decider.run.node.clone() else { return };
    let blob = decider.keep(text);
    decider.emit(Event::PersonAnswered { text: blob.clone(), found });
    match node.work {
        // The flow asked: on it goes.
        Work::Person => {
            let Some(step) = decider.here() else { return };
            let outcome = match &step.gate {
                Gate::Always(outcome) => outcome.clone(),
                _ => Outcome::None,
            };
            match leave::way(decider, step, outcome, None, &Default::default()) {
                Ok(way) => leave::go(decider, step, &way, None, false, None),
                Err(bad) => decider.fail(bad.why),
            }
        }
        // The agent asked: it is told, in the same conversation.
        Work::Asking(asking) => {
            let say = vec![
                Part::Text("The answer to your question:\n".into()),
                Part::Blob { blob, fence: None },
                Part::Text("\n\nGo on with your work.".into()),
            ];
            decider.emit(Event::AskRequested {
                step: node.step.clone(),
                member: None,
                kind: asking.kind,
                not_before_ms: None,
                waited_ms: 0,
                follow: Some(Follow { say, after: decider.run.question.clone() }),
                judging: asking.judging,
            });
        }
        // Members that were blocked left no rule to follow: the step is done again.
        Work::Joining(_) => {
            if let Some(id) = decider.flow.find(&node.step) {
                let attempt = decider.run.visit.as_ref().map_or(1, |visit| visit.attempt + 1);
                enter::enter(decider, id, None, Some(attempt));
            }
        }
        Work::Entered | Work::Running { .. } | Work::Probing(_) => {}
    }
}
