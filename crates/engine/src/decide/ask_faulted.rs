//! An ask failed: retry after a pause, or suspend the run until a person acts.

use cuegate_ask::FaultClass;
use cuegate_flow::{
    Str,
    model::{Act, Step, StepId},
};

use super::{Decider, answered::AskScope, ask_aborted, join, rejected_answer};
use crate::{
    budget::Lack,
    command::CommandId,
    completion::{Fault, TreeChange},
    event::Event,
    event_types::{AskRequest, SuspensionCause, WaitKind},
    pending::continued_session_key,
    run::PendingAsk,
};

/// How often an ask is retried that crashed, timed out or returned an unreadable answer.
const RETRIES_MAX: u32 = cuegate_flow::analysis::cost_bound::TRIES_MAX as u32 - 1;
/// The first pause between two tries, in milliseconds; each further one is twice as long.
const PAUSE_MS: u64 = 1_000;
/// The longest pause between two tries, in milliseconds.
const PAUSE_MAX_MS: u64 = 60_000;

pub(super) fn receive_fault(
    decider: &mut Decider<'_>,
    ask: CommandId,
    fault: Fault,
    seen: Option<TreeChange>,
) {
    if !decider.run.spending.unsettled.contains(&ask) {
        return;
    }
    if decider.run.asking(ask).is_none() {
        decider.emit(Event::AnsweredLate { ask, usage: fault.usage });
        return;
    }
    let Some(scope) = AskScope::find(decider, ask) else { return };
    let AskScope { asked, member, ref asking, .. } = scope;
    let (name, permission) = (scope.step.name.clone(), rejected_answer::permission_of_ask(&scope));
    let outside = seen.as_ref().map(|seen| seen.outside.clone());
    let seen = rejected_answer::without_others(decider, asked, member, seen);
    let violated = rejected_answer::find_boundary_violations(decider, &scope, seen.as_ref());
    let (seen, broke) = if violated.is_empty() { (seen, None) } else { (None, seen) };
    let (changed_files, tree) = seen.map(|seen| (seen.changed, Some(seen.tree))).unwrap_or_default();
    let (of, share) = decider.run.spending.ledger.reached(ask, &fault.usage);
    let of = fault.limit.unwrap_or(of);
    decider.tools_used(ask, &asked.name, fault.tools.clone());
    let spoilt = spoilt_session(asked, &fault).filter(|_| violated.is_empty());
    decider.emit(Event::Faulted {
        ask,
        step: asked.name.clone(),
        class: fault.class,
        message: fault.message.clone(),
        agent: asking.agent.clone(),
        usage: fault.usage,
        usage_unknown: fault.usage_unknown,
        spoilt: spoilt.clone(),
        receipt: fault.receipt.clone(),
        changed_files,
        tree,
    });
    rejected_answer::record_outside(decider, asked, outside);
    if !violated.is_empty() {
        let lost = broke.as_ref().is_some_and(|seen| !seen.lost.is_empty());
        if lost || !decider.run.started().place.owned {
            rejected_answer::reject_boundary_violation(
                decider,
                &scope,
                (violated, broke),
                &Default::default(),
            );
            return;
        }
        // The working tree is restored before the next try; the event records that this was necessary.
        decider.emit(Event::BoundaryViolated { step: asked.name.clone(), permission, paths: violated });
    }
    if spoilt.is_some() {
        // The retold prompt holds all that the conversation held.
        ask_aborted::repeat_ask(decider, &name, member, asking);
        return;
    }
    if step_in(decider, ask, &scope, &fault) {
        return;
    }
    let tries = asking.faults + 1;
    match fault.class {
        FaultClass::RateLimited | FaultClass::Overloaded | FaultClass::Network => {
            // The service's reset time counts, but a service that always says "soon" is not asked faster and faster.
            let pause = match fault.resets_in_ms {
                None | Some(0) => compute_retry_pause(tries),
                Some(resets) if tries == 1 => resets,
                Some(resets) => resets.max(compute_retry_pause(tries - 1)),
            };
            let waited = asking.waited_ms.saturating_add(pause);
            let wait_max_ms = decider.run.started().wait_max_ms;
            if waited <= wait_max_ms {
                repeat_ask_later(decider, &name, member, asking, pause, waited);
            } else {
                let until_ms = decider.now.saturating_add_unsigned(pause);
                let detail = describe_fault(&fault);
                match fault.class {
                    FaultClass::Network => suspend_run(decider, WaitKind::Environment, detail, None),
                    _ => suspend_run(decider, WaitKind::Quota, detail, Some(until_ms)),
                }
            }
        }
        // A lost session that was continued is handled above; without one it is a failure as any other.
        FaultClass::Crashed | FaultClass::Timeout | FaultClass::Malformed | FaultClass::SessionLost => {
            if asking.faults < RETRIES_MAX {
                repeat_ask_later(
                    decider,
                    &name,
                    member,
                    asking,
                    compute_retry_pause(tries),
                    asking.waited_ms,
                );
            } else if let Some(index) = member {
                let end = join::MemberEnd {
                    why: Some(describe_fault(&fault)),
                    crashed: true,
                    ..join::MemberEnd::default()
                };
                join::member_ended(decider, index, &name, end);
            } else {
                suspend_run(decider, WaitKind::Environment, describe_fault(&fault), None);
            }
        }
        FaultClass::Violation => decider.fail(fault.message),
        // The ask stays pending, and a resume with a higher limit repeats it. Other members continue.
        FaultClass::OverCap => {
            let what = format!("a call of `{}` was stopped at its limit: {}", asked.name, fault.message);
            decider.emit(Event::Overspent { ask, what, of, share });
            ask_aborted::repeat_ask(decider, &name, member, asking);
            if !decider.run.spending.ledger.limits() {
                let reason = decider.run.spending.ledger.describe(Lack::Overspent);
                decider.stop(reason);
            }
        }
        FaultClass::Auth
        | FaultClass::Refused
        | FaultClass::ContextOverflow
        | FaultClass::UnknownModel
        | FaultClass::MissingProgram
        | FaultClass::ScriptExhausted => {
            suspend_run(decider, WaitKind::Environment, describe_fault(&fault), None)
        }
    }
}

