//! What a new worktree of a repository lacks, and what stands in its way.

use std::collections::BTreeSet;
use std::path::Path;

use super::error::{WorktreeError, io_at};
use super::git::Git;
use super::repository::Repository;
use super::tree_edit::GITLINK;
use crate::beneath::FolderHandle;

/// The limit of the size of a `.gitattributes`, in bytes.
const ATTRIBUTES_MAX: u64 = 4 << 20;

/// What a worktree of a repository lacks, and what stands in its way.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct WorktreeGaps {
    /// The submodules, whose folders are empty in a new worktree.
    pub submodules: Vec<String>,
    /// Whether only a part of the files is checked out.
    pub is_sparse: bool,
    /// Whether a branch `cuegate` exists, below which git can create none.
    pub has_cuegate_branch: bool,
    /// Whether `.git` is a symbolic link.
    pub is_linked_git: bool,
    /// The names of the filters that `.gitattributes` give to files, such as `git-crypt`, without that of Git LFS if git is
    /// told to use it. A run applies no others: they are programs.
    pub filters: BTreeSet<String>,
    /// Whether git is told to read files with `git-lfs`, which is not installed.
    pub lacks_lfs: bool,
}

/// Looks at the repository of a working tree. There are none outside of one.
///
/// # Errors
/// When git cannot be started.
pub fn worktree_gaps(root: &Path) -> Result<WorktreeGaps, WorktreeError> {
    let mut gaps = WorktreeGaps::default();
    let Some(repository) = Repository::find(root)? else { return Ok(gaps) };
    gaps.is_linked_git = root.join(".git").is_symlink();
    let git = Git::new(root);
    let tree = git.run(&["ls-tree", "-r", "-z", "HEAD"]).unwrap_or_default();
    let mut attributes = Vec::new();
    for entry in tree.split(|byte| *byte == 0) {
        let entry = String::from_utf8_lossy(entry);
        let Some((about, path)) = entry.split_once('\t') else { continue };
        if about.starts_with(GITLINK) {
            gaps.submodules.push(path.to_owned());
        } else if path == ".gitattributes" || path.ends_with("/.gitattributes") {
            attributes.push(path.to_owned());
        }
    }
    gaps.has_cuegate_branch = git.succeeds(&["show-ref", "--verify", "--quiet", "refs/heads/cuegate"])?;
    gaps.is_sparse = git.word(&["config", "--type=bool", "core.sparseCheckout"]).is_ok_and(|is| is == "true");
    let tree = FolderHandle::open(&repository.top).map_err(io_at("open", &repository.top))?;
    for path in attributes {
        let text = tree.read_text(Path::new(&path), ATTRIBUTES_MAX).unwrap_or_default();
        let words = text.split_whitespace().filter_map(|word| word.strip_prefix("filter="));
        gaps.filters.extend(words.map(str::to_owned));
    }
    if gaps.filters.contains("lfs") && repository.has_filter("lfs") {
        gaps.filters.remove("lfs");
        gaps.lacks_lfs = cuegate_provider::locate_program("git-lfs").is_none();
    }
    Ok(gaps)
}
