//! Compares trees by entry, and makes trees from others.

#![expect(clippy::disallowed_methods, reason = "state of ours, where no agent writes")]

use std::{ffi::OsStr, os::unix::ffi::OsStrExt as _, path::Path};

use super::changes::object_id;
use super::error::{WorktreeError, io_at};
use super::snapshots::snapshot::Trees;
use crate::beneath::FolderHandle;

/// The mode of a submodule, or of another repository in the working tree.
pub(super) const GITLINK: &str = "160000";

/// An entry that differs between two trees.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct TreeEdit {
    /// The path, relative to the top.
    pub path: Vec<u8>,
    /// The mode and object before; zeros if there was nothing.
    pub before: (String, String),
    /// The mode and object after; zeros if there is nothing.
    pub after: (String, String),
}

impl TreeEdit {
    /// The path as text.
    pub fn name(&self) -> String {
        String::from_utf8_lossy(&self.path).into_owned()
    }

    /// Whether the path had no entry before.
    pub fn is_addition(&self) -> bool {
        self.before.0.bytes().all(|digit| digit == b'0')
    }

    /// The edit that takes it back.
    pub fn reversed(&self) -> TreeEdit {
        TreeEdit { path: self.path.clone(), before: self.after.clone(), after: self.before.clone() }
    }

    /// Whether it is a file afterwards, and no link or repository.
    pub fn leaves_file(&self) -> bool {
        self.after.0.starts_with("100")
    }

    /// Whether it is a symbolic link afterwards.
    pub fn leaves_link(&self) -> bool {
        self.after.0 == "120000"
    }

    /// Appends the entry before the edit in the format of `git update-index -z --index-info`.
    pub fn write_before(&self, lines: &mut Vec<u8>) {
        let (mode, object) = &self.before;
        lines.extend(format!("{mode} {object} 0\t").bytes());
        lines.extend(&self.path);
        lines.push(0);
    }
}

/// Reads what `--raw -z` prints: `:MODE MODE OBJECT OBJECT LETTER` and the path, for each entry.
fn read_edits(output: &[u8]) -> Vec<TreeEdit> {
    let mut fields = output.split(|byte| *byte == 0);
    let mut edits = Vec::new();
    while let Some(about) = fields.next() {
        let about = String::from_utf8_lossy(about).into_owned();
        // Between commits there are empty fields and line breaks.
        let Some((_, about)) = about.split_once(':') else { continue };
        let words: Vec<&str> = about.split(' ').collect();
        let ([mode_before, mode_after, before, after, _], Some(path)) = (&words[..], fields.next()) else {
            continue;
        };
        edits.push(TreeEdit {
            path: path.to_owned(),
            before: ((*mode_before).to_owned(), (*before).to_owned()),
            after: ((*mode_after).to_owned(), (*after).to_owned()),
        });
    }
    edits
}

impl Trees {
    /// The entries that differ between two trees.
    pub(super) fn edits(&self, from: &str, to: &str) -> Result<Vec<TreeEdit>, WorktreeError> {
        let args =
            ["diff-tree", "-r", "-z", "--raw", "--no-renames", "--no-abbrev", "--ignore-submodules=none"];
        let output = self.git.run(&[&args[..], &[object_id(from)?, object_id(to)?, "--"]].concat())?;
        Ok(read_edits(&output))
    }

    /// The edits of all commits that `commit` has and `base` does not have. Of a merge, those against each parent.
    pub(super) fn edits_of_commits(&self, base: &str, commit: &str) -> Result<Vec<TreeEdit>, WorktreeError> {
        let range = format!("{}..{}", object_id(base)?, object_id(commit)?);
        let args = ["log", "-m", "--format=", "-z", "--raw", "--no-renames", "--no-abbrev", &range, "--"];
        Ok(read_edits(&self.git.run(&args)?))
    }

