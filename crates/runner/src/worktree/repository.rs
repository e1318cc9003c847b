//! Locates a repository, and makes a configuration of our own for it.
//!
//! Agents can write files in a repository, and git obeys many of them: settings name programs that git starts as file
//! system monitors, filters, hooks and so on. So our git reads none of these files. `GIT_COMMON_DIR` names a folder of
//! ours that links to the branches and objects of the repository, and holds settings that were copied by an allow-list.

#![expect(clippy::disallowed_methods, reason = "the git folder of the user")]

use std::collections::HashMap;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, symlink};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::SystemTime;

use super::error::{WorktreeError, io_at};
use super::settings;

/// A repository with a working tree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Repository {
    /// The top folder of the working tree, without links.
    pub top: PathBuf,
    /// The folder with HEAD and the index of this working tree.
    pub git_dir: PathBuf,
    /// The folder with the branches and objects, which worktrees share.
    pub common: PathBuf,
    /// The repository whose settings hold, as its `git_dir` and `common`; `None` for this one.
    pub settings_of: Option<(PathBuf, PathBuf)>,
}

/// Folders of a git folder whose entries are checked, with those below.
const CHECKED_FOLDERS: [&str; 8] =
    ["refs", "logs", "rebase-merge", "rebase-apply", "sequencer", "objects/pack", "objects/info", "info"];
/// The limit of entries that are checked. More of them are refused, so that no entry escapes the check.
const CHECKED_MAX: usize = 500_000;
/// Entries of a git folder that may be links, because git does not write through them.
const LINKS: [&str; 4] = ["hooks", "description", "branches", "lfs"];

/// Entries of a common folder that our folder links to.
const LINKED: [&str; 7] = ["HEAD", "objects", "refs", "logs", "packed-refs", "shallow", "worktrees"];

/// The limit of the size of a file that locates a repository or a commit, in bytes.
const LOCATION_MAX: u64 = 64 << 10;
/// The limit of the size of a file with packed branches, in bytes.
const PACKED_MAX: u64 = 64 << 20;

impl Repository {
    /// Finds the repository of a folder as git does. `None` outside of a working tree.
    ///
    /// # Errors
    /// When a file of the repository is damaged.
    pub fn find(dir: &Path) -> Result<Option<Repository>, WorktreeError> {
        let dir = fs::canonicalize(dir).map_err(io_at("read", dir))?;
        let device = |path: &Path| path.metadata().ok().map(|about| about.dev());
        let ceilings = std::env::var_os("GIT_CEILING_DIRECTORIES").unwrap_or_default();
        let ceilings: Vec<PathBuf> = std::env::split_paths(&ceilings).collect();
        let across = std::env::var_os("GIT_DISCOVERY_ACROSS_FILESYSTEM").is_some_and(|value| value != "0");
        for top in dir.ancestors() {
            if top != dir
                && (ceilings.iter().any(|ceiling| ceiling == top) || !across && device(top) != device(&dir))
            {
                break;
            }
            let dot = top.join(".git");
            let Ok(about) = dot.metadata() else { continue };
            let (git_dir, common) = if about.is_dir() {
                let git_dir = fs::canonicalize(&dot).map_err(io_at("read", &dot))?;
                (git_dir.clone(), git_dir)
            } else {
                let named =
                    read_location_file(&dot, "gitdir:").map_err(|why| build_unreadable_error(".git", why))?;
                let git_dir =
                    fs::canonicalize(top.join(&named)).map_err(|why| build_unreadable_error(".git", why))?;
                let common = match read_location_file(&git_dir.join("commondir"), "") {
                    Ok(named) => {
                        let common = fs::canonicalize(git_dir.join(named))
                            .map_err(|why| build_unreadable_error(".git", why))?;
                        // Otherwise an agent could name a repository that it made.
                        if git_dir.parent() != Some(&common.join("worktrees")) {
                            let why = "its `commondir` names another repository".to_owned();
                            return Err(WorktreeError::Unreadable { path: ".git".to_owned(), why });
                        }
                        common
                    }
                    Err(error) if error.kind() == io::ErrorKind::NotFound => git_dir.clone(),
                    Err(error) => return Err(build_unreadable_error(".git", error)),
                };
                (git_dir, common)
            };
            // As git, look further up if this is only a folder of that name.
            let is_repository = common.join("objects").is_dir() && common.join("refs").is_dir();
            if !is_repository || git_dir.join("HEAD").symlink_metadata().is_err() {
                continue;
            }
            // Not a working tree.
            if dir.starts_with(&common) || dir.starts_with(&git_dir) {
                return Ok(None);
            }
            let found = Repository { top: top.to_owned(), git_dir, common, settings_of: None };
            found.check_files()?;
            return Ok(Some(found));
        }
        Ok(None)
    }

