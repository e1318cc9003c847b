//! The journal of runs on Postgres.
//!
//! Many processes on many machines share it. What decides is in the statements: a record is appended only under the newest
//! token of the run's lease and at the number that the writer has seen. A lease has a time by the clock of the database; it
//! is renewed while this process lives, and whoever comes after 45 seconds without a renewal may take it.

mod address;
mod connection;
pub mod fleet;
mod journal;
mod listener;
mod schema;

pub use address::{Address, AddressError};
pub use journal::PostgresJournal;
