//! Leaving a step: its outcome, the edge it takes, and where that leads.

use std::collections::BTreeMap;

use cuegate_flow::{Act, Edge, Ending, Outcome, Step, StepId, Str, Verdict};
use serde_json::Value;

use super::{Decider, enter};
use crate::{
    event::Event,
    facts::{EndState, Remedy, RowEnd},
    gate::{Bad, Route, target},
    prompt::{Failure, expand},
};

/// Where a row ends when the limit stops the run.
pub(super) const EXHAUSTED: &str = "@exhausted";

/// An outcome together with the edge it takes and where that leads: nothing left that could fail.
pub(super) struct Way<'f> {
    pub(super) outcome: Outcome,
    pub(super) edge: &'f Edge<StepId>,
    pub(super) route: Route,
}

/// The way that an outcome takes from a step.
///
/// # Errors
/// When the answer selects or names no step that it may.
pub(super) fn way<'f>(
    decider: &Decider<'f>,
    step: &'f Step<StepId>,
    outcome: Outcome,
    output: Option<&Value>,
    handed: &BTreeMap<Str, Value>,
) -> Result<Way<'f>, Bad> {
    let edge = step.edges.iter().find(|edge| edge.on == outcome && is_open(decider, edge));
    let Some(edge) = edge else {
        return Err(Bad { absent: false, why: format!("`{outcome}` leads nowhere from `{}`", step.name) });
    };
    let from = decider.run.visit.as_ref().map_or(&step.name, |visit| &visit.step);
    let route = target(decider.flow, &decider.run, from, &edge.to, output, handed)?;
    Ok(Way { outcome, edge, route })
}

fn is_open(decider: &Decider<'_>, edge: &Edge<StepId>) -> bool {
    edge.bound.is_none_or(|bound| count(decider, bound.counter) < bound.max)
}

fn count(decider: &Decider<'_>, counter: cuegate_flow::CounterId) -> u32 {
    decider.run.counters.get(&decider.flow.counter(counter).name).copied().unwrap_or(0)
}

/// Goes the way: counts, closes the row when the visit is over, enters what is next.
pub(super) fn go(
    decider: &mut Decider<'_>,
    step: &Step<StepId>,
    way: &Way<'_>,
    reason: Option<String>,
    fallback: bool,
    failure: Option<(&str, &Failure)>,
) {
    decider.emit(Event::Decided {
        step: step.name.clone(),
        outcome: way.outcome.to_string().into(),
        reason,
        fallback,
        way: way.edge.label.clone(),
    });
    let edge = way.edge;
    if let Some(bound) = edge.bound {
        let counter = decider.flow.counter(bound.counter).name.clone();
        let value = count(decider, bound.counter) + 1;
        decider.emit(Event::CounterSet { counter, value });
    }
    for counter in &edge.resets {
        if count(decider, *counter) > 0 {
            let counter = decider.flow.counter(*counter).name.clone();
            decider.emit(Event::CounterSet { counter, value: 0 });
        }
    }
    match &way.route {
        Route::End(ending) => end(decider, step, ending),
        Route::Step(next) => on(decider, step, edge, *next, failure),
    }
}

fn end(decider: &mut Decider<'_>, step: &Step<StepId>, ending: &Ending) {
    let (state, reason) = match ending {
        Ending::Completed => {
            (EndState::Completed, format!("`{}` completed the flow", visited(decider, step)))
        }
        Ending::Aborted => (EndState::Aborted, format!("`{}` gave up", visited(decider, step))),
        Ending::Failed(reason) => (EndState::Failed, reason.to_string()),
    };
    // A failed validator that leads to a good end is one that the definition passes over.
    if state == EndState::Completed && matches!(step.act, Act::Exec { .. }) && last_command_failed(decider) {
        decider.emit(Event::ValidationSkipped { step: step.name.clone() });
    }
    decider.end(state, reason, None);
}

fn visited(decider: &Decider<'_>, step: &Step<StepId>) -> Str {
    decider.run.visit.as_ref().map_or_else(|| step.name.clone(), |visit| visit.step.clone())
}

fn last_command_failed(decider: &Decider<'_>) -> bool {
    decider
        .decision
        .events
        .iter()
        .rev()
        .find_map(|event| match event {
            Event::CommandFinished { passed, .. } => Some(!passed),
            _ => None,
        })
        .unwrap_or(false)
}

