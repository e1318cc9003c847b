//! An agent answered.

use std::collections::BTreeMap;

use cuegate_flow::{
    Str,
    model::{Act, BlobRef, Fact, Gate, Handoff, Outcome, Role, Source, Step, StepId},
};
use serde_json::Value;

use super::{
    Decider, action_blocks, completion_rule, enter,
    exit_step::{self, StepResult},
    join, member_gate, owed_reports, rejected_answer,
};
use crate::{
    answers::{
        gate,
        gate::{GateResult, read_answer},
    },
    command::CommandId,
    completion::{Answer, TreeChange},
    event::Event,
    event_types::{AfterReports, AskContext, AskKind, AskRequest, StepAnswer},
    pending::session_key,
    prompt::is_filled,
    route::as_text,
    run::{FollowUpMessage, JudgedAnswer, PendingAsk},
};

/// Values up to this many bytes are kept in place, so that conditions can select by them.
const SCALAR_MAX: usize = 256;

pub(super) fn receive_answer(
    decider: &mut Decider<'_>,
    ask: CommandId,
    answer: Answer,
    seen: Option<TreeChange>,
) {
    // What was told and paid for already stands where it was asked until somebody lets the run go on.
    if decider.run.settled.contains(&ask) {
        return;
    }
    let pending = decider.run.asking(ask).map(|(name, member, asking)| (name, member, asking.clone()));
    let Some((name, member, asking)) = pending else {
        // Nobody waits for it, but it was paid for.
        decider.emit(Event::AnsweredLate { ask, usage: answer.usage });
        return;
    };
    // The step that was asked: the judge, when one decides about this step's answer.
    let asked_name = asking.asked(&name).clone();
    let (Some(step), Some(asked)) = (decider.step(&name), decider.step(&asked_name)) else { return };
    let permission = rejected_answer::permission_of_ask(asked, &asking);
    let outside = seen.as_ref().map(|seen| seen.outside.clone());
    let seen = rejected_answer::without_others(decider, asked, member, seen);
    let violated = rejected_answer::find_boundary_violations(decider, permission, member, seen.as_ref());
    let (seen, broke) = if violated.is_empty() { (seen, None) } else { (None, seen) };
    record_answer(decider, ask, asked, &asking, &answer, seen);
    let outside = rejected_answer::record_outside(decider, asked, outside);
    if answer.blocked.is_none() && answer.asks_person.is_none() {
        action_blocks::record_inspection(decider, ask, asked, &answer);
    }
    if !violated.is_empty() {
        rejected_answer::reject_boundary_violation(
            decider,
            asked,
            member,
            &asking,
            (violated, broke),
            &answer,
        );
        return;
    }
    if !outside.is_empty() {
        rejected_answer::wrote_outside(decider, step, asked, member, &asking, &outside, &answer);
        return;
    }
    let said_blocked = || match &asking.context {
        AskContext::Judge(_) | AskContext::Select(_) => None,
        AskContext::Report(_) => gate::marked_blocked(asked, &answer.text),
        AskContext::Own => {
            gate::find_blocked_reason(decider.flow, asked, answer.output.as_ref(), &answer.text)
        }
    };
    if let Some(why) = answer.blocked.clone().or_else(said_blocked) {
        block_step(decider, step, member, &asking, &why);
        return;
    }
    if let Some(question) = &answer.asks_person {
        if action_blocks::answers_question(decider, &name, member, &asking, question) {
            return;
        }
        match member {
            // The other members go on; nobody can be asked for one of them alone.
            Some(_) => block_step(decider, step, member, &asking, question),
            None => enter::ask_person(decider, question, false),
        }
        return;
    }
    if let AskContext::Report(owing) = &asking.context {
        owed_reports::receive_report(decider, step, member, &asking, owing, &answer);
        return;
    }
    match read_answer(decider.flow, asked, answer.output.as_ref(), &answer.text, 0) {
        Err(bad) => rejected_answer::reject_answer(decider, step, asked, member, &asking, bad, &answer),
        Ok(GateResult::Outcome { output, outcome, reason })
            if matches!(asking.context, AskContext::Select(_)) =>
        {
            let handed = handed_anew(decider, asked, output.as_ref());
            write_handoff(decider, asked, member, &handed);
            if let Some(way) = nothing_to_do(decider, step, asked, outcome) {
                exit_step::take_transition(decider, step, &way, StepResult::because(reason));
                return;
            }
            if let Err(why) = enter::continue_after_selector(decider, step, asked, member) {
                let bad = gate::InvalidAnswer { absent: false, why };
                rejected_answer::reject_answer(decider, step, asked, member, &asking, bad, &answer);
            }
        }
        Ok(reading) => match asking.context.judging().cloned() {
            None => accept_answer(decider, step, member, &asking, &answer, reading),
            Some(judging) => {
                accept_judgement(decider, (step, asked), member, &asking, &judging, &answer, reading)
            }
        },
    }
}

