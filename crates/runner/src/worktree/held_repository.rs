//! What a command must not change in the repository of the user, where nothing prevents it: without a mount of a git
//! folder of the agents' own, in the user's working tree. It is compared after each command and put back.

use std::{
    collections::{BTreeMap, BTreeSet},
    io,
    path::{Path, PathBuf},
};

use rustix::fs::FileType;

use super::agent_git::{LinkProtection, read_refs};
use super::error::{WorktreeError, io_at};
use super::git::Git;
use super::git_state::{checked_out_elsewhere, keep_commit};
use super::repository::Repository;
use super::snapshots::snapshot::Trees;
use crate::beneath::FolderHandle;

/// Files that decide what git does, folders of an unfinished rebase, and the log of the stash.
const FILES: [&str; 11] = [
    "HEAD",
    "commondir",
    "config",
    "config.worktree",
    "info/attributes",
    "info/exclude",
    STASH_LOG,
    "objects/info/alternates",
    "rebase-apply",
    "rebase-merge",
    "shallow",
];
/// Those of them that decide which programs git starts, and where it finds its settings.
const SETTINGS: [&str; 4] = ["commondir", "config", "config.worktree", "info/attributes"];
/// The log of the stash.
const STASH_LOG: &str = "logs/refs/stash";
/// The folder of hooks.
const HOOKS: &str = "hooks";
/// How deep references are searched: their names contain slashes.
const REFS_DEPTH: usize = 64;
/// How deep the folders of submodules are searched: their names may contain slashes.
const MODULES_DEPTH: usize = 12;
/// The limit of the size of a file that is kept, in bytes.
const FILE_MAX: u64 = 4 << 20;

/// The state of a repository before a command.
#[derive(Debug)]
pub struct HeldRepository {
    repository: Repository,
    refs: BTreeMap<String, String>,
    /// The entries of the index whose files git does not look at.
    unseen: BTreeSet<Vec<u8>>,
    folders: Vec<GitFolder>,
    /// The files, by their folder and their path below it.
    files: BTreeMap<(PathBuf, PathBuf), HeldEntry>,
    /// Entries of the shared folder that git does not make: links, FIFOs and the like.
    irregular: BTreeSet<PathBuf>,
    /// The `.git` files of submodules.
    links: LinkProtection,
}

/// A git folder whose files are held.
#[derive(Debug, Clone)]
struct GitFolder {
    path: PathBuf,
    /// Of a submodule only that is held which decides what git does.
    is_module: bool,
}

