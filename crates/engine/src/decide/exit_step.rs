//! Leaving a step: its outcome, the edge it takes, and where that leads.

use std::collections::BTreeMap;

use cuegate_flow::{
    Str,
    model::{Edge, Ending, Flow, Outcome, Step, StepId, Target},
};
use serde_json::Value;

use super::{Decider, completion_rule, enter};
use crate::{
    answers::gate::{InvalidAnswer, clip_to_line},
    event::Event,
    event_types::{EndState, PendingEntry, Remedy, RowEnd},
    prompt::{Failure, render_template},
    route::{Route, resolve_target},
};

/// Where a row ends when the limit stops the run.
pub(super) const EXHAUSTED: &str = "@exhausted";
/// Where a row ends when the run fails.
pub(super) const FAILED: &str = "@failed";

/// What is known about a finished step besides its outcome.
#[derive(Default)]
pub(super) struct StepResult<'a> {
    /// The agent's own reason.
    pub(super) reason: Option<String>,
    /// Whether the outcome is the definition's fallback.
    pub(super) fallback: bool,
    /// The validator that failed, with the values extracted from its output.
    pub(super) failure: Option<(&'a str, &'a Failure)>,
}

impl StepResult<'_> {
    /// The result of a step whose agent gave a reason.
    pub(super) fn because(reason: Option<String>) -> Self {
        StepResult { reason, ..StepResult::default() }
    }
}

/// An outcome together with its edge and the target of that, so that nothing is left that could fail.
pub(super) struct ResolvedTransition<'f> {
    pub(super) outcome: Outcome,
    pub(super) edge: &'f Edge<StepId>,
    pub(super) route: Route,
}

/// The way that an outcome takes from a step.
///
/// # Errors
/// When the answer selects or names no step that it may.
pub(super) fn find_transition<'f>(
    decider: &Decider<'f>,
    step: &'f Step<StepId>,
    outcome: Outcome,
    output: Option<&Value>,
    handed: &BTreeMap<Str, Value>,
) -> Result<ResolvedTransition<'f>, InvalidAnswer> {
    let edge = step
        .edges
        .iter()
        .find(|edge| edge.on == outcome && edge.is_open(|counter| value_of_counter(decider, counter)));
    let Some(edge) = edge else {
        return Err(InvalidAnswer {
            absent: false,
            why: format!("`{outcome}` leads nowhere from `{}`", step.name),
        });
    };
    let from = step_of_open_visit(decider, step);
    let route = resolve_target(decider.flow, &decider.run, &from, &edge.to, output, handed)?;
    Ok(ResolvedTransition { outcome, edge, route })
}

fn value_of_counter(decider: &Decider<'_>, counter: cuegate_flow::model::CounterId) -> u32 {
    decider.run.progress.counters.get(&decider.flow.counter(counter).name).copied().unwrap_or(0)
}

/// Goes the way: counts, closes the row when the visit is over, enters what is next.
pub(super) fn take_transition(
    decider: &mut Decider<'_>,
    step: &Step<StepId>,
    way: &ResolvedTransition<'_>,
    result: StepResult<'_>,
) {
    decider.emit(Event::Decided {
        step: step.name.clone(),
        outcome: way.outcome.to_string().into(),
        reason: result.reason.clone(),
        fallback: result.fallback,
        way: way.edge.label.clone(),
    });
    let edge = way.edge;
    if let Some(bound) = edge.bound {
        let counter = decider.flow.counter(bound.counter).name.clone();
        let value = value_of_counter(decider, bound.counter) + 1;
        decider.emit(Event::CounterSet { counter, value });
    }
    for counter in &edge.resets {
        if value_of_counter(decider, *counter) > 0 {
            let counter = decider.flow.counter(*counter).name.clone();
            decider.emit(Event::CounterSet { counter, value: 0 });
        }
    }
    match &way.route {
        Route::End(ending) => end_run(decider, step, ending, &result),
        Route::Step(next) => continue_to_step(decider, step, edge, *next, &result),
    }
}