/// The way out of a parallel step whose selector is also its judge, such as a leader: if it selects no member, its decision
/// is the outcome of the step, unless that leads back to the members.
fn nothing_to_do<'f>(
    decider: &Decider<'f>,
    step: &'f Step<StepId>,
    asked: &Step<StepId>,
    outcome: Outcome,
) -> Option<exit_step::ResolvedTransition<'f>> {
    let Gate::Join { judges, .. } = &step.gate else { return None };
    let decides = judges.iter().any(|judge| decider.flow.step(*judge).name == asked.name);
    if !decides || !enter::is_empty(decider, step) {
        return None;
    }
    exit_step::find_transition(decider, step, outcome, None, &Default::default())
        .ok()
        .filter(|way| !way.edge.again)
}

/// Journals the answer itself.
fn record_answer(
    decider: &mut Decider<'_>,
    ask: CommandId,
    asked: &Step<StepId>,
    asking: &PendingAsk,
    answer: &Answer,
    seen: Option<TreeChange>,
) {
    decider.tools_used(ask, &asked.name, answer.tools.clone());
    let output = answer.output.as_ref().map(|output| decider.keep(&output.to_string()));
    let text = (!answer.text.is_empty()).then(|| decider.keep(&answer.text));
    let key = match &asked.act {
        // A report is asked for in a branch, which nobody continues.
        Act::Ask(ask) if asking.context.owing().is_none() => session_key(ask).cloned(),
        _ => None,
    };
    let own_work = asking.context == AskContext::Own;
    let excerpt = match &asked.act {
        Act::Ask(ask) if own_work && ask.role == Role::Work && asks_persons(decider.flow) => {
            let found =
                gate::find_structured_answer(decider.flow, asked, answer.output.as_ref(), &answer.text);
            Some(enter::clip_text(
                gate::response_of_answer(asked, found.as_ref(), answer).trim(),
                enter::DETAIL_MAX,
            ))
        }
        _ => None,
    };
    let (changed_files, tree) = seen.map(|seen| (seen.changed, Some(seen.tree))).unwrap_or_default();
    let beyond = decider.run.ledger.beyond(ask, &answer.usage);
    let (of, share) = decider.run.ledger.reached(ask, &answer.usage);
    decider.emit(Event::Answered {
        ask,
        step: asked.name.clone(),
        kind: asking.kind,
        output,
        text,
        excerpt,
        prompt: answer.prompt.clone(),
        system_prompt: answer.system_prompt.clone(),
        usage: answer.usage,
        provider: answer.provider.clone(),
        model: answer.model.clone(),
        session: answer.session.clone(),
        session_key: key,
        totals: answer.totals,
        put: answer.put,
        receipt: answer.receipt.clone(),
        duration_ms: answer.duration_ms,
        changed_files,
        tree,
    });
    if let Some(what) = beyond {
        let what = format!("a call of `{}` used {what}", asked.name);
        decider.emit(Event::Overspent { ask, what, of, share });
    }
}

