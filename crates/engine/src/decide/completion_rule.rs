//! Whether the run as a whole is done: asked when a visit is over and another would begin.

use cuegate_flow::{
    Str,
    analysis::variants,
    model::{Act, Step, StepId, Verdict},
};
use serde_json::Value;

use super::{Decider, exit_step};
use crate::{
    command::CommandId,
    completion::Look,
    completion_state::{CHECKS, FAILURES_MAX, LOOKS_MAX, checks, due, holds, routing, says, signals},
    event::Event,
    event_types::Hold,
    run::Work,
};

/// An answer that counts: what it says is kept, because nobody looks at it again.
pub(super) fn answered(decider: &mut Decider<'_>, step: &Str, output: Option<&Value>, text: &str) {
    let flow = decider.flow;
    let routing = flow.find(step).map(|id| routing(flow.step(id))).unwrap_or_default();
    let mut counted = false;
    for (place, part) in flow.verdict.places() {
        let found = match part {
            Verdict::Checks { of, .. } => {
                counted |= of.contains(step);
                None
            }
            Verdict::Keyword(keyword) if says(keyword, output, text, &routing) => {
                Some(format!("`{step}` said `{keyword}`"))
            }
            Verdict::Signal(signal) if signals(signal, output, text) => {
                Some(format!("`{step}` gave the signal `{}`", signal.kind))
            }
            _ => None,
        };
        met(decider, place, found);
    }
    if counted {
        let value = checks(&decider.run) + 1;
        decider.emit(Event::CounterSet { counter: CHECKS.into(), value });
    }
}

/// Records that a part was detected, once per visit, or that it decided, once.
fn met(decider: &mut Decider<'_>, place: Str, why: Option<String>) {
    let decides = matches!(decider.flow.verdict.part(&place), Some(Verdict::First(_)));
    let new = decider.run.conditions.get(&place).is_none_or(|known| match decides {
        true => known.met.is_none(),
        false => known.now.is_none(),
    });
    if let Some(why) = why.filter(|_| new) {
        decider.emit(Event::ConditionMet { condition: place, why });
    }
}

/// A visit is over and `next` would begin, unless the run is complete or has to poll first. While a validator fails, no
/// rule completes the run: its remedy is asked, and the validator runs again.
pub(super) fn visit_done(decider: &mut Decider<'_>, step: &Step<StepId>, next: Hold) {
    if !decider.run.failing.is_empty() {
        exit_step::proceed(decider, step, next);
        return;
    }
    let probes = due(&decider.run, &decider.flow.verdict, decider.now);
    if let Some(why) = done(decider, &probes) {
        complete(decider, why);
        return;
    }
    if probes.is_empty() {
        exit_step::proceed(decider, step, next);
        return;
    }
    decider.emit(Event::ProbesRequested { probes, next });
}

/// Somebody looked. With the last look it is known whether the run is done.
pub(super) fn probed(decider: &mut Decider<'_>, id: CommandId, look: Look) {
    let Some(Work::Probing(probing)) = decider.run.node.as_ref().map(|node| &node.work) else { return };
    let CommandId::Poll { seq, index } = id else { return };
    let Some(place) = probing.open.get(&index).filter(|_| probing.seq == seq) else { return };
    let place = place.clone();
    let handler = match decider.flow.verdict.part(&place) {
        Some(Verdict::Handler(handler)) => Some(handler.program.path.clone()),
        _ => None,
    };
    let before = decider.run.conditions.get(&place).map_or(0, |known| known.looks);
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
    let failures = decider.run.conditions.get(&place).map_or(0, |known| known.failures);
    if let Some(path) = handler.filter(|_| failed && failures >= FAILURES_MAX) {
        let reason = format!("the verdict's handler `{path}` failed {FAILURES_MAX} times in a row: {said}");
        decider.fail(reason);
        return;
    }
    let Some(Work::Probing(probing)) = decider.run.node.as_ref().map(|node| &node.work) else { return };
    if !probing.open.is_empty() {
        return;
    }
    let next = probing.next.clone();
    let Some(step) = decider.here() else { return };
    match done(decider, &[]) {
        Some(why) => complete(decider, why),
        None => exit_step::proceed(decider, step, next),
    }
}

/// Why the run is done, if it is.
fn done(decider: &mut Decider<'_>, due: &[Str]) -> Option<String> {
    let flow = decider.flow;
    let finished = decider.run.finished + 1;
    for (place, part) in flow.verdict.places() {
        if matches!(part, Verdict::First(_)) {
            let why = holds(&decider.run, part, &place, finished, due);
            met(decider, place, why);
        }
    }
    holds(&decider.run, &flow.verdict, "1", finished, due)
}

/// The run is complete without reaching an end of its flow. Validators that it can reach and that have not passed are
/// reported.
fn complete(decider: &mut Decider<'_>, why: String) {
    let flow = decider.flow;
    let reachable = variants::visited(flow);
    let guarded = flow.steps.iter().zip(reachable).find(|(step, reachable)| {
        *reachable && matches!(step.act, Act::Exec { .. }) && !decider.run.validated.contains(&step.name)
    });
    let skipped = guarded.map(|(step, _)| (step.name.clone(), false));
    decider.complete(why, skipped);
}
