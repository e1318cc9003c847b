//! The commands that look at runs.

pub(in crate::cli) mod attach;
pub(in crate::cli) mod export;
pub(in crate::cli) mod followed_run;
pub(in crate::cli) mod log;
pub(in crate::cli) mod replay;
pub(in crate::cli) mod report;
pub(in crate::cli) mod runs;
pub(in crate::cli) mod serve;
pub(in crate::cli) mod status;
pub(in crate::cli) mod watch;
pub(in crate::cli) mod why;
