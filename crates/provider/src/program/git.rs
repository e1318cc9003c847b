//! Finds the repository folders of a working tree.

use std::{
    fs,
    path::{Path, PathBuf},
};

/// The folders that a commit in this folder writes to, as absolute paths: `.git`, and for a linked worktree also the
/// worktree's folder in the repository. Empty outside of a repository.
pub(crate) fn git_folders(work: &Path) -> Vec<PathBuf> {
    let work = fs::canonicalize(work).unwrap_or_else(|_| work.to_owned());
    let Some(top) = work.ancestors().find(|folder| folder.join(".git").exists()) else { return Vec::new() };
    let dot = top.join(".git");
    if dot.is_dir() {
        return vec![dot];
    }
    // In a linked worktree `.git` is a file that names the worktree's folder, whose `commondir` names the repository.
    let named = |file: &Path, base: &Path| {
        let text = fs::read_to_string(file).ok()?;
        let path = text.trim_start_matches("gitdir:").trim();
        fs::canonicalize(base.join(path)).ok()
    };
    let Some(own) = named(&dot, top) else { return Vec::new() };
    let common = named(&own.join("commondir"), &own);
    common.into_iter().chain([own]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_repository_and_a_linked_worktree() {
        let dir = tempfile::tempdir().unwrap();
        let root = fs::canonicalize(dir.path()).unwrap();
        assert_eq!(git_folders(&root.join("nowhere")), Vec::<PathBuf>::new());
        let linked = root.join("main/.git/worktrees/other");
        fs::create_dir_all(&linked).unwrap();
        fs::create_dir_all(root.join("main/src")).unwrap();
        fs::create_dir(root.join("other")).unwrap();
        fs::write(linked.join("commondir"), "../..\n").unwrap();
        fs::write(root.join("other/.git"), format!("gitdir: {}\n", linked.display())).unwrap();
        assert_eq!(git_folders(&root.join("main/src")), [root.join("main/.git")]);
        assert_eq!(git_folders(&root.join("other")), [root.join("main/.git"), linked]);
    }
}