    /// Refuses what git would wait for, such as a FIFO, and links through which it would write or read files elsewhere. In
    /// a repository that git made there are neither.
    ///
    /// # Errors
    /// With the file.
    pub fn check_files(&self) -> Result<(), WorktreeError> {
        let name = |path: &Path, folder: &Path| {
            format!(".git/{}", path.strip_prefix(folder).unwrap_or(path).display())
        };
        let refused = |path: &Path, folder: &Path, why: &str| {
            Err(WorktreeError::Unreadable { path: name(path, folder), why: why.to_owned() })
        };
        let mut checked = 0;
        for folder in [&self.git_dir, &self.common] {
            let subfolders = CHECKED_FOLDERS.iter().map(|name| folder.join(name));
            let mut left: Vec<PathBuf> = std::iter::once(folder.clone()).chain(subfolders).collect();
            while let Some(at) = left.pop() {
                for entry in fs::read_dir(&at).into_iter().flatten().flatten() {
                    let Ok(kind) = entry.file_type() else { continue };
                    let path = entry.path();
                    checked += 1;
                    if checked > CHECKED_MAX {
                        return refused(
                            &at,
                            folder,
                            "it has too many entries; `git pack-refs --all` removes most",
                        );
                    }
                    if kind.is_symlink() {
                        // HEAD was a link once. A link to a folder that does not matter is none of ours.
                        let inside = fs::canonicalize(&path).is_ok_and(|to| to.starts_with(&self.common));
                        let matters = at != *folder || !LINKS.iter().any(|name| entry.file_name() == *name);
                        if matters && !inside {
                            return refused(&path, folder, "it is a link out of the repository");
                        }
                    } else if kind.is_dir() {
                        if at != *folder && at.starts_with(folder) {
                            left.push(path);
                        }
                    } else if !kind.is_file() {
                        return refused(&path, folder, "it is not a regular file");
                    }
                }
            }
        }
        for file in [".gitattributes", ".gitignore", ".gitmodules", ".mailmap"] {
            let about = self.top.join(file).symlink_metadata();
            if about.is_ok_and(|about| !about.is_file() && !about.is_dir() && !about.is_symlink()) {
                let why = "it is not a regular file".to_owned();
                return Err(WorktreeError::Unreadable { path: file.to_owned(), why });
            }
        }
        Ok(())
    }

    /// The top folder of the main working tree.
    pub fn main_top(&self) -> PathBuf {
        match self.common.file_name() == Some(OsStr::new(".git")) {
            true => self.common.parent().unwrap_or(&self.common).to_owned(),
            false => self.common.clone(),
        }
    }

