//! An agent answered.

use std::collections::BTreeMap;

use cuegate_ask::AskKind;
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
        gate::{self, GateResult, InvalidAnswer, read_answer},
        parsed_answer::ParsedAnswer,
    },
    command::CommandId,
    completion::{Answer, TreeChange},
    event::Event,
    event_types::{AfterReports, AskContext, AskRequest, StepAnswer},
    pending::session_key,
    prompt::is_filled,
    route::as_text,
    run::{FollowUpMessage, JudgedAnswer, PendingAsk},
};

/// Values up to this many bytes are kept in place, so that conditions can select by them.
const SCALAR_MAX: usize = 256;

/// The step whose agent was asked, and the step that waits for the answer.
pub(super) struct AskScope<'f> {
    /// The step that waits for the answer.
    pub(super) step: &'f Step<StepId>,
    /// The step whose agent was asked: a judge, a selector, or `step` itself.
    pub(super) asked: &'f Step<StepId>,
    /// The index of the member that waits, if `step` is one.
    pub(super) member: Option<u16>,
    pub(super) asking: PendingAsk,
}

impl<'f> AskScope<'f> {
    /// The scope of a pending ask.
    pub(super) fn find(decider: &Decider<'f>, ask: CommandId) -> Option<Self> {
        let (name, member, asking) = decider.run.asking(ask)?;
        let (step, asked) = (decider.step(&name)?, decider.step(asking.asked(&name))?);
        Some(AskScope { step, asked, member, asking: asking.clone() })
    }
}

pub(super) fn receive_answer(
    decider: &mut Decider<'_>,
    ask: CommandId,
    answer: Answer,
    seen: Option<TreeChange>,
) {
    // Its usage was already journaled; ignore it until the run is resumed.
    if !decider.run.spending.unsettled.contains(&ask) {
        return;
    }
    if decider.run.asking(ask).is_none() {
        // Nobody waits for it, but it was paid for.
        decider.emit(Event::AnsweredLate { ask, usage: answer.usage });
        return;
    }
    let Some(scope) = AskScope::find(decider, ask) else { return };
    let parsed = ParsedAnswer::from_answer(decider.flow, scope.asked, &answer);
    let outside = seen.as_ref().map(|seen| seen.outside.clone());
    let seen = rejected_answer::without_others(decider, scope.asked, scope.member, seen);
    let violated = rejected_answer::find_boundary_violations(decider, &scope, seen.as_ref());
    let (seen, broke) = if violated.is_empty() { (seen, None) } else { (None, seen) };
    record_answer(decider, ask, &scope, &answer, &parsed, seen);
    let outside = rejected_answer::record_outside(decider, scope.asked, outside);
    if answer.blocked.is_none() && answer.asks_person.is_none() {
        action_blocks::record_inspection(decider, ask, scope.asked, &parsed);
    }
    if !violated.is_empty() {
        rejected_answer::reject_boundary_violation(decider, &scope, (violated, broke), &parsed);
    } else if !outside.is_empty() {
        rejected_answer::reject_outside_writes(decider, &scope, &outside, &parsed);
    } else if let Some(why) = answer.blocked.clone().or_else(|| find_blocked_reason(&scope, &parsed)) {
        block_step(decider, &scope, &why);
    } else if let Some(question) = &answer.asks_person {
        ask_question(decider, &scope, question);
    } else if let AskContext::Report(owing) = &scope.asking.context {
        owed_reports::receive_report(decider, &scope, owing, &parsed);
    } else {
        match read_answer(decider.flow, scope.asked, &parsed, 0) {
            Err(why) => rejected_answer::reject_answer(decider, &scope, why, &parsed),
            Ok(result) => route_result(decider, &scope, &parsed, result),
        }
    }
}

/// Why the agent says that it cannot proceed, where anybody asks it.
fn find_blocked_reason(scope: &AskScope<'_>, answer: &ParsedAnswer<'_>) -> Option<String> {
    match &scope.asking.context {
        AskContext::Judge(_) | AskContext::Select(_) => None,
        AskContext::Report(_) => gate::marked_blocked(scope.asked, answer.text),
        AskContext::Own => gate::find_blocked_reason(scope.asked, answer),
    }
}

