//! The git folder that the programs of a run see in place of the user's.
//!
//! It stands in for the shared folder of the repository (`.git`): in a sandbox it is mounted over it, elsewhere the `.git`
//! file of a worktree names it. It has its own HEAD, index, branches, settings and hooks, and reads the objects of the user
//! as alternates. After each command [`AgentGit::take_over`] moves the branch of the run forward in the user's repository;
//! everything else stays here. `docs/internals/design/0007-agent-git.md` has the reasons and measurements.

#![expect(clippy::disallowed_methods, reason = "state of ours, where no agent writes")]

mod hidden_commits;
mod inner_repositories;
mod large_files;
mod receive;
mod seed;
mod take_over;
mod visible_settings;
mod wire;

use std::{
    collections::{BTreeMap, BTreeSet},
    fs, io,
    os::unix::fs::MetadataExt as _,
    path::{Component, Path, PathBuf},
    time::Duration,
};

use serde::{Deserialize, Serialize};

use super::error::{WorktreeError, io_at};
use super::git::Git;
use super::repository::Repository;
use super::snapshots::snapshot::{Trees, fnv_digest_of_bytes};
use crate::beneath::{FolderHandle, is_missing};
use crate::confinement::{Confinement, ReachedPaths};

pub(super) use inner_repositories::LinkProtection;
pub use take_over::TakeOverReport;
pub(super) use take_over::describe_ref;
pub use wire::StopFlag;

/// What makes a folder the working tree of a repository.
const DOT_GIT: &str = ".git";
/// The folder in a git folder of an agent where the user's objects are.
const BORROWED: &str = "alt";
/// The extension of the file beside a git folder with what it was made from.
const RECORD: &str = "json";
/// The extension of the file beside a git folder with its path, the worktree and the text of the `.git` file there that it
/// replaces, a line each.
const NAMED: &str = "replaced";
/// The extension of the folder beside a git folder with those of submodules. Their names are ours, and no agent writes in
/// the folder itself.
const MODULES: &str = "modules";
/// The limit of the size of such a note, in bytes.
const NOTE_MAX: u64 = 64 << 10;
/// The depth of folders of submodules that are searched: their names may contain slashes.
const SUBMODULE_DEPTH: usize = 6;
/// The limit of alternates of alternates that are followed, as in git.
const ALTERNATES_DEPTH: usize = 5;
/// The time limit of a git command on the folder of agents.
const CONFINED_TIMEOUT: Duration = Duration::from_secs(60);
/// The limit of the memory that it may allocate, in bytes.
const CONFINED_MEMORY_MAX: u64 = 4 << 30;

/// The git folder of the agents of one run.
#[derive(Debug)]
pub struct AgentGit {
    repository: Repository,
    /// It stands in for the shared folder of the repository.
    folder: PathBuf,
    /// The file with what it was made from. No agent reaches it.
    record: PathBuf,
    /// How programs find it.
    reach: GitFolderReach,
    /// How our own git is confined on it.
    confinement: Confinement,
    /// The number of commands that use it now.
    users: usize,
    /// The repository and its submodules when the first of these commands began. Commands that begin later get the same
    /// mounts, because agents may change the folders meanwhile.
    used: Vec<RepositoryPair>,
    /// Folders of submodules that were missing in the working tree, and were made so that a mount can seal them.
    made: Vec<String>,
}

/// How programs find the git folder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GitFolderReach {
    /// The sandbox mounts it over the shared folder of the repository.
    Mounted,
    /// The `.git` file of the worktree names it.
    Named,
}

/// The mounts of a sandbox that show a git folder of an agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct GitMounts {
    /// The shared folder of a repository of the user.
    pub(crate) over: PathBuf,
    /// What is mounted there.
    pub(crate) from: PathBuf,
}

