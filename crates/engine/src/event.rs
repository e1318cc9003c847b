//! The facts of a run: what the journal keeps.
//!
//! These are the wire types of the journal, format version [`crate::Record::VERSION`]. Steps are named, not numbered, so
//! that a journal stays valid when another version of the program lowers the definition in another order.

use cuegate_flow::{
    Str,
    model::{BlobRef, Permission},
};
use serde::{Deserialize, Serialize};

use crate::{
    budget::{Budget, Share},
    completion::FaultClass,
    effect::EffectKind,
    event_types::{
        AskKind, AskRequest, Claim, EndState, Hold, Put, Remedy, RowEnd, SourceBlob, Spoken, Started,
        TreeState, Usage, Waiting,
    },
};

/// A fact.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum Event {
    /// The run began.
    RunStarted(Box<Started>),
    /// A step was entered.
    StepEntered {
        /// Which.
        step: Str,
        /// Whether that is an iteration.
        counts: bool,
        /// Which visit of this step it is, from 1.
        visit: u32,
        /// Which attempt in this visit, from 1.
        attempt: u32,
        /// Which iteration of the run, from 1.
        iteration: u32,
        /// The prompt in place of its own.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        remedy: Option<Remedy>,
    },
    /// A step handed off to another, which remembers it.
    OriginSet {
        /// The step that remembers.
        step: Str,
        /// Who handed off to it.
        origin: Str,
    },
    /// An ask became pending. Its id contains the number of this record.
    AskRequested(AskRequest),
    /// A report was written. The newest of a name is what readers get.
    ReportWritten {
        /// The step that owed it.
        step: Str,
        /// The member of a parallel step, by index.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        member: Option<u16>,
        /// Its name.
        name: Str,
        /// The visit in which it was written.
        visit: u32,
        /// What it says.
        content: BlobRef,
    },
    /// What was said in a visit is what later prompts call the previous response.
    Responded {
        /// The step.
        step: Str,
        /// What was said: by one agent, or by each member of a parallel step in definition order.
        answers: Vec<Spoken>,
    },
    /// A pending ask set its share of the budget aside and can be put.
    Reserved {
        /// The ask.
        ask: crate::command::CommandId,
        /// The most that it may use up.
        #[serde(flatten)]
        share: Share,
    },
    /// An ask was cut off before it answered. It is settled at its share of the budget.
    AskCut {
        /// The ask.
        ask: crate::command::CommandId,
        /// The step.
        step: Str,
        /// What it was seen to use up.
        usage: Usage,
        /// The conversation that it spoilt: it begins anew.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        spoilt: Option<Str>,
    },
    /// An ask used up more than its share of the budget. No other begins until somebody lets the run go on.
    Overspent {
        /// The ask.
        ask: crate::command::CommandId,
        /// How much, in words.
        what: String,
    },
    /// The run was driven for so long since the record before. Journaled where that is limited.
    TimePassed {
        /// Milliseconds.
        ms: u64,
    },
    /// The sandbox kept somebody behind it from reaching something. Told once for each command and place.
    SandboxDenied {
        /// The ask, or what else is at work.
        by: crate::command::CommandId,
        /// The step.
        step: Str,
        /// What: a host with its port.
        to: String,
        /// Why.
        why: String,
    },
    /// A command became pending: the validator of this index.
    CommandRequested {
        /// The step.
        step: Str,
        /// Which of its commands.
        index: u16,
        /// The member of a parallel step, by index, whose answer has to pass it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        member: Option<u16>,
        /// What that member has come to when all of them pass.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        claim: Option<Claim>,
    },
    /// An agent answered.
    Answered {
        /// The ask: the record that made it pending, and the member.
        ask: crate::command::CommandId,
        /// The step.
        step: Str,
        /// What for.
        kind: AskKind,
        /// The structured answer.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        output: Option<BlobRef>,
        /// The text.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        text: Option<BlobRef>,
        /// How what it says begins, in flows that ask persons about it: at most 2,000 characters.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        excerpt: Option<String>,
        /// The exact prompt.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        prompt: Option<BlobRef>,
        /// The exact system prompt.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        system_prompt: Option<BlobRef>,
        /// What it used up.
        usage: Usage,
        /// Who answered.
        provider: String,
        /// With which model.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        model: Option<String>,
        /// The conversation.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        session: Option<String>,
        /// Under which key the conversation is continued.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        session_key: Option<Str>,
        /// What the provider reports for the whole conversation, where it reports totals.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        totals: Option<Usage>,
        /// How it was put.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        put: Option<Put>,
        /// The provider's mark.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        receipt: Option<String>,
        /// How long it took, in milliseconds.
        #[serde(default)]
        duration_ms: u64,
        /// Files that changed meanwhile.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        changed_files: Vec<String>,
        /// The tree afterwards.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        tree: Option<TreeState>,
    },
    /// An answer came that nobody waits for any more; what it used up is charged.
    AnsweredLate {
        /// The ask.
        ask: crate::command::CommandId,
        /// What it used up.
        usage: Usage,
    },
    /// An answer could not be used.
    AnswerRejected {
        /// The step.
        step: Str,
        /// The member of a parallel step, by index.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        member: Option<u16>,
        /// Why.
        why: String,
    },
    /// Files changed where none may.
    BoundaryViolated {
        /// The step.
        step: Str,
        /// Its permission.
        permission: Permission,
        /// Which files.
        paths: Vec<String>,
    },
    /// A step left data for later ones.
    HandedOff {
        /// The step.
        step: Str,
        /// The member of a parallel step, by index.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        member: Option<u16>,
        /// The name.
        key: Str,
        /// The value: text as it is, everything else as JSON.
        value: BlobRef,
        /// The value itself, when it is short: conditions select by it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        scalar: Option<Str>,
        /// Whether it is text that an agent wrote, rather than a number or a truth value.
        #[serde(default)]
        text: bool,
    },
    /// The last answer's summary is this.
    Summarised {
        /// The summary, else the text of the answer.
        summary: BlobRef,
    },
    /// An ask found no answer.
    Faulted {
        /// The ask.
        ask: crate::command::CommandId,
        /// The step.
        step: Str,
        /// What kind of fault.
        class: FaultClass,
        /// What happened.
        message: String,
        /// What it used up nevertheless.
        #[serde(default)]
        usage: Usage,
        /// Whether it used up more than that, and nobody knows how much.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        usage_unknown: bool,
        /// The provider's mark.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        receipt: Option<String>,
        /// Files that changed meanwhile.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        changed_files: Vec<String>,
        /// The tree afterwards.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        tree: Option<TreeState>,
    },
    /// A validator ran.
    CommandFinished {
        /// The step.
        step: Str,
        /// Which of its commands.
        index: u16,
        /// The member of a parallel step, by index.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        member: Option<u16>,
        /// The validator's name.
        validator: Str,
        /// Whether it passed.
        passed: bool,
        /// How it ended, in words: `exit 1`, `timed out after 600 s`.
        ended: String,
        /// What it printed.
        stdout: BlobRef,
        /// What it printed to standard error.
        stderr: BlobRef,
        /// How long it took, in milliseconds.
        duration_ms: u64,
        /// Files that changed meanwhile, where members are at work beside it.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        changed_files: Vec<String>,
        /// The tree afterwards.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        tree: Option<TreeState>,
    },
    /// A bounded edge was taken, or a counter started anew.
    CounterSet {
        /// Which.
        counter: Str,
        /// Its value now.
        value: u32,
    },
    /// A step's outcome is known.
    Decided {
        /// The step.
        step: Str,
        /// The outcome.
        outcome: Str,
        /// The agent's own reason.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
        /// Whether it is what the definition falls back to.
        #[serde(default)]
        fallback: bool,
        /// What the definition calls the way that it takes, where it has a name for that.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        way: Option<Str>,
    },
    /// A member of a parallel step is done.
    MemberEnded {
        /// Its index.
        index: u16,
        /// Its step.
        step: Str,
        /// Its outcome; `None` when it failed or was blocked.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        outcome: Option<Str>,
        /// Why there is no outcome.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        why: Option<String>,
        /// Whether it said that it cannot proceed.
        #[serde(default)]
        blocked: bool,
        /// What it said, where it left something that can be used.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        answer: Option<BlobRef>,
    },
    /// A monitor acts: its judge is asked where to go instead.
    MonitorFired {
        /// The monitor.
        monitor: Str,
        /// The whole rounds it saw.
        rounds: u32,
    },
    /// A part of the run's verdict holds from now on, whatever comes.
    ConditionMet {
        /// Which part: `1` is all of it, `1.2` the second part of that.
        condition: Str,
        /// Why, in words.
        why: String,
    },
    /// A visit is over: whether the run is done has to be looked at before the next begins.
    ProbesRequested {
        /// The parts of the completion rule, by place. The index in this list is that of the poll.
        probes: Vec<Str>,
        /// What is next when the run is not done.
        next: Hold,
    },
    /// Somebody looked at a part of the verdict.
    Probed {
        /// The look: the record that asked for it, and its place there.
        probe: crate::command::CommandId,
        /// Which part.
        condition: Str,
        /// Whether it holds now.
        holds: bool,
        /// Whether it could not be looked at all.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        failed: bool,
        /// What was seen, in words.
        said: String,
        /// When, in milliseconds since 1970.
        at_ms: i64,
        /// How long it took, in milliseconds.
        #[serde(default)]
        duration_ms: u64,
        /// Whether it is the last look: then it stays as it was seen.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        last: bool,
        /// The tree afterwards.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        tree: Option<TreeState>,
    },
    /// A step that does not count was left.
    StepLeft {
        /// Which.
        step: Str,
        /// How.
        #[serde(flatten)]
        end: RowEnd,
    },
    /// A visit ended.
    VisitEnded {
        /// The step.
        step: Str,
        /// Which visit of it.
        visit: u32,
        /// Which attempt.
        attempt: u32,
        /// How.
        #[serde(flatten)]
        end: RowEnd,
        /// Files that changed during the visit.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        changed_files: Vec<String>,
    },
    /// Somebody looked at the working tree, after what was at work there had been stopped.
    TreeSeen {
        /// Files that changed since the last look.
        changed_files: Vec<String>,
        /// The tree.
        tree: TreeState,
    },
    /// A person is asked.
    PersonAsked {
        /// What.
        question: BlobRef,
        /// Whether the step is done again with the answer, instead of the agent being told it.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        again: bool,
    },
    /// A person answered.
    PersonAnswered {
        /// What.
        text: BlobRef,
        /// The tree as it was found.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        found: Option<TreeState>,
        /// The most asks that the price allows for from now on, where it holds the run and did not know of the question.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        asks_max: Option<u64>,
    },
    /// An agent asked a person, and was answered as the definition says.
    QuestionAnswered {
        /// The step.
        step: Str,
        /// The member of a parallel step, by index.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        member: Option<u16>,
        /// What it asked.
        question: BlobRef,
        /// What it was told.
        text: BlobRef,
    },
    /// How an answer compares with its schema.
    Inspected {
        /// The ask.
        ask: crate::command::CommandId,
        /// The step that was asked.
        step: Str,
        /// Whether a JSON object was found in it.
        found: bool,
        /// What is wrong with that, a line each; nothing when it fits.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        problems: Vec<String>,
    },
    /// An answer asks for something in a block. The effect's name is the record and the index.
    ActionFound {
        /// The step.
        step: Str,
        /// The member of a parallel step, by index.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        member: Option<u16>,
        /// The how-manieth block of the answer, from 0.
        index: u16,
        /// What is asked for.
        action: Str,
        /// The block: its JSON.
        value: BlobRef,
        /// Its handler; a block without one is only recorded.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        handler: Option<EffectKind>,
        /// Whether the definition lets agents ask for it.
        allowed: bool,
    },
    /// A program acted on a block.
    EffectFinished {
        /// The effect.
        effect: crate::command::CommandId,
        /// The step whose answer asked for it.
        step: Str,
        /// What was asked for.
        action: Str,
        /// Whether it succeeded.
        done: bool,
        /// How it ended, in words.
        ended: String,
        /// What it printed.
        stdout: BlobRef,
        /// What it printed to standard error.
        stderr: BlobRef,
        /// How long it took, in milliseconds.
        duration_ms: u64,
        /// Files that changed meanwhile.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        changed_files: Vec<String>,
        /// The tree afterwards.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        tree: Option<TreeState>,
    },
    /// The run comes to its end, but for effects that are still to be done.
    Ending(crate::effect::Ending),
    /// The run completes although validators did not pass.
    ValidationSkipped {
        /// The step of the validators.
        step: Str,
        /// Whether they failed and the definition skips them; otherwise they did not run.
        failed: bool,
    },
    /// The run waits.
    Suspended {
        /// For what.
        waiting: Waiting,
    },
    /// The run goes on.
    Resumed {
        /// With another limit of iterations.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        iterations_max: Option<u32>,
        /// With another limit of repairs.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        repairs_max: Option<u32>,
        /// With another provider; receipts begin anew.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        provider: Option<String>,
        /// With another script; receipts begin anew.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        script: Option<SourceBlob>,
        /// With another model.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        model: Option<String>,
        /// With another patience for limits of the provider, in milliseconds.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        wait_max_ms: Option<u64>,
        /// Whether a subscription pays from now on.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        notional: Option<bool>,
        /// With these limits in place of its own.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        budget: Option<Budget>,
        /// Without the sandbox that the definition demands, from now on.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        unsandboxed: bool,
        /// The most asks that the price allows for from now on, where it holds the run.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        asks_max: Option<u64>,
        /// The tree as it was found, with partial edits of an ask that was cut off.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        found: Option<TreeState>,
    },
    /// The run ended.
    Ended {
        /// How.
        state: EndState,
        /// Why.
        reason: String,
        /// Whether every validator that guards this end passed.
        validated: bool,
        /// Where an exhausted run goes on with a higher limit.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        hold: Option<Hold>,
        /// Whether the step stays where it is, to go on with a larger budget.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        stays: bool,
    },
}
