//! Effects: what a run does outside of its working tree, or with the work of the run. Agents request them in action
//! blocks, definitions at the start and the end of a run. Each is a command with an intent and a result in the journal.

use std::fmt;

use cuegate_flow::{
    Str,
    model::{BlobRef, IssueClosure, Reaction},
};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{
    command::CommandId,
    event::Event,
    event_types::{EndState, PendingEntry},
    place::TreeState,
    run::{Run, State, Work},
    system::{StepEffect, StepEffectKind, StepEffectsRequested},
};

/// The maximum number of action blocks that are read from one answer.
pub(crate) const BLOCKS_MAX: usize = 256;

/// What an effect does.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum EffectKind {
    /// The block is only logged.
    Log,
    /// A program of the definition receives the block.
    Exec {
        /// Its path in the project.
        path: Str,
    },
    /// The comment of the run on its issue also shows the text of the block.
    Comment,
    /// The labels of the issue change.
    Labels {
        /// The labels to add.
        add: Vec<Str>,
        /// The labels to remove.
        remove: Vec<Str>,
    },
    /// The issue is closed.
    Close,
    /// What is not committed is committed on the branch of the run.
    Commit,
    /// That branch is merged into the branch from which the run started.
    Merge,
    /// The result is pushed.
    Push,
    /// A pull request proposes the branch of the run.
    PullRequest,
    /// Something that a step of the definition does.
    Step(StepEffectKind),
}

/// What a repetition of an effect does, which decides what happens when nobody knows whether it was done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EffectClass {
    /// It sets a state; repeating it is harmless.
    Settable,
    /// There can only be one; a repetition finds it and adopts it.
    Unique,
    /// A repetition may create another one, so it is only sent again when a look shows that there is none.
    Creatable,
    /// A program, which receives the same key again.
    Program,
}

impl EffectClass {
    /// The printed word.
    pub fn as_str(self) -> &'static str {
        match self {
            EffectClass::Settable => "settable",
            EffectClass::Unique => "unique",
            EffectClass::Creatable => "creatable",
            EffectClass::Program => "program",
        }
    }
}

impl EffectKind {
    /// What a repetition does.
    pub fn class(&self) -> EffectClass {
        match self {
            EffectKind::Log | EffectKind::Labels { .. } | EffectKind::Close => EffectClass::Settable,
            EffectKind::Commit | EffectKind::Merge | EffectKind::Push | EffectKind::PullRequest => {
                EffectClass::Unique
            }
            EffectKind::Comment | EffectKind::Step(StepEffectKind::CommentPullRequest) => {
                EffectClass::Creatable
            }
            EffectKind::Step(StepEffectKind::ClosePullRequest) => EffectClass::Settable,
            EffectKind::Step(
                StepEffectKind::MergePullRequest
                | StepEffectKind::SyncPullRequest
                | StepEffectKind::EnqueueTask,
            ) => EffectClass::Unique,
            EffectKind::Exec { .. } => EffectClass::Program,
        }
    }

