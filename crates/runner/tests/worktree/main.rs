//! Tests of snapshots and worktrees with a real git.
#![expect(clippy::unwrap_used, reason = "tests")]

mod git_state;
mod landing;
mod moving;
mod restoring;
mod snapshots;
mod support;
