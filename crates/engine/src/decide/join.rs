//! The members of a parallel step.

use cuegate_ask::AskKind;
use cuegate_flow::{
    Str,
    model::{BlobRef, Gate, JoinPattern, JoinRule, Outcome, Step, StepId},
};

use super::{
    Decider, answered, ask_faulted, enter,
    exit_step::{self, StepResult},
};
use crate::{
    event::Event,
    event_types::{AskRequest, StepAnswer, WaitKind},
    run::{JudgedAnswer, Member, Work},
};

/// How a member ended.
#[derive(Default)]
pub(super) struct MemberEnd {
    /// Its outcome; `None` when it failed or was blocked.
    pub(super) outcome: Option<Outcome>,
    /// Why there is none.
    pub(super) why: Option<String>,
    /// Whether it said that it cannot proceed.
    pub(super) blocked: bool,
    /// Whether its agent failed each time that it was asked.
    pub(super) crashed: bool,
    /// Its answer; `None` after a failure or an unusable answer.
    pub(super) answer: Option<BlobRef>,
}

/// A member is done; with the last one the join is evaluated, in definition order.
pub(super) fn member_ended(decider: &mut Decider<'_>, index: u16, step: &Str, end: MemberEnd) {
    let MemberEnd { outcome, why, blocked, crashed, answer } = end;
    let outcome = outcome.map(|outcome| outcome.to_string().into());
    decider.emit(Event::MemberEnded { index, step: step.clone(), outcome, why, blocked, crashed, answer });
    let Some(Work::Joining(members)) = decider.run.progress.node.as_ref().map(|node| &node.work) else {
        return;
    };
    let members = members.clone();
    if members.iter().any(|member| member.ended.is_none()) {
        return;
    }
    let Some(parent) = decider.here() else { return };
    let Gate::Join { rules, judges } = &parent.gate else { return };
    let answers: Vec<StepAnswer> =
        members.iter().filter(|member| !member.skipped).map(answer_of_member).collect();
    let matched =
        rules.iter().find(|rule| matches_join_rule(rule, &members)).map(|rule| rule.outcome.clone());
    match (matched, judges.first()) {
        (Some(outcome), _) => {
            match exit_step::find_transition(decider, parent, outcome, None, &Default::default()) {
                Ok(way) => leave_parallel_step(decider, parent, &way, answers, None),
                Err(bad) => decider.fail(bad.why),
            }
        }
        (None, Some(judge)) => {
            let judge = decider.flow.step(*judge).name.clone();
            let answer = decider.keep("");
            let judging = JudgedAnswer { judge, reader: 0, answer, answers };
            answered::request_judge(decider, &parent.name, None, judging);
        }
        (None, None) => stop_unmatched_join(decider, parent, &answers),
    }
}

pub(super) fn leave_parallel_step(
    decider: &mut Decider<'_>,
    parent: &Step<StepId>,
    way: &exit_step::ResolvedTransition<'_>,
    answers: Vec<StepAnswer>,
    reason: Option<String>,
) {
    // A step that does not count, such as reviews before a transition, leaves the previous response as it is.
    if parent.counts {
        decider.respond(parent, answers);
    }
    exit_step::take_transition(decider, parent, way, StepResult::because(reason));
}

/// No rule and no judge found an outcome for what the members came to.
pub(super) fn stop_unmatched_join(decider: &mut Decider<'_>, parent: &Step<StepId>, members: &[StepAnswer]) {
    let ends: Vec<String> = members.iter().map(describe_member_end).collect();
    let what = format!("no rule of `{}` matched: {}", parent.name, ends.join(", "));
    if members.iter().any(|member| member.blocked) {
        let why = members.iter().filter_map(|member| Some((&member.step, member.why.as_ref()?)));
        let why: String = why.map(|(step, why)| format!("\n`{step}` cannot proceed: {why}")).collect();
        enter::ask_person(decider, &format!("{what}{why}"), true);
    } else {
        wait_for_crashed(decider, what);
    }
}

/// No rule says where to go without the answers of members whose agents failed: the run waits until their cause is
/// fixed, and then asks only them. A member that answered in vain three times leaves nothing to wait for.
fn wait_for_crashed(decider: &mut Decider<'_>, what: String) {
    let members = match decider.run.progress.node.as_ref().map(|node| &node.work) {
        Some(Work::Joining(members)) => members.clone(),
        _ => Vec::new(),
    };
    let failed = members.iter().filter(|member| !member.skipped && member.ended == Some(None));
    let crashed: Vec<&Member> = failed.clone().filter(|member| member.crashed).collect();
    if crashed.is_empty() || crashed.len() < failed.count() {
        decider.fail(what);
        return;
    }
    let why =
        crashed.iter().filter_map(|member| Some(format!("; `{}`: {}", member.step, member.why.as_ref()?)));
    let detail = what + &why.collect::<String>();
    ask_again(decider, |member| member.crashed);
    ask_faulted::suspend_run(decider, WaitKind::Environment, detail, None);
}

/// Asks the members that ended like this once more. The others keep their answers.
pub(super) fn ask_again(decider: &mut Decider<'_>, wanted: impl Fn(&Member) -> bool) {
    let Some(Work::Joining(members)) = decider.run.progress.node.as_ref().map(|node| &node.work) else {
        return;
    };
    let again = (0..).zip(members).filter(|(_, member)| !member.skipped && wanted(member));
    let again: Vec<(u16, Str)> = again.map(|(index, member)| (index, member.step.clone())).collect();
    for (index, step) in again {
        decider.request_ask(AskRequest::own(&step, Some(index), AskKind::Work));
    }
}

fn answer_of_member(member: &Member) -> StepAnswer {
    StepAnswer {
        step: member.step.clone(),
        text: member.answer.clone(),
        outcome: member.ended.clone().flatten(),
        blocked: member.blocked,
        why: member.why.clone().filter(|_| member.blocked),
    }
}

fn describe_member_end(member: &StepAnswer) -> String {
    match &member.outcome {
        Some(outcome) => format!("`{}` {outcome}", member.step),
        None if member.blocked => format!("`{}` blocked", member.step),
        None => format!("`{}` failed", member.step),
    }
}

fn matches_join_rule(rule: &JoinRule, members: &[Member]) -> bool {
    let has = |member: &Member, wanted: &Outcome| match (&member.ended, wanted) {
        (Some(Some(outcome)), Outcome::Named(name)) => outcome == name,
        (Some(None), Outcome::None) => true,
        _ => false,
    };
    let mut worked = members.iter().filter(|member| !member.skipped);
    match &rule.pattern {
        JoinPattern::All(wanted) => worked.all(|member| has(member, wanted)),
        JoinPattern::Each(wanted) => {
            let mut each = members.iter().zip(wanted).filter(|(member, _)| !member.skipped);
            wanted.len() == members.len() && each.all(|(member, wanted)| has(member, wanted))
        }
        JoinPattern::Any(wanted) => worked.any(|member| wanted.iter().any(|wanted| has(member, wanted))),
    }
}
