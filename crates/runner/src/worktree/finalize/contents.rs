//! What the work of a run is: the tree that its commit has to have, and what no commit can hold.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use super::super::branch_worktree::{changed_inside, inner_repositories};
use super::super::changes::object_id;
use super::super::error::WorktreeError;
use super::super::git::Git;
use super::super::repository::{head_commit, is_linked_worktree};
use super::super::snapshots::snapshot::Trees;
use super::super::tree_edit::{GITLINK, TreeEdit};
use crate::beneath::FolderHandle;

/// The snapshots between which the work of a run lies.
#[derive(Debug, Clone, Copy)]
pub struct RunWork<'w> {
    /// Reads the snapshots.
    pub trees: &'w Trees,
    /// The commit that the worktree was made from.
    pub base: &'w str,
    /// The tree at the start of the first run: that of `base`, and what the setup of the worktree wrote.
    pub start: &'w str,
    /// The tree of the last record.
    pub end: &'w str,
}

impl RunWork<'_> {
    /// The tree that the commit of the run has: the last snapshot, without what the setup wrote and nobody changed since.
    ///
    /// # Errors
    /// When git fails.
    pub fn tree_to_commit(&self) -> Result<String, WorktreeError> {
        let base = self.base_tree()?;
        if base == self.start {
            return Ok(object_id(self.end)?.to_owned());
        }
        let edited: BTreeSet<Vec<u8>> =
            self.trees.edits(self.start, self.end)?.into_iter().map(|edit| edit.path).collect();
        let of_setup = self.trees.edits(&base, self.start)?;
        self.trees.revert_edits(self.end, of_setup.iter().filter(|edit| !edited.contains(&edit.path)))
    }

    /// The entries by which the commit of the run, with the tree `tree`, differs from the base.
    pub(super) fn edits(&self, tree: &str) -> Result<Vec<TreeEdit>, WorktreeError> {
        self.trees.edits(&self.base_tree()?, tree)
    }

    fn base_tree(&self) -> Result<String, WorktreeError> {
        self.trees.git.word(&[
            "rev-parse",
            "--verify",
            "--quiet",
            &format!("{}^{{tree}}", object_id(self.base)?),
        ])
    }

    /// Refuses what is in the worktree and no commit can hold: repositories inside it, and submodules whose commit nobody
    /// else has. The text names them.
    pub(super) fn check_repositories(
        &self,
        work: &Path,
        tree: &str,
        edits: &[TreeEdit],
    ) -> Result<Result<(), String>, WorktreeError> {
        let links: BTreeMap<String, String> = edits
            .iter()
            .filter(|edit| edit.after.0 == GITLINK)
            .map(|edit| (edit.name(), edit.after.1.clone()))
            .collect();
        let mut known = self.submodules_of_base()?;
        let registered = self.registered_submodules(tree)?;
        let is_replaced = |edit: &&TreeEdit| edit.before.0 == GITLINK && edit.after.0 != GITLINK;
        let mut replaced: Vec<String> = edits.iter().filter(is_replaced).map(TreeEdit::name).collect();
        replaced.retain(|name| registered.contains(name) && list_entries(&work.join(name)).next().is_some());
        if !replaced.is_empty() {
            return Ok(Err(format!(
                "files were written where a submodule is and is not checked out: {}; remove them there, or the submodule \
                 from `.gitmodules`",
                list_names(replaced.iter().map(String::as_str))
            )));
        }
        known.extend(registered);
        let mut uncommitted = Vec::new();
        for name in known.iter().filter(|name| work.join(name).join(".git").exists()) {
            let changed = match changed_inside(&work.join(name), false) {
                // Nobody can tell what is in a damaged one.
                Err(WorktreeError::Git { .. } | WorktreeError::Unreadable { .. }) => vec![".git".to_owned()],
                changed => changed?,
            };
            uncommitted.extend(changed.into_iter().map(|path| format!("{name}/{path}")));
        }
        if !uncommitted.is_empty() {
            return Ok(Err(format!(
                "files of a submodule were changed and not committed there: {}; commit and push them there, or restore them",
                list_names(uncommitted.iter().map(String::as_str))
            )));
        }
        let mut unheld = BTreeSet::new();
        for name in inner_repositories(work)? {
            let name = name.trim_end_matches('/').to_owned();
            let folder = work.join(&name);
            let holds_files = list_entries(&folder).any(|name| name != ".git");
            let is_new = !known.contains(&name) && !is_linked_worktree(work, &folder);
            if is_new && (holds_files || head_commit(&folder).is_some()) {
                unheld.insert(name);
            }
        }
        unheld.extend(links.keys().filter(|name| !known.contains(*name)).cloned());
        if !unheld.is_empty() {
            return Ok(Err(format!(
                "a commit cannot hold the files of a repository inside the worktree: {}; remove its `.git` to commit the \
                 files, or add the folder to `.gitignore`",
                list_names(unheld.iter().map(String::as_str))
            )));
        }
        let mut unpublished = Vec::new();
        for (name, commit) in links.iter().filter(|(name, _)| work.join(name).join(".git").exists()) {
            let git = Git::new(&work.join(name));
            let holders =
                git.run(&["for-each-ref", "--contains", commit, "--format=%(refname)", "refs/remotes"]);
            if !holders.is_ok_and(|holders| !holders.is_empty()) {
                unpublished.push(name.as_str());
            }
        }
        if !unpublished.is_empty() {
            return Ok(Err(format!(
                "the new commit of a submodule is only in this worktree: {}; push it there",
                list_names(unpublished.into_iter())
            )));
        }
        Ok(Ok(()))
    }

    /// The files among these edits whose content git stores in another form, such as those of git-crypt, by the attributes
    /// of the base. Files of Git LFS that the snapshot already has in their stored form are none.
    pub(super) fn filtered_files(&self, edits: &[TreeEdit]) -> Result<Vec<String>, WorktreeError> {
        let written = edits.iter().filter(|edit| edit.leaves_file() && edit.before.1 != edit.after.1);
        let objects: BTreeMap<&[u8], &str> =
            written.clone().map(|edit| (edit.path.as_slice(), edit.after.1.as_str())).collect();
        let paths: Vec<u8> = written.flat_map(|edit| edit.path.iter().copied().chain([0])).collect();
        if paths.is_empty() {
            return Ok(Vec::new());
        }
        let git = self.trees.git.clone().with("GIT_ATTR_SOURCE", object_id(self.base)?);
        let output = git.run_with(&["check-attr", "-z", "--stdin", "filter"], &paths)?;
        let fields: Vec<&[u8]> = output.split(|byte| *byte == 0).collect();
        // The path, the name of the attribute and its value.
        let is_filtered = |entry: &&[&[u8]]| !matches!(entry[2], b"unspecified" | b"unset" | b"set" | b"");
        let mut filtered = Vec::new();
        for entry in fields.chunks_exact(3).filter(is_filtered) {
            let is_stored = entry[2] == b"lfs" && self.is_lfs_pointer(objects.get(entry[0]).copied())?;
            if !is_stored {
                filtered.push(String::from_utf8_lossy(entry[0]).into_owned());
            }
        }
        Ok(filtered)
    }

    /// Whether an object is what Git LFS stores in place of a file.
    fn is_lfs_pointer(&self, object: Option<&str>) -> Result<bool, WorktreeError> {
        const START: &[u8] = b"version https://git-lfs.github.com/spec/v1\n";
        const SIZE_MAX: usize = 1024;
        let Some(object) = object else { return Ok(false) };
        let size = self.trees.git.word(&["cat-file", "-s", object])?;
        if !size.parse().is_ok_and(|size: usize| size <= SIZE_MAX) {
            return Ok(false);
        }
        Ok(self.trees.git.run(&["cat-file", "blob", object])?.starts_with(START))
    }

    /// The paths of the submodules that the base has.
    fn submodules_of_base(&self) -> Result<BTreeSet<String>, WorktreeError> {
        let listed = self.trees.git.run(&["ls-tree", "-r", "-z", object_id(self.base)?])?;
        let entries = listed.split(|byte| *byte == 0).filter(|entry| entry.starts_with(GITLINK.as_bytes()));
        let path = |entry: &[u8]| Some(String::from_utf8_lossy(entry).split_once('\t')?.1.to_owned());
        Ok(entries.filter_map(path).collect())
    }

    /// The paths that `.gitmodules` of a tree gives to submodules.
    fn registered_submodules(&self, tree: &str) -> Result<Vec<String>, WorktreeError> {
        let blob = format!("{}:.gitmodules", object_id(tree)?);
        let args = ["config", "--blob", &blob, "-z", "--get-regexp", r"^submodule\..*\.path$"];
        let output = self.trees.git.output(&args, b"")?;
        // It fails without the file, and then there are none.
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        Ok(text.split('\0').filter_map(|pair| Some(pair.split_once('\n')?.1.to_owned())).collect())
    }
}