/// Whether the definition itself asks persons: about what was said just before.
pub(super) fn asks_persons(flow: &cuegate_flow::model::Flow) -> bool {
    flow.steps.iter().any(|step| matches!(step.act, Act::Person { .. }))
}

/// The agent cannot proceed: a member is done without outcome, anything else waits for a person. Whose prompt reads what
/// persons answered is done again with the answer, everybody else is told it.
fn block_step(
    decider: &mut Decider<'_>,
    step: &Step<StepId>,
    member: Option<u16>,
    asking: &PendingAsk,
    why: &str,
) {
    if let Some(index) = member {
        // The reason is what later prompts quote as its answer.
        let answer = Some(decider.keep(why));
        let end = join::MemberEnd {
            why: Some(why.to_owned()),
            blocked: true,
            answer,
            ..join::MemberEnd::default()
        };
        join::member_ended(decider, index, &step.name, end);
        return;
    }
    let reads =
        |ask: &cuegate_flow::model::Ask| ask.prompt.sources().contains(&&Source::Fact(Fact::UserInputs));
    // The person's answer goes to the selector, in its own conversation: the step has not begun yet.
    let selects = matches!(asking.context, AskContext::Select(_));
    let again = !selects && matches!(&step.act, Act::Ask(ask) if reads(ask));
    let name = if selects { asking.asked(&step.name) } else { &step.name };
    enter::ask_person(decider, &format!("`{name}` cannot proceed: {why}"), again);
}

/// An answer that its own step's gate could read.
fn accept_answer(
    decider: &mut Decider<'_>,
    step: &Step<StepId>,
    member: Option<u16>,
    asking: &PendingAsk,
    answer: &Answer,
    reading: GateResult,
) {
    let (output, then) = match reading {
        GateResult::Judge { judge, reader, output } => {
            (output, AfterReports::Judge { judge: decider.flow.step(judge).name.clone(), reader })
        }
        GateResult::Outcome { outcome: Outcome::None, .. } if !has_edge(step, &Outcome::None) => {
            return rejected_answer::reject_unmatched_answer(decider, step, member);
        }
        GateResult::Outcome { outcome, output, reason } if !owed_reports::has_owed_reports(step) => {
            let said = decider.keep(&gate::response_of_answer(step, output.as_ref(), answer));
            take_exit(decider, step, step, member, asking, answer, &said, (outcome, output, reason));
            return;
        }
        GateResult::Outcome { outcome, output, reason } => {
            (output, owed_reports::after_reports_of_outcome(&outcome, reason))
        }
    };
    completion_rule::record_answer_conditions(decider, &step.name, output.as_ref(), &answer.text);
    action_blocks::found_actions(decider, &step.name, member, output.as_ref(), &answer.text);
    let said = gate::response_of_answer(step, output.as_ref(), answer);
    if member.is_none() {
        record_summary(decider, output.as_ref(), &said);
    }
    let handed = handoffs_of_answer(step, output.as_ref());
    write_handoff(decider, step, member, &handed);
    let said = decider.keep(&said);
    if !owed_reports::collect_reports(decider, step, member, output.as_ref(), &said, &then) {
        continue_after_reports(decider, step, member, &said, &then);
    }
}

fn has_edge(step: &Step<StepId>, outcome: &Outcome) -> bool {
    step.edges.iter().any(|edge| edge.on == *outcome)
}

