//! Effects: requested at the start and the end of a run, tried again, done.

use cuegate_flow::{Str, model::IssueClosure};
use serde_json::Value;

use super::{Decider, system};
use crate::{
    command::CommandId,
    completion::{EffectResult, TreeChange},
    effect::{
        BLOCKS_MAX, Delay, Effect, EffectDelayed, EffectFinished, EffectKind, EffectState, EffectsRequested,
        Phase, RunEnd, closure_of,
    },
    event::Event,
    event_types::{EndState, WaitKind},
    run::State,
};

/// The time limit of an effect program, in milliseconds.
pub(crate) const EFFECT_TIMEOUT_MS: u64 = 10 * 60 * 1000;

/// The waits before an effect that failed in a way that may pass is tried again, in milliseconds.
pub(super) const FAULT_WAITS_MS: [u64; 4] = [1_000, 5_000, 20_000, 60_000];
/// The waits before another look for an effect that may have been sent. Lists of GitHub are not up to date at once.
const LOOK_WAITS_MS: [u64; 2] = [2_000, 10_000];
/// The shortest wait for a rate limit, as GitHub asks for it.
const LIMIT_WAIT_MS: u64 = 60_000;
/// The shortest wait for a limit.
const LIMIT_WAIT_MIN_MS: u64 = 1_000;

/// How often a rate limit is waited for.
const LIMITS_MAX: u32 = 10;

/// An effect was tried.
pub(super) fn receive_effect_result(
    decider: &mut Decider<'_>,
    (id, attempt): (CommandId, u32),
    result: EffectResult,
    duration_ms: u64,
    seen: Option<TreeChange>,
) {
    let of = |effect: &&Effect| effect.id == id && effect.attempt == attempt;
    let Some(effect) = decider.run.effects.pending.iter().find(of).cloned() else { return };
    let (mut stdout, mut stderr, mut address) = (None, None, None);
    let (mut conflicted, mut created, mut conflicts) = (false, None, String::new());
    let (state, said) = match result {
        EffectResult::Ran(exec) => {
            stdout = Some(decider.keep(&exec.stdout));
            stderr = Some(decider.keep(&exec.stderr));
            let state = if exec.exit.code() == Some(0) { EffectState::Done } else { EffectState::Failed };
            (state, exec.exit.describe(EFFECT_TIMEOUT_MS))
        }
        EffectResult::CutOff { stdout: out, stderr: err } => {
            stdout = Some(decider.keep(&out));
            stderr = Some(decider.keep(&err));
            (EffectState::Unknown, "it was cut off, and was not started again".to_owned())
        }
        EffectResult::Done { said, url } => {
            address = url;
            (EffectState::Done, said)
        }
        EffectResult::Created { said, url, number } => {
            (address, created) = (url, Some(number));
            (EffectState::Done, said)
        }
        EffectResult::Conflicted { said, files } => {
            conflicted = true;
            stdout = Some(decider.keep(&files));
            conflicts = files;
            (EffectState::Done, said)
        }
        EffectResult::Failed { said } => (EffectState::Failed, said),
        EffectResult::Later { delay, why, after_ms } => match wait_ms(decider, &effect, delay, after_ms) {
            Some(wait_ms) => {
                let until_ms = decider.now.saturating_add(i64::try_from(wait_ms).unwrap_or(i64::MAX));
                let action = effect.action.clone();
                decider.emit(Event::EffectDelayed(EffectDelayed {
                    effect: id,
                    action,
                    delay,
                    why,
                    until_ms,
                }));
                return;
            }
            None if delay == Delay::Look => (EffectState::Unknown, why),
            None => (EffectState::Failed, why),
        },
    };
    let (changed_files, tree) = seen.map(|seen| (seen.changed, Some(seen.tree))).unwrap_or_default();
    let finished = EffectFinished {
        effect: id,
        step: effect.step.clone(),
        action: effect.action.clone(),
        state,
        said: said.clone(),
        url: address,
        conflicted,
        number: created,
        stdout,
        stderr,
        duration_ms,
        changed_files,
        tree,
    };
    decider.emit(Event::EffectFinished(finished.clone()));
    if matches!(effect.kind, EffectKind::Step(_)) && decider.run.effects.ending.is_none() {
        system::finish_step_effect(decider, &effect, &finished, conflicts);
        return;
    }
    if let (true, Some(ending)) = (effect.kind.finalizes(), decider.run.effects.unfinalized.clone())
        && state != EffectState::Done
    {
        let reason = format!("the work is done, but the {} failed: {said}", effect.kind.word());
        decider.end_with(RunEnd { state: EndState::Failed, reason, hold: None, ..ending });
        return;
    }
    if let (Some(ending), true) = (decider.run.effects.ending.clone(), decider.run.effects.pending.is_empty())
    {
        let RunEnd { state, reason, validated, hold, stays } = ending;
        decider.emit(Event::Ended { state, reason, validated, hold, stays });
    }
}

