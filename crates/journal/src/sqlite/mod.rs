//! A journal in one SQLite file, shared by threads and processes.
//!
//! While it is open for writing, `PATH-wal` and `PATH-shm` lie beside it; a copy of an open journal needs all of
//! them. The file system has to be local: SQLite's write-ahead log works on no network drive.

mod fault;
mod files;
mod journal;
mod open;
mod schema;
mod viewer;

pub use journal::SqliteJournal;
pub use open::{Durability, Options};
