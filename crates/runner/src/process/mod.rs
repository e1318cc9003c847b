//! Children under our own shim: nothing that a run starts outlives the run, and what it said is never lost.
//!
//! The runner never starts an agent or a validator itself. It starts our own binary as a *shim* ([`start`]), whose
//! stdin is the *lifeline*: a pipe of which only the runner holds the write end. When that ends, for whatever reason,
//! the shim kills the child and all that descends from it. What the child writes goes to a *spool* in the command's
//! folder; a spool that is complete is adopted on resume ([`adopt`]) instead of being paid for again.
//!
//! | file | what |
//! |---|---|
//! | `spec.json` | what to start, never the environment, which may hold secrets |
//! | `lock` | held by the shim as long as it lives |
//! | `stdin`, `out`, `err` | what the child reads, and what it wrote |
//! | `group.json` | the process ids, to end a shim that hangs |
//! | `refused` | why the program could not be started |
//! | `shim.log` | what the shim itself had to say, normally nothing |
//! | `exit.json` | how it ended; written last, so its presence says that the rest is whole |
mod child;
mod error;
mod launch;
mod lock;
mod output_spool;
mod processes;
mod shim;
mod shim_exec;
mod spool;
mod supervise;
mod wire;

pub use child::{Child, LINE_BYTES_MAX};
pub use error::Error;
pub use launch::{Launch, Shim, start};
pub use processes::kill_descendants;
pub use shim::shim_main;
pub use spool::{Exit, Finished, Former, adopt, former};