    /// The variables that make git work on this repository with our configuration.
    ///
    /// # Errors
    /// When our folder cannot be written.
    pub fn variables(&self) -> Result<[(&'static str, OsString); 3], WorktreeError> {
        Ok([
            ("GIT_DIR", self.git_dir.clone().into()),
            ("GIT_COMMON_DIR", self.own_common()?.into()),
            ("GIT_WORK_TREE", self.top.clone().into()),
        ])
    }

    /// The working trees of the repository as git lists them: an entry of lines each.
    ///
    /// # Errors
    /// When git fails.
    pub fn working_trees(dir: &Path) -> Result<Vec<Vec<String>>, WorktreeError> {
        let listed = super::git::Git::new(dir).run(&["worktree", "list", "--porcelain", "-z"])?;
        let listed = String::from_utf8_lossy(&listed).into_owned();
        let entries = listed.split("\0\0").filter(|entry| !entry.is_empty());
        Ok(entries.map(|entry| entry.split('\0').map(str::to_owned).collect()).collect())
    }

    /// The folder of hooks that may run; an empty file if there is none.
    pub fn hooks(&self) -> PathBuf {
        self.trusted_hooks().unwrap_or_else(|_| "/dev/null".into())
    }

    /// The folder of hooks.
    ///
    /// # Errors
    /// With its path, if it or a hook is in the working tree, where agents write.
    pub fn trusted_hooks(&self) -> Result<PathBuf, PathBuf> {
        let Ok(settings) = settings::of_file(&self.common.join("config")) else {
            return Ok("/dev/null".into());
        };
        let set = settings.into_iter().rev().find(|(name, _)| name == "core.hookspath");
        let set = set.map(|(_, path)| self.top.join(path)).or_else(hooks_of_user);
        let folder = set.unwrap_or_else(|| self.common.join("hooks"));
        let is_in_tree = |path: &Path| {
            let real = fs::canonicalize(path);
            let in_git = |real: &Path| real.starts_with(&self.common);
            real.map_or_else(
                |_| path.starts_with(&self.top) && !path.starts_with(&self.common),
                |real| {
                    !in_git(&real) && [&self.top, &self.main_top()].iter().any(|top| real.starts_with(top))
                },
            )
        };
        let mut entries = fs::read_dir(&folder).into_iter().flatten().flatten();
        match is_in_tree(&folder) || entries.any(|entry| is_in_tree(&entry.path())) {
            true => Err(folder),
            false => Ok(folder),
        }
    }

    /// Whether settings of the repository or the user tell git to start a program for this filter.
    pub fn has_filter(&self, name: &str) -> bool {
        let keys = ["clean", "process"].map(|key| format!("filter.{name}.{key}"));
        let own = settings::of_file(&self.common.join("config")).unwrap_or_default();
        own.iter().any(|(name, _)| keys.contains(name))
            || keys.iter().any(|key| setting_of_user(&["--get", key]).is_some())
    }

    /// Our folder in place of the common one.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn own_common(&self) -> Result<PathBuf, WorktreeError> {
        let name = super::snapshots::snapshot::fnv_digest_of_bytes(self.git_dir.as_os_str().as_bytes());
        let own = runtime_folder()?.join(format!("git-{name}"));
        fs::create_dir_all(own.join("info")).map_err(io_at("create", &own))?;
        // A `.git` file that an agent wrote leads to any repository, in which nothing is made.
        let is_own = self.common.starts_with(&self.top) || self.git_dir != self.common;
        let logs = self.common.join("logs");
        if is_own {
            // Without it git would create the logs in our folder.
            match fs::create_dir(&logs) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => {
                    return Err(io_at("create", &self.common)(error));
                }
                _ => {}
            }
        }
        for name in LINKED.into_iter().filter(|name| *name != "logs" || logs.is_dir()) {
            ensure_symlink(&self.common.join(name), &own.join(name))?;
        }
        for name in ["reftable", "modules"] {
            if self.common.join(name).is_dir() {
                ensure_symlink(&self.common.join(name), &own.join(name))?;
            }
        }
        ensure_symlink(&self.common.join("info/exclude"), &own.join("info/exclude"))?;
        let sparse = "info/sparse-checkout";
        ensure_symlink(&self.git_dir.join(sparse), &own.join(sparse))?;
        self.write_config(&own.join("config"))?;
        Ok(own)
    }

    /// Writes the allowed settings, if a settings file has changed since this process last wrote them.
    fn write_config(&self, to: &Path) -> Result<(), WorktreeError> {
        type Stamp = [Option<(SystemTime, u64, u64)>; 2];
        static WRITTEN: Mutex<Option<HashMap<PathBuf, Stamp>>> = Mutex::new(None);
        let own = (self.git_dir.clone(), self.common.clone());
        let (git_dir, common) = self.settings_of.as_ref().unwrap_or(&own);
        let files = [common.join("config"), git_dir.join("config.worktree")];
        let stamp = |path: &PathBuf| {
            let about = path.metadata().ok()?;
            Some((about.modified().ok()?, about.size(), about.ino()))
        };
        let stamps = [stamp(&files[0]), stamp(&files[1])];
        let mut written = WRITTEN.lock().unwrap_or_else(PoisonError::into_inner);
        let written = written.get_or_insert_with(HashMap::new);
        if written.get(to) == Some(&stamps) && to.is_file() {
            return Ok(());
        }
        let mut text = settings::render_allowed_settings(git_dir, &files)?;
        if self.settings_of.is_some() {
            text = settings::with_ref_files(&text);
        }
        if fs::read_to_string(to).ok().as_ref() != Some(&text) {
            let partial =
                to.with_extension(format!("{}-{:?}", std::process::id(), std::thread::current().id()));
            fs::write(&partial, text).map_err(io_at("write", &partial))?;
            fs::rename(&partial, to).map_err(io_at("rename to", to))?;
        }
        written.insert(to.to_owned(), stamps);
        Ok(())
    }
}

