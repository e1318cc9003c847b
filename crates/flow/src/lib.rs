//! The flow model and its checks: the one representation that every definition format lowers into, its spans and
//! diagnostics, and the checks that turn a [`Draft`](model::Draft) into a [`Flow`](model::Flow).
//!
//! *Never* knows a definition format, does IO, is async or reads a clock.
//!
//! ```
//! use cuegate_flow::{checks::check_draft, model::Draft};
//!
//! // A draft without steps is not a flow: the check reports why.
//! let checked = check_draft(Draft::empty("nothing", "example"));
//! assert!(checked.flow.is_none());
//! assert_eq!(checked.diagnostics[0].code, "no-entry");
//! ```

pub mod analysis;
pub mod checks;
pub mod diagnostics;
pub mod model;

/// Shared immutable text. Cloning increments a reference count.
pub type Str = std::sync::Arc<str>;
