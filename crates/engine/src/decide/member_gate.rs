//! Commands that a member's answer has to pass before its outcome counts.

use cuegate_ask::AskKind;
use cuegate_flow::{
    Str,
    model::{Act, BlobRef, MemberCommand, MemberGate, Outcome, Step, StepId},
};

use super::{Decider, join};
use crate::{
    answers::extractors::apply_extractor,
    command::CommandId,
    completion::{ExecResult, TreeChange},
    event::Event,
    event_types::{AskRequest, ProvisionalOutcome},
    prompt::{Failure, render_template},
    run::{FollowUpMessage, Work},
};

/// A member has an outcome: its commands are run first, where it has some.
pub(super) fn submit_member_outcome(
    decider: &mut Decider<'_>,
    index: u16,
    step: &Str,
    outcome: Outcome,
    answer: &BlobRef,
) {
    let first = decider.step(step).and_then(member_gate_of_step).and_then(|guard| guard.commands.first());
    if let Some(first) = first {
        let claim = ProvisionalOutcome { outcome: outcome.to_string().into(), answer: answer.clone() };
        let command = first.validator.command.clone();
        let (step, member, claim) = (step.clone(), Some(index), Some(claim));
        decider.emit(Event::CommandRequested { step, index: 0, command, member, claim });
        return;
    }
    let end = join::MemberEnd {
        outcome: Some(outcome),
        answer: Some(answer.clone()),
        ..join::MemberEnd::default()
    };
    join::member_ended(decider, index, step, end);
}

/// A command of a member ran: the next one, the outcome, another answer, or nothing that can be used.
pub(super) fn receive_member_command_result(
    decider: &mut Decider<'_>,
    id: CommandId,
    exec: &ExecResult,
    seen: Option<TreeChange>,
) {
    let Some(Work::Joining(members)) = decider.run.progress.node.as_ref().map(|node| &node.work) else {
        return;
    };
    let CommandId::Member { seq, index: at } = id else { return };
    let Some(member) = members.get(at as usize) else { return };
    let Some(proof) = member.proving.clone().filter(|proof| proof.seq == seq) else { return };
    let (name, failures) = (member.step.clone(), member.failures);
    let Some(step) = decider.step(&name) else { return };
    let Some(guard) = member_gate_of_step(step) else { return };
    let Some(MemberCommand { validator, mend }) = guard.commands.get(proof.index as usize) else { return };
    let passed = validator.success.holds(exec.exit.code(), &exec.stdout, &exec.stderr);
    let ended = exec.exit.describe(validator.timeout_ms);
    let (stdout, stderr) = (decider.keep(&exec.stdout), decider.keep(&exec.stderr));
    let (changed_files, tree) = seen.map(|seen| (seen.changed, Some(seen.tree))).unwrap_or_default();
    decider.emit(Event::CommandFinished {
        step: name.clone(),
        index: proof.index,
        member: Some(at),
        validator: validator.name.clone(),
        command: validator.command.clone(),
        passed,
        ended: ended.clone(),
        stdout,
        stderr,
        duration_ms: exec.duration_ms,
        changed_files,
        tree,
    });
    let next = guard.commands.get(proof.index as usize + 1).filter(|_| passed);
    if let Some(next) = next {
        let (index, member, claim) = (proof.index + 1, Some(at), Some(proof.claim));
        let command = next.validator.command.clone();
        decider.emit(Event::CommandRequested { step: name, index, command, member, claim });
    } else if passed {
        let ProvisionalOutcome { outcome, answer } = proof.claim;
        let outcome = Some(Outcome::Named(outcome));
        let end = join::MemberEnd { outcome, answer: Some(answer), ..join::MemberEnd::default() };
        join::member_ended(decider, at, &name, end);
    } else if failures < guard.mends_max {
        let failure: Failure = validator
            .extract
            .iter()
            .map(|(name, what)| (name.clone(), apply_extractor(*what, exec)))
            .collect();
        let say = render_template(&decider.run, step, mend, Some(&failure));
        let follow = Some(FollowUpMessage { say, after: Some(proof.claim.answer) });
        let request = AskRequest::own(&name, Some(at), AskKind::Remedy);
        decider.request_ask(AskRequest { follow, ..request });
    } else {
        let why = format!("the quality gate `{}` fails: {ended}", validator.name);
        join::member_ended(
            decider,
            at,
            &name,
            join::MemberEnd { why: Some(why), ..join::MemberEnd::default() },
        );
    }
}

/// What a step's answer has to pass.
pub(crate) fn member_gate_of_step(step: &Step<StepId>) -> Option<&MemberGate> {
    match &step.act {
        Act::Ask(ask) => ask.guard.as_ref(),
        _ => None,
    }
}