    /// The tree `from` without the edits of `edits`: their paths get the entries before.
    pub(super) fn revert_edits<'e>(
        &self,
        from: &str,
        edits: impl Iterator<Item = &'e TreeEdit>,
    ) -> Result<String, WorktreeError> {
        // Removals first: a file may take the place of a folder.
        let (mut removed, mut restored) = (Vec::new(), Vec::new());
        for edit in edits {
            edit.write_before(if edit.is_addition() { &mut removed } else { &mut restored });
        }
        let index = self.scratch_index();
        let git = self.git.clone().with("GIT_INDEX_FILE", &index);
        let edit = || {
            git.run(&["read-tree", object_id(from)?])?;
            git.run_with(&["update-index", "-z", "--index-info"], &[removed, restored].concat())?;
            git.word(&["write-tree"])
        };
        let tree = edit();
        let _ = std::fs::remove_file(&index);
        tree
    }

    /// The tree `tree` with what differs between two others: their entries in the second one. Rules of what git ignores stay,
    /// or files that it ignores would be taken for others.
    ///
    /// # Errors
    /// Neither the state dir nor the repository knows one of the trees.
    pub fn with_difference(&self, tree: &str, from: &str, to: &str) -> Result<String, WorktreeError> {
        let is_rule = |edit: &&TreeEdit| edit.path.rsplit(|byte| *byte == b'/').next() == Some(b".gitignore");
        self.revert_edits(tree, self.edits(to, from)?.iter().filter(|edit| !is_rule(edit)))
    }

    /// A file that the tree `to` adds to the tree `from` and that is in the working tree already: git ignores it.
    ///
    /// # Errors
    /// Neither the state dir nor the repository knows one of the trees.
    pub fn find_in_the_way(&self, from: &str, to: &str) -> Result<Option<String>, WorktreeError> {
        let top = FolderHandle::open(self.root()).map_err(io_at("open", self.root()))?;
        let is_there = |edit: &&TreeEdit| {
            let path = Path::new(OsStr::from_bytes(&edit.path));
            edit.is_addition() && top.state_of(path).is_ok_and(|state| state.is_some())
        };
        Ok(self.edits(from, to)?.iter().find(is_there).map(TreeEdit::name))
    }

    /// The tree `tree` with the entries that `other` has at `paths`; none where that has none.
    ///
    /// # Errors
    /// Neither the state dir nor the repository knows one of the trees.
    pub fn with_entries_of(
        &self,
        tree: &str,
        other: &str,
        paths: &[String],
    ) -> Result<String, WorktreeError> {
        let edits = self.edits(other, tree)?;
        let paths: std::collections::BTreeSet<&str> = paths.iter().map(String::as_str).collect();
        self.revert_edits(tree, edits.iter().filter(|edit| paths.contains(edit.name().as_str())))
    }

    /// The submodules and repositories inside the working tree whose commit differs between two trees. A patch names only
    /// their commits, so it cannot bring their files.
    ///
    /// # Errors
    /// Neither the state dir nor the repository knows one of the trees.
    pub fn changed_repositories(&self, from: &str, to: &str) -> Result<Vec<String>, WorktreeError> {
        let edits = self.edits(from, to)?;
        Ok(edits.iter().filter(|edit| edit.after.0 == GITLINK).map(TreeEdit::name).collect())
    }

    /// The submodules and repositories inside a tree, which holds their commits alone.
    ///
    /// # Errors
    /// Neither the state dir nor the repository knows the tree.
    pub fn list_repositories(&self, tree: &str) -> Result<Vec<String>, WorktreeError> {
        let listed = self.git.run(&["ls-tree", "-r", "-z", object_id(tree)?])?;
        let entries = listed.split(|byte| *byte == 0).map(String::from_utf8_lossy);
        let links = entries.filter(|entry| entry.starts_with(GITLINK));
        Ok(links.filter_map(|entry| Some(entry.split_once('\t')?.1.to_owned())).collect())
    }

    /// Copies the objects of a tree from the snapshots to the repository, which has the commit `base`.
    pub(super) fn store_tree(&self, tree: &str, base: &str) -> Result<(), WorktreeError> {
        /// Packs with fewer objects than this are stored as loose ones, as git does after a fetch.
        const UNPACK_MAX: u32 = 100;
        let revisions = format!("{}\n^{}\n", object_id(tree)?, object_id(base)?);
        let args = ["pack-objects", "--revs", "--stdout", "--quiet", "--delta-base-offset"];
        let pack = self.git.run_with(&args, revisions.as_bytes())?;
        // The header is `PACK`, the version and the number of objects.
        let count = pack.get(8..12).and_then(|bytes| bytes.try_into().ok()).map(u32::from_be_bytes);
        let git = self.user_git();
        match count {
            Some(0) => {}
            Some(count) if count < UNPACK_MAX => _ = git.run_with(&["unpack-objects", "-q"], &pack)?,
            _ => _ = git.run_with(&["index-pack", "--stdin"], &pack)?,
        }
        Ok(())
    }
}
