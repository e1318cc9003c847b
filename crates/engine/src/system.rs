//! Steps that Cuegate does itself: what they read, and what follows from that.

use std::collections::BTreeMap;

use cuegate_flow::{
    Str,
    model::{BlobRef, SystemEffectKind, SystemRead},
};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{
    command::CommandId,
    event_types::PromptPart,
    recorded_completion::{read_json_text, write_json_text},
    run::{Run, Work},
};

/// A request for what a step reads.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct ReadsRequested {
    pub step: Str,
    /// The earliest time, in milliseconds since 1970.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub not_before_ms: Option<i64>,
    /// How often it failed before.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub faults: u32,
    /// How often a server limited the rate of requests before.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub limits: u32,
    /// Why it is tried again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
}

fn is_zero(number: &u32) -> bool {
    *number == 0
}

/// What a step read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReadsDone {
    pub step: Str,
    /// An object with what was read, by name.
    pub values: BlobRef,
    /// The duration in milliseconds.
    #[serde(default)]
    pub duration_ms: u64,
}

/// The effects of a step. Their ids contain this record and their index.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StepEffectsRequested {
    pub step: Str,
    /// The effects, in order.
    pub effects: Vec<StepEffect>,
}

/// One of them, as it is when it is requested: what other steps handed on is filled in.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StepEffect {
    /// The word that the definition has for it.
    pub name: Str,
    pub kind: StepEffectKind,
    /// Its values by name, as JSON of lists of [`PromptPart`] without fences.
    pub values: BlobRef,
}

/// What an effect of a step does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StepEffectKind {
    CommentPullRequest,
    ClosePullRequest,
    MergePullRequest,
    SyncPullRequest,
    EnqueueTask,
}

impl From<SystemEffectKind> for StepEffectKind {
    fn from(kind: SystemEffectKind) -> StepEffectKind {
        match kind {
            SystemEffectKind::Comment => StepEffectKind::CommentPullRequest,
            SystemEffectKind::Close => StepEffectKind::ClosePullRequest,
            SystemEffectKind::Merge => StepEffectKind::MergePullRequest,
            SystemEffectKind::Sync => StepEffectKind::SyncPullRequest,
            SystemEffectKind::Enqueue => StepEffectKind::EnqueueTask,
        }
    }
}

/// The values of an effect of a step.
pub type EffectValues = BTreeMap<Str, Vec<PromptPart>>;

/// What a step is to read.
#[derive(Debug, Clone, PartialEq)]
pub struct ReadCommand {
    pub id: CommandId,
    pub step: Str,
    pub reads: Vec<SystemRead>,
    /// The numbers that this step selected before, by the name of the read.
    pub selected: BTreeMap<Str, u64>,
    /// The task of the run.
    pub task: Option<BlobRef>,
    /// The earliest time, in milliseconds since 1970.
    pub not_before_ms: Option<i64>,
}

/// The result of reading.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ReadResult {
    Done {
        /// An object with what was read, by name.
        #[serde(serialize_with = "write_json_text", deserialize_with = "read_json_text")]
        values: Option<Value>,
        /// The duration in milliseconds.
        duration_ms: u64,
    },
    /// Something could not be read.
    Failed {
        why: String,
        /// Whether it may succeed later.
        may_pass: bool,
        /// What a server asks for that limits the rate of requests.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        limit: Option<ReadLimit>,
    },
}

/// A limit of the rate of requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReadLimit {
    /// The time to wait that the server asks for, in milliseconds.
    pub after_ms: Option<u64>,
}

/// What a step waits for that reads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PendingReads {
    /// The record that requested it.
    pub seq: u64,
    /// How often it failed.
    pub faults: u32,
    /// How often a server limited the rate of requests.
    pub limits: u32,
    /// The earliest time, in milliseconds since 1970.
    pub not_before_ms: Option<i64>,
}

impl Run {
    pub(crate) fn reads_requested(&mut self, request: &ReadsRequested) {
        let ReadsRequested { not_before_ms, faults, limits, .. } = request;
        let reads =
            PendingReads { seq: self.seq, faults: *faults, limits: *limits, not_before_ms: *not_before_ms };
        if let Some(node) = &mut self.progress.node {
            node.work = Work::Reading(reads);
        }
    }

    /// The newest value that a step handed on under a key; `None` for none, and for a list or an object, which no literal
    /// equals.
    pub fn value_of_handoff(&self, step: &str, key: &str) -> Option<Value> {
        let kept = self.context.handoffs.get(step)?.get(key)?;
        match &kept.scalar {
            Some(scalar) if kept.text => {
                Some(Value::String(scalar.to_string())).filter(|_| !scalar.is_empty())
            }
            Some(scalar) => serde_json::from_str(scalar).ok(),
            // It is there, and longer than any literal or no text at all.
            None => Some(Value::Object(serde_json::Map::new())),
        }
    }
}