/// How long to wait before an effect is tried again; `None` if it is not.
fn wait_ms(decider: &Decider<'_>, effect: &Effect, delay: Delay, after_ms: Option<u64>) -> Option<u64> {
    match delay {
        Delay::Fault => FAULT_WAITS_MS.get(effect.faults as usize).copied(),
        Delay::Look => LOOK_WAITS_MS.get(effect.looks as usize).copied(),
        Delay::Limit => limit_wait_ms(after_ms, effect.limits, decider.run.started().wait_max_ms),
    }
}

/// How long to wait before a request is repeated whose rate a server limits, in milliseconds; `None` if it is not.
/// `after_ms` is what the server asks for, `limits` how often it limited this request before, `wait_max_ms` the longest wait
/// that the user wants.
pub fn limit_wait_ms(after_ms: Option<u64>, limits: u32, wait_max_ms: u64) -> Option<u64> {
    // Without a time GitHub wants at least a minute.
    let wait_ms = after_ms.unwrap_or(LIMIT_WAIT_MS).max(LIMIT_WAIT_MIN_MS);
    (wait_ms <= wait_max_ms.max(LIMIT_WAIT_MS) && limits < LIMITS_MAX).then_some(wait_ms)
}

/// A person settled an effect that failed or whose result is unknown.
pub(super) fn settle_effect(decider: &mut Decider<'_>, id: CommandId, url: Option<String>) {
    let Some(effect) = decider.run.effects.unsettled.iter().find(|effect| effect.id == id).cloned() else {
        return;
    };
    decider.emit(match url {
        None => Event::EffectResent { effect: id, action: effect.action },
        Some(url) => Event::EffectFinished(EffectFinished {
            effect: id,
            step: effect.step,
            action: effect.action,
            state: EffectState::Done,
            said: "adopted by a person".to_owned(),
            url: Some(url),
            conflicted: false,
            number: None,
            stdout: None,
            stderr: None,
            duration_ms: 0,
            changed_files: Vec::new(),
            tree: None,
        }),
    });
}

/// Notes that an answer asks for less than the configured closure action.
pub(super) fn narrow_closure(decider: &mut Decider<'_>, step: &Str, output: Option<&Value>) {
    let Some(closure) = output.and_then(closure_of) else { return };
    if decider.flow.conduct.issue.is_some() && decider.run.effects.closure != Some(closure) {
        decider.emit(Event::ClosureNarrowed { step: step.clone(), closure });
    }
}

