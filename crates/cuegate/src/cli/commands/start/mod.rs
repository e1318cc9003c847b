//! The commands that start runs, and what runs start from.

pub(in crate::cli) mod budget;
pub(in crate::cli) mod detach;
pub(in crate::cli) mod init;
pub(in crate::cli) mod list;
pub(in crate::cli) mod prompt_user;
pub(in crate::cli) mod run;
pub(in crate::cli) mod run_args;
pub(in crate::cli) mod run_start;
pub(in crate::cli) mod work;
pub(in crate::cli) mod work_args;
