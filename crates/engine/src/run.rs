//! The state of a run, which `apply.rs` folds from its events.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use cuegate_ask::{AskKind, FaultClass, Usage};
use cuegate_flow::{
    Str,
    model::{BlobRef, IssueClosure},
};
use serde::{Deserialize, Serialize};

use crate::{
    agents::{AgentChoice, AgentOutage},
    budget::{Lack, Ledger},
    command::{CommandId, LastAnswer},
    completion_state::{ConditionState, PendingProbes},
    effect::{Effect, Phase, RunEnd},
    event_types::{
        AskContext, AskRequest, EndState, PendingEntry, PromptPart, ProvisionalOutcome, Remedy, RunStarted,
        StepAnswer, SuspensionCause,
    },
    place::TreeState,
    reports::Reports,
    system::PendingReads,
};

/// The state of a run. It contains digests and small values, never long texts.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Run {
    /// The number of applied records, which is the index of the next one.
    pub seq: u64,
    /// The start event; `None` before the first record.
    pub started: Option<Arc<RunStarted>>,
    /// Whether it goes on.
    pub state: State,
    /// The state of the worktree.
    pub tree: Option<TreeState>,
    /// The record of the last inspection of the worktree after running asks were stopped.
    pub looked: Option<u64>,
    pub progress: RunProgress,
    pub context: PromptContext,
    pub checks: RunChecks,
    pub effects: RunEffects,
    pub spending: RunSpending,
    /// The agents that were found out and have not answered since.
    pub outages: Vec<AgentOutage>,
}

/// Where a run stands, and how it came there.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct RunProgress {
    /// The current step.
    pub node: Option<Node>,
    /// The open visit. It ends when another counted step is entered.
    pub visit: Option<Visit>,
    /// The last counted step that was entered.
    pub last_step: Option<Str>,
    /// The number of entered iterations.
    pub iterations: u32,
    /// The number of finished iterations.
    pub finished: u32,
    /// The maximum number of iterations, as set by the last resume.
    pub iterations_max: u32,
    /// The number of visits by step.
    pub visits: BTreeMap<Str, u32>,
    /// The counters of bounded edges.
    pub counters: BTreeMap<Str, u32>,
    /// The step that handed off to each step.
    pub origins: BTreeMap<Str, Str>,
    /// The finished top-level steps since a monitor last acted.
    pub history: Vec<Str>,
    /// The answer of the last visit of each step, and in how many visits in a row it was the same, since a file changed.
    pub same_answers: BTreeMap<Str, (BlobRef, u32)>,
    /// By tree, how many visits that changed files ended with it since the run began or was continued. Only counted where
    /// the run has a limit for it.
    pub same_files: BTreeMap<String, u32>,
}

/// What prompts can say.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct PromptContext {
    /// What a person adds to the prompt of the visit that a retry begins, and whether that visit began.
    pub note: Option<(BlobRef, bool)>,
    /// Handoff values by step and name; the newest visit wins.
    pub handoffs: BTreeMap<Str, BTreeMap<Str, HandoffValue>>,
    /// The summary of the last answer.
    pub summary: Option<BlobRef>,
    /// The last answer of a step, not of its judges or checks.
    pub said: Option<LastAnswer>,
    /// The answer of the last visit that ended well, which prompts call the previous response.
    pub previous: Vec<StepAnswer>,
    /// The previous response at the start of the open visit, for a remedy of that visit.
    pub before: Vec<StepAnswer>,
    pub reports: Reports,
    /// Excerpts of the open visit's answers by step, in flows that ask persons.
    pub excerpts: BTreeMap<Str, String>,
    /// The last question to a person.
    pub question: Option<BlobRef>,
    /// Whether the step that asked is repeated with the answer.
    pub again: bool,
    /// The answers of persons, oldest first.
    pub user_inputs: Vec<BlobRef>,
    /// The number of questions of this visit that were answered without a person.
    pub questions: u32,
    /// The heads of sessions, by key.
    pub sessions: BTreeMap<Str, SessionHead>,
}

/// What validators found, and how much of the completion rule holds.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct RunChecks {
    /// The state of the verdict's parts, by index.
    pub conditions: BTreeMap<Str, ConditionState>,
    /// The validators that failed and have not passed since, by step and index. While there is one, no completion rule
    /// ends the run.
    pub failing: BTreeMap<(Str, u16), Str>,
    /// The step whose validator failed, until another step is entered: a run that ends there ended because of it.
    pub failed_at: Option<Str>,
    /// The steps whose validators all passed when they last ran.
    pub validated: BTreeSet<Str>,
    /// The step whose validators passed last, and the files on which they did.
    pub proof: Option<(Str, String)>,
}

impl RunChecks {
    /// Records that the validators of a step passed on these files.
    pub(crate) fn record_proof(&mut self, step: &Str, tree: Option<&TreeState>) {
        self.validated.insert(step.clone());
        self.proof = tree.map(|tree| (step.clone(), tree.tree.clone()));
    }
}

