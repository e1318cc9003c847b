//! Findings about a definition, the files they point into, and suggestions for mistyped names.

pub(crate) mod diagnostic;
pub(crate) mod source;
pub(crate) mod suggest;
pub(crate) mod trace;

pub use diagnostic::{Diagnostic, Severity, sort_diagnostics};
pub use source::{FileId, LineColumn, SourceFile, Sources, Span};
pub use suggest::find_nearest_name;
pub use trace::Trace;