/// The effects of the definition when a run ends like this.
pub(super) fn of_end(decider: &Decider<'_>, state: EndState) -> (Phase, Vec<EffectKind>) {
    let started = decider.run.started();
    if state == EndState::Cancelled {
        return (Phase::Blocked, labels_to_take_back(decider));
    }
    if state != EndState::Completed {
        return (Phase::Blocked, labels_of(decider, Phase::Blocked));
    }
    let mut effects = Vec::new();
    if let Some(finalize) = started.finalize.as_ref().filter(|_| started.place.owned) {
        effects.extend(finalize.effects());
    }
    if let Some(issue) = decider.flow.conduct.issue.as_ref().filter(|_| has_issue(decider)) {
        let IssueClosure { labels, closes } = match decider.run.effects.closure {
            Some(wanted) => issue.closure.narrowed(wanted),
            None => issue.closure,
        };
        let (add, remove) = (issue.add.clone(), issue.remove.clone());
        if labels && !(add.is_empty() && remove.is_empty()) {
            effects.push(EffectKind::Labels { add, remove });
        }
        if closes && !started.github.as_ref().is_some_and(|github| github.is_pull_request) {
            effects.push(EffectKind::Close);
        }
    }
    (Phase::Completed, effects)
}

/// Requests the labels that show whether the run works or is blocked.
pub(super) fn show_phase(decider: &mut Decider<'_>) {
    let phase = match &decider.run.state {
        State::Running if decider.run.effects.ending.is_none() => Phase::Working,
        State::Suspended(waiting) if waiting.kind != WaitKind::Interrupted => Phase::Blocked,
        _ => return,
    };
    let effects = labels_of(decider, phase);
    request_effects(decider, phase, effects);
}

/// Requests effects of the definition.
pub(super) fn request_effects(decider: &mut Decider<'_>, phase: Phase, effects: Vec<EffectKind>) {
    if effects.is_empty() {
        return;
    }
    let earlier = decider.decision.events.iter().map(|event| match event {
        Event::EffectsRequested(EffectsRequested { effects, .. }) => effects.len(),
        _ => 0,
    });
    let first = u16::try_from(BLOCKS_MAX + earlier.sum::<usize>()).unwrap_or(u16::MAX);
    decider.emit(Event::EffectsRequested(EffectsRequested { phase, first, effects }));
}

/// The labels to change when a run works, or is blocked.
fn labels_of(decider: &Decider<'_>, phase: Phase) -> Vec<EffectKind> {
    let Some(issue) = decider.flow.conduct.issue.as_ref().filter(|_| has_issue(decider)) else {
        return Vec::new();
    };
    let before = decider.run.effects.phase;
    let listed = |label: &Option<Str>| label.iter().cloned().collect::<Vec<Str>>();
    let (add, remove) = match (before, phase) {
        (None | Some(Phase::Completed), Phase::Working) => (listed(&issue.in_progress), Vec::new()),
        (Some(Phase::Blocked), Phase::Working) => (Vec::new(), listed(&issue.blocked)),
        (before, Phase::Blocked) if before != Some(Phase::Blocked) => (listed(&issue.blocked), Vec::new()),
        _ => return Vec::new(),
    };
    match add.is_empty() && remove.is_empty() {
        true => Vec::new(),
        false => vec![EffectKind::Labels { add, remove }],
    }
}

/// The labels that show a run which nobody works on any more.
fn labels_to_take_back(decider: &Decider<'_>) -> Vec<EffectKind> {
    let Some(issue) = decider.flow.conduct.issue.as_ref().filter(|_| has_issue(decider)) else {
        return Vec::new();
    };
    let labels = match decider.run.effects.phase {
        Some(Phase::Working) => vec![&issue.in_progress],
        Some(Phase::Blocked) => vec![&issue.in_progress, &issue.blocked],
        Some(Phase::Completed) | None => Vec::new(),
    };
    let remove: Vec<Str> = labels.into_iter().flatten().cloned().collect();
    match remove.is_empty() {
        true => Vec::new(),
        false => vec![EffectKind::Labels { add: Vec::new(), remove }],
    }
}

fn has_issue(decider: &Decider<'_>) -> bool {
    decider.run.started().github.as_ref().is_some_and(|github| github.issue.is_some())
}