    /// The name in JSON.
    pub fn name(&self) -> &'static str {
        match self {
            EffectKind::Log => "log",
            EffectKind::Exec { .. } => "exec",
            EffectKind::Comment => "github.comment",
            EffectKind::Labels { .. } => "github.label",
            EffectKind::Close => "github.close",
            EffectKind::PullRequest => "github.pull_request",
            EffectKind::Commit => "git.commit",
            EffectKind::Merge => "git.merge",
            EffectKind::Push => "git.push",
            EffectKind::Step(StepEffectKind::CommentPullRequest) => "github.comment_pull_request",
            EffectKind::Step(StepEffectKind::ClosePullRequest) => "github.close_pull_request",
            EffectKind::Step(StepEffectKind::MergePullRequest) => "github.merge_pull_request",
            EffectKind::Step(StepEffectKind::SyncPullRequest) => "git.sync_pull_request",
            EffectKind::Step(StepEffectKind::EnqueueTask) => "queue.add",
        }
    }

    /// The word on screen.
    pub fn word(&self) -> &'static str {
        match self {
            EffectKind::Log => "log",
            EffectKind::Exec { .. } => "program",
            EffectKind::Comment => "comment",
            EffectKind::Labels { .. } => "labels",
            EffectKind::Close => "close",
            EffectKind::Commit => "commit",
            EffectKind::Merge => "merge",
            EffectKind::Push => "push",
            EffectKind::PullRequest => "pull request",
            EffectKind::Step(StepEffectKind::CommentPullRequest) => "comment on a pull request",
            EffectKind::Step(StepEffectKind::ClosePullRequest) => "close a pull request",
            EffectKind::Step(StepEffectKind::MergePullRequest) => "merge a pull request",
            EffectKind::Step(StepEffectKind::SyncPullRequest) => "sync a pull request",
            EffectKind::Step(StepEffectKind::EnqueueTask) => "add a task",
        }
    }

    /// Whether it does something with the work of a completed run. If it fails, the run fails.
    pub fn finalizes(&self) -> bool {
        matches!(self, EffectKind::Commit | EffectKind::Merge | EffectKind::Push | EffectKind::PullRequest)
    }

    /// Whether it needs GitHub.
    pub fn is_github(&self) -> bool {
        matches!(
            self,
            EffectKind::Comment
                | EffectKind::Labels { .. }
                | EffectKind::Close
                | EffectKind::PullRequest
                | EffectKind::Step(_)
        )
    }

    /// The effect of a handler on a block.
    pub(crate) fn of(reaction: &Reaction, block: &Value) -> EffectKind {
        match reaction {
            Reaction::Log => EffectKind::Log,
            Reaction::Exec(program) => EffectKind::Exec { path: program.path.clone() },
            Reaction::Comment => EffectKind::Comment,
            Reaction::Label => {
                let texts = |keys: &[&str]| {
                    let values = keys.iter().filter_map(|key| block.get(key));
                    let one = |value: &Value| Vec::from_iter(value.as_str().map(Str::from));
                    let all = |value: &Value| match value {
                        Value::Array(values) => values.iter().flat_map(one).collect(),
                        value => one(value),
                    };
                    values.flat_map(all).collect::<Vec<Str>>()
                };
                EffectKind::Labels { add: texts(&["add", "label", "labels"]), remove: texts(&["remove"]) }
            }
        }
    }
}

impl fmt::Display for EffectKind {
    /// The handler as definitions write it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            EffectKind::Exec { path } => write!(f, "exec:{path}"),
            EffectKind::Comment => f.write_str("github:comment"),
            EffectKind::Labels { .. } => f.write_str("github:label"),
            other => f.write_str(other.word()),
        }
    }
}

/// The text that a block wants to comment: its `body`, `comment` or `text`.
pub fn comment_text(block: &Value) -> Option<&str> {
    let texts = ["body", "comment", "text"].into_iter().filter_map(|key| block.get(key)?.as_str());
    texts.map(str::trim).find(|text| !text.is_empty())
}

/// The closure action that a structured answer asks for, in `closure_action`, `closure.action` or `action`.
pub(crate) fn closure_of(output: &Value) -> Option<IssueClosure> {
    let named = ["/closure_action", "/closure/action", "/action"].into_iter();
    named.filter_map(|path| output.pointer(path)?.as_str()).find_map(IssueClosure::named)
}

/// What is done with the work of a run that completed in a worktree of its own.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct FinalizePlan {
    /// Whether its branch is merged into the branch from which it started.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub merge: bool,
    /// The remote to which the result is pushed: the merged branch, or the branch of the run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub push: Option<String>,
    /// Whether a pull request proposes it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub pull_request: bool,
    /// The branch that the pull request changes; `None`: the branch from which the run started.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub into: Option<String>,
    /// The branch on the remote that claims the issue of the run. The work is pushed to it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub claim: Option<IssueClaim>,
}

/// A claim: a branch that was created on the remote, so that no other machine works on the same issue.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct IssueClaim {
    pub branch: String,
    /// The empty commit that it was created with, which the work replaces.
    pub commit: String,
}

impl FinalizePlan {
    /// Its effects, in order.
    pub fn effects(&self) -> Vec<EffectKind> {
        let merge = (self.merge && !self.pull_request).then_some(EffectKind::Merge);
        let push = self.push.as_ref().map(|_| EffectKind::Push);
        let request = self.pull_request.then_some(EffectKind::PullRequest);
        std::iter::once(EffectKind::Commit).chain(merge).chain(push).chain(request).collect()
    }
}

/// What of the life of a run its issue shows by labels.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Phase {
    /// It works.
    Working,
    /// It waits for a person, or ended without success.
    Blocked,
    /// It completed.
    Completed,
}

