//! The state of a run: what `fold.rs` makes of its events.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use cuegate_flow::{Str, model::BlobRef};
use serde::{Deserialize, Serialize};

use crate::{
    budget::Ledger,
    command::{CommandId, Said},
    completion_state::{Known, Probing},
    effect::{Effect, Ending},
    event_types::{
        AskKind, Claim, EndState, Hold, Owing, Part, Remedy, Spoken, Started, TreeState, Usage, Waiting,
    },
    reports::Reports,
};

/// Where a run stands. It holds digests and small facts, never long texts.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Run {
    /// How many records were applied: the number of the next one.
    pub seq: u64,
    /// What it began with; `None` before the first record.
    pub started: Option<Arc<Started>>,
    /// Whether it goes on.
    pub state: State,
    /// The step that control stands on.
    pub node: Option<Node>,
    /// The visit that is open: it ends when control comes to another step that counts.
    pub visit: Option<Visit>,
    /// Iterations entered.
    pub iterations: u32,
    /// Iterations finished.
    pub finished: u32,
    /// Visits by step.
    pub visits: BTreeMap<Str, u32>,
    /// Counters of bounded edges.
    pub counters: BTreeMap<Str, u32>,
    /// Who handed off to a step.
    pub origins: BTreeMap<Str, Str>,
    /// Data that steps left, by step and name; the newest visit wins.
    pub handoffs: BTreeMap<Str, BTreeMap<Str, Kept>>,
    /// The last answer's summary.
    pub summary: Option<BlobRef>,
    /// The last answer of a step, whoever judged or checked it.
    pub said: Option<Said>,
    /// What is known of the parts of the verdict, by their places.
    pub conditions: BTreeMap<Str, Known>,
    /// What was said in the last visit that ended well: what prompts call the previous response.
    pub previous: Vec<Spoken>,
    /// The same as it was when the open visit began: what a visit that mends this one reads.
    pub before: Vec<Spoken>,
    /// What steps reported.
    pub reports: Reports,
    /// How the answers of the open visit begin, by step, in flows that ask persons.
    pub excerpts: BTreeMap<Str, String>,
    /// What a person was asked last.
    pub question: Option<BlobRef>,
    /// Whether the step that asked is done again with the answer.
    pub again: bool,
    /// What persons answered, the oldest first.
    pub user_inputs: Vec<BlobRef>,
    /// Heads of conversations, by key.
    pub sessions: BTreeMap<Str, Head>,
    /// Finished top-level steps since a monitor last acted.
    pub history: Vec<Str>,
    /// Asks that were answered, so that a repeated answer is not charged twice.
    pub settled: BTreeSet<CommandId>,
    /// What agents asked for and programs have still to do, in order.
    pub effects: Vec<Effect>,
    /// The end that the run comes to when that is done.
    pub ending: Option<Ending>,
    /// Questions of this visit that were answered without a person.
    pub questions: u32,
    /// The tree that the run stands on.
    pub tree: Option<TreeState>,
    /// The record in which somebody last looked at the tree after stopping what was at work there.
    pub looked: Option<u64>,
    /// What was used up.
    pub usage: Usage,
    /// What may be used up, and what pending asks have set aside.
    pub ledger: Ledger,
    /// The most iterations, as the last resume set it.
    pub iterations_max: u32,
    /// How often a bad answer is asked again, as the last resume set it.
    pub repairs_max: u32,
}

/// A conversation as the last journaled answer left it.
#[derive(Debug, Clone, PartialEq)]
pub struct Head {
    /// The provider's name for it.
    pub id: String,
    /// What the provider reported for the whole of it.
    pub totals: Option<Usage>,
}

/// Whether a run goes on.
#[derive(Debug, Clone, PartialEq, Default)]
pub enum State {
    /// Nothing happened yet.
    #[default]
    New,
    /// It goes on.
    Running,
    /// It waits.
    Suspended(Waiting),
    /// It ended.
    Ended {
        /// How.
        state: EndState,
        /// Why.
        reason: String,
        /// Where an exhausted run goes on with a higher limit.
        hold: Option<Hold>,
    },
}

