//! The events of a run: the wire types of the journal, format version [`crate::Record::VERSION`]. Steps are named, not
//! numbered, so that a journal stays valid when another version of the program lowers the definition in another order.

use cuegate_ask::{AskKind, AskLimit, FaultClass, Usage};
use cuegate_flow::{
    Str,
    model::{BlobRef, IssueClosure, Permission},
};
use serde::{Deserialize, Serialize};

use crate::{
    agents::{AgentChoice, AskDelivery},
    budget::Share,
    command::CommandId,
    effect::{EffectDelayed, EffectFinished, EffectKind, EffectsRequested, RunEnd},
    event_types::{
        AskRequest, EndState, PendingEntry, ProvisionalOutcome, Remedy, RowEnd, RunForked, RunResumed,
        RunStarted, StepAnswer, SuspensionCause, ToolCall,
    },
    place::TreeState,
    system::{ReadsDone, ReadsRequested, StepEffectsRequested},
};

/// An event of a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum Event {
    /// The run began.
    RunStarted(Box<RunStarted>),
    /// The run is a fork. The records before this one are copies of those of its source run.
    Forked(Box<RunForked>),
    /// A step was entered.
    StepEntered {
        step: Str,
        /// Whether it counts as an iteration.
        counts: bool,
        /// The number of the visit of this step, from 1.
        visit: u32,
        /// The number of the attempt in this visit, from 1.
        attempt: u32,
        /// The number of the iteration of the run, from 1.
        iteration: u32,
        /// The prompt that replaces its own.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        remedy: Option<Remedy>,
    },
    /// A step handed off to another one, which may return to it.
    OriginSet {
        /// The target of the handoff.
        step: Str,
        /// The step that handed off.
        origin: Str,
    },
    /// An ask became pending. Its id contains the number of this record.
    AskRequested(AskRequest),
    /// A report was written. Readers get the newest of a name.
    ReportWritten {
        /// The step that owes it.
        step: Str,
        /// The member of a parallel step, by index.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        member: Option<u16>,
        name: Str,
        /// The visit in which it was written.
        visit: u32,
        content: BlobRef,
    },
    /// The answers of a visit: the previous response of later prompts.
    Responded {
        step: Str,
        /// The answer of one agent, or of each member of a parallel step in definition order.
        answers: Vec<StepAnswer>,
    },
    /// A pending ask reserved its share of the budget and can start.
    Reserved {
        ask: CommandId,
        #[serde(flatten)]
        share: Share,
    },
    /// An agent cannot be called for a while. In the same record as the fault of its ask, and as the request to the agent
    /// that steps in, if there is one.
    AgentOut {
        ask: CommandId,
        step: Str,
        /// The agent that is out.
        #[serde(flatten)]
        choice: AgentChoice,
        /// Whether it is out with any model.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        any_model: bool,
        /// The class of the fault.
        class: FaultClass,
        /// Until when, in milliseconds since 1970; `None`: until the run is resumed.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        until_ms: Option<i64>,
    },
    /// An ask was cut off before it answered.
    AskCut {
        ask: CommandId,
        step: Str,
        /// What its output reported, and an estimate of the message that was being written.
        usage: Usage,
        /// Whether it used an unknown amount. Then it is charged its share of the budget.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        usage_unknown: bool,
        /// The session that it made unusable: a new one starts.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        spoilt: Option<Str>,
    },
    /// An ask used more than its share of the budget. No other ask starts until the run is resumed.
    Overspent {
        ask: CommandId,
        /// The excess, as text.
        what: String,
        /// The limit.
        #[serde(default)]
        of: AskLimit,
        /// The reservation of the ask, or what it used if that is more.
        #[serde(flatten)]
        share: Share,
    },
    /// The active time since the previous record. Only in runs with a time limit.
    TimePassed {
        /// Milliseconds.
        ms: u64,
    },
    /// The sandbox denied access to a host. Once for each command and host.
    SandboxDenied {
        /// The command inside the sandbox.
        by: CommandId,
        step: Str,
        /// The host with its port.
        to: String,
        /// The reason.
        why: String,
    },
    /// A command became pending: the validator of this index.
    CommandRequested {
        step: Str,
        /// The index of the command.
        index: u16,
        /// The command for the shell.
        #[serde(default)]
        command: Str,
        /// The member of a parallel step, by index, whose answer it validates.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        member: Option<u16>,
        /// The result of that member if all its commands pass.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        claim: Option<ProvisionalOutcome>,
    },
    /// An agent used tools in an ask. In the same record as the answer, the failure or the cut of the ask.
    ToolsUsed {
        ask: CommandId,
        step: Str,
        /// The uses in their order.
        calls: Vec<ToolCall>,
        /// The number of further uses, which are not kept.
        #[serde(default, skip_serializing_if = "crate::event_types::is_zero")]
        more: u64,
    },
    /// An agent answered.
    Answered {
        ask: CommandId,
        step: Str,
        /// Its purpose.
        kind: AskKind,
        /// The structured answer.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        output: Option<BlobRef>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        text: Option<BlobRef>,
        /// The beginning of the answer, at most 2,000 characters, in flows that ask persons about it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        excerpt: Option<String>,
        /// The exact prompt.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        prompt: Option<BlobRef>,
        /// The exact system prompt.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        system_prompt: Option<BlobRef>,
        usage: Usage,
        provider: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        model: Option<String>,
        /// What the agent said of itself at the start: its name, its version, what it can.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        handshake: Option<String>,
        /// The provider's session id.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        session: Option<String>,
        /// The key under which the session continues.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        session_key: Option<Str>,
        /// The usage of the whole session, if the provider reports totals.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        totals: Option<Usage>,
        /// How the schema and the session were passed to the provider.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        put: Option<AskDelivery>,
        /// The provider's receipt, which it needs to resume.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        receipt: Option<String>,
        /// The duration in milliseconds.
        #[serde(default)]
        duration_ms: u64,
        /// The files that changed during it.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        changed_files: Vec<String>,
        /// The working tree afterwards.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        tree: Option<TreeState>,
    },
    /// An answer that is no longer pending. Its usage is charged.
    AnsweredLate { ask: CommandId, usage: Usage },
    /// An answer was unusable.
    AnswerRejected {
        step: Str,
        /// The member of a parallel step, by index.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        member: Option<u16>,
        /// The reason.
        why: String,
    },
    /// A read-only step changed files.
    BoundaryViolated {
        step: Str,
        permission: Permission,
        /// The files.
        paths: Vec<String>,
    },
    /// Files of the main checkout changed during an ask in a worktree, and no tool call of the agent writes them.
    MainCheckoutChanged {
        step: Str,
        /// The files, absolute; at most 100.
        paths: Vec<String>,
        /// The number of further files.
        #[serde(default, skip_serializing_if = "crate::event_types::is_zero")]
        more: u64,
    },
    /// Agents changed something in their git folder that the run does not take over.
    LeftInGit {
        /// What, in words.
        what: Vec<String>,
    },
    /// Snapshots of the working tree leave something out. Files that git ignores are in none, which is not told.
    SnapshotGaps {
        /// What, in words.
        what: Vec<String>,
    },
    /// A step handed off a value.
    HandedOff {
        step: Str,
        /// The member of a parallel step, by index.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        member: Option<u16>,
        key: Str,
        /// The value: text as it is, everything else as JSON.
        value: BlobRef,
        /// A copy of a short value: deciding does no IO, and selectors and conditions compare this text.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        scalar: Option<Str>,
        /// Whether an agent wrote it as text, rather than a number or a boolean.
        #[serde(default)]
        text: bool,
    },
    /// The summary of the last answer.
    Summarised {
        /// The summary, else the text of the answer.
        summary: BlobRef,
        /// Whether its step may change no files, as that of a reviewer.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        read_only: bool,
    },
    /// An ask failed.
    Faulted {
        ask: CommandId,
        step: Str,
        /// The class of the failure.
        class: FaultClass,
        message: String,
        /// The agent, if not the usual one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        agent: Option<AgentChoice>,
        /// The usage despite the failure.
        #[serde(default)]
        usage: Usage,
        /// Whether the true usage is higher by an unknown amount.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        usage_unknown: bool,
        /// The session that is lost or full: the ask is repeated in a new one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        spoilt: Option<Str>,
        /// The provider's receipt, which it needs to resume.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        receipt: Option<String>,
        /// The files that changed during it.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        changed_files: Vec<String>,
        /// The working tree afterwards.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        tree: Option<TreeState>,
    },
    /// A validator ran.
    CommandFinished {
        step: Str,
        /// The index of the command.
        index: u16,
        /// The member of a parallel step, by index.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        member: Option<u16>,
        /// The validator's name.
        validator: Str,
        /// The command for the shell.
        #[serde(default)]
        command: Str,
        /// Whether it passed.
        passed: bool,
        /// How it ended, as text: `exit 1`, `timed out after 600 s`.
        ended: String,
        /// The standard output.
        stdout: BlobRef,
        /// The standard error.
        stderr: BlobRef,
        /// The duration in milliseconds.
        duration_ms: u64,
        /// The files that changed during it, for a command of a member.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        changed_files: Vec<String>,
        /// The working tree afterwards.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        tree: Option<TreeState>,
    },
    /// A bounded edge was taken, or a counter was reset.
    CounterSet {
        /// The step.
        counter: Str,
        /// The new value.
        value: u32,
    },
    /// A step's outcome is known.
    Decided {
        step: Str,
        outcome: Str,
        /// The agent's own reason.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
        /// Whether it is the definition's fallback.
        #[serde(default)]
        fallback: bool,
        /// The name of the transition in the definition, if it has one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        way: Option<Str>,
    },
    /// A member of a parallel step ended.
    MemberEnded {
        index: u16,
        step: Str,
        /// Its outcome; `None` when it failed or was blocked.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        outcome: Option<Str>,
        /// Why there is no outcome.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        why: Option<String>,
        /// Whether it reported that it cannot proceed.
        #[serde(default)]
        blocked: bool,
        /// Whether its agent failed each time that it was asked.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        crashed: bool,
        /// Its answer, if usable.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        answer: Option<BlobRef>,
    },
    /// A member of a parallel step was not selected, and does not work in this visit.
    MemberSkipped { step: Str },
    /// A monitor acted: its judge chooses another target.
    MonitorFired {
        monitor: Str,
        /// The number of whole rounds.
        rounds: u32,
    },
    /// A part of the verdict was detected in an answer of this visit, or decided first.
    ConditionMet {
        /// The path of the part: `1` is the verdict, `1.2` its second part.
        condition: Str,
        /// The reason, as text.
        why: String,
    },
    /// A visit ended, and the verdict must be polled before the next one starts.
    ProbesRequested {
        /// The parts of the completion rule, by place. The index in this list is that of the poll.
        probes: Vec<Str>,
        /// The next step if the run is not complete.
        next: PendingEntry,
    },
    /// A part of the verdict was polled.
    Probed {
        /// The poll.
        probe: CommandId,
        /// The path of the part.
        condition: Str,
        /// Whether it holds now.
        holds: bool,
        /// Whether the poll failed.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        failed: bool,
        /// The result, as text.
        said: String,
        /// The time, in milliseconds since 1970.
        at_ms: i64,
        /// The duration in milliseconds.
        #[serde(default)]
        duration_ms: u64,
        /// Whether it is the last poll, whose result stays.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        last: bool,
        /// The working tree afterwards.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        tree: Option<TreeState>,
    },
    /// A step that does not count ended.
    StepLeft {
        step: Str,
        /// Its outcome, and where that leads.
        #[serde(flatten)]
        end: RowEnd,
    },
    VisitEnded {
        step: Str,
        /// The number of the visit.
        visit: u32,
        /// The number of the attempt.
        attempt: u32,
        /// Its outcome, and where that leads.
        #[serde(flatten)]
        end: RowEnd,
        /// The files that changed during the visit.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        changed_files: Vec<String>,
    },
    /// Someone else changed the working tree while a step had it read-only.
    ChangedByOthers {
        step: Str,
        /// The changed files.
        paths: Vec<String>,
        /// The working tree.
        tree: TreeState,
    },
    /// The working tree was inspected after running commands were stopped.
    TreeSeen {
        /// The files that changed since the last inspection.
        changed_files: Vec<String>,
        /// The working tree.
        tree: TreeState,
    },
    PersonAsked {
        /// The text of the question.
        question: BlobRef,
        /// Whether the step is repeated with the answer, instead of passing it to the agent.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        again: bool,
    },
    PersonAnswered {
        /// The text of the answer.
        text: BlobRef,
        /// The working tree as it was found.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        found: Option<TreeState>,
        /// The cost bound in asks from now on, if the run has one and the question was not part of it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        asks_max: Option<u64>,
    },
    /// The definition answered the question of an agent.
    QuestionAnswered {
        step: Str,
        /// The member of a parallel step, by index.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        member: Option<u16>,
        question: BlobRef,
        /// The answer.
        text: BlobRef,
    },
    /// The schema check of an answer.
    Inspected {
        ask: CommandId,
        /// The asked step.
        step: Str,
        /// Whether the answer contains a JSON object.
        found: bool,
        /// The violations of the schema, one line each.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        problems: Vec<String>,
    },
    /// An answer contains an action block. The id of its effect contains this record and the index.
    ActionFound {
        step: Str,
        /// The member of a parallel step, by index.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        member: Option<u16>,
        /// The index of the block in the answer.
        index: u16,
        action: Str,
        /// The JSON of the block.
        value: BlobRef,
        /// Its handler; a block without one is only recorded.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        handler: Option<EffectKind>,
        /// Whether the definition allows it.
        allowed: bool,
    },
    /// A step of the definition reads what it needs.
    ReadsRequested(ReadsRequested),
    /// It was read.
    ReadsDone(ReadsDone),
    /// A step of the definition requests effects.
    StepEffectsRequested(StepEffectsRequested),
    /// The definition requests effects. Their ids contain this record and their index, from `first` on.
    EffectsRequested(EffectsRequested),
    /// An answer asks for less than the configured closure action.
    ClosureNarrowed {
        step: Str,
        /// The effects that it allows.
        closure: IssueClosure,
    },
    /// An effect is tried again later.
    EffectDelayed(EffectDelayed),
    /// A person wants an effect whose result was a failure or unknown to be tried again.
    EffectResent { effect: CommandId, action: Str },
    /// An effect is done, or is not tried again.
    EffectFinished(EffectFinished),
    /// The run ends when its pending effects are done.
    Ending(RunEnd),
    /// The run completes although validators did not pass.
    ValidationSkipped {
        /// The step of the validators.
        step: Str,
        /// Whether they failed and the definition skips them; otherwise they did not run.
        failed: bool,
    },
    /// The run is suspended.
    Suspended {
        /// The reason.
        waiting: SuspensionCause,
    },
    /// The run is resumed.
    Resumed(RunResumed),
    /// The run ended.
    Ended {
        /// How it ended.
        state: EndState,
        reason: String,
        /// Whether every validator of this end passed.
        validated: bool,
        /// The step with which an exhausted run continues under a higher limit.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        hold: Option<PendingEntry>,
        /// Whether the current step stays, to continue with a larger budget.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        stays: bool,
    },
}

impl Event {
    /// The files that were seen with it, if any were looked at.
    pub fn seen_tree(&self) -> Option<&TreeState> {
        match self {
            Event::Answered { tree, .. }
            | Event::Faulted { tree, .. }
            | Event::CommandFinished { tree, .. }
            | Event::Probed { tree, .. } => tree.as_ref(),
            Event::EffectFinished(finished) => finished.tree.as_ref(),
            Event::ChangedByOthers { tree, .. } | Event::TreeSeen { tree, .. } => Some(tree),
            _ => None,
        }
    }
}