/// What a run does outside of its worktree.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct RunEffects {
    /// The effects that were requested and are not done yet, in order.
    pub pending: Vec<Effect>,
    /// Effects on GitHub that failed, or whose result is unknown.
    pub unsettled: Vec<Effect>,
    /// What the labels of the issue show.
    pub phase: Option<Phase>,
    /// The closure action that an answer asks for.
    pub closure: Option<IssueClosure>,
    /// The texts in the comment of the run, as blocks.
    pub comments: Vec<BlobRef>,
    /// The address of that comment.
    pub comment_url: Option<String>,
    /// Whether nobody knows if that comment exists.
    pub comment_unknown: bool,
    /// The end that the run would have had if its work had been merged and pushed.
    pub unfinalized: Option<RunEnd>,
    /// The end of the run once the pending effects are done.
    pub ending: Option<RunEnd>,
    /// The files with which the run ended.
    pub ended_tree: Option<String>,
}

/// What a run has used, and what it may use.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct RunSpending {
    pub usage: Usage,
    /// The budget, and the reservations of pending asks.
    pub ledger: Ledger,
    /// The asks whose usage is not known yet: what arrives for any other is charged already, or was never asked.
    pub unsettled: BTreeSet<CommandId>,
    /// The maximum number of repairs, as set by the last resume.
    pub repairs_max: u32,
    /// The last failure of an ask, until one answers or the run is resumed. A stop for lack of budget names it.
    pub last_fault: Option<(FaultClass, String)>,
}

impl Run {
    /// Why no further ask can start. Begins with the failed call that used the budget up, if one did: that is what the user has to fix.
    pub(crate) fn describe_lack(&self, lack: Lack) -> String {
        let described = self.spending.ledger.describe(lack);
        match &self.spending.last_fault {
            // An ask that reached its own limit is its own cause.
            Some((class, message)) if lack != Lack::Overspent => {
                format!("{}: {message}; {described}", class.words())
            }
            _ => described,
        }
    }
}

/// The head of a session after the last journaled answer.
#[derive(Debug, Clone, PartialEq)]
pub struct SessionHead {
    /// The provider's session id.
    pub id: String,
    /// The agent that has it.
    pub agent: String,
    /// The usage of the whole session, as reported by the provider.
    pub totals: Option<Usage>,
}

/// Whether a run goes on.
#[derive(Debug, Clone, PartialEq, Default)]
pub enum State {
    /// Not started.
    #[default]
    New,
    Running,
    Suspended(SuspensionCause),
    Ended {
        /// How it ended.
        state: EndState,
        /// Why it ended, for people.
        reason: String,
        /// The step with which an exhausted run continues under a higher limit.
        hold: Option<PendingEntry>,
    },
}

/// The current step.
#[derive(Debug, Clone, PartialEq)]
pub struct Node {
    /// Its name.
    pub step: Str,
    /// The record that entered it.
    pub entered: u64,
    /// Its current work.
    pub work: Work,
    /// Its outcome, once decided.
    pub outcome: Option<Str>,
}

/// The current work of a step.
#[derive(Debug, Clone, PartialEq)]
pub enum Work {
    /// Entered; nothing is pending yet.
    Entered,
    /// An ask is pending.
    Asking(PendingAsk),
    /// This one of its commands is pending.
    Running {
        /// The record that requested it.
        seq: u64,
        /// The index of the command.
        index: u16,
    },
    /// The asks of its members.
    Joining(Vec<Member>),
    /// What it reads.
    Reading(PendingReads),
    /// Its effects.
    Acting,
    /// It waits for a person.
    Person,
    /// The step is over; polls of the verdict run before the next step.
    Probing(PendingProbes),
}

#[derive(Debug, Clone, PartialEq)]
pub struct PendingAsk {
    /// The record that made it pending.
    pub seq: u64,
    /// Its purpose.
    pub kind: AskKind,
    /// The number of faults since the last answer.
    pub faults: u32,
    /// The number of rejected answers in this attempt.
    pub repairs: u32,
    /// The earliest start, in milliseconds since 1970.
    pub not_before_ms: Option<i64>,
    /// The total wait for rate limits so far, in milliseconds.
    pub waited_ms: u64,
    /// The message that replaces the step's own prompt.
    pub follow: Option<FollowUpMessage>,
    /// What the ask is about.
    pub context: AskContext,
    /// The agent; `None` for the usual one.
    pub agent: Option<AgentChoice>,
}

impl PendingAsk {
    /// The same request once more, without a pause.
    pub(crate) fn again(&self, step: &Str, member: Option<u16>) -> AskRequest {
        AskRequest {
            follow: self.follow.clone(),
            context: self.context.clone(),
            ..AskRequest::own(step, member, self.kind)
        }
    }

