//! The decision engine: from a [`Run`] and a [`Completion`] it computes the next events and the pending commands.
//!
//! Deciding is synchronous and returns data. The state of a run is a fold of its events, and the pending commands are
//! a function of that state, so starting and resuming a run are the same code path.
//!
//! This crate has no async code, IO, clock or randomness except as arguments, and never prints.
//!
//! ```text
//! loop {
//!     let commands = pending(&flow, &run);            // what the engine wants done
//!     let completion = world.perform(commands);       // what the world answered
//!     let decision = decide(&flow, &run, now, completion);
//!     journal.append(run.seq, &decision);             // one record, before anything else happens
//!     for event in &decision.events { run.apply(run.seq, now, event) }
//! }
//! ```

pub(crate) mod answers;
mod apply;
mod batch;
mod budget;
mod command;
mod completion;
mod completion_state;
mod decide;
mod effect;
mod event;
mod event_types;
mod fence_key;
mod pending;
mod place;
mod prompt;
mod record;
mod reports;
mod route;
mod run;

pub use crate::answers::action_blocks::{Block, actions, blocks};
pub use crate::answers::extractors::extract;
pub use crate::answers::gate::{Bad, Reading, found, read};
pub use crate::answers::structured::json_in_text;
pub use batch::{
    Amounts, Batch, BatchEnd, BatchEvent, BatchRecord, BatchStarted, Choice, Claimed, FAILURES_MAX, Progress,
    QueueRead, QueueSource, Reason, RunBefore, RunStopped, Stop, Taken, Task,
};
pub use budget::{AskLimit, Budget, Excess, Lack, Ledger, Share, Spent, micro};
pub use command::{
    About, AskCommand, Command, CommandId, EffectCommand, ExecCommand, LastAnswer, Left, Probe, ProbeCommand,
    SessionUse,
};
pub use completion::{
    Answer, Completion, EffectResult, Exec, Exit, Fault, FaultClass, Look, Moment, Outside, Resume, Retry,
    Seen, Start, Tools,
};
pub use completion_state::{ConditionState, POLL_INTERVAL_MS, Probing, has, reached, says, signals};
pub use decide::{Decision, decide};
pub use effect::{
    Claim, Delay, Effect, EffectClass, EffectDelayed, EffectFinished, EffectKind, EffectState,
    EffectsRequested, Ending, Finalize, Phase, comment_text,
};
pub use event::Event;
pub use event_types::{
    AskContext, AskKind, AskRequest, EndState, GithubTarget, Hold, Load, Owing, PromptPart, Put, Remedy,
    Resumed, RowEnd, SchemaBy, SessionBy, SourceBlob, Spoken, Started, Then, ToolCall, ToolResult, TreeState,
    Usage, WaitKind, Waiting,
};
pub use fence_key::FenceKey;
pub use pending::pending;
pub use place::Place;
pub use prompt::{Failure, expand};
pub use record::{Record, Unreadable};
pub use reports::{ReportFile, Reports, Version};
pub use route::{Route, target};
pub use run::{Asking, Follow, Head, Judging, Kept, Member, Node, Run, State, Visit, Work};