/// Whether a folder is the top of a working tree that git accepts: an empty `.git`, as sandboxes of agents leave it, is none.
pub fn is_working_tree(top: &Path) -> bool {
    let dot = top.join(".git");
    let Ok(about) = dot.metadata() else { return false };
    let git_dir = match about.is_dir() {
        true => dot,
        false => match read_location_file(&dot, "gitdir:") {
            Ok(named) => top.join(named),
            Err(_) => return false,
        },
    };
    let common = read_location_file(&git_dir.join("commondir"), "")
        .map_or_else(|_| git_dir.clone(), |named| git_dir.join(named));
    common.join("objects").is_dir()
        && common.join("refs").is_dir()
        && git_dir.join("HEAD").symlink_metadata().is_ok()
}

/// The top folder of the project that contains a folder: of the nearest working tree, as git finds it. A repository inside
/// the working tree of a project with runs is none of its own, because an agent may have made it; but submodules and
/// worktrees are, whose git folders are elsewhere.
pub fn project_top(here: &Path) -> Option<PathBuf> {
    let ceilings = std::env::var_os("GIT_CEILING_DIRECTORIES").unwrap_or_default();
    let ceilings: Vec<PathBuf> = std::env::split_paths(&ceilings).collect();
    let above = here.ancestors().enumerate();
    let below_ceiling =
        above.take_while(|(index, top)| *index == 0 || !ceilings.iter().any(|ceiling| ceiling == top));
    let tops: Vec<&Path> = below_ceiling.map(|(_, top)| top).filter(|top| is_working_tree(top)).collect();
    let nearest = tops.first()?;
    let is_project = |outer: &&&Path| outer.join(STATE_DIR).is_dir() && holds_git_dir(outer, nearest);
    Some(tops[1..].iter().find(is_project).unwrap_or(nearest).to_path_buf())
}

/// The state dir of a project, whose presence shows that runs worked there.
const STATE_DIR: &str = ".cuegate";

/// Whether the git folder of a working tree is among the files of another one around it, where agents write.
fn holds_git_dir(outer: &Path, inner: &Path) -> bool {
    let dot = inner.join(".git");
    let git_dir = match read_location_file(&dot, "gitdir:") {
        Ok(named) => inner.join(named),
        Err(_) => dot,
    };
    let real = |path: &Path| fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let (outer, git_dir) = (real(outer), real(&git_dir));
    git_dir.starts_with(&outer)
        && !git_dir.starts_with(outer.join(".git"))
        && !git_dir.starts_with(outer.join(STATE_DIR))
}

/// What `git config` prints outside of any repository: of the user's own settings. `None` if it fails.
fn setting_of_user(args: &[&str]) -> Option<String> {
    let mut command = std::process::Command::new(super::git::locate_git());
    super::git::clear_variables(&mut command);
    command.arg("config").args(args).current_dir("/");
    let output = command.stdin(std::process::Stdio::null()).output().ok()?;
    output.status.success().then(|| String::from_utf8(output.stdout).ok())?
}

