//! Whether the run as a whole is done: asked when a visit is over and another would begin.

use cuegate_flow::{
    Str,
    analysis::flow_queries,
    model::{Act, Step, StepId, Verdict},
};
use serde_json::Value;

use super::{Decider, exit_step};
use crate::{
    command::CommandId,
    completion::ProbeResult,
    completion_state::{
        CHECKS, FAILURES_MAX, LOOKS_MAX, count_checks, find_due_parts, find_verdict_reason, has_keyword,
        has_signal, routing_fields_of_step,
    },
    event::Event,
    event_types::PendingEntry,
    run::Work,
};

/// An answer that counts: what it says is kept, because nobody looks at it again.
pub(super) fn record_answer_conditions(
    decider: &mut Decider<'_>,
    step: &Str,
    output: Option<&Value>,
    text: &str,
) {
    let flow = decider.flow;
    let routing = flow.find(step).map(|id| routing_fields_of_step(flow.step(id))).unwrap_or_default();
    let mut counted = false;
    for (place, part) in flow.verdict.places() {
        let found = match part {
            Verdict::Checks { of, .. } => {
                counted |= of.contains(step);
                None
            }
            Verdict::Keyword(keyword) if has_keyword(keyword, output, text, &routing) => {
                Some(format!("`{step}` said `{keyword}`"))
            }
            Verdict::Signal(signal) if has_signal(signal, output, text) => {
                Some(format!("`{step}` gave the signal `{}`", signal.kind))
            }
            _ => None,
        };
        record_condition(decider, place, found);
    }
    if counted {
        let value = count_checks(&decider.run) + 1;
        decider.emit(Event::CounterSet { counter: CHECKS.into(), value });
    }
}

/// Records that a part was detected, once per visit, or that it decided, once.
fn record_condition(decider: &mut Decider<'_>, place: Str, why: Option<String>) {
    let decides = matches!(decider.flow.verdict.part(&place), Some(Verdict::First(_)));
    let new = decider.run.checks.conditions.get(&place).is_none_or(|known| match decides {
        true => known.met.is_none(),
        false => known.now.is_none(),
    });
    if let Some(why) = why.filter(|_| new) {
        decider.emit(Event::ConditionMet { condition: place, why });
    }
}

/// A visit is over and `next` would begin, unless the run is complete or has to poll first. While a validator fails, no
/// rule completes the run: its remedy is asked, and the validator runs again.
pub(super) fn visit_done(decider: &mut Decider<'_>, step: &Step<StepId>, next: PendingEntry) {
    if !decider.run.checks.failing.is_empty() {
        exit_step::enter_next_step(decider, step, next);
        return;
    }
    let probes = find_due_parts(&decider.run, &decider.flow.verdict, decider.now);
    if let Some(why) = find_completion_reason(decider, &probes) {
        complete_run(decider, why);
        return;
    }
    if probes.is_empty() {
        exit_step::enter_next_step(decider, step, next);
        return;
    }
    decider.emit(Event::ProbesRequested { probes, next });
}

/// Somebody looked. With the last look it is known whether the run is done.
pub(super) fn receive_probe_result(decider: &mut Decider<'_>, id: CommandId, look: ProbeResult) {
    let Some(Work::Probing(probing)) = decider.run.progress.node.as_ref().map(|node| &node.work) else {
        return;
    };
    let CommandId::Poll { seq, index } = id else { return };
    let Some(place) = probing.open.get(&index).filter(|_| probing.seq == seq) else { return };
    let place = place.clone();
    let handler = match decider.flow.verdict.part(&place) {
        Some(Verdict::Handler(handler)) => Some(handler.program.path.clone()),
        _ => None,
    };
    let before = decider.run.checks.conditions.get(&place).map_or(0, |known| known.looks);
    let failed = look.failed;
    let said = look.said.clone();
    decider.emit(Event::Probed {
        probe: id,
        condition: place.clone(),
        // An evaluation that failed says nothing, and nothing is no reason to end.
        holds: look.holds && !look.failed,
        failed: look.failed,
        said: look.said,
        at_ms: decider.now,
        duration_ms: look.duration_ms,
        last: handler.is_none() && before + 1 >= LOOKS_MAX,
        tree: look.seen.map(|seen| seen.tree),
    });
    let failures = decider.run.checks.conditions.get(&place).map_or(0, |known| known.failures);
    if let Some(path) = handler.filter(|_| failed && failures >= FAILURES_MAX) {
        let reason = format!("the verdict's handler `{path}` failed {FAILURES_MAX} times in a row: {said}");
        decider.fail(reason);
        return;
    }
    let Some(Work::Probing(probing)) = decider.run.progress.node.as_ref().map(|node| &node.work) else {
        return;
    };
    if !probing.open.is_empty() {
        return;
    }
    let next = probing.next.clone();
    let Some(step) = decider.here() else { return };
    match find_completion_reason(decider, &[]) {
        Some(why) => complete_run(decider, why),
        None => exit_step::enter_next_step(decider, step, next),
    }
}

/// Why the run is done, if it is.
fn find_completion_reason(decider: &mut Decider<'_>, due: &[Str]) -> Option<String> {
    let flow = decider.flow;
    let finished = decider.run.progress.finished + 1;
    for (place, part) in flow.verdict.places() {
        if matches!(part, Verdict::First(_)) {
            let why = find_verdict_reason(&decider.run, part, &place, finished, due);
            record_condition(decider, place, why);
        }
    }
    find_verdict_reason(&decider.run, &flow.verdict, "1", finished, due)
}

/// The run is complete without reaching an end of its flow. Validators that it can reach and that have not passed are
/// reported.
fn complete_run(decider: &mut Decider<'_>, why: String) {
    let flow = decider.flow;
    let reachable = flow_queries::mark_reachable_steps(flow);
    let guarded = flow.steps.iter().zip(reachable).find(|(step, reachable)| {
        *reachable
            && matches!(step.act, Act::Exec { .. })
            && !decider.run.checks.validated.contains(&step.name)
    });
    let skipped = guarded.map(|(step, _)| (step.name.clone(), false));
    decider.complete(why, skipped);
}