/// Goes on with an answer that owes nothing any more.
pub(super) fn continue_after_reports(
    decider: &mut Decider<'_>,
    step: &Step<StepId>,
    member: Option<u16>,
    said: &BlobRef,
    then: &AfterReports,
) {
    match then {
        AfterReports::Judge { judge, reader } => {
            let judging = JudgedAnswer {
                judge: judge.clone(),
                reader: *reader,
                answer: said.clone(),
                answers: Vec::new(),
            };
            request_judge(decider, &step.name, member, judging);
        }
        AfterReports::Decided { outcome, reason } => {
            let outcome = Outcome::Named(outcome.clone());
            if let Some(index) = member {
                member_gate::submit_member_outcome(decider, index, &step.name, outcome, said);
                return;
            }
            let Some(step) = decider.step(&step.name) else { return };
            match exit_step::find_transition(decider, step, outcome, None, &Default::default()) {
                Err(bad) => decider.fail(bad.why),
                Ok(way) => {
                    record_response(decider, step, said);
                    exit_step::take_transition(decider, step, &way, StepResult::because(reason.clone()));
                }
            }
        }
    }
}

/// What a visit said becomes what later prompts call the previous response, where one reads it.
fn record_response(decider: &mut Decider<'_>, step: &Step<StepId>, said: &BlobRef) {
    if step.counts {
        let spoken = StepAnswer {
            step: step.name.clone(),
            text: Some(said.clone()),
            outcome: None,
            blocked: false,
            why: None,
        };
        decider.respond(step, vec![spoken]);
    }
}

/// A judge's answer: the outcome of the judged step, or on to that step's next reader.
fn accept_judgement<'f>(
    decider: &mut Decider<'f>,
    (step, asked): (&'f Step<StepId>, &Step<StepId>),
    member: Option<u16>,
    asking: &PendingAsk,
    judging: &JudgedAnswer,
    answer: &Answer,
    reading: GateResult,
) {
    let GateResult::Outcome { outcome, reason, output } = reading else {
        decider.fail(format!("the judge of `{}` has itself to be judged", step.name));
        return;
    };
    if outcome == Outcome::None {
        // The readers before this one could not read it either, so only the later ones are left.
        return match gate::judge_after(decider.flow, step, judging.reader) {
            Some((judge, reader)) => {
                let judge = decider.flow.step(judge).name.clone();
                request_judge(decider, &step.name, member, JudgedAnswer { judge, reader, ..judging.clone() });
            }
            None if matches!(step.gate, Gate::Join { .. }) => {
                join::stop_unmatched_join(decider, step, &judging.answers);
            }
            None => rejected_answer::reject_unmatched_answer(decider, step, member),
        };
    }
    let handed = handed_anew(decider, asked, output.as_ref());
    write_handoff(decider, asked, member, &handed);
    if matches!(step.gate, Gate::Join { .. }) {
        return match exit_step::find_transition(decider, step, outcome, None, &Default::default()) {
            Err(bad) => rejected_answer::reject_answer(decider, step, asked, member, asking, bad, answer),
            Ok(way) if way.edge.again && enter::is_empty(decider, step) => {
                let bad = gate::InvalidAnswer { absent: false, why: enter::describe_empty_selection(step) };
                rejected_answer::reject_answer(decider, step, asked, member, asking, bad, answer);
            }
            Ok(way) => join::leave_parallel_step(decider, step, &way, judging.answers.clone(), reason),
        };
    }
    take_exit(decider, step, asked, member, asking, answer, &judging.answer, (outcome, None, reason));
}

pub(super) fn request_judge(
    decider: &mut Decider<'_>,
    step: &Str,
    member: Option<u16>,
    judging: JudgedAnswer,
) {
    let request = AskRequest::own(step, member, AskKind::Judge);
    decider.emit(Event::AskRequested(AskRequest { context: AskContext::Judge(judging), ..request }));
}