/// The agent asks a person.
fn ask_question(decider: &mut Decider<'_>, scope: &AskScope<'_>, question: &str) {
    if action_blocks::answers_question(decider, scope, question) {
        return;
    }
    match scope.member {
        // The other members go on; nobody can be asked for one of them alone.
        Some(_) => block_step(decider, scope, question),
        None => enter::ask_person(decider, question, false),
    }
}

/// What follows from an answer that the gate could read: for a selector, a judge, or the step itself.
fn route_result(
    decider: &mut Decider<'_>,
    scope: &AskScope<'_>,
    answer: &ParsedAnswer<'_>,
    result: GateResult,
) {
    match (&scope.asking.context, result) {
        (AskContext::Select(_), GateResult::Outcome { output, outcome, reason }) => {
            accept_selection(decider, scope, answer, (output, outcome, reason));
        }
        (AskContext::Judge(judging), result) => accept_judgement(decider, scope, judging, answer, result),
        (_, result) => accept_answer(decider, scope, answer, result),
    }
}

/// A selector's answer: the step that waits for it begins.
fn accept_selection(
    decider: &mut Decider<'_>,
    scope: &AskScope<'_>,
    answer: &ParsedAnswer<'_>,
    (output, outcome, reason): (Option<Value>, Outcome, Option<String>),
) {
    let handed = handed_anew(decider, scope.asked, output.as_ref());
    write_handoff(decider, scope.asked, scope.member, &handed);
    if let Some(way) = nothing_to_do(decider, scope.step, scope.asked, outcome) {
        exit_step::take_transition(decider, scope.step, &way, StepResult::because(reason));
        return;
    }
    if let Err(why) = enter::continue_after_selector(decider, scope.step, scope.asked, scope.member) {
        rejected_answer::reject_answer(decider, scope, InvalidAnswer::wrong(why), answer);
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
    scope: &AskScope<'_>,
    answer: &Answer,
    parsed: &ParsedAnswer<'_>,
    seen: Option<TreeChange>,
) {
    let AskScope { asked, asking, .. } = scope;
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
            let response = parsed.response(asked, parsed.structured.as_ref());
            Some(enter::clip_text(response.trim(), enter::DETAIL_MAX))
        }
        _ => None,
    };
    let (changed_files, tree) = seen.map(|seen| (seen.changed, Some(seen.tree))).unwrap_or_default();
    let beyond = decider.run.spending.ledger.beyond(ask, &answer.usage);
    let (of, share) = decider.run.spending.ledger.reached(ask, &answer.usage);
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
        handshake: answer.handshake.clone(),
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
fn block_step(decider: &mut Decider<'_>, scope: &AskScope<'_>, why: &str) {
    let &AskScope { step, asked, member, ref asking } = scope;
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
    let name = if selects { &asked.name } else { &step.name };
    enter::ask_person(decider, &format!("`{name}` cannot proceed: {why}"), again);
}

/// An answer that its own step's gate could read.
fn accept_answer(
    decider: &mut Decider<'_>,
    scope: &AskScope<'_>,
    answer: &ParsedAnswer<'_>,
    result: GateResult,
) {
    let &AskScope { step, member, .. } = scope;
    let (output, then) = match result {
        GateResult::Judge { judge, reader, output } => {
            (output, AfterReports::Judge { judge: decider.flow.step(judge).name.clone(), reader })
        }
        GateResult::Outcome { outcome: Outcome::None, .. } if !has_edge(step, &Outcome::None) => {
            return rejected_answer::reject_unmatched_answer(decider, step, member);
        }
        GateResult::Outcome { outcome, output, reason } if !owed_reports::has_owed_reports(step) => {
            let said = decider.keep(&answer.response(step, output.as_ref()));
            take_exit(decider, scope, answer, &said, (outcome, output, reason));
            return;
        }
        GateResult::Outcome { outcome, output, reason } => {
            (output, owed_reports::after_reports_of_outcome(&outcome, reason))
        }
    };
    let handed = handoffs_of_answer(step, output.as_ref());
    record_content(decider, scope, answer, output.as_ref(), &handed);
    let said = decider.keep(&answer.response(step, output.as_ref()));
    if !owed_reports::collect_reports(decider, step, member, output.as_ref(), &said, &then) {
        continue_after_reports(decider, step, member, &said, &then);
    }
}