impl GitMounts {
    /// The folders with objects of the user, as the path inside and the path outside.
    pub(crate) fn borrowed(&self) -> impl Iterator<Item = (PathBuf, PathBuf)> {
        ["objects", "lfs"]
            .into_iter()
            .map(|name| (self.over.join(BORROWED).join(name), self.over.join(name)))
            .filter(|(_, real)| real.is_dir())
    }
}

/// A repository of the user and the folder that stands in for its shared folder.
#[derive(Debug, Clone)]
struct RepositoryPair {
    real: Repository,
    folder: PathBuf,
    /// The path of a submodule; empty for the repository of the run.
    name: String,
    /// How our own git is confined on the folder.
    confinement: Confinement,
}

/// What a git folder was last made from, to notice what changed since, on either side.
#[derive(Debug, Default, Serialize, Deserialize)]
struct SeedRecord {
    /// Whether all of it was made.
    is_made: bool,
    /// The branches and other references of the user, with their objects.
    refs: BTreeMap<String, String>,
    /// The copied files, by their name in the git folder of the agent.
    files: BTreeMap<String, Stamp>,
    /// The digest of the entries of the user's index.
    entries: String,
    /// The submodules in the user's index.
    links: Vec<String>,
    /// The text of the `.git` of each before the first call: no agent has written it.
    dots: Option<BTreeMap<String, String>>,
    /// What HEAD named, in a repository that keeps it elsewhere than in its file.
    head: String,
    /// The settings that were written.
    settings: String,
    /// The commits of agents on a branch of the user.
    landed: Option<LandedCommits>,
    /// What was named as not taken over.
    named: BTreeSet<String>,
}

/// Commits of agents that were taken over one after the other: agents may rewrite them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct LandedCommits {
    /// The branch, or `HEAD`.
    target: String,
    /// Its commit before them.
    from: Option<String>,
    /// All last ones: a run that is put back to an earlier state is at one of them again.
    tips: BTreeSet<String>,
}

/// The state of a file: the time of its last change in nanoseconds, its size and its number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
struct Stamp(i64, i64, u64, u64);

impl Stamp {
    fn of(path: &Path) -> Option<Stamp> {
        let about = path.metadata().ok().filter(fs::Metadata::is_file)?;
        Some(Stamp(about.mtime(), about.mtime_nsec(), about.size(), about.ino()))
    }
}

/// What is known of a git folder and those of its submodules, by the path of the submodule.
type Record = BTreeMap<String, SeedRecord>;

impl AgentGit {
    /// The git folder of a run in the working tree of `trees`, in `folder`. Nothing is made yet.
    pub fn new(trees: &Trees, folder: &Path, reach: GitFolderReach) -> AgentGit {
        let record = folder.with_extension(RECORD);
        let repository = trees.repository().clone();
        let (confinement, used, made) = (Confinement::None, Vec::new(), Vec::new());
        AgentGit { repository, folder: folder.to_owned(), record, reach, confinement, users: 0, used, made }
    }

    /// Confines our own git where it reads what agents left.
    #[must_use]
    pub fn confined(self, confinement: Confinement) -> AgentGit {
        AgentGit { confinement, ..self }
    }

    /// Brings it up to date with the repository of the user, whose changes win over those of agents. Call it before a
    /// command starts, and [`AgentGit::end`] after it.
    ///
    /// # Errors
    /// When git fails or a file cannot be written.
    pub fn begin(&mut self) -> Result<(), WorktreeError> {
        self.seed(false)?;
        if self.users == 0 {
            self.used = self.find_pairs();
            self.make_link_folders();
        }
        if self.reach == GitFolderReach::Named {
            let (top, text) = (&self.repository.top, dot_git_text(&self.repository.git_dir));
            let named = format!("{}\n{}\n{text}", real_path(&self.folder).display(), top.display());
            write_whole(&self.folder.with_extension(NAMED), named.as_bytes())?;
            write_dot_git(top, &dot_git_text(&self.main_pair().own()))?;
        }
        self.users += 1;
        Ok(())
    }