/// A requested effect that is not done yet, or whose result a person has to settle.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Effect {
    /// Its id, the idempotency key.
    pub id: CommandId,
    /// What it does.
    pub kind: EffectKind,
    /// The step whose answer requests it; empty if the definition does.
    pub step: Str,
    /// Which visit of that step.
    pub visit: u32,
    /// Which iteration of the run.
    pub iteration: u32,
    /// The name of the action, as it was requested.
    pub action: Str,
    /// The block, if an agent requests it.
    pub value: BlobRef,
    /// The number of the next try, from 0.
    pub attempt: u32,
    /// How often it failed in a way that may pass.
    pub faults: u32,
    /// How often a look did not find it after it may have been sent.
    pub looks: u32,
    /// How often the server limited the rate of requests.
    pub limits: u32,
    /// The earliest time of the next try, in milliseconds since 1970.
    pub not_before_ms: Option<i64>,
}

/// Why an effect is tried again later.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Delay {
    /// It failed in a way that may pass.
    Fault,
    /// The server limits the rate of requests.
    Limit,
    /// It may have been sent, and a look did not find it yet.
    Look,
}

/// The result of an effect.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EffectState {
    /// It is done.
    Done,
    /// It is not done.
    Failed,
    /// Nobody knows whether it is done.
    Unknown,
}

/// The end of a run whose last effects are still pending.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunEnd {
    /// How it ends.
    pub state: EndState,
    /// Why it ends, for people.
    pub reason: String,
    /// Whether every validator that guards this end passed.
    pub validated: bool,
    /// Where an exhausted run goes on with a higher limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hold: Option<PendingEntry>,
    /// Whether the run goes on where it stands when it gets more budget.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub stays: bool,
}

/// The definition requests effects. Their ids contain this record and their index, from `first` on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EffectsRequested {
    /// What of the life of the run they show or follow.
    pub phase: Phase,
    /// The index of the first.
    pub first: u16,
    /// The effects, in order.
    pub effects: Vec<EffectKind>,
}

/// An effect is tried again later.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EffectDelayed {
    pub effect: CommandId,
    pub action: Str,
    /// The reason.
    pub delay: Delay,
    /// What happened.
    pub why: String,
    /// The time of the next try, in milliseconds since 1970.
    pub until_ms: i64,
}

/// An effect is done, or is not tried again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EffectFinished {
    pub effect: CommandId,
    /// The step whose answer requests it; empty if the definition does.
    pub step: Str,
    pub action: Str,
    /// The result.
    pub state: EffectState,
    /// What was done, or why not.
    pub said: String,
    /// The address of what was created.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// Whether it met conflicts, and changed nothing.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub conflicted: bool,
    /// The number of what was created, such as an issue.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub number: Option<u64>,
    /// The standard output of its program.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stdout: Option<BlobRef>,
    /// The standard error of its program.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stderr: Option<BlobRef>,
    /// The duration in milliseconds.
    pub duration_ms: u64,
    /// The files that changed during it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub changed_files: Vec<String>,
    /// The working tree afterwards.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tree: Option<TreeState>,
}

