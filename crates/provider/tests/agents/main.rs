//! Tests one table of behaviours against every provider: the real agent programs use a stand-in of their API on a
//! machine whose only network is the loopback interface.
//!
//! `suite.rs` has the table. Each cell is a test, and `docs/agents.md` is generated from it.

#![expect(clippy::unwrap_used, reason = "in a test a panic is the message")]

mod drive;
mod lack;
mod recorded;
mod scene;
mod script;
mod show;
mod suite;
mod table;
