//! The facts of a run: what the journal keeps.
//!
//! These are the wire types of the journal, format version [`Record::VERSION`]. Fields are only ever added, each
//! with a default; a meaning never changes. Steps are named, not numbered, so that an older journal is read
//! right by a program that lowers the definition in another order.

use std::collections::BTreeMap;

use cuegate_flow::{BlobRef, Permission, Str};
use serde::{Deserialize, Serialize};

use crate::completion::FaultClass;

/// The events of one decision: the unit of the journal.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Record {
    /// The format version.
    pub v: u32,
    /// What followed from one completion, in order. Never empty.
    pub events: Vec<Event>,
}

impl Record {
    /// The format that this program writes.
    pub const VERSION: u32 = 1;

    /// Reads a record as the journal keeps it.
    ///
    /// # Errors
    /// When it is damaged, or of a newer format: a newer program may mean something else by the same words.
    pub fn parse(bytes: &[u8]) -> Result<Record, Unreadable> {
        #[derive(Deserialize)]
        struct Head {
            v: u32,
        }
        let head: Head = serde_json::from_slice(bytes)?;
        if head.v > Record::VERSION {
            return Err(Unreadable::Newer { found: head.v, known: Record::VERSION });
        }
        Ok(serde_json::from_slice(bytes)?)
    }
}

/// Why a record cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum Unreadable {
    /// It is no record.
    #[error("it is damaged: {0}")]
    Damaged(#[from] serde_json::Error),
    /// A newer program wrote it.
    #[error("it has format {found}, this program knows {known}")]
    Newer {
        /// Its format.
        found: u32,
        /// The newest that this program knows.
        known: u32,
    },
}

/// What an ask was for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AskKind {
    /// The work of a step.
    Work,
    /// A report that a step owes.
    Report,
    /// A decision between outcomes.
    Judge,
    /// A check of another step's work.
    Check,
    /// A second try after an answer that could not be used.
    Repair,
    /// Work after a failed validator.
    Remedy,
}

impl AskKind {
    /// The word that is printed.
    pub fn as_str(self) -> &'static str {
        match self {
            AskKind::Work => "work",
            AskKind::Report => "report",
            AskKind::Judge => "judge",
            AskKind::Check => "check",
            AskKind::Repair => "repair",
            AskKind::Remedy => "remedy",
        }
    }
}

/// What an ask used up.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct Usage {
    /// Tokens read.
    pub input_tokens: u64,
    /// Tokens written.
    pub output_tokens: u64,
    /// US dollars; `None` = not known, which is not zero.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost_usd: Option<f64>,
}

/// A piece of a prompt, in the order in which it is joined.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Part {
    /// Text as it is.
    Text(Str),
    /// A kept value.
    Blob {
        /// Which.
        blob: BlobRef,
        /// When an agent or a command wrote it: what it is labelled with between its fences.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        fence: Option<Str>,
    },
}

/// A file that the definition was read from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SourceBlob {
    /// Its path in the project.
    pub path: String,
    /// Its content.
    pub blob: BlobRef,
}

/// Where a run works.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, Default)]
pub struct Place {
    /// The folder agents work in.
    pub work: String,
    /// Whether the run owns it and may restore it: a worktree made for it.
    #[serde(default)]
    pub owned: bool,
    /// The branch of an owned worktree.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub branch: Option<String>,
    /// Whether it was dirty at the start.
    #[serde(default)]
    pub dirty: bool,
}

/// The working tree at a moment.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, Default)]
pub struct TreeState {
    /// The tree object that holds everything that git does not ignore.
    pub tree: String,
    /// The commit that was checked out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub head: Option<String>,
    /// A digest of all branches and tags.
    #[serde(default)]
    pub refs: String,
}