impl Trees {
    /// The sizes of these objects in bytes, in their order.
    pub(super) fn sizes(&self, objects: &[&str]) -> Result<Vec<u64>, WorktreeError> {
        let asked: String = objects.iter().map(|object| format!("{object}\n")).collect();
        let listed = self.git.run_with(&["cat-file", "--batch-check=%(objectsize)"], asked.as_bytes())?;
        let listed = String::from_utf8_lossy(&listed).into_owned();
        Ok(listed.lines().map(|size| size.parse().unwrap_or(0)).collect())
    }

    /// The contents of these objects, in their order.
    pub(super) fn contents(&self, objects: &[&str]) -> Result<Vec<Vec<u8>>, WorktreeError> {
        let asked: String = objects.iter().map(|object| format!("{object}\n")).collect();
        let output = self.git.run_with(&["cat-file", "--batch=%(objectsize)"], asked.as_bytes())?;
        let (mut contents, mut rest) = (Vec::new(), output.as_slice());
        // A line with the size, the content, and a line feed.
        while let Some(end) = rest.iter().position(|byte| *byte == b'\n') {
            let size: usize = String::from_utf8_lossy(&rest[..end]).parse().unwrap_or(0);
            let content = rest.get(end + 1..end + 1 + size).unwrap_or_default();
            contents.push(content.to_vec());
            rest = rest.get(end + 2 + size..).unwrap_or_default();
        }
        Ok(contents)
    }
}

/// The first names of a list, and how many more there are.
pub(super) fn list_names<'n>(names: impl ExactSizeIterator<Item = &'n str>) -> String {
    const NAMES_MAX: usize = 10;
    let count = names.len();
    let shown: Vec<String> = names.take(NAMES_MAX).map(|name| format!("`{name}`")).collect();
    match count.saturating_sub(NAMES_MAX) {
        0 => shown.join(", "),
        more => format!("{} and {more} more", shown.join(", ")),
    }
}

/// The names in a folder of the working tree; none if it is a link or missing.
fn list_entries(folder: &Path) -> impl Iterator<Item = std::ffi::OsString> + use<> {
    let entries = FolderHandle::open(folder).and_then(|folder| folder.list(Path::new("")));
    entries.unwrap_or_default().into_iter().map(|(name, _)| name)
}
