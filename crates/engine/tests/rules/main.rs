//! The decision rules, one script per rule: the answers and their consequences.
#![expect(clippy::unwrap_used, reason = "in a test a panic is the message")]

mod others;
mod registries;
mod script;
