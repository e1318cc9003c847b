//! A journal in one SQLite file, shared by threads and processes.
//!
//! While it is open for writing, `PATH-wal` and `PATH-shm` exist next to it; a copy of an open journal needs all three.
//! The folder `runs` next to it holds, for each run, a file `records` with the number of its records, by which a lost
//! journal or write-ahead log is noticed.
//!
//! The file system must be local: SQLite's write-ahead log does not work on network drives.

mod fault;
mod files;
mod journal;
mod open;
mod record_counts;
mod run_row;
mod schema;
mod viewer;

pub use journal::SqliteJournal;
pub use open::{Durability, Options};
pub use record_counts::RUNS_DIR;
