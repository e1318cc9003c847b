use super::changes::{Change, object_id};
use super::error::Error;
use super::git::Git;
use super::snapshot::Trees;

impl Trees {
    /// Keeps the present state as a tree, for [`Trees::restore`] to come back to, and returns its object id.
    ///
    /// # Errors
    /// As [`Trees::snapshot`].
    pub fn set_aside(&self) -> Result<String, Error> {
        let _guard = self.guard()?;
        self.tree()
    }

    /// Makes the working tree the tree `to`: files that git does not ignore are written, and removed where `to` has none.
    /// What is there is lost unless it was [`Trees::set_aside`]. Ignored files, HEAD, refs and the user's index stay.
    ///
    /// Returns what still differs, normally nothing: an embedded repository is never removed, since its history is in no
    /// snapshot.
    ///
    /// Only for a worktree that the run owns.
    ///
    /// # Errors
    /// `to` is unknown, or a file can't be read or written. Then some files may be restored and others not; it can be
    /// called again.
    pub fn restore(&self, to: &str) -> Result<Vec<Change>, Error> {
        let _guard = self.guard()?;
        let to = object_id(to)?;
        // Git removes only what our index knows.
        self.tree()?;
        self.git.run(&["read-tree", "--reset", "-u", to])?;
        self.changes(to, &self.tree()?)
    }

    /// Makes `head` the commit that is checked out on `branch`, and the user's index that of this commit. Files stay.
    /// Commits that were made since are no longer on the branch; the reflog still names them.
    ///
    /// Only for a worktree that the run owns.
    ///
    /// # Errors
    /// `head` is unknown, or git cannot write.
    pub fn restore_head(&self, branch: &str, head: &str) -> Result<(), Error> {
        let _guard = self.guard()?;
        let git = Git::at(&self.root);
        let branch = format!("refs/heads/{branch}");
        let head = object_id(head)?;
        git.run(&["symbolic-ref", "-m", WHY, "HEAD", &branch])?;
        git.run(&["update-ref", "-m", WHY, &branch, head])?;
        git.run(&["reset", "--quiet", "--mixed"])?;
        Ok(())
    }
}

/// What the reflog says of it.
const WHY: &str = "cuegate: put back";
