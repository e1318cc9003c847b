//! The commands for authors of workflows.

pub(in crate::cli) mod check;
pub(in crate::cli) mod check_watch;
pub(in crate::cli) mod explain;
pub(in crate::cli) mod graph;
pub(in crate::cli) mod price;
pub(in crate::cli) mod prompt;
pub(in crate::cli) mod schema;
pub(in crate::cli) mod show;
pub(in crate::cli) mod simulate;
pub(in crate::cli) mod upgrade;
