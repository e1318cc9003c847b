//! What a flow *is*, and whether it is sound: the one representation that every definition format
//! lowers into, its spans and diagnostics, and the checks that turn a [`Draft`] into a [`Flow`].
//!
//! *Never* knows a definition format, does IO, is async or reads a clock.
//!
//! ```
//! use cuegate_flow::{Draft, check};
//!
//! // A draft without steps is not a flow: the check says why instead of failing somewhere later.
//! let checked = check(Draft::empty("nothing", "example"));
//! assert!(checked.flow.is_none());
//! assert_eq!(checked.diagnostics[0].code, "no-entry");
//! ```

mod allowed;
mod always;
mod boundary;
mod check;
mod components;
mod conduct;
mod dangling;
mod diagnostic;
mod digest;
mod fit;
mod given;
mod guard;
mod key;
mod nearest;
mod param;
mod path;
mod price;
mod program;
pub mod reach;
mod required;
mod schema;
mod source;
mod step;
mod template;
mod threads;
pub mod tools;
mod trace;
mod values;
mod verdict;
mod wall;
mod watch;
pub mod ways;
mod whole;
mod yields;

pub use allowed::Impossible;
pub use boundary::{Boundary, Permission, Tools};
pub use check::{Checked, Code, check, codes};
pub use conduct::{Actions, Conduct, Reaction};
pub use dangling::Dangling;
pub use diagnostic::{Diagnostic, Severity, sort};
pub use digest::BlobRef;
pub use guard::{Guard, Guarded};
pub use key::{Key, Turn};
pub use nearest::nearest;
pub use param::{Param, ParamRule, ParamType};
pub use path::FieldPath;
pub use price::{
    AskRole, BoundedBy, Certificate, Configured, Dear, Lever, Rate, TRIES_MAX, Terms, bound, price,
    price_any, rest,
};
pub use program::Program;
pub use schema::{Look, Schema, SchemaError};
pub use source::{FileId, LineColumn, SourceFile, Sources, Span};
pub use step::{
    Act, Ask, Bound, Edge, Ending, Extractor, Fused, Gate, Handoff, Input, JoinPattern, JoinRule, Name,
    Outcome, Reader, Report, Role, Selector, SessionRule, Step, Success, Target, Validator,
};
pub use template::{Fact, Piece, Source, Template};
pub use threads::{drop_beside, for_each, together};
pub use trace::Trace;
pub use verdict::{Field, Handler, Poll, PollState, Resource, Signal, Verdict};
pub use wall::{Host, Network, NoHost, TRUSTED, Wall};
pub use whole::{Counter, CounterId, Draft, Flow, Limits, Monitor, Read, SchemaId, StepId};
pub use yields::Yields;

/// Shared immutable text. Cloning is a reference count.
pub type Str = std::sync::Arc<str>;