    /// Ends the use by one command. With the last one, the worktree names the repository of the user again.
    ///
    /// # Errors
    /// When the `.git` file of the worktree cannot be written.
    pub fn end(&mut self) -> Result<(), WorktreeError> {
        self.users = self.users.saturating_sub(1);
        if self.users > 0 {
            return Ok(());
        }
        self.used.clear();
        if let Ok(top) = FolderHandle::open(&self.repository.top) {
            for link in std::mem::take(&mut self.made) {
                // Only if it is empty.
                let _ = top.remove_empty(Path::new(&link));
            }
        }
        if self.reach == GitFolderReach::Named {
            write_dot_git(&self.repository.top, &dot_git_text(&self.repository.git_dir))?;
            remove_if_present(&self.folder.with_extension(NAMED))?;
        }
        Ok(())
    }

    /// Makes the worktree of a run of the project at `root` name the repository of the user, if a killed command left it with
    /// the git folder of its agents, `folder`. What was noted is believed only as far as the repository knows the worktree as
    /// well: a repository may bring a folder of runs.
    ///
    /// # Errors
    /// When its `.git` file cannot be written.
    pub fn restore_name(root: &Path, folder: &Path) -> Result<(), WorktreeError> {
        let named = folder.with_extension(NAMED);
        let read = || {
            let parent = FolderHandle::open(named.parent()?).ok()?;
            parent.read_text(Path::new(named.file_name()?), NOTE_MAX).ok()
        };
        let Some(text) = read() else { return Ok(()) };
        let mut lines = text.splitn(3, '\n');
        // In a copy of the project it still names the worktree of the original, which may be at work.
        if let (Some(made_in), Some(top), Some(text)) = (lines.next(), lines.next(), lines.next())
            && real_path(folder) == Path::new(made_in)
            && is_known_worktree(root, Path::new(top), text)
        {
            write_dot_git(Path::new(top), text)?;
        }
        remove_if_present(&named)
    }

    /// Keeps what came with a run of another machine or folder out of the way: nothing in it was made here.
    ///
    /// # Errors
    /// When it cannot be renamed.
    pub fn put_foreign_aside(folder: &Path) -> Result<(), WorktreeError> {
        let (Some(parent), Some(name)) = (folder.parent(), folder.file_name()) else { return Ok(()) };
        let Ok(handle) = FolderHandle::open(parent) else { return Ok(()) };
        for extension in ["", RECORD, NAMED, MODULES] {
            let entry = Path::new(name).with_extension(extension);
            let mut aside = (1..).map(|number| format!("{}.elsewhere-{number}", entry.display()));
            loop {
                match handle.rename(&entry, aside.next().unwrap_or_default().as_ref()) {
                    Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                    Err(error) if is_missing(&error) => break,
                    renamed => break renamed.map_err(io_at("rename", &parent.join(&entry)))?,
                }
            }
        }
        Ok(())
    }

    /// Removes the folder of a run that has ended, if nothing is left in it that was not taken over.
    pub fn remove_spent(folder: &Path) {
        let text = fs::read(folder.with_extension(RECORD)).unwrap_or_default();
        let record: Record = serde_json::from_slice(&text).unwrap_or_default();
        if folder.is_dir() && record.values().all(|seeded| seeded.named.is_empty()) {
            // A failure only costs disk space.
            let _ = fs::remove_dir_all(folder);
            let _ = fs::remove_dir_all(folder.with_extension(MODULES));
            let _ = fs::remove_file(folder.with_extension(RECORD));
        }
    }

    /// Starts again from the state of the user's repository: after files were put back, HEAD, the index and unfinished
    /// operations of agents do not fit them any more. Other branches of agents stay.
    ///
    /// # Errors
    /// As [`AgentGit::begin`].
    pub fn reset(&mut self) -> Result<(), WorktreeError> {
        if self.folder.is_dir() { self.seed(true) } else { Ok(()) }
    }

    /// Whether a command has used it.
    pub fn is_made(&self) -> bool {
        self.folder.is_dir()
    }