fn end_run(decider: &mut Decider<'_>, step: &Step<StepId>, ending: &Ending, result: &StepResult<'_>) {
    let (state, reason) = match ending {
        Ending::Completed => {
            (EndState::Completed, format!("`{}` completed the workflow", step_of_open_visit(decider, step)))
        }
        Ending::Aborted => {
            let why =
                result.reason.as_deref().map(|why| format!(": {}", clip_to_line(why))).unwrap_or_default();
            // A monitor's judge decides over the heads of those that it watches.
            let judged = !step.counts
                && decider.run.progress.visit.as_ref().is_some_and(|visit| visit.monitor.is_some());
            let who = if judged { step.name.clone() } else { step_of_open_visit(decider, step) };
            (EndState::Aborted, format!("`{who}` gave up{why}"))
        }
        Ending::Failed(reason) => (EndState::Failed, reason.to_string()),
    };
    if state == EndState::Completed {
        if let Some((guard, validator)) = unpassed_validator(decider).filter(|_| result.failure.is_none()) {
            let who = step_of_open_visit(decider, step);
            decider.fail(format!(
                "validator `{validator}` of `{guard}` has not passed, so `{who}` cannot complete the run"
            ));
            return;
        }
        // A failed validator that leads to a good end is one that the definition skips.
        let failed = result.failure.map(|_| &step.name);
        let skipped = failed.or(decider.run.checks.failing.keys().map(|(step, _)| step).next());
        let skipped = skipped.map(|step| (step.clone(), true));
        decider.complete(reason, skipped);
    } else {
        decider.end(state, reason, None);
    }
}

/// A validator that failed and was to be mended, with its step: no other step completes the run for it.
fn unpassed_validator(decider: &Decider<'_>) -> Option<(Str, Str)> {
    let is_mended = |step: &Str| {
        let step = decider.flow.find(step).map(|id| decider.flow.step(id));
        step.is_some_and(|step| step.edges.iter().any(|edge| edge.remedy.is_some()))
    };
    let mut failing = decider.run.checks.failing.iter();
    let ((step, _), validator) = failing.find(|((step, _), _)| is_mended(step))?;
    Some((step.clone(), validator.clone()))
}

/// The step whose visit is open. A retry can enter validators without a visit; they belong to the step that leads to
/// them.
fn step_of_open_visit(decider: &Decider<'_>, step: &Step<StepId>) -> Str {
    match &decider.run.progress.visit {
        Some(visit) => visit.step.clone(),
        None => counted_before(decider.flow, step).unwrap_or(step).name.clone(),
    }
}

/// The step itself if it counts, else the first counted step that leads to it.
fn counted_before<'f>(flow: &'f Flow, step: &'f Step<StepId>) -> Option<&'f Step<StepId>> {
    let mut names = vec![&step.name];
    let mut at = step;
    while !at.counts {
        let leads = |from: &&Step<StepId>| {
            let to =
                |edge: &Edge<StepId>| matches!(&edge.to, Target::Step(to) if flow.step(*to).name == at.name);
            !names.contains(&&from.name) && from.edges.iter().any(to)
        };
        at = flow.steps.iter().find(leads)?;
        names.push(&at.name);
    }
    Some(at)
}

/// On to a step.
fn continue_to_step(
    decider: &mut Decider<'_>,
    step: &Step<StepId>,
    edge: &Edge<StepId>,
    next: StepId,
    result: &StepResult<'_>,
) {
    let mut next = next;
    if edge.hands_off {
        let origin = step_of_open_visit(decider, step);
        decider.emit(Event::OriginSet { step: decider.flow.step(next).name.clone(), origin });
    }
    // A step that does not count belongs to the visit that led to it: the row stays open.
    if !decider.flow.step(next).counts {
        leave_uncounted(decider, step, None);
        enter::enter_step(decider, next, None, None);
        return;
    }
    // Who mends goes on with the same visit's work: no round ends there.
    if edge.remedy.is_none()
        && let Some((judge, monitor, rounds)) = find_due_monitor(decider, step, next)
    {
        decider.emit(Event::MonitorFired { monitor, rounds });
        next = judge;
        if !decider.flow.step(next).counts {
            leave_uncounted(decider, step, None);
            enter::enter_step(decider, next, None, None);
            return;
        }
    }
    let next = build_pending_entry(decider, step, edge, next, result.failure);
    completion_rule::visit_done(decider, step, next);
}

/// The step that is next, with what it is asked there.
fn build_pending_entry(
    decider: &Decider<'_>,
    step: &Step<StepId>,
    edge: &Edge<StepId>,
    next: StepId,
    failure: Option<(&str, &Failure)>,
) -> PendingEntry {
    let next = decider.flow.step(next);
    let remedy = edge.remedy.as_ref().map(|template| {
        let (validator, values) = failure.unzip();
        // Counted facts in the prompt are those of the visit that is about to begin.
        let mut run = decider.run.clone();
        if let Some(ended) = visit_end(decider, &next.name) {
            run.apply(&ended);
        }
        run.progress.iterations += 1;
        let of = step_of_open_visit(decider, step);
        if of == next.name {
            run.context.previous.clone_from(&run.context.before);
        }
        let prompt = render_template(&run, next, template, values);
        Remedy { of, validator: validator.unwrap_or_default().into(), prompt }
    });
    let again = decider.run.progress.visit.as_ref().filter(|_| edge.again).map(|visit| visit.attempt + 1);
    PendingEntry { step: next.name.clone(), remedy, again }
}