/// Lets the next agent of the chain step in for one that is out. Returns whether it decided what follows: a call without a
/// chain waits for its agent, as does one whose agents are all out.
fn step_in(decider: &mut Decider<'_>, ask: CommandId, scope: &AskScope<'_>, fault: &Fault) -> bool {
    let AskScope { asked, member, ref asking, .. } = *scope;
    let started = decider.run.started();
    let chain = started.chain_of_call(&scope.step.name, &asking.context, decider.run.visit_number());
    let choice = asking.agent.clone().unwrap_or_else(|| started.usual_agent());
    if chain.len() < 2 {
        return false;
    }
    let Some((any_model, until_ms)) = decider.run.find_outage(&choice, fault, decider.now) else {
        return false;
    };
    let (name, step) = (scope.step.name.clone(), asked.name.clone());
    decider.emit(Event::AgentOut { ask, step, choice, any_model, class: fault.class, until_ms });
    let next = decider.run.choose_agent(&asking.again(&name, member), decider.now);
    let next = next.unwrap_or_else(|| decider.run.started().usual_agent());
    let next_until = decider.run.agent_out_until(&next, decider.now);
    let Some(until_ms) = next_until else {
        ask_aborted::repeat_ask(decider, &name, member, asking);
        return true;
    };
    let detail = format!("all agents of `{}` are out; {}", asked.name, describe_fault(fault));
    let Some(until_ms) = until_ms else {
        suspend_run(decider, WaitKind::Environment, detail, None);
        return true;
    };
    let pause = u64::try_from(until_ms.saturating_sub(decider.now)).unwrap_or(0);
    let waited = asking.waited_ms.saturating_add(pause);
    if waited <= decider.run.started().wait_max_ms {
        repeat_ask_later(decider, &name, member, asking, pause, waited);
    } else {
        suspend_run(decider, WaitKind::Quota, detail, Some(until_ms));
    }
    true
}

/// The session that the agent no longer has, or that has no room for another message. The ask is put once more without
/// it: a second fault of this kind does not continue a session.
fn spoilt_session(asked: &Step<StepId>, fault: &Fault) -> Option<Str> {
    let is_spoilt = matches!(fault.class, FaultClass::SessionLost | FaultClass::ContextOverflow);
    match &asked.act {
        Act::Ask(ask) if is_spoilt && fault.continued => continued_session_key(ask).cloned(),
        _ => None,
    }
}

fn describe_fault(fault: &Fault) -> String {
    format!("{}: {}", fault.class.words(), fault.message)
}

/// The pause before the next try after this number of faults, in milliseconds.
fn compute_retry_pause(faults: u32) -> u64 {
    PAUSE_MS.saturating_mul(1 << faults.saturating_sub(1).min(16)).min(PAUSE_MAX_MS)
}

fn repeat_ask_later(
    decider: &mut Decider<'_>,
    name: &Str,
    member: Option<u16>,
    asking: &PendingAsk,
    pause_ms: u64,
    waited_ms: u64,
) {
    let not_before_ms = Some(decider.now.saturating_add_unsigned(pause_ms));
    let request = asking.again(name, member);
    decider.request_ask(AskRequest { not_before_ms, waited_ms, ..request });
}

/// Suspends the run. The ask stays pending and is repeated on resume.
pub(super) fn suspend_run(decider: &mut Decider<'_>, kind: WaitKind, detail: String, until_ms: Option<i64>) {
    decider.emit(Event::Suspended { waiting: SuspensionCause { kind, detail, until_ms } });
}
