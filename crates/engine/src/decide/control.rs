//! Interrupted, cancelled, resumed.

use cuegate_flow::{Str, model::Act};

use super::{Decider, effects, enter, reserve_budget};
use crate::{
    command::CommandId,
    completion::{ResumeSettings, Retry, TreeChange},
    event::Event,
    event_types::{EndState, RunForked, RunResumed, SuspensionCause, WaitKind},
    run::{PendingAsk, State, Work},
};

pub(super) fn interrupt_run(decider: &mut Decider<'_>, seen: Option<TreeChange>) {
    if decider.run.state == State::Running {
        left_behind(decider, seen);
        let waiting =
            SuspensionCause { kind: WaitKind::Interrupted, detail: "interrupted".to_owned(), until_ms: None };
        decider.emit(Event::Suspended { waiting });
    }
}

pub(super) fn cancel_run(decider: &mut Decider<'_>, seen: Option<TreeChange>) {
    let open = match &decider.run.state {
        State::Running | State::Suspended(_) => true,
        State::Ended { state, .. } => *state == EndState::Exhausted,
        State::New => false,
    };
    if open {
        if let Some(TreeChange { tree, changed, .. }) = seen {
            decider.emit(Event::TreeSeen { changed_files: changed, tree });
        }
        decider.end(EndState::Cancelled, "cancelled".to_owned(), None);
    }
}

pub(super) fn fork_run(decider: &mut Decider<'_>, fork: RunForked) {
    if decider.run.seq == fork.records {
        decider.emit(Event::Forked(Box::new(fork)));
    }
}

/// Continues a run that failed or was aborted, at a step of it.
fn retry_run(decider: &mut Decider<'_>, mut resume: ResumeSettings, retry: Retry) {
    let ended =
        matches!(&decider.run.state, State::Ended { state: EndState::Failed | EndState::Aborted, .. });
    if let (None, Some(ending), true) = (&retry.from, decider.run.effects.unfinalized.clone(), ended) {
        resume.retry = Some(Retry { from: Some("finalize".into()), note: retry.note });
        goes_on(decider, resume);
        // The run works again: what says that it is blocked is taken back.
        effects::show_phase(decider);
        decider.end_with(ending);
        return;
    }
    let from =
        retry.from.or_else(|| failing_validators(decider)).or_else(|| decider.run.progress.last_step.clone());
    let Some(id) = from.as_ref().and_then(|step| decider.flow.find(step)).filter(|_| ended) else { return };
    resume.retry = Some(Retry { from, note: retry.note });
    goes_on(decider, resume);
    enter::enter_step(decider, id, None, None);
}

/// The step whose validators ended the run. A retry runs them first: they cost nothing, and if the cause was fixed they
/// pass; if not, the agent is asked to fix it. Validators that failed earlier in the run are no place to go on from.
fn failing_validators(decider: &Decider<'_>) -> Option<Str> {
    let step = decider.run.checks.failed_at.as_ref()?;
    let found = decider.flow.find(step).map(|id| &decider.flow.step(id).act);
    matches!(found, Some(Act::Exec { .. })).then(|| step.clone())
}

