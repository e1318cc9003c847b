//! A person answered.

use cuegate_flow::{
    Str,
    model::{Gate, Outcome},
};

use super::{
    Decider, enter,
    exit_step::{self, StepResult},
    join, reserve_budget,
};
use crate::{
    event::Event,
    event_types::{AskRequest, PromptPart, WaitKind},
    place::TreeState,
    run::{FollowUpMessage, State, Work},
};

pub(super) fn receive_person_answer(decider: &mut Decider<'_>, text: &str, found: Option<TreeState>) {
    let State::Suspended(waiting) = &decider.run.state else { return };
    if waiting.kind != WaitKind::Person {
        return;
    }
    let Some(node) = decider.run.progress.node.clone() else { return };
    let blob = decider.keep(text);
    let run = &decider.run;
    let asks_max = match node.work {
        // The definition asked, and the price knows what follows.
        Work::Person => None,
        _ => reserve_budget::priced_anew(
            decider,
            &node.step,
            run.progress.iterations_max,
            run.spending.repairs_max,
        ),
    };
    decider.emit(Event::PersonAnswered { text: blob.clone(), found, asks_max });
    match node.work {
        // The flow asked: on it goes.
        Work::Person => {
            let Some(step) = decider.here() else { return };
            let outcome = match &step.gate {
                Gate::Always(outcome) => outcome.clone(),
                _ => Outcome::None,
            };
            match exit_step::find_transition(decider, step, outcome, None, &Default::default()) {
                Ok(way) => exit_step::take_transition(decider, step, &way, StepResult::default()),
                Err(bad) => decider.fail(bad.why),
            }
        }
        // Somebody could not proceed: the step is done again, its prompt tells the answer.
        Work::Asking(_) if decider.run.context.again => repeat_step(decider, &node.step),
        // The agent asked: it is told, in the same conversation.
        Work::Asking(asking) => {
            let say = vec![
                PromptPart::Text("The answer to your question:\n".into()),
                PromptPart::Blob { blob, fence: None },
                PromptPart::Text("\n\nGo on with your work.".into()),
            ];
            let follow = Some(FollowUpMessage { say, after: decider.run.context.question.clone() });
            decider.request_ask(AskRequest { follow, ..asking.again(&node.step, None) });
        }
        // Members that were blocked left no rule to follow: only they are asked again, and their prompt tells the answer.
        Work::Joining(_) => join::ask_again(decider, |member| member.blocked || member.crashed),
        Work::Entered | Work::Running { .. } | Work::Probing(_) | Work::Reading(_) | Work::Acting => {}
    }
}

/// Repeats the step of the open visit as another attempt, with the prompt that it had. That costs no iteration.
fn repeat_step(decider: &mut Decider<'_>, step: &Str) {
    let Some(id) = decider.flow.find(step) else { return };
    let visit = decider.run.progress.visit.as_ref();
    let attempt = visit.map_or(1, |visit| visit.attempt + 1);
    let remedy = visit.and_then(|visit| visit.remedy.clone());
    enter::reenter_step(decider, id, remedy, attempt);
}
