//! Entering a step.

use cuegate_ask::AskKind;
use cuegate_flow::{
    Str,
    model::{Act, Role, Step, StepId},
};

use super::{Decider, system};
use crate::{
    event::Event,
    event_types::{
        AskContext, AskRequest, EndState, PendingEntry, PromptPart, Remedy, SuspensionCause, WaitKind,
    },
    prompt::{is_filled, missing_inputs, render_template},
    run::Run,
};

/// Enters a step; a step that counts needs an iteration that the limit still allows. `again` is the attempt with which
/// the step's last visit continues.
pub(super) fn enter_step(decider: &mut Decider<'_>, id: StepId, remedy: Option<Remedy>, again: Option<u32>) {
    enter_at(decider, id, remedy, again, 1);
}

/// Enters a step once more in the same iteration, after a person answered.
pub(super) fn reenter_step(decider: &mut Decider<'_>, id: StepId, remedy: Option<Remedy>, attempt: u32) {
    enter_at(decider, id, remedy, Some(attempt), 0);
}

/// As [`enter_step`], with the number of iterations that it costs.
fn enter_at(
    decider: &mut Decider<'_>,
    id: StepId,
    remedy: Option<Remedy>,
    again: Option<u32>,
    iterations: u32,
) {
    let step = decider.flow.step(id);
    let run = &decider.run;
    if step.counts && iterations > 0 && run.progress.iterations >= run.progress.iterations_max {
        if let Some((guard, validator)) = find_failing_validator(decider) {
            let max = run.progress.iterations_max;
            let reason = format!(
                "validator `{validator}` of `{guard}` has not passed within the limit of {max} iterations"
            );
            decider.fail(reason);
            return;
        }
        let mut reason = format!("the limit of {} iterations is reached", run.progress.iterations_max);
        if let Some(((guard, _), validator)) = run.checks.failing.first_key_value() {
            reason.push_str(&format!("; validator `{validator}` of `{guard}` has not passed"));
        }
        let hold = PendingEntry { step: step.name.clone(), remedy, again };
        decider.end(EndState::Exhausted, reason, Some(hold));
        return;
    }
    let before = run.progress.visits.get(&step.name).copied().unwrap_or(0);
    let again = again.filter(|_| before > 0);
    let kind = remedy.is_some().then_some(AskKind::Remedy);
    decider.emit(Event::StepEntered {
        step: step.name.clone(),
        counts: step.counts,
        visit: before + u32::from(again.is_none()),
        attempt: again.unwrap_or(1),
        iteration: decider.run.progress.iterations + if step.counts { iterations } else { 0 },
        remedy,
    });
    let missing = missing_inputs(&decider.run, step);
    if !missing.is_empty() {
        let names: Vec<String> = missing.iter().map(|name| format!("`{name}`")).collect();
        let inputs = if names.len() == 1 { "input" } else { "inputs" };
        let reason = format!("missing required {inputs} {} of `{}`", names.join(", "), step.name);
        decider.fail(reason);
        return;
    }
    // What mends or continues the work of a visit works with the same selection.
    let selector = step.selectors.first().filter(|_| kind.is_none() && again.is_none());
    match selector {
        Some(selector) => ask_selector(decider, &step.name, None, *selector),
        None => begin_work(decider, step, kind),
    }
}

/// Asks the selector of a step or of a member.
fn ask_selector(decider: &mut Decider<'_>, step: &Str, member: Option<u16>, selector: StepId) {
    let context = AskContext::Select(decider.flow.step(selector).name.clone());
    let request = AskRequest::own(step, member, AskKind::Judge);
    decider.request_ask(AskRequest { context, ..request });
}

/// Begins the work of an entered step.
fn begin_work(decider: &mut Decider<'_>, step: &Step<StepId>, kind: Option<AskKind>) {
    match &step.act {
        Act::Ask(ask) => {
            // What mends the work of a visit does not wait again.
            let delay_ms = if kind.is_none() { i64::try_from(ask.delay_ms).unwrap_or(i64::MAX) } else { 0 };
            let kind = kind.unwrap_or(kind_of(ask.role));
            let not_before_ms = (delay_ms > 0).then(|| decider.now.saturating_add(delay_ms));
            decider.request_ask(AskRequest { not_before_ms, ..AskRequest::own(&step.name, None, kind) });
        }
        Act::All { members, .. } => {
            // A parallel step in which no member works would never end.
            if let Some(selector) = step.selectors.first().filter(|_| is_empty(decider, step)) {
                ask_selector(decider, &step.name, None, *selector);
                return;
            }
            for (index, member) in (0..).zip(members) {
                let member = decider.flow.step(*member);
                if is_absent(&decider.run, member) {
                    decider.emit(Event::MemberSkipped { step: member.name.clone() });
                    continue;
                }
                match member.selectors.first() {
                    Some(selector) => ask_selector(decider, &member.name, Some(index), *selector),
                    None => begin_member(decider, member, index),
                }
            }
        }
        Act::Exec { commands } => {
            let command = commands.first().map(|first| first.command.clone()).unwrap_or_default();
            let step = step.name.clone();
            decider.emit(Event::CommandRequested { step, index: 0, command, member: None, claim: None });
        }
        Act::Person { question } => {
            let parts = render_template(&decider.run, step, question, None);
            ask_about(decider, &text_of(&parts));
        }
        Act::System(work) => system::begin_system_work(decider, step, work),
    }
}

