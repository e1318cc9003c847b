//! A journal in one SQLite file, shared by threads and processes.
//!
//! While it is open for writing, `PATH-wal` and `PATH-shm` exist next to it; a copy of an open journal needs all three.
//! The file system must be local: SQLite's write-ahead log does not work on network drives.

mod fault;
mod files;
mod journal;
mod open;
mod schema;
mod viewer;

pub use journal::SqliteJournal;
pub use open::{Durability, Options};
