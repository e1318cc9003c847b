//! One completion in, the events that follow from it out: one record of the journal.
//!
//! One file a kind of completion, and one each for what they share: entering a step, leaving one, ending.

mod action_blocks;
mod answered;
mod ask_aborted;
mod ask_faulted;
mod completion_rule;
mod control;
mod effects;
pub use effects::limit_wait_ms;
mod enter;
mod executed;
mod exit_step;
mod join;
mod member_gate;
mod owed_reports;
mod person_answered;
mod rejected_answer;
mod reserve_budget;
mod sandbox_denials;
mod start;
mod system;

use cuegate_flow::{
    Str,
    model::{Act, BlobRef, Fact, Flow, Source, Step, StepId},
};

use crate::{
    command::CommandId,
    completion::{Completion, Moment, Tools},
    effect::RunEnd,
    event::Event,
    event_types::{AskRequest, EndState, PendingEntry, StepAnswer},
    run::Run,
};

/// What followed from a completion.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Decision {
    /// The events, in order. Empty when the completion changes nothing: then nothing is journaled.
    pub events: Vec<Event>,
    /// What the events name by digest; to be stored before them.
    pub blobs: Vec<Vec<u8>>,
}

/// Decides what follows from a completion, without applying it.
///
/// Total: late, repeated and impossible completions have an answer too. A completion that is no longer pending
/// never routes; what an ask used up is charged once.
pub fn decide(flow: &Flow, run: &Run, now: impl Into<Moment>, completion: Completion) -> Decision {
    run.clone().advance(flow, now, completion)
}

impl Run {
    /// Decides as [`decide`] does, and applies the events as one record. Copies nothing of the run, so that a step costs
    /// the same however long the run is.
    pub fn advance(&mut self, flow: &Flow, now: impl Into<Moment>, completion: Completion) -> Decision {
        let Moment { at_ms, driven_ms } = now.into();
        let driven_before = self.spending.ledger.spent.driven_ms;
        let timed = self.spending.ledger.budget.driven_ms.is_some() && driven_ms > 0;
        let wanted = matches!(completion, Completion::TimePassed);
        let mut decider =
            Decider { flow, run: std::mem::take(self), now: at_ms, decision: Decision::default() };
        if timed {
            decider.emit(Event::TimePassed { ms: driven_ms });
        }
        decide_completion(&mut decider, completion);
        let Decider { run, mut decision, .. } = decider;
        *self = run;
        if timed && !wanted && decision.events.len() == 1 {
            // Nothing happened: the time is told with what happens next.
            decision.events.clear();
            self.spending.ledger.spent.driven_ms = driven_before;
        }
        self.seq += u64::from(!decision.events.is_empty());
        decision
    }
}

fn decide_completion(decider: &mut Decider<'_>, completion: Completion) {
    if let Some(seen) = completion.seen() {
        if !seen.left_in_git.is_empty() {
            decider.emit(Event::LeftInGit { what: seen.left_in_git.clone() });
        }
        if !seen.gaps.is_empty() {
            decider.emit(Event::SnapshotGaps { what: seen.gaps.clone() });
        }
    }
    receive_completion(decider, completion);
    reserve_budget::reserve_shares(decider);
    effects::show_phase(decider);
}

fn receive_completion(decider: &mut Decider<'_>, completion: Completion) {
    match completion {
        Completion::Start(start) => start::start_run(decider, *start),
        Completion::Answered { ask, answer, seen } => answered::receive_answer(decider, ask, *answer, seen),
        Completion::Faulted { ask, fault, seen } => ask_faulted::receive_fault(decider, ask, fault, seen),
        Completion::Cut { ask, usage, usage_unknown, spoilt, tools } => {
            ask_aborted::repeat_cut_ask(decider, ask, (usage, usage_unknown), spoilt, tools);
        }
        Completion::Executed { id, exec, seen } => executed::receive_command_result(decider, id, &exec, seen),
        Completion::Read { id, result } => system::receive_reads(decider, id, result),
        Completion::Acted { id, attempt, result, duration_ms, seen } => {
            effects::receive_effect_result(decider, (id, attempt), result, duration_ms, seen);
        }
        Completion::Settled { id, url } => effects::settle_effect(decider, id, url),
        Completion::Probed { id, look } => completion_rule::receive_probe_result(decider, id, look),
        Completion::PersonAnswered { text, found } => {
            person_answered::receive_person_answer(decider, &text, found)
        }
        Completion::Interrupted { seen } => control::interrupt_run(decider, seen),
        Completion::Cancelled { seen } => control::cancel_run(decider, seen),
        Completion::TimePassed => {}
        Completion::OutOfTime { seen } => ask_aborted::out_of_time(decider, seen),
        Completion::SandboxDenied { by, to, why } => sandbox_denials::record_denial(decider, by, to, why),
        Completion::Resumed(mut resume) => {
            let lost = std::mem::take(&mut resume.lost);
            control::resume_run(decider, *resume);
            for completion in lost {
                receive_completion(decider, completion);
            }
        }
        Completion::Forked(fork) => control::fork_run(decider, *fork),
    }
}