/// What is at a path of a git folder.
#[derive(Debug, Clone, PartialEq, Eq)]
enum HeldEntry {
    Missing,
    File(Vec<u8>),
    Folder,
    Link(PathBuf),
    /// What cannot be put back: a huge file, or none that git makes.
    Other(FileType, u64),
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
        let folders = list_git_folders(&repository);
        let files = read_files(&folders)?;
        let unseen = read_unseen(&Git::in_repository(repository.clone()))?;
        let links = LinkProtection::read(&repository)?;
        let irregular = list_irregular_entries(&repository.common);
        Ok(HeldRepository { repository, refs, unseen, folders, files, irregular, links })
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
        // Before any git reads there: through a link it would read other repositories, and a FIFO would hold it up.
        let common = &self.repository.common;
        for below in list_irregular_entries(common).difference(&self.irregular) {
            let removed = FolderHandle::open(common).and_then(|folder| folder.remove(below));
            removed.map_err(io_at("remove", &common.join(below)))?;
            trespass.forbidden.push(format!("`.git/{}`, which is no regular file", below.display()));
        }
        let now = read_files(&self.folders)?;
        let names: BTreeSet<&(PathBuf, PathBuf)> = now.keys().chain(self.files.keys()).collect();
        for name in names {
            let before = self.files.get(name).unwrap_or(&HeldEntry::Missing);
            if now.get(name).unwrap_or(&HeldEntry::Missing) == before {
                continue;
            }
            let (folder, below) = name;
            put_entry_back(folder, below, before)?;
            if below == Path::new(STASH_LOG) {
                continue;
            }
            let path = folder.join(below);
            let shown = path.strip_prefix(&self.repository.common).unwrap_or(&path);
            trespass.forbidden.push(format!("`.git/{}`", shown.display()));
        }
        // Settings of submodules are as they were, so what their `.git` names is.
        trespass.others.extend(self.links.enforce(&self.repository)?);
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
        for ((folder, below), before) in &self.files {
            if below == Path::new(STASH_LOG) {
                put_entry_back(folder, below, before)?;
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

/// Puts an entry of a git folder back.
fn put_entry_back(folder: &Path, below: &Path, before: &HeldEntry) -> Result<(), WorktreeError> {
    let put_back = || -> io::Result<()> {
        let handle = FolderHandle::open(folder)?;
        if let Some(parent) = below.parent() {
            handle.force_folder(parent)?;
        }
        if handle.state_of(below)?.is_some_and(|state| state.is_folder() && *before != HeldEntry::Folder) {
            handle.remove_all(below)?;
        }
        match before {
            HeldEntry::Missing => handle.remove(below),
            HeldEntry::File(bytes) => handle.write(below, bytes),
            HeldEntry::Folder => handle.force_folder(below).map(drop),
            HeldEntry::Link(target) => handle.write_link(target, below),
            HeldEntry::Other(..) => Ok(()),
        }
    };
    put_back().map_err(io_at("put back", &folder.join(below)))
}

/// The git folders whose files are held: the shared one, that of the working tree, and those of submodules.
fn list_git_folders(repository: &Repository) -> Vec<GitFolder> {
    let mut folders = vec![GitFolder { path: repository.common.clone(), is_module: false }];
    if repository.git_dir != repository.common {
        folders.push(GitFolder { path: repository.git_dir.clone(), is_module: false });
    }
    let mut unread: Vec<(PathBuf, usize)> = vec![(repository.git_dir.join("modules"), 0)];
    while let Some((folder, depth)) = unread.pop() {
        let Ok(handle) = FolderHandle::open(&folder) else { continue };
        for (name, kind) in handle.list(Path::new("")).unwrap_or_default() {
            if !kind.is_dir() || depth > MODULES_DEPTH {
                continue;
            }
            let inner = folder.join(&name);
            let head = handle.state_of(&Path::new(&name).join("HEAD"));
            if head.is_ok_and(|head| head.is_some()) {
                unread.push((inner.join("modules"), depth + 1));
                folders.push(GitFolder { path: inner, is_module: true });
            } else {
                unread.push((inner, depth + 1));
            }
        }
    }
    folders
}

/// The entries of a git folder, of its objects and of its references that are neither regular files nor folders.
fn list_irregular_entries(common: &Path) -> BTreeSet<PathBuf> {
    let mut irregular = BTreeSet::new();
    let Ok(folder) = FolderHandle::open(common) else { return irregular };
    let mut unread = vec![(PathBuf::new(), 0), (PathBuf::from("objects"), 1)];
    unread.extend(["refs", "logs"].map(|name| (PathBuf::from(name), REFS_DEPTH)));
    while let Some((below, depth)) = unread.pop() {
        for (name, kind) in folder.list(&below).unwrap_or_default() {
            let entry = below.join(name);
            if kind.is_dir() {
                unread.extend(depth.checked_sub(1).map(|depth| (entry, depth)));
            } else if !kind.is_file() {
                irregular.insert(entry);
            }
        }
    }
    irregular
}

/// The files in these git folders that are held.
fn read_files(folders: &[GitFolder]) -> Result<BTreeMap<(PathBuf, PathBuf), HeldEntry>, WorktreeError> {
    let mut files = BTreeMap::new();
    for GitFolder { path: folder, is_module } in folders {
        let Ok(handle) = FolderHandle::open(folder) else { continue };
        let hooks = handle.list(Path::new(HOOKS)).map_err(io_at("read", &folder.join(HOOKS)))?;
        let hooks = hooks.into_iter().map(|(name, _)| Path::new(HOOKS).join(name));
        let hooks = hooks.filter(|path| path.extension().is_none_or(|extension| extension != "sample"));
        let held: &[&str] = if *is_module { &SETTINGS } else { &FILES };
        let names = held.iter().map(PathBuf::from).chain([PathBuf::from(HOOKS)]).chain(hooks);
        for below in names {
            // The files by which git knows a linked worktree are as they were made.
            let entry = read_entry(&handle, &below).map_err(io_at("read", &folder.join(&below)))?;
            files.insert((folder.clone(), below), entry);
        }
    }
    Ok(files)
}

fn read_entry(folder: &FolderHandle, below: &Path) -> io::Result<HeldEntry> {
    Ok(match folder.state_of(below)? {
        None => HeldEntry::Missing,
        Some(state) if state.is_folder() => HeldEntry::Folder,
        Some(state) if state.is_file() && state.size <= FILE_MAX => {
            folder.read(below, FILE_MAX).map_or(HeldEntry::Other(state.kind, state.size), HeldEntry::File)
        }
        Some(state) if state.kind == FileType::Symlink => HeldEntry::Link(folder.read_link(below)?),
        Some(state) => HeldEntry::Other(state.kind, state.size),
    })
}
