//! The git folder that the programs of a run see in place of the user's.
//!
//! It stands in for the shared folder of the repository (`.git`): in a sandbox it is mounted over it, elsewhere the `.git`
//! file of a worktree names it. It has its own HEAD, index, branches, settings and hooks, and reads the objects of the user
//! as alternates. After each command [`AgentGit::take_over`] moves the branch of the run forward in the user's repository;
//! everything else stays here. `docs/internals/design/0007-agent-git.md` has the reasons and measurements.

mod inner_repositories;
mod seed;
mod take_over;
mod visible_settings;

use std::{
    collections::{BTreeMap, BTreeSet},
    fs, io,
    os::unix::fs::MetadataExt as _,
    path::{Path, PathBuf},
};

use serde::{Deserialize, Serialize};

use super::error::{WorktreeError, io_at};
use super::git::Git;
use super::repository::Repository;
use super::snapshots::snapshot::{Trees, quote_list_path};

pub use take_over::TakeOverReport;
pub(super) use take_over::describe_ref;

/// The folder in a git folder of an agent where the user's objects are.
const BORROWED: &str = "alt";
/// The extension of the file beside a git folder with what it was made from.
const RECORD: &str = "json";
/// The extension of the file beside a git folder with its path, the worktree and the text of the `.git` file there that it
/// replaces, a line each.
const NAMED: &str = "replaced";
/// The depth of folders of submodules that are searched: their names may contain slashes.
const SUBMODULE_DEPTH: usize = 6;

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
    /// The number of commands that use it now.
    users: usize,
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
    /// The working tree of the repository.
    pub(crate) top: PathBuf,
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
struct RepositoryPair {
    real: Repository,
    folder: PathBuf,
    /// The path of a submodule; empty for the repository of the run.
    name: String,
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
    /// The `.git` of each submodule in the user's index, at the start of the last call.
    dots: BTreeMap<String, String>,
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
        AgentGit { repository, folder: folder.to_owned(), record, reach, users: 0 }
    }

    /// Brings it up to date with the repository of the user, whose changes win over those of agents. Call it before a
    /// command starts, and [`AgentGit::end`] after it.
    ///
    /// # Errors
    /// When git fails or a file cannot be written.
    pub fn begin(&mut self) -> Result<(), WorktreeError> {
        self.seed(false)?;
        if self.reach == GitFolderReach::Named {
            let (top, text) = (&self.repository.top, dot_git_text(&self.repository.git_dir));
            let named = format!("{}\n{}\n{text}", real_path(&self.folder).display(), top.display());
            write_whole(&self.folder.with_extension(NAMED), named.as_bytes())?;
            write_dot_git(&self.repository.top, &dot_git_text(&self.main_pair().own()))?;
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
        AgentGit::restore_name(&self.folder)
    }

    /// Makes the worktree of a run name the repository of the user, if a killed command left it with the git folder of its
    /// agents, `folder`.
    ///
    /// # Errors
    /// When its `.git` file cannot be written.
    pub fn restore_name(folder: &Path) -> Result<(), WorktreeError> {
        let named = folder.with_extension(NAMED);
        let Ok(text) = fs::read_to_string(&named) else { return Ok(()) };
        let mut lines = text.splitn(3, '\n');
        // In a copy of the project it still names the worktree of the original, which may be at work.
        if let (Some(made_in), Some(top), Some(text)) = (lines.next(), lines.next(), lines.next())
            && real_path(folder) == Path::new(made_in)
            && Path::new(top).is_dir()
        {
            write_dot_git(Path::new(top), text)?;
        }
        remove_if_present(&named)
    }

    /// Removes the folder of a run that has ended, if nothing is left in it that was not taken over.
    pub fn remove_spent(folder: &Path) {
        let text = fs::read(folder.with_extension(RECORD)).unwrap_or_default();
        let record: Record = serde_json::from_slice(&text).unwrap_or_default();
        if folder.is_dir() && record.values().all(|seeded| seeded.named.is_empty()) {
            // A failure only costs disk space.
            let _ = fs::remove_dir_all(folder);
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

    /// The index that agents see, if there is one.
    pub fn index(&self) -> PathBuf {
        self.main_pair().own().join("index")
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

    /// How programs find it.
    pub(crate) fn reach(&self) -> GitFolderReach {
        self.reach
    }

    /// The mounts that show it, and those of submodules, which are inside of it.
    pub(crate) fn mounts(&self) -> Vec<GitMounts> {
        self.pairs()
            .into_iter()
            .map(|pair| GitMounts { over: pair.real.common, from: pair.folder, top: pair.real.top })
            .collect()
    }

    /// The folders of submodules that are not checked out. A repository that an agent made there would be one that git of
    /// the user enters.
    pub(crate) fn empty_submodules(&self) -> Vec<PathBuf> {
        let mut record = self.read_record();
        let known = record.remove("").unwrap_or_default();
        let empty = known.dots.into_iter().filter(|(_, dot)| dot.is_empty());
        empty.map(|(link, _)| self.repository.top.join(link)).filter(|path| path.is_dir()).collect()
    }

    fn main_pair(&self) -> RepositoryPair {
        RepositoryPair { real: self.repository.clone(), folder: self.folder.clone(), name: String::new() }
    }

    /// The repository of the run and those of its submodules.
    fn pairs(&self) -> Vec<RepositoryPair> {
        let mut pairs = vec![self.main_pair()];
        if self.reach == GitFolderReach::Mounted {
            let own = self.main_pair().own();
            let modules = self.repository.git_dir.join("modules");
            self.add_submodules(&modules, &own.join("modules"), SUBMODULE_DEPTH, &mut pairs);
        }
        pairs
    }

    fn add_submodules(&self, from: &Path, to: &Path, depth: usize, pairs: &mut Vec<RepositoryPair>) {
        let Some(depth) = depth.checked_sub(1) else { return };
        for entry in fs::read_dir(from).into_iter().flatten().flatten() {
            if !entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                continue;
            }
            let (real, folder) = (entry.path(), to.join(entry.file_name()));
            if !real.join("HEAD").is_file() || !real.join("objects").is_dir() {
                self.add_submodules(&real, &folder, depth, pairs);
                continue;
            }
            let Some(top) = submodule_top(&real).filter(|top| top.starts_with(&self.repository.top)) else {
                continue;
            };
            let name = top.strip_prefix(&self.repository.top).unwrap_or(&top).display().to_string();
            let repository =
                Repository { top, git_dir: real.clone(), common: real.clone(), settings_of: None };
            self.add_submodules(&real.join("modules"), &folder.join("modules"), depth, pairs);
            pairs.push(RepositoryPair { real: repository, folder, name });
        }
    }

    fn read_record(&self) -> Record {
        let text = fs::read(&self.record).unwrap_or_default();
        serde_json::from_slice(&text).unwrap_or_default()
    }

    fn write_record(&self, record: &Record) -> Result<(), WorktreeError> {
        write_whole(&self.record, &serde_json::to_vec(record).expect("maps and texts can be serialised"))
    }
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

    /// Git with the branches of the agents. It obeys no settings of theirs.
    ///
    /// # Errors
    /// When the folder holds what git would wait for or what leads out of it.
    fn agents_git(&self) -> Result<Git, WorktreeError> {
        let settings_of = Some((self.real.git_dir.clone(), self.real.common.clone()));
        let top = self.real.top.clone();
        let repository = Repository { top, git_dir: self.own(), common: self.folder.clone(), settings_of };
        repository.check_files()?;
        let git = Git::in_repository(repository)
            .with(
                "GIT_ALTERNATE_OBJECT_DIRECTORIES",
                quote_list_path(self.real.common.join("objects").into()),
            )
            .with("GIT_NO_REPLACE_OBJECTS", "1");
        // Agents can write these files too.
        let unused = [
            "core.commitGraph=false",
            "core.multiPackIndex=false",
            "pack.useBitmaps=false",
            "pack.packSizeLimit=0",
        ];
        Ok(unused.into_iter().fold(git, Git::setting))
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

/// The working tree of a submodule, which its settings name.
fn submodule_top(git_dir: &Path) -> Option<PathBuf> {
    let settings = super::settings::of_file(&git_dir.join("config")).ok()?;
    let (_, named) = settings.into_iter().rev().find(|(name, _)| name == "core.worktree")?;
    fs::canonicalize(git_dir.join(named)).ok()
}

/// The text of a `.git` file.
fn dot_git_text(git_dir: &Path) -> String {
    format!("gitdir: {}\n", git_dir.display())
}

/// Writes the `.git` file of a worktree. An agent may have put a folder in its place, which is renamed.
fn write_dot_git(top: &Path, text: &str) -> Result<(), WorktreeError> {
    let dot = top.join(".git");
    let about = dot.symlink_metadata();
    let is_file = about.as_ref().is_ok_and(fs::Metadata::is_file);
    if is_file && fs::read_to_string(&dot).is_ok_and(|found| found == text) {
        return Ok(());
    }
    if about.is_ok_and(|about| about.is_dir()) {
        let aside = (1..).map(|n| top.join(format!(".git.by-agent-{n}")));
        let aside = aside.into_iter().find(|path| path.symlink_metadata().is_err());
        fs::rename(&dot, aside.unwrap_or_default()).map_err(io_at("rename", &dot))?;
    }
    write_whole(&dot, text.as_bytes())
}

/// Writes the `.git` file of a submodule.
fn write_dot_git_file(folder: &Path, text: &str) -> Result<(), WorktreeError> {
    write_whole(&folder.join(".git"), text.as_bytes())
}

/// Replaces a file, or a link, as a whole.
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
mod tests;
