//! Tests of snapshots and worktrees with a real git.
#![expect(clippy::disallowed_methods, clippy::unwrap_used, reason = "tests make what agents leave")]

mod git_state;
mod landing;
mod moving;
mod restoring;
mod snapshots;
mod support;
