//! The working tree as git sees it, with a real git.
#![expect(clippy::unwrap_used, reason = "tests")]

mod restoring;
mod snapshots;
mod support;