pub(super) fn resume_run(decider: &mut Decider<'_>, mut resume: ResumeSettings) {
    if let Some(retry) = resume.retry.take() {
        retry_run(decider, resume, retry);
        return;
    }
    let iterations_max = resume.iterations_max.unwrap_or(decider.run.progress.iterations_max);
    let hold = match &decider.run.state {
        State::Running => None,
        // Only a person's answer lets this one go on; what it goes on with is kept until then.
        State::Suspended(waiting) if waiting.kind == WaitKind::Person => {
            let waiting = waiting.clone();
            let asked = ResumeSettings { found: None, ..resume };
            if asked != ResumeSettings::default() {
                goes_on(decider, asked);
                decider.emit(Event::Suspended { waiting });
            }
            return;
        }
        State::Suspended(_) => None,
        // It stopped for lack of budget, and goes on where it stands.
        State::Ended { state: EndState::Exhausted, hold: None, .. }
            if decider.run.progress.node.is_some()
                && decider.run.spending.ledger.lacks(resume.budget.unwrap_or_default()).is_none() =>
        {
            None
        }
        State::Ended { state: EndState::Exhausted, hold: Some(hold), .. }
            if iterations_max > decider.run.progress.iterations =>
        {
            Some(hold.clone())
        }
        State::Ended { .. } | State::New => return,
    };
    let waited = match &decider.run.state {
        State::Suspended(waiting) => Some(waiting.kind),
        _ => None,
    };
    let stale = stale_asks(decider, waited);
    // After a crash, and after an interruption that had no time to look, what is found is what the cut ask left.
    let looked = decider.run.looked.is_some_and(|looked| looked + 1 == decider.run.seq);
    let is_cut = decider.run.state == State::Running || (waited == Some(WaitKind::Interrupted) && !looked);
    if decider.run.started().place.owned {
        // What a person did in the worktree since; the rest of it was put back.
        if let Some(TreeChange { tree, changed, .. }) = resume.kept.clone() {
            decider.emit(Event::TreeSeen { changed_files: changed, tree });
        }
    } else if is_cut {
        left_behind(decider, resume.found.clone());
    }
    goes_on(decider, resume);
    if let Some(hold) = hold {
        if let Some(id) = decider.flow.find(&hold.step) {
            enter::enter_step(decider, id, hold.remedy, hold.again);
        }
        return;
    }
    for (step, member, asking) in stale {
        // At once, even if the provider's limit lasts: the user may have changed the account.
        decider.request_ask(asking.again(&step, member));
    }
}

/// What an ask that was cut off left in a person's own tree is kept and told, and is no fault of whoever works there
/// next. A tree that the run owns stays what the journal says, and is put back to that.
pub(super) fn left_behind(decider: &mut Decider<'_>, seen: Option<TreeChange>) {
    if let Some(TreeChange { tree, changed, .. }) = seen
        && !decider.run.started().place.owned
    {
        decider.emit(Event::TreeSeen { changed_files: changed, tree });
    }
}

fn goes_on(decider: &mut Decider<'_>, resume: ResumeSettings) {
    let run = &decider.run;
    let held = match &run.state {
        State::Ended { hold: Some(hold), .. } => Some(&hold.step),
        _ => None,
    };
    let retried = resume.retry.as_ref().and_then(|retry| retry.from.as_ref());
    let asks_max = retried.or(held).or(run.progress.node.as_ref().map(|node| &node.step)).and_then(|step| {
        let iterations_max = resume.iterations_max.unwrap_or(run.progress.iterations_max);
        let repairs_max = resume.repairs_max.unwrap_or(run.spending.repairs_max);
        reserve_budget::priced_anew(decider, step, iterations_max, repairs_max)
    });
    decider.emit(Event::Resumed(RunResumed {
        iterations_max: resume.iterations_max,
        repairs_max: resume.repairs_max,
        provider: resume.provider,
        script: resume.script,
        model: resume.model,
        agents: resume.agents,
        wait_max_ms: resume.wait_max_ms,
        notional: resume.notional,
        budget: resume.budget,
        unsandboxed: resume.unsandboxed,
        asks_max,
        found: resume.found.map(|seen| seen.tree),
        retry: resume.retry.as_ref().and_then(|retry| retry.from.clone()),
        note: resume.retry.and_then(|retry| retry.note),
        settings: resume.settings,
        new_sessions: resume.new_sessions,
        moved: resume.moved,
        definition: resume.definition,
    }));
}

/// The asks whose last try ended in a fault. Whatever it was, somebody had time to mend it, so they are put
/// anew; an ask that was only interrupted keeps its name, so that an answer that arrived meanwhile is adopted.
fn stale_asks(decider: &Decider<'_>, waited: Option<WaitKind>) -> Vec<(Str, Option<u16>, PendingAsk)> {
    let Some(node) = &decider.run.progress.node else { return Vec::new() };
    if !matches!(waited, Some(WaitKind::Quota | WaitKind::Environment)) {
        return Vec::new();
    }
    let asks: Vec<(Str, Option<u16>, PendingAsk)> = match &node.work {
        Work::Asking(asking) => vec![(node.step.clone(), None, asking.clone())],
        Work::Joining(members) => members
            .iter()
            .enumerate()
            .filter_map(|(index, member)| {
                Some((member.step.clone(), Some(index as u16), member.asking.clone()?))
            })
            .collect(),
        _ => Vec::new(),
    };
    let settled = |seq, member| !decider.run.spending.unsettled.contains(&CommandId::new(seq, member));
    asks.into_iter().filter(|(_, member, asking)| settled(asking.seq, *member)).collect()
}
