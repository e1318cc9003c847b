//! The program as a whole: real git, real processes, real signals.
#![expect(clippy::unwrap_used, reason = "in a test a panic is the message")]

#[cfg(target_os = "linux")]
mod kills;
mod real_input;
mod support;
