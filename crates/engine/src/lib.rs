//! The decision engine: from a [`Run`] and a [`Completion`] it computes the next events and the pending commands.
//!
//! Deciding is synchronous and returns data. The state of a run is a fold of its events, and the pending commands are
//! a function of that state, so starting and resuming a run are the same code path.
//!
//! This crate has no async code, IO, clock or randomness except as arguments, and never prints.
//!
//! ```
//! use cuegate_engine::{Answer, Command, Completion, Run, Start, State, decide, list_pending_commands};
//! use cuegate_flow::model::Role;
//! use cuegate_testkit::{Builder, world};
//!
//! let flow = Builder::new("demo", "test", "fix").ask("fix", Role::Work, &["done"]).to("done", "@completed").flow();
//! let (mut run, mut now_ms) = (Run::default(), 1_700_000_000_000_i64);
//! let mut completion = Completion::Start(Box::new(Start { started: world::started(&flow) }));
//! loop {
//!     let decision = decide(&flow, &run, now_ms, completion);
//!     run.apply_record(&decision.events); // journaled as one record, before anything else happens
//!     let Some(Command::Ask(ask)) = list_pending_commands(&flow, &run).into_iter().next() else { break };
//!     let answer = serde_json::json!({"action": "done"}); // what the agent said
//!     let answer = Answer { output: Some(answer), ..Answer::default() };
//!     completion = Completion::Answered { ask: ask.id, answer: Box::new(answer), seen: None };
//!     now_ms += 1_000;
//! }
//! assert!(matches!(run.state, State::Ended { .. }));
//! ```

pub(crate) mod agents;
mod answers;
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
mod foreign;
mod pending;
mod place;
mod prompt;
mod record;
mod recorded_completion;
mod reports;
mod route;
mod run;
mod system;

pub use agents::{AgentChoice, AgentOutage, AgentPlan, AskDelivery, SchemaEnforcement, SessionContinuation};
pub use cuegate_ask::{AskKind, AskLimit, FaultClass, Usage};

pub use crate::answers::action_blocks::{ActionBlock, find_action_blocks, find_all_action_blocks};
pub use crate::answers::extractors::apply_extractor;
pub use crate::answers::gate::{GateResult, InvalidAnswer, read_answer};
pub use crate::answers::parsed_answer::ParsedAnswer;
pub use crate::answers::structured::json_in_text;
pub use batch::{
    Amounts, Batch, BatchEnd, BatchEvent, BatchRecord, BatchStarted, Choice, ClaimOutcome, EarlierRun,
    FAILURES_MAX, Progress, QueueRead, QueueSource, RunStopped, SkipReason, StopKind, TakenTask, Task,
};
pub use budget::{Budget, Excess, Lack, Ledger, Share, SpentBudget, convert_usd_to_micro};
pub use command::{
    AskCommand, Command, CommandId, EffectCommand, ExecCommand, HandlerInput, HandoffEntry, LastAnswer,
    Probe, ProbeCommand, SessionUse,
};
pub use completion::{
    Answer, Completion, EffectResult, ExecResult, Exit, Fault, Moment, OutsideWrites, ProbeResult,
    ResumeSettings, Retry, Start, Tools, TreeChange,
};
pub use completion_state::{
    ConditionState, POLL_INTERVAL_MS, PendingProbes, has_keyword, has_reached_max, has_required_fields,
    has_signal,
};
pub use decide::{Decision, decide, limit_wait_ms};
pub use effect::{
    Delay, Effect, EffectClass, EffectDelayed, EffectFinished, EffectKind, EffectState, EffectsRequested,
    FinalizePlan, IssueClaim, Phase, RunEnd, comment_text,
};
pub use event::Event;
pub use event_types::{
    AdoptedDefinition, AfterReports, AskContext, AskRequest, EndState, GithubTarget, OwedReport,
    PendingEntry, PromptPart, RecordedLoadOptions, Remedy, RowEnd, RunForked, RunResumed, RunStarted,
    SourceBlob, StepAnswer, SuspensionCause, ToolCall, ToolResult, WaitKind,
};
pub use foreign::fence_key::FenceKey;
pub use foreign::hidden_text::{HiddenText, remove_hidden_characters, remove_hidden_markdown};
pub use pending::list_pending_commands;
pub use place::{Machine, Place, RunMoved, StatePack, TreeState};
pub use prompt::{Failure, render_template};
pub use record::{Record, RecordedDecision, UnreadableRecord, list_tree_states};
pub use recorded_completion::RecordedCompletion;
pub use reports::{ReportFile, ReportVersion, Reports};
pub use route::{Route, resolve_target};
pub use run::{
    FollowUpMessage, HandoffValue, JudgedAnswer, Member, Node, PendingAsk, Run, SessionHead, State, Visit,
    Work,
};
pub use system::{
    EffectValues, PendingReads, ReadCommand, ReadLimit, ReadResult, ReadsDone, ReadsRequested, StepEffect,
    StepEffectKind, StepEffectsRequested,
};