/// Ends the visit and begins what is next.
pub(super) fn enter_next_step(decider: &mut Decider<'_>, step: &Step<StepId>, next: PendingEntry) {
    let same = decider.run.progress.count_same_answers();
    if decider.run.started().same_answers_max.is_some_and(|most| same >= most) {
        let who = step_of_open_visit(decider, step);
        decider.fail(format!("`{who}` gave the same answer {same} times in a row, and no file changed"));
        return;
    }
    let tree = decider.run.tree.as_ref();
    let same = tree.map_or(0, |tree| decider.run.progress.count_same_files(tree));
    if decider.run.started().same_files_max.is_some_and(|most| same >= most) {
        let who = step_of_open_visit(decider, step);
        let reason = format!(
            "the files were the same after {same} visits, the last of `{who}`: the run goes in a circle"
        );
        // Whoever lets it go on knows of the circle, and says what is different.
        decider.end(EndState::Exhausted, reason, Some(next));
        return;
    }
    // Whether the limit allows another iteration is known here, so that the row ends where the run does.
    let exhausted = decider.run.progress.iterations >= decider.run.progress.iterations_max;
    let name = match exhausted {
        true if enter::find_failing_validator(decider).is_some() => FAILED.into(),
        true => EXHAUSTED.into(),
        false => next.step.clone(),
    };
    leave_uncounted(decider, step, Some(&name));
    end_visit(decider, &name);
    if let Some(id) = decider.flow.find(&next.step) {
        enter::enter_step(decider, id, next.remedy, next.again);
    }
}

/// The row of a step that does not count, when it asked somebody.
fn leave_uncounted(decider: &mut Decider<'_>, step: &Step<StepId>, target: Option<&Str>) {
    if step.counts {
        return;
    }
    let node = decider.run.progress.node.as_ref().filter(|node| node.step == step.name);
    let outcome = node.and_then(|node| node.outcome.clone());
    let end = RowEnd { outcome, target: target.cloned(), overridden_by: None };
    decider.emit(Event::StepLeft { step: step.name.clone(), end });
}

fn end_visit(decider: &mut Decider<'_>, target: &Str) {
    if let Some(ended) = visit_end(decider, target) {
        decider.emit(ended);
    }
}

/// The end of the visit that is open.
fn visit_end(decider: &Decider<'_>, target: &Str) -> Option<Event> {
    let visit = decider.run.progress.visit.clone()?;
    let end = RowEnd { outcome: visit.outcome, target: Some(target.clone()), overridden_by: visit.monitor };
    Some(Event::VisitEnded {
        step: visit.step,
        visit: visit.visit,
        attempt: visit.attempt,
        end,
        changed_files: visit.changed.into_iter().collect(),
    })
}

/// Ends whatever rows are open, with the run.
pub(super) fn close_rows(decider: &mut Decider<'_>, target: &Str) {
    if let Some(step) = decider.here() {
        leave_uncounted(decider, step, Some(target));
    }
    end_visit(decider, target);
}

/// The monitor that acts when control goes from this visit to `next`, in the order of definition.
fn find_due_monitor(decider: &Decider<'_>, step: &Step<StepId>, next: StepId) -> Option<(StepId, Str, u32)> {
    // A monitor's own judge does not set off monitors.
    let from = decider.flow.find(&step_of_open_visit(decider, step))?;
    if !step.counts && decider.run.progress.visit.as_ref().is_some_and(|visit| visit.monitor.is_some()) {
        return None;
    }
    let visits = decider.run.progress.history.iter().filter_map(|step| decider.flow.find(step)).chain([from]);
    let visits: Vec<StepId> = visits.collect();
    decider.flow.monitors.iter().find_map(|monitor| {
        let stages = visits.iter().fold(0, |stages, step| monitor.advance(stages, step));
        let rounds = stages / monitor.cycle.len().max(1) as u32;
        (monitor.is_due(stages) && monitor.begins_with(&next))
            .then(|| (monitor.judge, monitor.name.clone(), rounds))
    })
}