/// The step that control stands on.
#[derive(Debug, Clone, PartialEq)]
pub struct Node {
    /// Its name.
    pub step: Str,
    /// The record that entered it.
    pub entered: u64,
    /// What it does.
    pub work: Work,
}

/// What a step does at the moment.
#[derive(Debug, Clone, PartialEq)]
pub enum Work {
    /// It was entered; nothing is pending yet.
    Entered,
    /// It asks.
    Asking(Asking),
    /// It runs its commands; this one is pending.
    Running {
        /// Since this record.
        seq: u64,
        /// Which command.
        index: u16,
    },
    /// Its members ask.
    Joining(Vec<Member>),
    /// It waits for a person.
    Person,
    /// It is over, and the run looks around before the next step.
    Probing(Probing),
}

/// A pending ask.
#[derive(Debug, Clone, PartialEq)]
pub struct Asking {
    /// The record that made it pending.
    pub seq: u64,
    /// What for.
    pub kind: AskKind,
    /// Faults since the last answer.
    pub faults: u32,
    /// Rejected answers in this attempt.
    pub repairs: u32,
    /// Not before this time, in milliseconds since 1970.
    pub not_before_ms: Option<i64>,
    /// How long limits of the provider were waited for so far, in milliseconds.
    pub waited_ms: u64,
    /// What is said instead of the step's own prompt.
    pub follow: Option<Follow>,
    /// The answer that another step judges.
    pub judging: Option<Judging>,
    /// The answer whose report is asked for.
    pub owing: Option<Owing>,
}

/// What is said in a conversation that has begun.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Follow {
    /// What is said.
    pub say: Vec<Part>,
    /// What the agent said before, for a provider that cannot continue a conversation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<BlobRef>,
}

/// An answer whose outcome another step decides.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Judging {
    /// The step that decides.
    pub judge: Str,
    /// The place of the reader that asked it, to go on from there.
    pub reader: u16,
    /// The answer. Of a parallel step, which has none of its own, it is empty.
    pub answer: BlobRef,
    /// What the members of a parallel step said.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub answers: Vec<Spoken>,
}

/// A member of a parallel step.
#[derive(Debug, Clone, PartialEq)]
pub struct Member {
    /// Its step.
    pub step: Str,
    /// Its ask, while there is one.
    pub asking: Option<Asking>,
    /// The command that its answer has to pass, while there is one.
    pub proving: Option<Proving>,
    /// Whether a command of it has begun.
    pub proved: bool,
    /// How many commands its answers did not pass.
    pub failures: u32,
    /// How it ended: its outcome, or nothing when it failed.
    pub ended: Option<Option<Str>>,
    /// Whether it said that it cannot proceed.
    pub blocked: bool,
    /// Why there is no outcome.
    pub why: Option<String>,
    /// What it said, where that can be used.
    pub answer: Option<BlobRef>,
}

/// A pending command of a member.
#[derive(Debug, Clone, PartialEq)]
pub struct Proving {
    /// The record that made it pending.
    pub seq: u64,
    /// Which of its commands.
    pub index: u16,
    /// What it has come to when all pass.
    pub claim: Claim,
}

/// An open visit.
#[derive(Debug, Clone, PartialEq)]
pub struct Visit {
    /// The step.
    pub step: Str,
    /// Which visit of it.
    pub visit: u32,
    /// Which attempt.
    pub attempt: u32,
    /// Which iteration of the run.
    pub iteration: u32,
    /// The prompt in place of its own.
    pub remedy: Option<Remedy>,
    /// Its outcome, once decided.
    pub outcome: Option<Str>,
    /// The monitor that acted on its way out.
    pub monitor: Option<Str>,
    /// How many rounds that monitor saw.
    pub rounds: u32,
    /// Files that changed.
    pub changed: BTreeSet<String>,
}

/// Data that a step left.
#[derive(Debug, Clone, PartialEq)]
pub struct Kept {
    /// The value.
    pub value: BlobRef,
    /// The value itself, when it is short.
    pub scalar: Option<Str>,
    /// Whether it is text that an agent wrote.
    pub text: bool,
    /// The record that entered its step, and the member: the newest of a name wins, in whatever order members answer.
    pub order: (u64, u16),
}
