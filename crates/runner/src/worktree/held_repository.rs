//! What a command must not change in the repository of the user, where nothing prevents it: without a mount of a git
//! folder of the agents' own, in the user's working tree. It is compared after each command and put back.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
};

use super::agent_git::{read_refs, write_whole};
use super::error::{WorktreeError, io_at};
use super::git::Git;
use super::git_state::{checked_out_elsewhere, keep_commit};
use super::repository::Repository;
use super::snapshots::snapshot::Trees;

/// Files that decide what git does, folders of an unfinished rebase, and the log of the stash.
const FILES: [&str; 10] = [
    "HEAD",
    "commondir",
    "config",
    "config.worktree",
    "info/attributes",
    "info/exclude",
    "logs/refs/stash",
    "rebase-apply",
    "rebase-merge",
    "shallow",
];
/// The limit of the size of a file that is kept, in bytes.
const FILE_MAX: u64 = 4 << 20;

/// The state of a repository before a command.
#[derive(Debug)]
pub struct HeldRepository {
    repository: Repository,
    refs: BTreeMap<String, String>,
    /// The entries of the index whose files git does not look at.
    unseen: BTreeSet<Vec<u8>>,
    /// The files with their contents; `None` for one that was missing.
    files: BTreeMap<PathBuf, Option<Vec<u8>>>,
}

/// What a command changed and what was put back, in words.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RevertedChanges {
    /// What no command may change: other branches, the stash, HEAD, settings and hooks.
    pub forbidden: Vec<String>,
    /// What is put back as well, but is no fault: tags and remote branches, which a fetch or a push moves.
    pub others: Vec<String>,
}

impl HeldRepository {
    /// Reads the state of the repository.
    ///
    /// # Errors
    /// When git fails.
    pub fn read(trees: &Trees) -> Result<HeldRepository, WorktreeError> {
        let repository = trees.repository().clone();
        let refs = read_refs(&Git::in_repository(repository.clone()))?;
        let files = read_files(&repository);
        let unseen = read_unseen(&Git::in_repository(repository.clone()))?;
        Ok(HeldRepository { repository, refs, unseen, files })
    }

    /// Puts back what a command changed beside new commits of the checked-out branch and staged files. Branches of other
    /// worktrees are left, because others work there. Commits that are put away stay reachable. What git cannot put back
    /// is named as forbidden too.
    ///
    /// # Errors
    /// When git fails or a file cannot be written.
    pub fn put_back(&mut self) -> Result<RevertedChanges, WorktreeError> {
        if !self.repository.common.is_dir() {
            // What is lost is noticed elsewhere.
            return Ok(RevertedChanges::default());
        }
        match self.put_back_all() {
            // A lock or a damaged reference that the command left must not hide what it changed.
            Err(error @ WorktreeError::Git { .. }) => {
                let forbidden = vec![format!("the repository, which git cannot put back ({error})")];
                Ok(RevertedChanges { forbidden, others: Vec::new() })
            }
            done => done,
        }
    }

