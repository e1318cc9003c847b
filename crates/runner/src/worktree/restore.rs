use super::changes::{Change, object_id};
use super::error::Error;
use super::snapshot::Trees;

impl Trees {
    /// Stores the present state as a tree, for [`Trees::restore`], and returns its object id.
    ///
    /// # Errors
    /// As [`Trees::snapshot`].
    pub fn set_aside(&self) -> Result<String, Error> {
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
    pub fn restore(&self, to: &str) -> Result<Vec<Change>, Error> {
        let _guard = self.guard()?;
        let to = object_id(to)?;
        // Update our index first: git removes only files that it lists.
        self.tree()?;
        self.git.run(&["read-tree", "--reset", "-u", to])?;
        self.changes(to, &self.tree()?)
    }
}