/// Builds one decision. Each emitted event is applied to `run` at once, so that later rules see the state after it.
struct Decider<'f> {
    flow: &'f Flow,
    run: Run,
    now: i64,
    decision: Decision,
}

impl<'f> Decider<'f> {
    fn emit(&mut self, event: Event) {
        self.run.apply(&event);
        self.decision.events.push(event);
    }

    /// Makes an ask pending, of the agent whose turn it is.
    fn request_ask(&mut self, request: AskRequest) {
        let agent = self.run.choose_agent(&request, self.now);
        self.emit(Event::AskRequested(AskRequest { agent, ..request }));
    }

    /// Journals the tools that an agent used.
    fn tools_used(&mut self, ask: CommandId, step: &Str, tools: Tools) {
        let Tools { calls, more } = tools;
        if !calls.is_empty() {
            self.emit(Event::ToolsUsed { ask, step: step.clone(), calls, more });
        }
    }

    fn keep(&mut self, text: &str) -> BlobRef {
        let blob = BlobRef::for_bytes(text.as_bytes());
        self.decision.blobs.push(text.as_bytes().to_vec());
        blob
    }

    fn step(&self, name: &str) -> Option<&'f Step<StepId>> {
        self.flow.find(name).map(|id| self.flow.step(id))
    }

    /// The step that control stands on.
    fn here(&self) -> Option<&'f Step<StepId>> {
        self.step(&self.run.progress.node.as_ref()?.step)
    }

    /// What was said in a visit becomes the previous response, in flows with a prompt or a question that is about it.
    fn respond(&mut self, step: &Step<StepId>, answers: Vec<StepAnswer>) {
        if reads_responses(self.flow) || answered::asks_persons(self.flow) {
            self.emit(Event::Responded { step: step.name.clone(), answers });
        }
    }

    /// Completes the run. `skipped` names the step whose validators did not pass, and says whether they failed.
    fn complete(&mut self, reason: String, skipped: Option<(Str, bool)>) {
        let validated = skipped.is_none();
        if let Some((step, failed)) = skipped {
            self.emit(Event::ValidationSkipped { step, failed });
        }
        self.end_as(EndState::Completed, reason, validated, None);
    }

    /// Ends the run without success.
    fn end(&mut self, state: EndState, reason: String, hold: Option<PendingEntry>) {
        self.end_as(state, reason, false, hold);
    }

    /// Ends the run; an open visit's row ends with it.
    fn end_as(&mut self, state: EndState, reason: String, validated: bool, hold: Option<PendingEntry>) {
        let target: Str = match state {
            EndState::Completed => "@completed",
            EndState::Aborted => "@aborted",
            EndState::Failed => exit_step::FAILED,
            EndState::Exhausted => exit_step::EXHAUSTED,
            EndState::Cancelled => "@cancelled",
        }
        .into();
        exit_step::close_rows(self, &target);
        self.end_with(RunEnd { state, reason, validated, hold, stays: false });
    }

    /// Ends the run after the effects that this end requests and those that are still pending. A cancelled run ends at
    /// once: of its effects only those are left that take its labels back.
    fn end_with(&mut self, ending: RunEnd) {
        let (phase, effects) = effects::of_end(self, ending.state);
        let is_cancelled = ending.state == EndState::Cancelled;
        if !is_cancelled {
            effects::request_effects(self, phase, effects.clone());
            if !self.run.effects.pending.is_empty() {
                self.emit(Event::Ending(ending));
                return;
            }
        }
        let RunEnd { state, reason, validated, hold, stays } = ending;
        self.emit(Event::Ended { state, reason, validated, hold, stays });
        if is_cancelled {
            effects::request_effects(self, phase, effects);
        }
    }

    /// Stops the run where it stands, for lack of something that whoever lets it go on can give.
    fn stop(&mut self, reason: String) {
        let state = EndState::Exhausted;
        self.end_with(RunEnd { state, reason, validated: false, hold: None, stays: true });
    }

    fn fail(&mut self, reason: impl Into<String>) {
        self.end(EndState::Failed, reason.into(), None);
    }
}

/// Whether a prompt of the flow tells what was answered before.
fn reads_responses(flow: &Flow) -> bool {
    let wanted = Source::Fact(Fact::PreviousResponse);
    flow.steps.iter().any(|step| {
        let remedies = step.edges.iter().filter_map(|edge| edge.remedy.as_ref());
        let asks = match &step.act {
            Act::Ask(ask) => Some(&ask.prompt),
            _ => None,
        };
        asks.into_iter().chain(remedies).any(|prompt| prompt.sources().contains(&&wanted))
    })
}