    fn put_back_all(&mut self) -> Result<RevertedChanges, WorktreeError> {
        let mut trespass = RevertedChanges::default();
        let now = read_files(&self.repository);
        let names: BTreeSet<&PathBuf> = now.keys().chain(self.files.keys()).collect();
        for path in names {
            let before = self.files.get(path).cloned().flatten();
            if now.get(path).cloned().flatten() == before {
                continue;
            }
            match before {
                Some(bytes) => write_whole(path, &bytes)?,
                None => remove_entry(path)?,
            }
            if path.ends_with("logs/refs/stash") {
                continue;
            }
            let name = path.strip_prefix(&self.repository.common).unwrap_or(path);
            trespass.forbidden.push(format!("`.git/{}`", name.display()));
        }
        let git = Git::in_repository(self.repository.clone());
        if self.show_unseen(&git)? {
            trespass.forbidden.push("flags of the index that hide files".to_owned());
        }
        let refs = read_refs(&git)?;
        if refs == self.refs {
            return Ok(trespass);
        }
        let elsewhere = checked_out_elsewhere(&self.repository.top)?;
        let on = super::branch_worktree::current_branch(&self.repository.top)?;
        let on = on.map(|name| format!("refs/heads/{name}"));
        let names: BTreeSet<&String> = refs.keys().chain(self.refs.keys()).collect();
        let mut kept = self.refs.clone();
        for name in names {
            let (is, was) = (refs.get(name), self.refs.get(name));
            let is_elsewhere =
                name.strip_prefix("refs/heads/").is_some_and(|branch| elsewhere.contains(branch));
            if is == was || is_elsewhere {
                continue;
            }
            let follows = match (is, was) {
                (Some(is), Some(was)) => git.succeeds(&["merge-base", "--is-ancestor", was, is])?,
                (Some(_), None) => true,
                _ => false,
            };
            if on.as_ref() == Some(name) && follows {
                kept.insert(name.clone(), is.cloned().unwrap_or_default());
                continue;
            }
            if let Some(is) = is.filter(|_| !name.starts_with("refs/remotes/")) {
                keep_commit(&git, is)?;
            }
            match was {
                Some(was) => git.run(&["update-ref", name, was])?,
                None => git.run(&["update-ref", "-d", name])?,
            };
            let is_told = name.starts_with("refs/tags/") || name.starts_with("refs/remotes/");
            let what = super::agent_git::describe_ref(name);
            match is_told {
                true => trespass.others.push(format!("{what}, put back")),
                false => trespass.forbidden.push(what),
            }
        }
        // Written again: moving the reference adds to its log.
        for (path, bytes) in self.files.iter().filter(|(path, _)| path.ends_with("logs/refs/stash")) {
            match bytes {
                Some(bytes) => write_whole(path, bytes)?,
                None => remove_entry(path)?,
            }
        }
        self.refs = kept;
        Ok(trespass)
    }
}

impl HeldRepository {
    /// Takes back the flags by which a command hid files from git. Returns whether there were any.
    fn show_unseen(&self, git: &Git) -> Result<bool, WorktreeError> {
        let unseen = read_unseen(git).unwrap_or_default();
        let new: Vec<u8> =
            unseen.difference(&self.unseen).flat_map(|path| [&path[..], &[0]].concat()).collect();
        for flag in ["--no-assume-unchanged", "--no-skip-worktree"].into_iter().filter(|_| !new.is_empty()) {
            git.run_with(&["update-index", flag, "-z", "--stdin"], &new)?;
        }
        Ok(!new.is_empty())
    }
}

/// The paths of the index that are assumed unchanged or skipped: git shows them by another letter than `H`.
fn read_unseen(git: &Git) -> Result<BTreeSet<Vec<u8>>, WorktreeError> {
    let listed = git.run(&["ls-files", "-v", "-z"])?;
    let entries = listed.split(|byte| *byte == 0).filter_map(|entry| match entry {
        [tag, b' ', path @ ..] if tag.is_ascii_lowercase() || *tag == b'S' => Some(path.to_owned()),
        _ => None,
    });
    Ok(entries.collect())
}

/// Removes what a command made. It may be a folder.
fn remove_entry(path: &Path) -> Result<(), WorktreeError> {
    match path.symlink_metadata() {
        Err(_) => Ok(()),
        Ok(about) if about.is_dir() => fs::remove_dir_all(path).map_err(io_at("remove", path)),
        Ok(_) => fs::remove_file(path).map_err(io_at("remove", path)),
    }
}

/// The files with their contents.
fn read_files(repository: &Repository) -> BTreeMap<PathBuf, Option<Vec<u8>>> {
    let hooks = fs::read_dir(repository.common.join("hooks")).into_iter().flatten().flatten();
    let hooks = hooks.map(|entry| entry.path());
    let hooks = hooks.filter(|path| path.extension().is_none_or(|extension| extension != "sample"));
    let folders = [&repository.common, &repository.git_dir];
    let named = folders.into_iter().flat_map(|folder| FILES.iter().map(move |name| folder.join(name)));
    // The files by which git knows a linked worktree are as they were made.
    named.chain(hooks).map(|path| (path.clone(), read_file(&path))).collect()
}

/// The content of a regular file. A link or a huge file counts as one with other content.
fn read_file(path: &Path) -> Option<Vec<u8>> {
    let about = path.symlink_metadata().ok()?;
    if !about.is_file() || about.len() > FILE_MAX {
        return Some(format!("{:?} {}", about.file_type(), about.len()).into_bytes());
    }
    fs::read(path).ok()
}