/// Records what an answer that counts says: the conditions that it meets, the actions that it asks for, its summary, and the
/// values that it hands off.
fn record_content(
    decider: &mut Decider<'_>,
    scope: &AskScope<'_>,
    answer: &ParsedAnswer<'_>,
    output: Option<&Value>,
    handed: &BTreeMap<Str, Value>,
) {
    let &AskScope { step, member, .. } = scope;
    completion_rule::record_answer_conditions(decider, &step.name, output, answer.text);
    action_blocks::found_actions(decider, &step.name, member, output, answer.text);
    if member.is_none() {
        record_summary(decider, step, output, &answer.response(step, output));
    }
    write_handoff(decider, step, member, handed);
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
fn accept_judgement(
    decider: &mut Decider<'_>,
    scope: &AskScope<'_>,
    judging: &JudgedAnswer,
    answer: &ParsedAnswer<'_>,
    result: GateResult,
) {
    let &AskScope { step, asked, member, .. } = scope;
    let GateResult::Outcome { outcome, reason, output } = result else {
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
            Err(bad) => rejected_answer::reject_answer(decider, scope, bad, answer),
            Ok(way) if way.edge.again && enter::is_empty(decider, step) => {
                let bad = InvalidAnswer::wrong(enter::describe_empty_selection(step));
                rejected_answer::reject_answer(decider, scope, bad, answer);
            }
            Ok(way) => join::leave_parallel_step(decider, step, &way, judging.answers.clone(), reason),
        };
    }
    take_exit(decider, scope, answer, &judging.answer, (outcome, None, reason));
}

pub(super) fn request_judge(
    decider: &mut Decider<'_>,
    step: &Str,
    member: Option<u16>,
    judging: JudgedAnswer,
) {
    let request = AskRequest::own(step, member, AskKind::Judge);
    decider.request_ask(AskRequest { context: AskContext::Judge(judging), ..request });
}

/// A known outcome: it may still select no step, which makes the answer a bad one.
fn take_exit(
    decider: &mut Decider<'_>,
    scope: &AskScope<'_>,
    answer: &ParsedAnswer<'_>,
    said: &BlobRef,
    (outcome, output, reason): (Outcome, Option<Value>, Option<String>),
) {
    let &AskScope { step, member, ref asking, .. } = scope;
    let handed = handoffs_of_answer(step, output.as_ref());
    // What the judged answer says was recorded when it came.
    let is_own = asking.context.judging().is_none();
    if let Some(index) = member {
        if is_own {
            record_content(decider, scope, answer, output.as_ref(), &handed);
        }
        member_gate::submit_member_outcome(decider, index, &step.name, outcome, said);
        return;
    }
    match exit_step::find_transition(decider, step, outcome, output.as_ref(), &handed) {
        Err(bad) => rejected_answer::reject_answer(decider, scope, bad, answer),
        Ok(way) => {
            if is_own {
                record_content(decider, scope, answer, output.as_ref(), &handed);
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

/// Hands on what a step that Cuegate did itself found out: the values whose keys begin like this.
pub(super) fn hand_on(decider: &mut Decider<'_>, step: &Step<StepId>, of: &str, found: &Value) {
    let mut handed = handed_anew(decider, step, Some(found));
    handed.retain(|key, _| key.starts_with(of));
    write_handoff(decider, step, None, &handed);
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

fn record_summary(decider: &mut Decider<'_>, step: &Step<StepId>, output: Option<&Value>, said: &str) {
    let summary = output.and_then(|output| output.get("summary")).and_then(Value::as_str);
    let summary = decider.keep(summary.unwrap_or(said));
    let read_only = !step.boundary.permission.may_write();
    decider.emit(Event::Summarised { summary, read_only });
}

/// What is said in the same conversation, after what the agent said there.
pub(super) fn follow_up(decider: &mut Decider<'_>, say: &str, answer: &ParsedAnswer<'_>) -> FollowUpMessage {
    let after = decider.keep(&answer.to_text());
    FollowUpMessage { say: vec![crate::event_types::PromptPart::Text(say.into())], after: Some(after) }
}
