//! Entering a step.

use cuegate_flow::{Act, Role, StepId};

use super::Decider;
use crate::{
    event::{AskKind, EndState, Event, Hold, Part, Remedy, WaitKind, Waiting},
    prompt::{expand, missing_inputs},
};

/// Enters a step; a step that counts needs an iteration that the limit still allows.
pub(super) fn enter(decider: &mut Decider<'_>, id: StepId, remedy: Option<Remedy>, again: bool) {
    let step = decider.flow.step(id);
    let run = &decider.run;
    if step.counts && run.iterations >= run.iterations_max {
        let reason = format!("the limit of {} iterations is reached", run.iterations_max);
        let hold = Hold { step: step.name.clone(), remedy, again };
        decider.end(EndState::Exhausted, reason, Some(hold));
        return;
    }
    let before = run.visits.get(&step.name).copied().unwrap_or(0);
    let again = again && before > 0;
    let attempt = match &run.visit {
        Some(visit) if again && visit.step == step.name => visit.attempt + 1,
        _ => decider.again_attempt(again),
    };
    let kind = if remedy.is_some() { Some(AskKind::Remedy) } else { None };
    decider.emit(Event::StepEntered {
        step: step.name.clone(),
        counts: step.counts,
        visit: if again { before } else { before + 1 },
        attempt,
        iteration: decider.run.iterations + u32::from(step.counts),
        remedy,
    });
    let missing = missing_inputs(&decider.run, step);
    if !missing.is_empty() {
        let names: Vec<String> = missing.iter().map(|name| format!("`{name}`")).collect();
        let reason = format!("`{}` needs {}, and no step has left it", step.name, names.join(", "));
        decider.fail(reason);
        return;
    }
    match &step.act {
        Act::Ask(ask) => {
            let kind = kind.unwrap_or(kind_of(ask.role));
            request(decider, &step.name, None, kind);
        }
        Act::All { members, .. } => {
            for (index, member) in members.iter().enumerate() {
                let member = decider.flow.step(*member);
                let kind = match &member.act {
                    Act::Ask(ask) => kind_of(ask.role),
                    _ => AskKind::Work,
                };
                request(decider, &member.name, Some(index as u16), kind);
            }
        }
        Act::Exec { .. } => {
            decider.emit(Event::CommandRequested { step: step.name.clone(), index: 0 });
        }
        Act::Person { question } => {
            let parts = expand(&decider.run, step, question, None);
            ask_person(decider, &text_of(&parts));
        }
    }
}

pub(super) fn kind_of(role: Role) -> AskKind {
    match role {
        Role::Work => AskKind::Work,
        Role::Judge => AskKind::Judge,
        Role::Check => AskKind::Check,
    }
}

pub(super) fn request(
    decider: &mut Decider<'_>,
    step: &cuegate_flow::Str,
    member: Option<u16>,
    kind: AskKind,
) {
    decider.emit(Event::AskRequested {
        step: step.clone(),
        member,
        kind,
        not_before_ms: None,
        follow: None,
        judging: None,
    });
}

/// Suspends the run with a question.
pub(super) fn ask_person(decider: &mut Decider<'_>, question: &str) {
    let blob = decider.keep(question);
    decider.emit(Event::PersonAsked { question: blob });
    let detail = question.trim().lines().next().unwrap_or_default().chars().take(200).collect();
    let waiting = Waiting { kind: WaitKind::Person, detail, until_ms: None };
    decider.emit(Event::Suspended { waiting });
}

/// The text of parts that hold no agent's words.
fn text_of(parts: &[Part]) -> String {
    parts
        .iter()
        .filter_map(|part| match part {
            Part::Text(text) => Some(&**text),
            Part::Blob { .. } => None,
        })
        .collect()
}

impl Decider<'_> {
    /// The attempt that a re-entered visit is at when its own state has been closed already.
    fn again_attempt(&self, again: bool) -> u32 {
        if !again {
            return 1;
        }
        self.decision
            .events
            .iter()
            .rev()
            .find_map(|event| match event {
                Event::VisitEnded { attempt, .. } => Some(attempt + 1),
                _ => None,
            })
            .unwrap_or(1)
    }
}