/// On to a step.
fn on(
    decider: &mut Decider<'_>,
    step: &Step<StepId>,
    edge: &Edge<StepId>,
    next: StepId,
    failure: Option<(&str, &Failure)>,
) {
    let mut next = next;
    if edge.hands_off {
        let origin = visited(decider, step);
        decider.emit(Event::OriginSet { step: decider.flow.step(next).name.clone(), origin });
    }
    // A step that does not count belongs to the visit that led to it: the row stays open.
    if !decider.flow.step(next).counts {
        leave_uncounted(decider, step, None);
        enter::enter(decider, next, None, None);
        return;
    }
    if let Some((judge, monitor, rounds)) = fired(decider, step, next) {
        decider.emit(Event::MonitorFired { monitor, rounds });
        next = judge;
        if !decider.flow.step(next).counts {
            leave_uncounted(decider, step, None);
            enter::enter(decider, next, None, None);
            return;
        }
    }
    let of = visited(decider, step);
    if let Verdict::Iterations(max) = decider.flow.verdict
        && decider.run.finished + 1 >= max
    {
        unvalidated_end(decider, max);
        return;
    }
    // Whether the limit allows another iteration is known here, so that the row ends where the run does.
    let name = if decider.run.iterations >= decider.run.iterations_max {
        EXHAUSTED.into()
    } else {
        decider.flow.step(next).name.clone()
    };
    let again = decider.run.visit.as_ref().filter(|_| edge.again).map(|visit| visit.attempt + 1);
    leave_uncounted(decider, step, Some(&name));
    end_visit(decider, &name);
    let remedy = edge.remedy.as_ref().map(|template| {
        let (validator, values) = failure.unzip();
        // Counted facts in the prompt are those of the visit that is about to begin.
        let mut run = decider.run.clone();
        run.iterations += 1;
        let prompt = expand(&run, decider.flow.step(next), template, values);
        Remedy { of, validator: validator.unwrap_or_default().into(), prompt }
    });
    enter::enter(decider, next, remedy, again);
}

/// The run ends by count: whatever validators there are did not run.
fn unvalidated_end(decider: &mut Decider<'_>, max: u32) {
    let guarded = decider.flow.steps.iter().find(|step| matches!(step.act, Act::Exec { .. }));
    if let Some(step) = guarded {
        decider.emit(Event::ValidationSkipped { step: step.name.clone() });
    }
    let plural = if max == 1 { "" } else { "s" };
    decider.end(EndState::Completed, format!("{max} iteration{plural} done"), None);
}

/// The row of a step that does not count, when it asked somebody.
fn leave_uncounted(decider: &mut Decider<'_>, step: &Step<StepId>, target: Option<&Str>) {
    if step.counts {
        return;
    }
    let outcome = last_decided(decider, &step.name);
    let end = RowEnd { outcome, target: target.cloned(), overridden_by: None };
    decider.emit(Event::StepLeft { step: step.name.clone(), end });
}

fn last_decided(decider: &Decider<'_>, name: &str) -> Option<Str> {
    decider.decision.events.iter().rev().find_map(|event| match event {
        Event::Decided { step, outcome, .. } if **step == *name => Some(outcome.clone()),
        _ => None,
    })
}

fn end_visit(decider: &mut Decider<'_>, target: &Str) {
    let Some(visit) = decider.run.visit.clone() else { return };
    let end = RowEnd { outcome: visit.outcome, target: Some(target.clone()), overridden_by: visit.monitor };
    decider.emit(Event::VisitEnded {
        step: visit.step,
        visit: visit.visit,
        attempt: visit.attempt,
        end,
        changed_files: visit.changed.into_iter().collect(),
    });
}

/// Ends whatever rows are open, with the run.
pub(super) fn close_rows(decider: &mut Decider<'_>, target: &Str) {
    if let Some(step) = decider.here() {
        leave_uncounted(decider, step, Some(target));
    }
    end_visit(decider, target);
}

/// The monitor that acts when control goes from this visit to `next`, in the order of definition.
fn fired(decider: &Decider<'_>, step: &Step<StepId>, next: StepId) -> Option<(StepId, Str, u32)> {
    // A monitor's own judge does not set off monitors.
    let from = decider.flow.find(&visited(decider, step))?;
    if !step.counts && decider.run.visit.as_ref().is_some_and(|visit| visit.monitor.is_some()) {
        return None;
    }
    decider.flow.monitors.iter().find_map(|monitor| {
        let rounds = rounds(decider, &monitor.cycle, from);
        (rounds >= monitor.threshold && monitor.cycle.first() == Some(&next))
            .then(|| (monitor.judge, monitor.name.clone(), rounds))
    })
}

/// How many whole rounds of a cycle the history ends with, the visit that ends now included.
fn rounds(decider: &Decider<'_>, cycle: &[StepId], from: StepId) -> u32 {
    let names: Vec<&Str> = cycle.iter().map(|id| &decider.flow.step(*id).name).collect();
    let last = &decider.flow.step(from).name;
    let mut walked = decider.run.history.iter().chain(std::iter::once(last)).rev();
    let mut rounds = 0;
    loop {
        for name in names.iter().rev() {
            if walked.next() != Some(*name) {
                return rounds;
            }
        }
        rounds += 1;
    }
}
