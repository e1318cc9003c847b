#![expect(clippy::disallowed_methods, reason = "the git folder of the user")]

use std::ffi::OsStr;
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use super::changes::{Change, object_id};
use super::error::{WorktreeError, io_at};
use super::snapshots::snapshot::{Snapshot, Trees};
use super::tree_edit::TreeEdit;

impl Trees {
    /// Stores the present state as a tree, for [`Trees::restore`], and returns its object id.
    ///
    /// # Errors
    /// As [`Trees::snapshot`].
    pub fn set_aside(&self) -> Result<String, WorktreeError> {
        let _guard = self.guard()?;
        self.tree()
    }

    /// Restores the working tree to the tree `to`: writes its files and removes other files that git does not ignore.
    /// The present state is lost unless it was [`Trees::set_aside`]. Ignored files, HEAD, refs and the user's index
    /// stay, see [`Trees::restore_git_state`].
    ///
    /// Returns the remaining changes, normally none: an embedded repository is never removed, because snapshots do not
    /// hold its history.
    ///
    /// Only for a worktree that the run owns.
    ///
    /// # Errors
    /// `to` is unknown, or a file can't be read or written. Then only some files may be restored; the call can be
    /// repeated.
    pub fn restore(&self, to: &str) -> Result<Vec<Change>, WorktreeError> {
        let _guard = self.guard()?;
        let to = object_id(to)?;
        // Update our index first: git removes only files that it lists.
        self.tree()?;
        self.git.run(&["read-tree", "--reset", "-u", to])?;
        self.changes(to, &self.tree()?)
    }

    /// Writes the files of a tree into a worktree that was made without any. Its index becomes that of its commit; git need
    /// not read the files again that are as in the commit.
    ///
    /// # Errors
    /// `to` is unknown, or a file can't be written.
    pub fn fill_worktree(&self, to: &str) -> Result<Snapshot, WorktreeError> {
        let _guard = self.guard()?;
        let own = self.index();
        match fs::remove_file(&own) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                return Err(io_at("remove", &own)(error));
            }
            _ => {}
        }
        self.git.run(&["read-tree", "--reset", "-u", object_id(to)?])?;
        // What git knows of the files is kept where they are the same.
        fs::copy(&own, &self.user_index).map_err(io_at("copy", &own))?;
        self.user_git().run(&["read-tree", "--reset", "HEAD"])?;
        self.snapshot_of(to.to_owned())
    }

    /// The paths that differ between two trees and whose files changed after `moment`. The second tree is the present state.
    ///
    /// # Errors
    /// Neither the state dir nor the repository knows one of the trees.
    pub fn changed_after(
        &self,
        from: &str,
        to: &str,
        moment: SystemTime,
    ) -> Result<Vec<String>, WorktreeError> {
        let since = moment.duration_since(UNIX_EPOCH).unwrap_or_default();
        // The time of the last change of the inode cannot be set back, unlike that of the content.
        let is_later = |path: &[u8]| {
            let about = self.root.join(OsStr::from_bytes(path)).symlink_metadata();
            about.is_ok_and(|about| {
                let seconds = u64::try_from(about.ctime()).unwrap_or_default();
                let nanos = u32::try_from(about.ctime_nsec()).unwrap_or_default();
                Duration::new(seconds, nanos) > since
            })
        };
        let edits = self.edits(from, to)?;
        Ok(edits.iter().filter(|edit| is_later(&edit.path)).map(TreeEdit::name).collect())
    }

    /// Keeps a snapshot as a commit of the repository, reachable by the reference that is returned.
    ///
    /// # Errors
    /// When git fails.
    pub fn keep_aside(&self, tree: &str) -> Result<String, WorktreeError> {
        let git = self.user_git();
        let head = git.word(&["rev-parse", "HEAD"])?;
        self.store_tree(tree, &head)?;
        let commit = self.unnamed_commit(tree, Some(&head))?;
        // Written by a git that knows only our objects: the repository needs it as well.
        let bytes = self.git.run(&["cat-file", "commit", &commit])?;
        let commit = git.run_with(&["hash-object", "-t", "commit", "-w", "--stdin"], &bytes)?;
        super::git_state::keep_commit(&git, String::from_utf8_lossy(&commit).trim())
    }
}
