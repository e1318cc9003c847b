//! Keeps each run in a log file of its own, so that no run waits for the disk of another.
//!
//! `RUNS/RUN/log` begins with a header: what it is, and the lease. Records follow as frames, each with the texts that it
//! names, written with one system call into space that was filled with zeros before: a record then changes neither the
//! size of the file nor any other block of it, and one wait for the disk makes it durable. `RUNS/RUN/inbox` holds the
//! messages of other processes, and `RUNS/RUN/records` the number of records.

mod cache;
mod changes;
mod count_file;
mod file_io;
mod frame;
mod header;
mod held_lock;
mod inbox;
mod journal;
mod log_copy;
mod reader;
mod run_log;
mod threads;

pub use changes::{JournalVersion, RunVersion};
pub use journal::{Durability, LogJournal, Options};
pub use threads::map_on_threads;

/// The folder of a project that holds a folder per run.
pub const RUNS_DIR: &str = "runs";

/// How the folder of a run is called while it is being removed. What a kill leaves of it belongs to nothing.
pub const REMOVED: &str = ".removed-";
