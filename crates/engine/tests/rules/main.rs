//! The rules of deciding, one script a rule: what is answered, and what follows.
#![expect(clippy::unwrap_used, reason = "in a test a panic is the message")]

mod others;
mod registries;
mod script;
