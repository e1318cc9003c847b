//! What happens in a batch.

use serde::{Deserialize, Serialize};

use super::{Amounts, Task};
use crate::{budget::SpentBudget, record::UnreadableRecord};

/// Where the tasks come from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum QueueSource {
    /// The open issues of a repository with a label.
    Issues {
        /// The address of the API.
        api: String,
        /// The repository, as `owner/name`.
        repository: String,
        label: String,
        /// The remote on which issues are claimed.
        remote: String,
    },
    /// A file with a task in each line, or a list in YAML.
    File {
        /// Its path, absolute.
        path: String,
    },
}

/// How a batch was started. Everything in it applies to each of its runs, and to a resumed batch.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BatchStarted {
    /// The version of the program.
    pub program: String,
    /// The definition, as typed.
    pub agent: String,
    /// The folder in the project where it was typed; empty at the top.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub here: String,
    /// The source of its tasks.
    pub source: QueueSource,
    /// An issue with one of these labels is not taken.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub blocked_by: Vec<String>,
    /// The most tasks that are taken; `None` = all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max: Option<u32>,
    /// How many runs work at the same time.
    pub parallel: u16,
    /// Whether the queue is read only once.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub once: bool,
    /// The seconds between two reads of a queue that is watched.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub watch_s: Option<u64>,
    /// What all runs together may use.
    #[serde(default)]
    pub budget: Amounts,
    /// The most that one run uses.
    #[serde(default)]
    pub each: Amounts,
    /// The arguments of `cuegate run` that are the same for each run.
    pub args: Vec<String>,
}

/// The queue, as it was read.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct QueueRead {
    /// Its tasks, in the order of the source: issues from the oldest to the newest, a file from top to bottom.
    pub tasks: Vec<Task>,
    /// The tasks that are claimed, by their keys, with a description of who claims them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub claims: Vec<(String, String)>,
    /// The runs of earlier batches on tasks of a file.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub before: Vec<EarlierRun>,
}

/// A run of an earlier batch.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EarlierRun {
    /// The key of its task.
    pub task: String,
    pub run: String,
    /// Its state, in words.
    pub state: String,
    /// Whether it is not over, and nobody goes on with it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_stuck: bool,
}

/// Whether a claim was won.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ClaimOutcome {
    /// The task belongs to this batch.
    Won,
    /// Somebody else has it.
    Lost {
        /// A description of who.
        by: String,
    },
}

/// How a run of a batch stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StopKind {
    /// It completed.
    Completed,
    /// It ended in another way.
    Failed,
    /// It can be resumed.
    Suspended,
    /// It waits for an answer of a person.
    Waiting,
    /// It has no record: no agent was called.
    NotStarted,
}

impl StopKind {
    /// Whether the run does not go on.
    pub fn is_over(self) -> bool {
        matches!(self, StopKind::Completed | StopKind::Failed | StopKind::NotStarted)
    }
}

/// The state of a run of a batch when its process ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunStopped {
    pub stop: StopKind,
    /// Its state, in words.
    pub state: String,
    /// What it used.
    pub spent: SpentBudget,
}

/// Why a batch stopped.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BatchEnd {
    /// No task was left that could be taken.
    Done,
    /// It was interrupted.
    Interrupted,
    /// Several runs in a row failed.
    Failing,
    /// The queue could not be read, or a task not claimed.
    Broken(String),
}

/// Something that happened in a batch.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum BatchEvent {
    /// It was started.
    BatchStarted(Box<BatchStarted>),
    /// It was resumed.
    BatchResumed {
        /// The version of the program.
        program: String,
    },
    /// The queue was read.
    QueueRead(QueueRead),
    /// A claim is about to be pushed.
    ClaimRequested {
        /// The key of the task.
        task: String,
        /// The commit that the claim would put on the branch of the task.
        commit: String,
    },
    /// A claim was won or lost.
    ClaimDecided {
        /// The key of the task.
        task: String,
        /// Who has it now.
        claim: ClaimOutcome,
    },
    /// The process of a run is about to start.
    RunStarted {
        /// The key of the task.
        task: String,
        run: String,
    },
    /// The process of a run ended.
    RunStopped {
        /// The key of the task.
        task: String,
        /// How it ended.
        stopped: RunStopped,
    },
    /// The claim of a task was given back.
    ClaimReleased {
        /// The key of the task.
        task: String,
    },
    BatchStopped {
        /// Why no further task is taken.
        end: BatchEnd,
    },
}

/// The events of one step of a batch: the unit of its journal.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct BatchRecord {
    /// The format version.
    pub v: u32,
    /// The events, in order.
    pub events: Vec<BatchEvent>,
}

impl BatchRecord {
    /// The format version that this program writes.
    pub const VERSION: u32 = 1;

    /// Parses a journal record.
    ///
    /// # Errors
    /// When it is damaged or of a newer format.
    pub fn parse(bytes: &[u8]) -> Result<BatchRecord, UnreadableRecord> {
        #[derive(Deserialize)]
        struct BatchRecordHead {
            v: u32,
        }
        let head: BatchRecordHead = serde_json::from_slice(bytes)?;
        if head.v > BatchRecord::VERSION {
            return Err(UnreadableRecord::Newer { found: head.v, known: BatchRecord::VERSION });
        }
        Ok(serde_json::from_slice(bytes)?)
    }
}