/// A known outcome: it may still select no step, which makes the answer a bad one.
#[expect(clippy::too_many_arguments, reason = "an answer, who gave it, and who waits for it")]
fn take_exit(
    decider: &mut Decider<'_>,
    step: &Step<StepId>,
    asked: &Step<StepId>,
    member: Option<u16>,
    asking: &PendingAsk,
    answer: &Answer,
    said: &BlobRef,
    (outcome, output, reason): (Outcome, Option<Value>, Option<String>),
) {
    let handed = handoffs_of_answer(step, output.as_ref());
    if let Some(index) = member {
        if asking.context.judging().is_none() {
            completion_rule::record_answer_conditions(decider, &step.name, output.as_ref(), &answer.text);
            action_blocks::found_actions(decider, &step.name, member, output.as_ref(), &answer.text);
            write_handoff(decider, step, member, &handed);
        }
        member_gate::submit_member_outcome(decider, index, &step.name, outcome, said);
        return;
    }
    let Some(step) = decider.step(&step.name) else { return };
    match exit_step::find_transition(decider, step, outcome, output.as_ref(), &handed) {
        Err(bad) => rejected_answer::reject_answer(decider, step, asked, None, asking, bad, answer),
        Ok(way) => {
            if asking.context.judging().is_none() {
                completion_rule::record_answer_conditions(decider, &step.name, output.as_ref(), &answer.text);
                action_blocks::found_actions(decider, &step.name, None, output.as_ref(), &answer.text);
                record_summary(
                    decider,
                    output.as_ref(),
                    &gate::response_of_answer(step, output.as_ref(), answer),
                );
                write_handoff(decider, step, None, &handed);
            }
            record_response(decider, step, said);
            exit_step::take_transition(decider, step, &way, StepResult::because(reason));
        }
    }
}

/// The data that an answer leaves. What is absent is absent, not empty.
pub(super) fn handoffs_of_answer(step: &Step<StepId>, output: Option<&Value>) -> BTreeMap<Str, Value> {
    let Some(output) = output else { return BTreeMap::new() };
    step.handoff.iter().filter_map(|handoff| Some((handoff.key.clone(), handoff.value(output)?))).collect()
}

/// The data that a selector or a judge leaves. It replaces all of its earlier data: what is absent is empty.
fn handed_anew(decider: &Decider<'_>, asked: &Step<StepId>, output: Option<&Value>) -> BTreeMap<Str, Value> {
    let stays = |handoff: &Handoff| {
        let source = Source::Handoff { step: asked.name.clone(), key: handoff.key.clone() };
        handoff.stays && is_filled(&decider.run, asked, &source)
    };
    let value = |handoff: &Handoff| match output.and_then(|output| handoff.value(output)) {
        _ if stays(handoff) => Value::Bool(true),
        Some(value) => value,
        None => Value::String(String::new()),
    };
    asked.handoff.iter().map(|handoff| (handoff.key.clone(), value(handoff))).collect()
}

fn write_handoff(
    decider: &mut Decider<'_>,
    step: &Step<StepId>,
    member: Option<u16>,
    handed: &BTreeMap<Str, Value>,
) {
    for (key, value) in handed {
        let text = as_text(value);
        let blob = decider.keep(&text);
        let short = !value.is_array() && !value.is_object() && text.len() <= SCALAR_MAX;
        decider.emit(Event::HandedOff {
            step: step.name.clone(),
            member,
            key: key.clone(),
            value: blob,
            scalar: short.then(|| text.into()),
            text: !(value.is_number() || value.is_boolean()),
        });
    }
}

fn record_summary(decider: &mut Decider<'_>, output: Option<&Value>, said: &str) {
    let summary = output.and_then(|output| output.get("summary")).and_then(Value::as_str);
    let summary = decider.keep(summary.unwrap_or(said));
    decider.emit(Event::Summarised { summary });
}

/// What is said in the same conversation, after what the agent said there.
pub(super) fn follow_up(decider: &mut Decider<'_>, say: &str, answer: &Answer) -> FollowUpMessage {
    let after = decider.keep(&gate::answer_text(answer));
    FollowUpMessage { say: vec![crate::event_types::PromptPart::Text(say.into())], after: Some(after) }
}
