//! Git snapshots of the working tree, taken without changing the repository.
//!
//! A snapshot is a git tree of every file that git does not ignore. It uses an index and an object folder of our own,
//! with the repository's objects as alternates: the user's index, stash, refs and objects do not change. No hook,
//! pager, external diff or file system monitor runs, and no filter but that of Git LFS if the user set it up: git reads a
//! copy of the settings, see `settings.rs`.
//!
//! All functions block.
mod agent_git;
pub mod branch_worktree;
mod changes;
pub mod claim;
mod error;
pub mod finalize;
mod gaps;
mod git;
mod git_state;
mod held_repository;
mod hidden_files;
mod merge;
pub(crate) mod remote_branches;
pub mod remote_heads;
mod repository;
mod restore;
pub(crate) mod settings;
mod snapshot_pack;
mod snapshots;
mod stale_locks;
mod state_pack;
mod sweep;
mod tree_edit;

pub use agent_git::{AgentGit, GitFolderReach, StopFlag, TakeOverReport};
pub use branch_worktree::{current_branch, find_review_base, is_dirty, same_repository};
pub use changes::{Change, ChangeKind, ChangeSize};
pub use changes::{
    apply::FinishedChanges,
    commit_difference::{CommitDifference, CommitDifferenceKind},
};
pub use error::WorktreeError;
pub use gaps::{WorktreeGaps, worktree_gaps};
pub use held_repository::{HeldRepository, RevertedChanges};
pub use merge::MergeResult;
pub use repository::{exclude_state_dir, hooks_in_tree, is_working_tree, project_top, remove_stale_settings};
pub use snapshot_pack::{ChangedContent, create_empty_repository};
pub use snapshots::dirty_files::DirtyFiles;
pub use snapshots::ignored_files::IgnoredFiles;
pub(crate) use snapshots::ignored_places::ignored_places;
pub use snapshots::snapshot::{Snapshot, Trees};
pub use snapshots::tracking::{TrackingState, is_run_tracked, tracking_of};
pub use stale_locks::clear_stale_locks;
pub use state_pack::{NamedState, PackedState};
pub use sweep::{NeededSnapshots, SnapshotSizes, StoreLock};
