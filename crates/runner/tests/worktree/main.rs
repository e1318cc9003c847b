//! Tests of snapshots and worktrees with a real git.
#![expect(clippy::unwrap_used, reason = "tests")]

mod restoring;
mod snapshots;
mod support;
