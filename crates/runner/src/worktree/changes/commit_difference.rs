//! Where the commits of a run and its files differ. Reviews and gates see the files, a push and a merge of the branch bring the
//! commits.

use std::{collections::BTreeMap, path::Path};

use crate::beneath::FolderHandle;
use crate::worktree::{
    error::{WorktreeError, io_at},
    snapshots::snapshot::Trees,
    tree_edit::TreeEdit,
};

/// A path whose state in the last commit of a run is not that of its file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommitDifference {
    /// Relative to the top of the working tree.
    pub path: String,
    pub kind: CommitDifferenceKind,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CommitDifferenceKind {
    /// The commit has the file, the working tree has not.
    NotInTree,
    /// The commit has no such file, the working tree has.
    OnlyInTree,
    /// Both have it, with other content, or as another kind of file.
    OtherContent,
    /// The last commit has it as it was before; a commit between has not.
    OnlyBetween,
}

impl CommitDifferenceKind {
    /// In words, after the path.
    pub fn describe(self) -> &'static str {
        match self {
            CommitDifferenceKind::NotInTree => "committed, and not in the working tree",
            CommitDifferenceKind::OnlyInTree => "removed by a commit, and still in the working tree",
            CommitDifferenceKind::OtherContent => "committed otherwise than it is in the working tree",
            CommitDifferenceKind::OnlyBetween => "changed by a commit, and changed back by a later one",
        }
    }
}

impl Trees {
    /// The paths that the commits from `base` to `head` changed and that are not so in the tree `tree`, in the order of their
    /// paths. `is_named`: of those that a commit changed and a later one changed back, which are named.
    ///
    /// # Errors
    /// Neither the state dir nor the repository knows one of the objects.
    pub fn list_commit_differences(
        &self,
        base: &str,
        head: &str,
        tree: &str,
        is_named: &dyn Fn(&str) -> bool,
    ) -> Result<Vec<CommitDifference>, WorktreeError> {
        if base == head {
            return Ok(Vec::new());
        }
        let committed = self.edits(base, head)?;
        let in_tree: BTreeMap<Vec<u8>, TreeEdit> =
            self.edits(head, tree)?.into_iter().map(|edit| (edit.path.clone(), edit)).collect();
        let mut differences: BTreeMap<String, CommitDifferenceKind> = BTreeMap::new();
        for edit in self.edits_of_commits(base, head)? {
            let is_between = !committed.iter().any(|committed| committed.path == edit.path);
            if is_between && is_named(&edit.name()) {
                differences.insert(edit.name(), CommitDifferenceKind::OnlyBetween);
            }
        }
        for edit in committed {
            let Some(after) = in_tree.get(&edit.path) else { continue };
            let kind = match (after.is_addition(), after.reversed().is_addition()) {
                (true, _) => CommitDifferenceKind::OnlyInTree,
                (_, true) => CommitDifferenceKind::NotInTree,
                _ => CommitDifferenceKind::OtherContent,
            };
            differences.insert(edit.name(), kind);
        }
        // A snapshot has these as they were when they were last checked out.
        for path in self.list_paths_outside()? {
            differences.remove(&path);
        }
        let root = FolderHandle::open(&self.root).map_err(io_at("open", &self.root))?;
        differences.retain(|path, kind| {
            *kind != CommitDifferenceKind::OnlyInTree
                || root.state_of(Path::new(path)).is_ok_and(|state| state.is_some())
        });
        Ok(differences.into_iter().map(|(path, kind)| CommitDifference { path, kind }).collect())
    }

    /// The paths of the user's index that are outside of a sparse checkout.
    fn list_paths_outside(&self) -> Result<Vec<String>, WorktreeError> {
        if !self.git_dir.join("info/sparse-checkout").is_file() {
            return Ok(Vec::new());
        }
        let listed = self.user_git().run(&["ls-files", "-v", "-z"])?;
        let outside = listed.split(|byte| *byte == 0).filter_map(|entry| entry.strip_prefix(b"S "));
        Ok(outside.map(|path| String::from_utf8_lossy(path).into_owned()).collect())
    }
}