fn begin_member(decider: &mut Decider<'_>, member: &Step<StepId>, index: u16) {
    let kind = match &member.act {
        Act::Ask(ask) => kind_of(ask.role),
        _ => AskKind::Work,
    };
    request_ask(decider, &member.name, Some(index), kind);
}

/// A selector of a step or of a member has answered: the next one is asked, or the work begins.
///
/// # Errors
/// When a parallel step is left without members.
pub(super) fn continue_after_selector(
    decider: &mut Decider<'_>,
    step: &Step<StepId>,
    by: &Step<StepId>,
    member: Option<u16>,
) -> Result<(), String> {
    let place = step.selectors.iter().position(|selector| decider.flow.step(*selector).name == by.name);
    if let Some(next) = place.and_then(|place| step.selectors.get(place + 1)) {
        ask_selector(decider, &step.name, member, *next);
        return Ok(());
    }
    if let Some(index) = member {
        begin_member(decider, step, index);
        return Ok(());
    }
    if is_empty(decider, step) {
        return Err(describe_empty_selection(step));
    }
    begin_work(decider, step, None);
    Ok(())
}

/// Whether nobody works in a parallel step.
pub(super) fn is_empty(decider: &Decider<'_>, step: &Step<StepId>) -> bool {
    let Act::All { members, .. } = &step.act else { return false };
    members.iter().all(|member| is_absent(&decider.run, decider.flow.step(*member)))
}

/// The message when an answer selects none of the members of a parallel step.
pub(super) fn describe_empty_selection(step: &Step<StepId>) -> String {
    format!("the answer selects nobody, so `{}` has no work", step.name)
}

/// Whether a member does not work in this visit.
fn is_absent(run: &Run, member: &Step<StepId>) -> bool {
    member.when.as_ref().is_some_and(|source| !is_filled(run, member, source))
}

/// A validator that fails, with its step, in a run whose completion rule may not end it for that reason. Such a run
/// fails at its limit; one that only its flow ends is exhausted and can continue.
pub(super) fn find_failing_validator(decider: &Decider<'_>) -> Option<(Str, Str)> {
    let ((step, _), validator) = decider.run.checks.failing.first_key_value()?;
    decider.flow.verdict.can_fire().then(|| (step.clone(), validator.clone()))
}

pub(super) fn kind_of(role: Role) -> AskKind {
    match role {
        Role::Work => AskKind::Work,
        Role::Judge => AskKind::Judge,
        Role::Check => AskKind::Check,
    }
}

pub(super) fn request_ask(decider: &mut Decider<'_>, step: &Str, member: Option<u16>, kind: AskKind) {
    decider.request_ask(AskRequest::own(step, member, kind));
}

/// Suspends the run with a question. With `again` the step is done again with the answer.
pub(super) fn ask_person(decider: &mut Decider<'_>, question: &str, again: bool) {
    let blob = decider.keep(question);
    decider.emit(Event::PersonAsked { question: blob, again });
    let detail = clip_text(question.trim(), DETAIL_MAX);
    let waiting = SuspensionCause { kind: WaitKind::Person, detail, until_ms: None };
    decider.emit(Event::Suspended { waiting });
}

/// Suspends the run with a question of the definition. What it is about is what was said just before, which is told
/// first, as a quotation.
fn ask_about(decider: &mut Decider<'_>, question: &str) {
    let blob = decider.keep(question);
    decider.emit(Event::PersonAsked { question: blob, again: false });
    let question = clip_text(question.trim(), DETAIL_MAX / 2);
    let excerpts = &decider.run.context.excerpts;
    let left = DETAIL_MAX - question.chars().count();
    let mut detail = String::new();
    for (step, said) in excerpts.iter().filter(|(_, said)| !said.trim().is_empty()) {
        let heading = format!("`{step}` said:\n");
        let room = (left / excerpts.len()).saturating_sub(heading.chars().count() + 2);
        let quoted = said.trim().lines().map(|line| format!("> {line}")).collect::<Vec<_>>().join("\n");
        detail.push_str(&format!("{heading}{}\n\n", clip_text(&quoted, room)));
    }
    let waiting =
        SuspensionCause { kind: WaitKind::Person, detail: format!("{detail}{question}"), until_ms: None };
    decider.emit(Event::Suspended { waiting });
}

/// How much is said of what a run waits for, in characters.
pub(super) const DETAIL_MAX: usize = 2_000;

/// The beginning of a text, at most so many characters.
pub(super) fn clip_text(text: &str, characters_max: usize) -> String {
    if text.chars().count() <= characters_max {
        return text.to_owned();
    }
    text.chars().take(characters_max.saturating_sub(1)).chain(['…']).collect()
}

/// The text of parts that hold no agent's words.
fn text_of(parts: &[PromptPart]) -> String {
    parts
        .iter()
        .filter_map(|part| match part {
            PromptPart::Text(text) => Some(&**text),
            PromptPart::Blob { .. } => None,
        })
        .collect()
}
