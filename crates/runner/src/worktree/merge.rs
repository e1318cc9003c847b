//! Merges the changes between two trees into a working tree.

use super::changes::{Change, object_id};
use super::error::Error;
use super::snapshot::Trees;

/// The result of [`Trees::merge`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Merge {
    /// The merged tree.
    Clean {
        /// The state of the working tree that was merged into.
        ours: String,
        /// The result.
        merged: String,
    },
    /// These files have changes on both sides that cannot be merged. Relative to the root, with `/`.
    Conflicts(Vec<String>),
}

impl Trees {
    /// Merges the changes from the tree `base` to the tree `theirs` with those of the working tree. Writes no file.
    ///
    /// # Errors
    /// A tree is unknown, or git fails. `git merge-tree --write-tree` needs git 2.38.
    pub fn merge(&self, base: &str, theirs: &str) -> Result<Merge, Error> {
        let ours = self.snapshot()?.tree;
        let base = self.unnamed_commit(base, None)?;
        let sides = [&ours, object_id(theirs)?].map(|tree| self.unnamed_commit(tree, Some(&base)));
        let [one, other] = sides;
        let args = ["merge-tree", "--write-tree", "--name-only", "--no-messages", "-z", &one?, &other?];
        let output = self.git.output(&args, b"")?;
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let mut parts = text.split('\0').filter(|part| !part.is_empty());
        match (output.status.code(), parts.next()) {
            (Some(0), Some(merged)) => Ok(Merge::Clean { ours, merged: merged.to_owned() }),
            (Some(1), Some(_)) => Ok(Merge::Conflicts(parts.map(str::to_owned).collect())),
            _ => Err(super::git::refused(&args, &output)),
        }
    }

    /// Changes the files of the working tree from the tree `from`, its present state, to the tree `to`. HEAD, refs and
    /// the index stay.
    ///
    /// # Errors
    /// A file was changed meanwhile, or cannot be written: then no file is changed.
    pub fn apply(&self, from: &str, to: &str) -> Result<Vec<Change>, Error> {
        let changes = self.changes(from, to)?;
        if !changes.is_empty() {
            let patch = self.patch(from, to, &[])?;
            self.git.run_with(&["apply", "--binary", "--whitespace=nowarn"], &patch)?;
        }
        Ok(changes)
    }

    /// A commit of a tree without a name or a time, in our object folder.
    fn unnamed_commit(&self, tree: &str, parent: Option<&str>) -> Result<String, Error> {
        let mut git = self.git.clone();
        for (name, value) in [
            ("GIT_AUTHOR_NAME", "cuegate"),
            ("GIT_AUTHOR_EMAIL", "cuegate@localhost"),
            ("GIT_AUTHOR_DATE", "@1 +0000"),
            ("GIT_COMMITTER_NAME", "cuegate"),
            ("GIT_COMMITTER_EMAIL", "cuegate@localhost"),
            ("GIT_COMMITTER_DATE", "@1 +0000"),
        ] {
            git = git.with(name, value);
        }
        let mut args = vec!["commit-tree", "--no-gpg-sign", "-m", "snapshot"];
        args.extend(parent.iter().flat_map(|parent| ["-p", parent]));
        args.push(object_id(tree)?);
        git.word(&args)
    }
}