/// What a run begins with.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Started {
    /// The program that started it, by version.
    pub program: String,
    /// The definition's name.
    pub flow: Str,
    /// Its format.
    pub dialect: String,
    /// What was loaded, as it was typed.
    pub path: String,
    /// The folder of the definition among its files.
    #[serde(default)]
    pub base: String,
    /// The file that was named in that folder, when it was not the folder itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// Every file that was read to load it.
    pub sources: Vec<SourceBlob>,
    /// Values given at start, by variable name, defaults filled in.
    pub params: BTreeMap<Str, BlobRef>,
    /// The task.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task: Option<BlobRef>,
    /// Names given with `--set`: they count as declared when the definition is loaded again.
    #[serde(default)]
    pub set: Vec<String>,
    /// Who is asked.
    pub provider: String,
    /// The model, when one was named.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// The provider's script.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub script: Option<SourceBlob>,
    /// The most iterations.
    pub iterations_max: u32,
    /// How often a bad answer is asked again.
    pub repairs_max: u32,
    /// How long a limit of the provider is waited for, in milliseconds.
    pub wait_max_ms: u64,
    /// Where it works.
    pub place: Place,
    /// The tree it starts from, where there is git.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tree: Option<TreeState>,
}

/// The prompt of a visit after a failed validator.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Remedy {
    /// The step whose validators failed.
    pub of: Str,
    /// The validator that failed.
    pub validator: Str,
    /// What is asked in place of the step's own prompt.
    pub prompt: Vec<Part>,
}

/// What a run waits for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Waiting {
    /// For what kind of thing.
    pub kind: WaitKind,
    /// In words.
    pub detail: String,
    /// Until when, in milliseconds since 1970, when that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until_ms: Option<i64>,
}

/// What kind of thing a run waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WaitKind {
    /// A person's answer.
    Person,
    /// A limit of the provider to pass.
    Quota,
    /// Somebody to mend something: a key, a program, a script.
    Environment,
    /// Nothing: it was interrupted.
    Interrupted,
}

/// How a run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EndState {
    /// It reached its goal.
    Completed,
    /// It gave up in a way the definition provides.
    Aborted,
    /// A rule of the definition was broken.
    Failed,
    /// A limit stopped it; a higher one lets it go on.
    Exhausted,
    /// Somebody cancelled it.
    Cancelled,
}

/// Where a row of the results ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RowEnd {
    /// The outcome, when there was one.
    pub outcome: Option<Str>,
    /// The step it went on to, or `@completed` and the like.
    pub target: Option<Str>,
    /// The monitor that chose the target.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub overridden_by: Option<Str>,
}

/// The step that an exhausted run would have entered.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hold {
    /// The step.
    pub step: Str,
    /// With what prompt, when not its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub remedy: Option<Remedy>,
    /// The attempt, when the same visit goes on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub again: Option<u32>,
}

fn is_zero(number: &u64) -> bool {
    *number == 0
}

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
    /// An ask became pending. Its number is the record's.
    AskRequested {
        /// The step that is asked.
        step: Str,
        /// The member of a parallel step, by index.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        member: Option<u16>,
        /// What for.
        kind: AskKind,
        /// Not before this time, in milliseconds since 1970.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        not_before_ms: Option<i64>,
        /// How long limits of the provider were waited for in this ask so far, in milliseconds.
        #[serde(default, skip_serializing_if = "is_zero")]
        waited_ms: u64,
        /// What is said instead of the step's own prompt, in the same conversation.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        follow: Option<crate::run::Follow>,
        /// The answer that another step judges.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        judging: Option<crate::run::Judging>,
    },
    /// A command became pending: the validator of this index.
    CommandRequested {
        /// The step.
        step: Str,
        /// Which of its commands.
        index: u16,
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
    },
    /// A monitor acts: its judge is asked where to go instead.
    MonitorFired {
        /// The monitor.
        monitor: Str,
        /// The whole rounds it saw.
        rounds: u32,
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
    },
    /// A person answered.
    PersonAnswered {
        /// What.
        text: BlobRef,
        /// The tree as it was found.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        found: Option<TreeState>,
    },
    /// Validators were passed over, as the definition says.
    ValidationSkipped {
        /// The step.
        step: Str,
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
    },
}
