//! What the machines of a fleet share beside the journal: the runs that somebody wants, the workers, limits and accounts.
//!
//! Every decision that several machines could make at the same time is one transaction. Whether a machine that took a run
//! still lives is decided by the lease of the run, as in the journal.

mod hold;
mod store;
mod tables;

pub use hold::{HoldOutcome, HoldRequest, HoldVerdict, OfferedAccount, TAKE_OVERS_MAX};
pub use store::{FleetLimit, FleetRun, FleetStore, FleetTask, FleetWorker};