/// The folder of hooks in the user's own settings, outside of any repository.
fn hooks_of_user() -> Option<PathBuf> {
    let text = setting_of_user(&["--global", "--type=path", "--get", "core.hooksPath"])?;
    let path = PathBuf::from(text.trim_end_matches('\n'));
    path.is_absolute().then_some(path)
}

/// The folder of hooks of a repository, if it or a hook is in the working tree. Such hooks never run, because agents write
/// there.
///
/// # Errors
/// When a file of the repository is damaged.
pub fn hooks_in_tree(root: &Path) -> Result<Option<PathBuf>, WorktreeError> {
    Ok(Repository::find(root)?.and_then(|found| found.trusted_hooks().err()))
}

/// Excludes the state dir of a project from version control in the settings of its repository, which hold for all of its
/// working trees. The `.gitignore` in the state dir alone is not visible everywhere.
///
/// # Errors
/// When the file cannot be read or written.
pub fn exclude_state_dir(root: &Path) -> Result<(), WorktreeError> {
    const LINE: &str = "/.cuegate";
    let Some(found) = Repository::find(root)? else { return Ok(()) };
    let file = found.common.join("info/exclude");
    let text = match fs::read(&file) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => Vec::new(),
        Err(error) => return Err(io_at("read", &file)(error)),
    };
    let is_line =
        |line: &[u8]| line.trim_ascii().strip_suffix(b"/").unwrap_or(line.trim_ascii()) == LINE.as_bytes();
    if text.split(|byte| *byte == b'\n').any(is_line) {
        return Ok(());
    }
    let folder = found.common.join("info");
    fs::create_dir_all(&folder).map_err(io_at("create", &folder))?;
    let begin = if text.is_empty() || text.ends_with(b"\n") { "" } else { "\n" };
    // Appended in one call: other programs may append as well.
    let mut file_to =
        fs::OpenOptions::new().append(true).create(true).open(&file).map_err(io_at("open", &file))?;
    let line = format!("{begin}{LINE}\n");
    io::Write::write_all(&mut file_to, line.as_bytes()).map_err(io_at("write", &file))
}

/// Whether a folder inside the working tree of a repository is another working tree of it, as agents make them for their
/// subagents.
pub(super) fn is_linked_worktree(work: &Path, folder: &Path) -> bool {
    let Ok(git_dir) = read_location_file(&folder.join(".git"), "gitdir:") else { return false };
    let Ok(Some(own)) = Repository::find(work) else { return false };
    let worktrees = fs::canonicalize(own.common.join("worktrees"));
    let parent = fs::canonicalize(folder.join(git_dir)).ok().and_then(|dir| Some(dir.parent()?.to_owned()));
    worktrees.is_ok_and(|worktrees| parent == Some(worktrees))
}

/// The commit that is checked out in an embedded repository, read without git. `None` if it has none.
pub(super) fn head_commit(folder: &Path) -> Option<String> {
    let dot = folder.join(".git");
    let git_dir = match dot.metadata().ok()?.is_dir() {
        true => dot,
        false => folder.join(read_location_file(&dot, "gitdir:").ok()?),
    };
    let common = read_location_file(&git_dir.join("commondir"), "")
        .map_or_else(|_| git_dir.clone(), |named| git_dir.join(named));
    let mut name = PathBuf::from("HEAD");
    for _ in 0..5 {
        // Git reads HEAD and what belongs to one worktree from its folder, branches from the shared one.
        let found =
            [&git_dir, &common].into_iter().find_map(|dir| read_location_file(&dir.join(&name), "").ok());
        let Some(found) = found else { return packed_commit(&common, &name) };
        let text = found.to_str()?.trim();
        match text.strip_prefix("ref:") {
            None => return is_object_id(text).then(|| text.to_owned()),
            Some(next) => name = PathBuf::from(next.trim()),
        }
        let is_safe = |part| matches!(part, std::path::Component::Normal(_));
        if !name.components().all(is_safe) {
            return None;
        }
    }
    None
}

