//! Steps that Cuegate does itself: they read, act, and then decide by what is known.

use cuegate_flow::model::{Act, Gate, Outcome, Step, StepId, SystemWork};
use serde_json::{Value, json};

use super::{
    Decider, answered,
    effects::{FAULT_WAITS_MS, limit_wait_ms},
    exit_step::{self, StepResult},
};
use crate::{
    command::CommandId,
    effect::{Effect, EffectFinished, EffectState},
    event::Event,
    event_types::PromptPart,
    prompt::render_template,
    run::Work,
    system::{
        EffectValues, ReadLimit, ReadResult, ReadsDone, ReadsRequested, StepEffect, StepEffectKind,
        StepEffectsRequested,
    },
};

/// Begins an entered step. One that only decides, between two others, does so at once.
pub(super) fn begin_system_work(decider: &mut Decider<'_>, step: &Step<StepId>, work: &SystemWork) {
    if work.is_empty() && !step.counts {
        decide_outcome(decider, step);
        return;
    }
    let delay_ms = i64::try_from(work.delay_ms).unwrap_or(i64::MAX);
    let not_before_ms = (delay_ms > 0).then(|| decider.now.saturating_add(delay_ms));
    let step = step.name.clone();
    decider.emit(Event::ReadsRequested(ReadsRequested { step, not_before_ms, ..ReadsRequested::default() }));
}

/// What a step reads was read, or could not be.
pub(super) fn receive_reads(decider: &mut Decider<'_>, id: CommandId, result: ReadResult) {
    let Some(step) = decider.here() else { return };
    let Some(Work::Reading(reads)) = decider.run.progress.node.as_ref().map(|node| &node.work) else {
        return;
    };
    if id != (CommandId::Step { seq: reads.seq }) {
        return;
    }
    let (faults, limits) = (reads.faults, reads.limits);
    match result {
        ReadResult::Done { values, duration_ms } => {
            let values = values.unwrap_or_else(|| json!({}));
            let kept = decider.keep(&values.to_string());
            let name = step.name.clone();
            decider.emit(Event::ReadsDone(ReadsDone { step: name, values: kept, duration_ms }));
            answered::hand_on(decider, step, "context.", &json!({ "context": values }));
            request_step_effects(decider, step);
        }
        ReadResult::Failed { why, may_pass, limit } => {
            let wait_ms = match limit {
                Some(ReadLimit { after_ms }) => {
                    limit_wait_ms(after_ms, limits, decider.run.started().wait_max_ms)
                }
                None => FAULT_WAITS_MS.get(faults as usize).copied().filter(|_| may_pass),
            };
            let Some(wait_ms) = wait_ms else {
                decider.fail(format!("`{}` could not read what it needs: {why}", step.name));
                return;
            };
            let until = decider.now.saturating_add(i64::try_from(wait_ms).unwrap_or(i64::MAX));
            let step = step.name.clone();
            let is_limit = limit.is_some();
            let request = ReadsRequested {
                step,
                not_before_ms: Some(until),
                faults: faults + u32::from(!is_limit),
                limits: limits + u32::from(is_limit),
                why: Some(why),
            };
            decider.emit(Event::ReadsRequested(request));
        }
    }
}

fn request_step_effects(decider: &mut Decider<'_>, step: &Step<StepId>) {
    let Act::System(work) = &step.act else { return };
    if work.effects.is_empty() {
        decide_outcome(decider, step);
        return;
    }
    let mut effects = Vec::new();
    for effect in &work.effects {
        let unfenced = |part: PromptPart| match part {
            PromptPart::Blob { blob, .. } => PromptPart::Blob { blob, fence: None },
            text => text,
        };
        let values: EffectValues = effect
            .values
            .iter()
            .map(|(name, text)| {
                let parts = render_template(&decider.run, step, text, None);
                (name.clone(), parts.into_iter().map(unfenced).collect())
            })
            .collect();
        let values = serde_json::to_string(&values).expect("texts by name can be written as JSON");
        let (name, kind) = (effect.name.clone(), StepEffectKind::from(effect.what));
        effects.push(StepEffect { name, kind, values: decider.keep(&values) });
    }
    let step = step.name.clone();
    decider.emit(Event::StepEffectsRequested(StepEffectsRequested { step, effects }));
}

/// An effect of the step was done, or is not tried again: its result is handed on. After the last one the step decides.
pub(super) fn finish_step_effect(
    decider: &mut Decider<'_>,
    effect: &Effect,
    finished: &EffectFinished,
    conflicts: String,
) {
    let Some(step) = decider.here().filter(|step| step.name == effect.step) else { return };
    let EffectFinished { state, said, url, conflicted, number, .. } = finished;
    let is_done = *state == EffectState::Done && !conflicted;
    let failed = *state != EffectState::Done;
    let result = json!({
        "success": is_done,
        "failed": failed,
        "conflicted": conflicted,
        "error": (!is_done).then_some(said),
        "url": url,
        "number": number,
        "conflicts": conflicts,
    });
    let of = format!("effect.{}.", effect.action);
    let mut results = serde_json::Map::new();
    results.insert(effect.action.to_string(), result);
    answered::hand_on(decider, step, &of, &json!({ "effect": results }));
    let is_last = !decider.run.effects.pending.iter().any(|other| other.step == step.name);
    if is_last {
        decide_outcome(decider, step);
    }
}

/// Leaves the step by the first case that holds.
fn decide_outcome(decider: &mut Decider<'_>, step: &Step<StepId>) {
    let outcome = match &step.gate {
        Gate::Cases(cases) => {
            let value = |step: &str, key: &str| -> Option<Value> { decider.run.value_of_handoff(step, key) };
            let mut holding = cases.iter().map(|case| case.when.holds(&value).map(|holds| (holds, case)));
            let found = holding.find(|held| !matches!(held, Ok((false, _))));
            match found {
                Some(Ok((_, case))) => case.outcome.clone(),
                Some(Err(why)) => {
                    return decider.fail(format!("the rules of `{}` cannot be decided: {why}", step.name));
                }
                None => return decider.fail(format!("no rule of `{}` holds", step.name)),
            }
        }
        Gate::Always(outcome) => outcome.clone(),
        Gate::Readers(_) | Gate::Join { .. } | Gate::Exit => Outcome::None,
    };
    match exit_step::find_transition(decider, step, outcome, None, &Default::default()) {
        Ok(way) => exit_step::take_transition(decider, step, &way, StepResult::default()),
        Err(bad) => decider.fail(bad.why),
    }
}