impl Run {
    /// Applies an event to the requested effects.
    pub(crate) fn acted(&mut self, event: &Event) {
        match event {
            Event::ActionFound { step, index, action, value, handler: Some(kind), .. }
                if *kind != EffectKind::Log =>
            {
                self.effects.pending.push(Effect {
                    id: CommandId::Effect { seq: self.seq, index: *index },
                    kind: kind.clone(),
                    step: step.clone(),
                    visit: self.progress.visit.as_ref().map_or(0, |visit| visit.visit),
                    iteration: self.progress.iterations,
                    action: action.clone(),
                    value: value.clone(),
                    attempt: 0,
                    faults: 0,
                    looks: 0,
                    limits: 0,
                    not_before_ms: None,
                });
            }
            Event::EffectsRequested(EffectsRequested { phase, first, effects }) => {
                self.effects.phase = Some(*phase);
                if self.effects.unfinalized.is_none() && effects.iter().any(EffectKind::finalizes) {
                    self.effects.ended_tree = self.tree.as_ref().map(|tree| tree.tree.clone());
                }
                for (index, kind) in (*first..).zip(effects) {
                    self.effects.pending.push(Effect {
                        id: CommandId::Effect { seq: self.seq, index },
                        kind: kind.clone(),
                        step: "".into(),
                        visit: 0,
                        iteration: self.progress.iterations,
                        action: kind.word().into(),
                        value: BlobRef::for_bytes(b""),
                        attempt: 0,
                        faults: 0,
                        looks: 0,
                        limits: 0,
                        not_before_ms: None,
                    });
                }
            }
            Event::StepEffectsRequested(StepEffectsRequested { step, effects }) => {
                if let Some(node) = &mut self.progress.node {
                    node.work = Work::Acting;
                }
                for (index, StepEffect { name, kind, values }) in (0..).zip(effects) {
                    self.effects.pending.push(Effect {
                        id: CommandId::Effect { seq: self.seq, index },
                        kind: EffectKind::Step(*kind),
                        step: step.clone(),
                        visit: self.progress.visit.as_ref().map_or(0, |visit| visit.visit),
                        iteration: self.progress.iterations,
                        action: name.clone(),
                        value: values.clone(),
                        attempt: 0,
                        faults: 0,
                        looks: 0,
                        limits: 0,
                        not_before_ms: None,
                    });
                }
            }
            Event::ClosureNarrowed { closure, .. } => self.effects.closure = Some(*closure),
            Event::EffectDelayed(EffectDelayed { effect, until_ms, delay, .. }) => {
                if let Some(effect) = self.effects.pending.iter_mut().find(|known| known.id == *effect) {
                    effect.not_before_ms = Some(*until_ms);
                    effect.attempt += 1;
                    effect.faults += u32::from(*delay == Delay::Fault);
                    effect.looks += u32::from(*delay == Delay::Look);
                    effect.limits += u32::from(*delay == Delay::Limit);
                }
            }
            Event::EffectResent { effect, .. } => {
                if let Some(at) = self.effects.unsettled.iter().position(|known| known.id == *effect) {
                    let effect = self.effects.unsettled.remove(at);
                    if effect.kind == EffectKind::Comment {
                        self.effects.comment_unknown = false;
                    }
                    let attempt = effect.attempt + 1;
                    self.effects.pending.push(Effect {
                        attempt,
                        faults: 0,
                        looks: 0,
                        limits: 0,
                        not_before_ms: None,
                        ..effect
                    });
                }
            }
            Event::EffectFinished(EffectFinished { effect, state, url, tree, .. }) => {
                let of = |known: &Effect| known.id == *effect;
                let found =
                    self.effects.pending.iter().position(of).map(|at| self.effects.pending.remove(at));
                let found = found.or_else(|| {
                    self.effects.unsettled.iter().position(of).map(|at| self.effects.unsettled.remove(at))
                });
                if let Some(effect) = found {
                    self.finished(effect, *state, url.as_deref());
                }
                // The changed files belong to the effect, not to the visit that is open meanwhile.
                self.saw(&[], tree);
            }
            Event::Ending(ending) => {
                if ending.state == EndState::Completed {
                    self.effects.unfinalized = None;
                }
                if !ending.stays {
                    self.progress.node = None;
                    self.progress.visit = None;
                }
                self.effects.ending = Some(ending.clone());
            }
            Event::Ended { .. } => {
                self.effects.ending = None;
                if matches!(&self.state, State::Ended { state: EndState::Cancelled, .. }) {
                    self.effects.pending.clear();
                }
            }
            Event::QuestionAnswered { .. } => self.context.questions += 1,
            Event::StepEntered { .. } => self.context.questions = 0,
            _ => {}
        }
    }

    fn finished(&mut self, effect: Effect, state: EffectState, url: Option<&str>) {
        match (&effect.kind, state) {
            (EffectKind::Comment, EffectState::Done) => {
                self.effects.comments.retain(|known| *known != effect.value);
                self.effects.comments.push(effect.value);
                self.effects.comment_url = url.map(str::to_owned).or(self.effects.comment_url.take());
                self.effects.comment_unknown = false;
            }
            // If a later look finds the comment, it has this text.
            (EffectKind::Comment, EffectState::Unknown) => {
                self.effects.comments.push(effect.value.clone());
                self.effects.comment_unknown = true;
                self.effects.unsettled.push(effect);
            }
            // What comes after it in the finalization depends on it. A retry repeats just the finalization.
            (kind, EffectState::Failed | EffectState::Unknown) if kind.finalizes() => {
                self.effects.pending.clear();
                self.effects.unfinalized = self.effects.ending.take();
            }
            // The step says what follows from a failure.
            (EffectKind::Log | EffectKind::Exec { .. }, _)
            | (EffectKind::Step(_), EffectState::Failed)
            | (_, EffectState::Done) => {}
            (_, EffectState::Failed | EffectState::Unknown) => self.effects.unsettled.push(effect),
        }
    }
}