/// The commit of a packed branch.
fn packed_commit(common: &Path, name: &Path) -> Option<String> {
    let file = common.join("packed-refs");
    let about = file.metadata().ok()?;
    if !about.is_file() || about.len() > PACKED_MAX {
        return None;
    }
    let text = fs::read_to_string(&file).ok()?;
    let pairs = text.lines().filter_map(|line| line.split_once(' '));
    pairs.into_iter().find(|(id, of)| Path::new(of) == name && is_object_id(id)).map(|(id, _)| id.to_owned())
}

fn is_object_id(text: &str) -> bool {
    matches!(text.len(), 40 | 64) && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// A private folder of this user for files that live as long as the machine is up.
fn runtime_folder() -> Result<PathBuf, WorktreeError> {
    static FOLDER: OnceLock<PathBuf> = OnceLock::new();
    if let Some(folder) = FOLDER.get().filter(|folder| folder.is_dir()) {
        return Ok(folder.clone());
    }
    let user = rustix::process::geteuid();
    let is_private = |folder: &Path| {
        let about = folder.symlink_metadata();
        about.is_ok_and(|about| about.is_dir() && about.uid() == user.as_raw() && about.mode() & 0o077 == 0)
    };
    let named = std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from);
    let parent = named.filter(|folder| is_private(folder)).unwrap_or_else(std::env::temp_dir);
    let folder = parent.join(format!("cuegate-{}", user.as_raw()));
    let created = fs::DirBuilder::new().mode(0o700).create(&folder);
    let folder = match is_private(&folder) {
        true => folder,
        // Somebody else has the name, or the folder is not writable.
        false => match tempfile::Builder::new().prefix("cuegate-").tempdir_in(&parent) {
            Ok(folder) => folder.keep(),
            Err(error) => return Err(io_at("create", &folder)(created.err().unwrap_or(error))),
        },
    };
    let folder = fs::canonicalize(&folder).map_err(io_at("read", &folder))?;
    Ok(FOLDER.get_or_init(|| folder).clone())
}

/// Removes our folders of repositories and worktrees that are gone.
pub fn remove_stale_settings() {
    let Ok(folder) = runtime_folder() else { return };
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let own = entry.path();
        let Ok(sparse) = fs::read_link(own.join("info/sparse-checkout")) else { continue };
        if sparse.parent().and_then(Path::parent).is_some_and(|git_dir| !git_dir.exists()) {
            // Another process may be removing it.
            let _ = fs::remove_dir_all(own);
        }
    }
}

/// Creates a link, or corrects it. The target need not exist.
fn ensure_symlink(target: &Path, at: &Path) -> Result<(), WorktreeError> {
    if fs::read_link(at).is_ok_and(|found| found == target) {
        return Ok(());
    }
    let partial = at.with_file_name(format!(
        "{}.{}-{:?}",
        at.file_name().unwrap_or_default().display(),
        std::process::id(),
        std::thread::current().id()
    ));
    let _ = fs::remove_file(&partial);
    symlink(target, &partial).and_then(|()| fs::rename(&partial, at)).map_err(io_at("create", at))
}

/// Reads a file that names another one.
fn read_location_file(file: &Path, prefix: &str) -> io::Result<PathBuf> {
    let about = file.metadata()?;
    if !about.is_file() || about.len() > LOCATION_MAX {
        return Err(io::Error::other("it is not a regular file"));
    }
    let text = fs::read(file)?;
    let named =
        text.strip_prefix(prefix.as_bytes()).ok_or_else(|| io::Error::other("it names no repository"))?;
    let named = named.trim_ascii();
    if named.is_empty() {
        return Err(io::Error::other("it names no repository"));
    }
    Ok(PathBuf::from(OsStr::from_bytes(named)))
}

fn build_unreadable_error(path: &str, error: io::Error) -> WorktreeError {
    WorktreeError::Unreadable { path: path.to_owned(), why: error.to_string() }
}

#[cfg(test)]
mod tests;
