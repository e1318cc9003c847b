//! The working tree as git sees it, looked at without being disturbed.
//!
//! A snapshot is a git tree of every file that git does not ignore. It is made with an index and an object folder of our
//! own, which has the repository's objects as alternates: the user's index, stash, refs and objects stay as they are. No
//! hook, pager, external diff or file system monitor of the user runs, and no other setting of theirs changes the result,
//! except those that say what a file's content is (`.gitignore`, attributes, filters, line ends).
//!
//! Everything here blocks: call it where blocking is allowed.
pub mod branch_worktree;
mod changes;
mod error;
mod git;
mod restore;
mod snapshot;
mod stale_locks;

pub use branch_worktree::is_dirty;
pub use changes::{Change, Kind, Stat};
pub use error::Error;
pub use snapshot::{Snapshot, Trees};
pub use stale_locks::clear_stale_lock;