    /// The index that agents see, if there is one: their folder, and its path below it.
    pub fn index(&self) -> (PathBuf, PathBuf) {
        (self.folder.clone(), self.main_pair().own_below().join("index"))
    }

    /// The shared folder of the repository of the user.
    pub(crate) fn common(&self) -> &Path {
        &self.repository.common
    }

    /// The git folder of the user's working tree.
    pub(crate) fn git_dir(&self) -> &Path {
        &self.repository.git_dir
    }

    /// The folder of the agents.
    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    /// Whether several commands use it now.
    pub(crate) fn is_shared(&self) -> bool {
        self.users > 1
    }

    /// How programs find it.
    pub(crate) fn reach(&self) -> GitFolderReach {
        self.reach
    }

    /// The mounts that show it, and those of submodules, which are beside it.
    pub(crate) fn mounts(&self) -> Vec<GitMounts> {
        let pairs = self.pairs();
        pairs.into_iter().map(|pair| GitMounts { over: pair.real.common, from: pair.folder }).collect()
    }

    /// Paths of the working tree that no command may change, because git of the user obeys what is in there: the `.git` of
    /// submodules, and folders of those that are not checked out.
    pub(crate) fn sealed_links(&self) -> Vec<PathBuf> {
        let links = self.list_links();
        let Ok(top) = FolderHandle::open(&self.repository.top) else { return Vec::new() };
        let sealed = links.iter().filter_map(|link| {
            let dot = Path::new(link).join(".git");
            match top.state_of(&dot).ok()? {
                Some(state) if state.is_file() || state.is_folder() => Some(dot),
                Some(_) => None,
                None => top.state_of(Path::new(link)).ok()??.is_folder().then(|| PathBuf::from(link)),
            }
        });
        sealed.map(|below| self.repository.top.join(below)).collect()
    }

    /// The submodules of the repository and those inside of them, as paths in its working tree.
    fn list_links(&self) -> Vec<String> {
        let record = self.read_record();
        let links = record.iter().flat_map(|(name, known)| {
            known.links.iter().map(move |link| match name.as_str() {
                "" => link.clone(),
                name => format!("{name}/{link}"),
            })
        });
        links.collect()
    }

    /// Makes the folders of submodules that are missing in the working tree, so that they can be sealed.
    fn make_link_folders(&mut self) {
        if self.reach != GitFolderReach::Mounted {
            return;
        }
        let Ok(top) = FolderHandle::open(&self.repository.top) else { return };
        for link in self.list_links() {
            let is_missing = top.state_of(Path::new(&link)).is_ok_and(|state| state.is_none());
            if is_missing && top.create_folder(Path::new(&link)).is_ok() {
                self.made.push(link);
            }
        }
    }

    fn main_pair(&self) -> RepositoryPair {
        RepositoryPair {
            real: self.repository.clone(),
            folder: self.folder.clone(),
            name: String::new(),
            confinement: self.confinement.clone(),
        }
    }

    /// The repository of the run and those of its submodules, as they were when the commands in progress began.
    fn pairs(&self) -> Vec<RepositoryPair> {
        if self.users > 0 { self.used.clone() } else { self.find_pairs() }
    }

    fn find_pairs(&self) -> Vec<RepositoryPair> {
        let mut pairs = vec![self.main_pair()];
        if self.reach == GitFolderReach::Mounted {
            self.add_submodules(&self.repository.git_dir.join("modules"), SUBMODULE_DEPTH, &mut pairs);
        }
        pairs
    }

