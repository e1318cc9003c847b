//! Merges the changes between two trees into a working tree.

use super::changes::object_id;
use super::error::WorktreeError;
use super::snapshots::snapshot::Trees;

/// The result of [`Trees::merge`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MergeResult {
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
    pub fn merge(&self, base: &str, theirs: &str) -> Result<MergeResult, WorktreeError> {
        let ours = self.snapshot()?.tree;
        let base = self.unnamed_commit(base, None)?;
        let sides = [&ours, object_id(theirs)?].map(|tree| self.unnamed_commit(tree, Some(&base)));
        let [one, other] = sides;
        let args = ["merge-tree", "--write-tree", "--name-only", "--no-messages", "-z", &one?, &other?];
        let output = self.git.output(&args, b"")?;
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let mut parts = text.split('\0').filter(|part| !part.is_empty());
        match (output.status.code(), parts.next()) {
            (Some(0), Some(merged)) => Ok(MergeResult::Clean { ours, merged: merged.to_owned() }),
            (Some(1), Some(_)) => Ok(MergeResult::Conflicts(parts.map(str::to_owned).collect())),
            _ => Err(super::git::build_git_error(&args, &output)),
        }
    }

    /// Takes back what commands staged and committed of `paths`, whose last state is that of `tree`: where the index still
    /// has that, it gets the entry of HEAD. `commits` are the commits that were checked out before and after: HEAD goes back
    /// to the first if it still is the second. The files stay.
    ///
    /// # Errors
    /// When git fails.
    pub fn unstage(
        &self,
        paths: &[String],
        tree: &str,
        commits: Option<(&str, &str)>,
    ) -> Result<(), WorktreeError> {
        let git = self.user_git();
        if let Some((before, after)) = commits.filter(|(before, after)| before != after)
            && git.word(&["rev-parse", "HEAD"]).is_ok_and(|head| head == after)
        {
            git.run(&["reset", "--quiet", "--soft", object_id(before)?])?;
        }
        let specs = ["--pathspec-from-file=-", "--pathspec-file-nul"];
        // The tree is in our object folder alone.
        let index = self.git_dir.join("index");
        let both = self.git.clone().with("GIT_INDEX_FILE", &index);
        let args = ["diff-index", "--cached", "-z", "--name-only", "--no-renames", object_id(tree)?, "--"];
        let changed = both.run(&args)?;
        // Staged as the run left it: a person has staged nothing there since.
        let others: Vec<String> = String::from_utf8_lossy(&changed).split('\0').map(str::to_owned).collect();
        let own: Vec<&String> = paths.iter().filter(|path| !others.contains(path)).collect();
        if own.is_empty() {
            return Ok(());
        }
        let literal: String = own.iter().map(|path| format!(":(top,literal){path}\0")).collect();
        let args = [&["reset", "--quiet"][..], &specs].concat();
        git.run_with(&args, literal.as_bytes())?;
        Ok(())
    }

    /// A commit of a tree without a name or a time, in our object folder.
    pub(super) fn unnamed_commit(&self, tree: &str, parent: Option<&str>) -> Result<String, WorktreeError> {
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
