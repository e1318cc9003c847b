//! What a flow is: steps with gates, edges and targets, prompts, schemas, permissions and the completion rule.
//!
//! A [`Draft`] may contain unresolved names; a [`Flow`] has passed every check and never changes.

pub(crate) mod action_blocks;
pub(crate) mod completion_rule;
pub(crate) mod dangling;
pub(crate) mod digest;
pub(crate) mod field_path;
pub(crate) mod flow;
pub(crate) mod key;
pub(crate) mod member_gate;
pub(crate) mod monitor_watch;
pub(crate) mod params;
pub(crate) mod permission;
pub(crate) mod predicate;
pub(crate) mod program;
pub mod sandbox;
pub(crate) mod schema;
pub(crate) mod step;
pub(crate) mod system;
pub(crate) mod template;
pub mod tools;

pub use action_blocks::{Actions, Conduct, IssueClosure, IssueRule, Reaction};
pub use completion_rule::{Field, Handler, Poll, PollState, Resource, Signal, Verdict};
pub use dangling::DanglingTarget;
pub use digest::BlobRef;
pub use field_path::FieldPath;
pub use flow::{Counter, CounterId, Draft, DraftFlaws, Flow, Limits, Monitor, PromptRead, SchemaId, StepId};
pub use key::{LimitKey, LimitTarget};
pub use member_gate::{MemberCommand, MemberGate};
pub use params::{Param, ParamRule, ParamType};
pub use permission::{Boundary, McpServer, McpTransport, Permission, Tools};
pub use predicate::{Case, Comparison, Operand, Predicate};
pub use program::Program;
pub use schema::{KeyLookup, Schema, SchemaError};
pub use step::{
    Act, AgentKeys, Ask, CombinedFields, Edge, EdgeBound, Ending, Extractor, Gate, Handoff, Input,
    JoinPattern, JoinRule, Name, Outcome, OutcomeReader, Report, Role, Selector, SessionRule, Step, Success,
    Target, Validator,
};
pub use system::{
    EFFECT_FIELDS, LIST_FIELDS, PullRequestFilter, ReadKind, SystemEffect, SystemEffectKind, SystemRead,
    SystemWork,
};
pub use template::{Fact, Piece, Source, Template};