    /// Adds the repositories of submodules in a folder of the user's git folder.
    fn add_submodules(&self, from: &Path, depth: usize, pairs: &mut Vec<RepositoryPair>) {
        let Some(depth) = depth.checked_sub(1) else { return };
        for entry in fs::read_dir(from).into_iter().flatten().flatten() {
            if !entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                continue;
            }
            let real = entry.path();
            if !real.join("HEAD").is_file() || !real.join("objects").is_dir() {
                self.add_submodules(&real, depth, pairs);
                continue;
            }
            let Some(name) = self.submodule_path(&real) else { continue };
            let folder = self.module_folder(&real);
            let top = self.repository.top.join(&name);
            let repository =
                Repository { top, git_dir: real.clone(), common: real.clone(), settings_of: None };
            let confinement = self.confinement.clone();
            pairs.push(RepositoryPair {
                real: repository,
                folder,
                name: name.display().to_string(),
                confinement,
            });
            self.add_submodules(&real.join("modules"), depth, pairs);
        }
    }

    /// The folder of the agents for a submodule: beside that of the repository, under a name that no agent chooses.
    fn module_folder(&self, real: &Path) -> PathBuf {
        let below = real.strip_prefix(&self.repository.common).unwrap_or(real);
        let name = fnv_digest_of_bytes(below.as_os_str().as_encoded_bytes());
        self.folder.with_extension(MODULES).join(name)
    }

    /// The path of the working tree of a submodule, which its settings name, below that of the repository. `None` if it is
    /// elsewhere, or if it is no real folder.
    fn submodule_path(&self, git_dir: &Path) -> Option<PathBuf> {
        let settings = super::settings::of_file(&git_dir.join("config")).ok()?;
        let (_, named) = settings.into_iter().rev().find(|(name, _)| name == "core.worktree")?;
        let path = normalize_path(&fs::canonicalize(git_dir).ok()?.join(named));
        let below = path.strip_prefix(&self.repository.top).ok()?.to_owned();
        let top = FolderHandle::open(&self.repository.top).ok()?;
        (below.to_str().is_some_and(|below| !below.is_empty()) && top.folder(&below).is_ok()).then_some(below)
    }

    fn read_record(&self) -> Record {
        let text = fs::read(&self.record).unwrap_or_default();
        serde_json::from_slice(&text).unwrap_or_default()
    }

    fn write_record(&self, record: &Record) -> Result<(), WorktreeError> {
        write_whole(&self.record, &serde_json::to_vec(record).expect("maps and texts can be serialised"))
    }
}

/// Whether the repository of a project knows `top` as one of its worktrees, by the folder that the text of a `.git` file names.
/// Both are in the git folder of the user, which no repository brings.
fn is_known_worktree(root: &Path, top: &Path, text: &str) -> bool {
    let Ok(Some(repository)) = Repository::find(root) else { return false };
    let Some(git_dir) = text.strip_prefix("gitdir: ").map(|named| Path::new(named.trim_end_matches('\n')))
    else {
        return false;
    };
    let back = fs::read_to_string(git_dir.join("gitdir")).unwrap_or_default();
    git_dir.parent() == Some(&repository.common.join("worktrees"))
        && fs::canonicalize(git_dir).is_ok_and(|real| real == git_dir)
        && Path::new(back.trim_end_matches('\n')) == top.join(DOT_GIT)
}

fn real_path(path: &Path) -> PathBuf {
    fs::canonicalize(path).unwrap_or_else(|_| path.to_owned())
}

impl RepositoryPair {
    /// The git folder of the working tree: with HEAD and the index.
    fn own(&self) -> PathBuf {
        let own = self.real.git_dir.strip_prefix(&self.real.common).unwrap_or(Path::new(""));
        if own.as_os_str().is_empty() { self.folder.clone() } else { self.folder.join(own) }
    }

    /// A handle of the folder of the agents.
    ///
    /// # Errors
    /// When it is missing, or a link.
    fn handle(&self) -> Result<FolderHandle, WorktreeError> {
        FolderHandle::open(&self.folder).map_err(io_at("open", &self.folder))
    }

    /// The path of the git folder of the working tree below that of the agents.
    fn own_below(&self) -> PathBuf {
        self.real.git_dir.strip_prefix(&self.real.common).unwrap_or(Path::new("")).to_owned()
    }

