//! One list of behaviours, held against every provider: the real agent programs, asking a stand-in of their API where
//! there is no network but this machine's loopback.
//!
//! `suite.rs` is the list. Each of its cells is a test, `docs/providers.md` is made of it.

#![expect(clippy::unwrap_used, reason = "in a test a panic is the message")]

mod drive;
mod lack;
mod recorded;
mod scene;
mod script;
mod show;
mod suite;
mod table;