    /// The step whose agent is asked: a judge, a selector, or the step that waits for the answer.
    pub(crate) fn asked<'a>(&'a self, step: &'a Str) -> &'a Str {
        self.context.other().unwrap_or(step)
    }
}

/// A message in an existing session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FollowUpMessage {
    /// The message.
    pub say: Vec<PromptPart>,
    /// The agent's earlier answer, for a provider without sessions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<BlobRef>,
}

/// An answer that another step judges.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct JudgedAnswer {
    /// The judging step.
    pub judge: Str,
    /// The index of the reader that requested the judge, to continue from there.
    pub reader: u16,
    /// The answer; empty for a parallel step, which has none of its own.
    pub answer: BlobRef,
    /// The answers of a parallel step's members.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub answers: Vec<StepAnswer>,
}

/// A member of a parallel step.
#[derive(Debug, Clone, PartialEq)]
pub struct Member {
    pub step: Str,
    /// Its pending ask.
    pub asking: Option<PendingAsk>,
    /// The pending command that validates its answer.
    pub proving: Option<PendingGateCommand>,
    /// The number of failed commands.
    pub failures: u32,
    /// Whether it was not selected.
    pub skipped: bool,
    /// How it ended: its outcome, or none if it failed or was skipped.
    pub ended: Option<Option<Str>>,
    /// Whether it reported that it cannot proceed.
    pub blocked: bool,
    /// Whether its agent failed each time that it was asked.
    pub crashed: bool,
    /// Why it has no outcome.
    pub why: Option<String>,
    /// Its answer, if valid.
    pub answer: Option<BlobRef>,
}

impl Member {
    /// A member whose agent is asked.
    pub(crate) fn asked(step: &Str, asking: PendingAsk) -> Member {
        Member { asking: Some(asking), skipped: false, ended: None, ..Member::skipped(step) }
    }

    /// A member that does not work.
    pub(crate) fn skipped(step: &Str) -> Member {
        Member {
            step: step.clone(),
            asking: None,
            proving: None,
            failures: 0,
            skipped: true,
            ended: Some(None),
            blocked: false,
            crashed: false,
            why: None,
            answer: None,
        }
    }
}

/// A pending command of a member.
#[derive(Debug, Clone, PartialEq)]
pub struct PendingGateCommand {
    /// The record that made it pending.
    pub seq: u64,
    /// The index of the command.
    pub index: u16,
    /// Its result if all commands pass.
    pub claim: ProvisionalOutcome,
}

/// An open visit.
#[derive(Debug, Clone, PartialEq)]
pub struct Visit {
    pub step: Str,
    /// The number of the step's visit.
    pub visit: u32,
    /// The number of the attempt.
    pub attempt: u32,
    /// The number of the run's iteration.
    pub iteration: u32,
    /// The prompt that replaces the step's own.
    pub remedy: Option<Remedy>,
    /// Its outcome, once decided.
    pub outcome: Option<Str>,
    /// The monitor that acted at its end.
    pub monitor: Option<Str>,
    /// The number of rounds that the monitor saw.
    pub rounds: u32,
    /// The changed files.
    pub changed: BTreeSet<String>,
    /// What its agent answered last.
    pub answer: Option<BlobRef>,
}

impl RunProgress {
    /// In how many visits in a row the step of the open visit gave the same answer, this one included. No file changed
    /// meanwhile. 0 if it gave none, or has members.
    pub(crate) fn count_same_answers(&self) -> u32 {
        let Some(Visit { step, answer: Some(answer), changed, .. }) = &self.visit else { return 0 };
        let before = self.same_answers.get(step).filter(|(known, _)| known == answer);
        if changed.is_empty() { before.map_or(0, |(_, times)| *times) + 1 } else { 0 }
    }

    /// The entry of [`same_files`](Self::same_files) with which the open visit ends, if it changed files.
    pub(crate) fn remember_files(&self, tree: &TreeState) -> Option<(String, u32)> {
        let times = self.count_same_files(tree);
        (times > 0).then(|| (tree.tree.clone(), times))
    }

    /// How many visits ended with the files of `tree`, the open one included. 0 if it changed none.
    pub(crate) fn count_same_files(&self, tree: &TreeState) -> u32 {
        let is_changed = self.visit.as_ref().is_some_and(|visit| !visit.changed.is_empty());
        if is_changed { self.same_files.get(&tree.tree).copied().unwrap_or(0) + 1 } else { 0 }
    }
}

#[derive(Debug, Clone, PartialEq)]
pub struct HandoffValue {
    pub value: BlobRef,
    /// The value itself, if short.
    pub scalar: Option<Str>,
    /// Whether an agent wrote it.
    pub text: bool,
    /// The record that entered its step, and the member. They decide which value is newest, not the order of answers.
    pub order: (u64, u16),
}