    /// Git in the folder of the agents. Whatever it reads there may be an attack: it obeys settings and hooks of theirs,
    /// and reaches nothing but that folder and the objects of the user.
    fn agents_git(&self) -> Git {
        let mut reached = ReachedPaths { read: self.object_folders(), write: vec![self.folder.clone()] };
        reached.read.retain(|path| path.is_dir());
        Git::confined_to(&self.own(), self.confinement.words_before(&reached))
            .with("GIT_NO_REPLACE_OBJECTS", "1")
            // Nobody reads them, and one may be a link.
            .setting("core.logAllRefUpdates=false")
            .within(CONFINED_TIMEOUT)
            .limited_to(CONFINED_MEMORY_MAX)
    }

    /// The objects of the user, with those of repositories that they are borrowed from.
    fn object_folders(&self) -> Vec<PathBuf> {
        let mut folders = vec![self.real.common.join("objects")];
        let mut unread = folders.clone();
        for _ in 0..ALTERNATES_DEPTH {
            let mut next = Vec::new();
            for folder in unread {
                let text = fs::read_to_string(folder.join("info/alternates")).unwrap_or_default();
                let named = text.lines().filter(|line| !line.is_empty() && !line.starts_with(['#', '"']));
                next.extend(named.filter_map(|line| fs::canonicalize(folder.join(line)).ok()));
            }
            next.retain(|folder| !folders.contains(folder));
            folders.extend(next.iter().cloned());
            unread = next;
        }
        folders
    }

    /// Git with the branches and the index of the user.
    fn users_git(&self) -> Git {
        Git::in_repository(self.real.clone()).with("GIT_NO_REPLACE_OBJECTS", "1")
    }
}

/// The references of a repository with their objects, but for those of Cuegate.
pub(super) fn read_refs(git: &Git) -> Result<BTreeMap<String, String>, WorktreeError> {
    let listed = git.run(&["for-each-ref", "--format=%(objectname) %(refname)"])?;
    let listed = String::from_utf8_lossy(&listed).into_owned();
    let pairs = listed.lines().filter_map(|line| line.split_once(' '));
    let pairs = pairs.filter(|(_, name)| !name.starts_with("refs/cuegate/"));
    Ok(pairs.map(|(id, name)| (name.to_owned(), id.to_owned())).collect())
}

/// Removes `..` from a path without reading the file system.
fn normalize_path(path: &Path) -> PathBuf {
    path.components().fold(PathBuf::new(), |mut sum, part| {
        match part {
            Component::ParentDir => drop(sum.pop()),
            part => sum.push(part),
        }
        sum
    })
}

/// The text of a `.git` file.
fn dot_git_text(git_dir: &Path) -> String {
    format!("gitdir: {}\n", git_dir.display())
}

/// Writes the `.git` file of a worktree. An agent may have put a folder in its place, which is renamed.
fn write_dot_git(top: &Path, text: &str) -> Result<(), WorktreeError> {
    let folder = FolderHandle::open(top).map_err(io_at("open", top))?;
    let dot = Path::new(DOT_GIT);
    let write = || {
        if folder.state_of(dot)?.is_some_and(|state| state.is_folder()) {
            inner_repositories::move_dot(&folder)?;
        }
        folder.write_if_other(dot, text.as_bytes())
    };
    write().map_err(io_at("write", &top.join(DOT_GIT)))
}

/// Replaces a file as a whole, in a folder that no agent writes.
pub(super) fn write_whole(path: &Path, bytes: &[u8]) -> Result<(), WorktreeError> {
    let partial = path.with_file_name(format!(
        "{}.{}-{:?}",
        path.file_name().unwrap_or_default().display(),
        std::process::id(),
        std::thread::current().id()
    ));
    fs::write(&partial, bytes).map_err(io_at("write", &partial))?;
    fs::rename(&partial, path).map_err(io_at("rename to", path))
}

/// Removes a file or a link. It may be missing.
fn remove_if_present(path: &Path) -> Result<(), WorktreeError> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(io_at("remove", path)(error)),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod hostile_tests;
#[cfg(test)]
mod tests;
