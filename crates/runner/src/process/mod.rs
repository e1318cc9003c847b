//! Runs child processes under a shim: no process outlives its run, and no output is lost.
//!
//! The runner never starts an agent or a validator directly. It starts our own binary as a *shim* ([`start_command`]), whose
//! stdin is the *lifeline*: a pipe of which only the runner holds the write end. When the pipe closes, for any reason,
//! the shim kills the child and its descendants. The output of the child goes to a *spool* in the command's folder. On
//! resume, a complete spool is adopted ([`adopt_finished_command`]), so that the work is not paid for twice.
//!
//! | file | content |
//! |---|---|
//! | `spec.json` | the command, without its environment, which may hold secrets |
//! | `lock` | held by the shim while it runs |
//! | `stdin`, `out`, `err` | the child's input and output |
//! | `group.json` | the process ids, for killing a shim that hangs |
//! | `refused` | why the program could not be started |
//! | `activity.jsonl` | what the agent did so far, for those who watch; nothing depends on it |
//! | `shim.log` | errors of the shim itself, normally empty |
//! | `exit.json` | how the command ended; written last, so its presence means that the other files are complete |
mod child;
mod error;
mod kill;
mod launch;
mod lock;
mod output_spool;
mod shim;
mod shim_exec;
mod spool;
mod supervise;
mod wire;

pub use child::{Child, LINE_BYTES_MAX};
pub use error::ProcessError;
pub use kill::kill_descendants;
pub(crate) use kill::start_time_of_process;
pub use launch::{Launch, Shim, start_command};
pub use lock::is_running;
pub use shim::shim_main;
pub use spool::{
    Exit, FinishedCommand, FormerStart, adopt_finished_command, cut_off_at, end_former_start,
    output_before_cut,
};
