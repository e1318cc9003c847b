#![expect(clippy::disallowed_methods, reason = "state of ours, where no agent writes")]

use std::collections::{BTreeSet, HashMap};
use std::ffi::{OsStr, OsString};
use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::Output;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use rustix::fs::{FlockOperation, flock};

use super::forced_files::ForcedFiles;
use crate::worktree::error::{WorktreeError, io_at};
use crate::worktree::git::{Git, TIMEOUT, build_git_error, quote_list_path};
use crate::worktree::repository::Repository;
use crate::worktree::tree_edit::GITLINK;

/// The snapshots of one working tree.
#[derive(Debug, Clone)]
pub struct Trees {
    pub(in crate::worktree) root: PathBuf,
    pub(in crate::worktree) state: PathBuf,
    /// Identifies the root in file names, so that worktrees can share one state dir.
    pub(in crate::worktree) name: String,
    pub(in crate::worktree) git: Git,
    repository: Repository,
    pub(in crate::worktree) git_dir: PathBuf,
    pub(in crate::worktree) user_index: PathBuf,
    /// What snapshots leave out, and was not yet reported.
    warnings: Arc<Mutex<Warnings>>,
    /// The files that git ignores and an index has, as of a state of that index.
    pub(in crate::worktree) forced: Arc<Mutex<HashMap<PathBuf, ForcedFiles>>>,
    /// The index that agents see, if it is another one than the user's.
    pub(in crate::worktree) agent_index: Option<(PathBuf, PathBuf)>,
}

#[derive(Debug, Default)]
struct Warnings {
    new: Vec<String>,
    known: BTreeSet<String>,
}

/// A working tree at one moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Snapshot {
    /// Object id of the tree of all files that git does not ignore, on disk.
    pub tree: String,
    /// The commit that is checked out; `None` before the first one.
    pub head: Option<String>,
    /// Digest of all branches and tags, their commits and the checked-out branch. Excludes remote branches, because
    /// editors fetch in the background.
    pub refs: String,
}

/// Background programs (editors, language servers) create and remove files while git reads, which makes it fail; a
/// retry mostly succeeds.
const ATTEMPTS_MAX: u32 = 3;

/// The time after which a snapshot is taken for slow and looks for huge files.
const QUICK: Duration = Duration::from_secs(10);

/// The number of changed files from which their objects are stored in one pack. 10,000 files take 1.7 s instead of 24.
const PACKED_FROM: usize = 100;

/// The size of a huge file, in bytes: reading more than this takes longer than [`QUICK`].
const LARGE: u64 = 4 << 30;

impl Trees {
    /// Opens the working tree that contains the folder `work`. Our index and objects go to `state`, which is created.
    ///
    /// `None` when `work` is in no working tree, or git is not installed.
    ///
    /// # Errors
    /// Git cannot read the repository (damaged, or another user's), `work` is not a readable folder, or `state` cannot
    /// be created.
    pub fn open(work: &Path, state: &Path) -> Result<Option<Trees>, WorktreeError> {
        let Some(Repository { top: root, git_dir, common, .. }) = Repository::find(work)? else {
            return Ok(None);
        };
        // Reports a repository that git cannot read.
        match Git::new(work).run(&["rev-parse", "--git-dir"]) {
            Ok(_) => {}
            Err(WorktreeError::Start(error)) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error),
        }
        let (objects, user_index) = (common.join("objects").into_os_string(), git_dir.join("index"));
        let state = std::path::absolute(state).map_err(io_at("find", state))?;
        let own_objects = state.join("objects");
        fs::create_dir_all(&own_objects).map_err(io_at("create", &own_objects))?;
        let name = fnv_digest_of_bytes(root.as_os_str().as_bytes());
        // Fix the location of the repository: an agent cannot redirect us by a new `.git`.
        let repository =
            Repository { top: root.clone(), git_dir: git_dir.clone(), common, settings_of: None };
        let git = Git::in_repository(repository.clone())
            .with("GIT_INDEX_FILE", state.join(format!("index-{name}")))
            .with("GIT_OBJECT_DIRECTORY", &own_objects)
            .with("GIT_ALTERNATE_OBJECT_DIRECTORIES", quote_list_path(objects));
        let (warnings, forced) = (Arc::default(), Arc::default());
        Ok(Some(Trees {
            root,
            state,
            name,
            git,
            repository,
            git_dir,
            user_index,
            warnings,
            forced,
            agent_index: None,
        }))
    }

    /// Git with the index and the objects of the user.
    pub(in crate::worktree) fn user_git(&self) -> Git {
        Git::in_repository(self.repository.clone())
    }

    /// The repository, as it was when the working tree was opened.
    pub(in crate::worktree) fn repository(&self) -> &Repository {
        &self.repository
    }

    /// Whether the repository is still there.
    pub fn is_repository(&self) -> bool {
        self.git_dir.join("HEAD").symlink_metadata().is_ok() && self.root.join(".git").exists()
    }

    /// What a command removed that the repository needs. `before` is the commit that was checked out before, `head`
    /// the one that is now.
    ///
    /// # Errors
    /// When git cannot be run.
    pub fn lost(&self, before: &str, head: Option<&str>) -> Result<Vec<String>, WorktreeError> {
        let mut lost = Vec::new();
        if head.is_none() {
            lost.push("HEAD".to_owned());
        }
        for commit in [Some(before), head.filter(|head| *head != before)].into_iter().flatten() {
            if !self.git.succeeds(&["cat-file", "-e", &format!("{commit}^{{tree}}")])? {
                lost.push(format!("objects of the commit {}", commit.get(..12).unwrap_or(commit)));
            }
        }
        Ok(lost)
    }

    /// What snapshots leave out and was not returned before.
    pub fn warnings(&self) -> Vec<String> {
        std::mem::take(&mut self.warnings.lock().unwrap_or_else(PoisonError::into_inner).new)
    }

    fn warn(&self, text: String) {
        let mut warnings = self.warnings.lock().unwrap_or_else(PoisonError::into_inner);
        if warnings.known.insert(text.clone()) {
            warnings.new.push(text);
        }
    }

    /// The top folder of the working tree, absolute. Paths of changes are relative to it.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Takes a snapshot. Of embedded repositories and submodules it only holds the checked-out commit; those without a
    /// commit are left out, and so are other working trees of the repository and `.cuegate`.
    ///
    /// # Errors
    /// [`WorktreeError::Unreadable`] when a file or folder cannot be read.
    pub fn snapshot(&self) -> Result<Snapshot, WorktreeError> {
        self.repository.check_files()?;
        let _guard = self.guard()?;
        self.snapshot_of(self.tree()?)
    }

    /// The snapshot of a working tree that is known to be as this tree.
    pub(in crate::worktree) fn snapshot_of(&self, tree: String) -> Result<Snapshot, WorktreeError> {
        let refs = self.git.run(&[
            "for-each-ref",
            "--format=%(HEAD) %(objectname) %(refname)",
            "refs/heads",
            "refs/tags",
        ])?;
        let head = match checked_out_commit(&refs) {
            Some(commit) => Some(commit),
            // A commit without a branch, or a branch without a commit.
            None => {
                let head = self.git.output(&["rev-parse", "--quiet", "--verify", "HEAD"], b"")?;
                head.status.success().then(|| String::from_utf8_lossy(&head.stdout).trim_end().to_owned())
            }
        };
        Ok(Snapshot { tree, head, refs: cuegate_journal::Digest::for_bytes(&refs).to_string() })
    }

    /// Locks this state dir against other snapshots of the tree and against sweeps, in any process, until the files are
    /// dropped. The kernel releases the locks when the holder is killed.
    pub(in crate::worktree) fn guard(&self) -> Result<[File; 2], WorktreeError> {
        let store = self.lock_file("store.lock", FlockOperation::LockShared)?;
        Ok([self.lock_file(&format!("guard-{}", self.name), FlockOperation::LockExclusive)?, store])
    }

    /// Locks a file in the state dir.
    pub(in crate::worktree) fn lock_file(
        &self,
        name: &str,
        how: FlockOperation,
    ) -> Result<File, WorktreeError> {
        let path = self.state.join(name);
        let file = OpenOptions::new().write(true).create(true).truncate(false).open(&path);
        let file = file.map_err(io_at("open", &path))?;
        flock(&file, how).map_err(|error| io_at("lock", &path)(error.into()))?;
        Ok(file)
    }

    /// Updates our index to the present state and writes it as a tree. Requires the guard.
    pub(in crate::worktree) fn tree(&self) -> Result<String, WorktreeError> {
        let began = SystemTime::now();
        let git = self.add_all()?.within(TIMEOUT);
        let tree = match git.word(&["write-tree"]) {
            Err(WorktreeError::Git { .. }) => {
                // A command removed objects that the index refers to. The files are read again.
                self.read_all_again()?;
                self.add_all()?.within(TIMEOUT).word(&["write-tree"])?
            }
            tree => tree?,
        };
        self.sync_folders(began)?;
        Ok(tree)
    }

    /// Replaces our index by one that is made from the files alone. It has the paths of the former one, because an
    /// ignored file may be tracked.
    fn read_all_again(&self) -> Result<(), WorktreeError> {
        let paths = self.git.run(&["ls-files", "-z"])?;
        let partial = self.index().with_extension("partial");
        self.remove_if_present(&partial)?;
        let git = self.git.clone().with("GIT_INDEX_FILE", &partial);
        git.run_with(&["update-index", "--add", "--remove", "-z", "--stdin"], &paths)?;
        fs::rename(&partial, self.index()).map_err(io_at("rename to", &self.index()))
    }

    pub(in crate::worktree) fn index(&self) -> PathBuf {
        self.state.join(format!("index-{}", self.name))
    }

    /// The path of an index that only one call uses.
    pub(in crate::worktree) fn scratch_index(&self) -> PathBuf {
        use std::sync::atomic::{AtomicU32, Ordering};
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let (process, number) = (std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        self.state.join(format!("scratch-{}-{process}-{number}", self.name))
    }

    /// Updates our index. Returns the git with the attributes that worked.
    fn add_all(&self) -> Result<Git, WorktreeError> {
        let mut tried = 0;
        let mut git = self.git.clone().within(QUICK);
        loop {
            let is_new = self.prepare_index()?;
            let error = match self.add_once(&git, is_new) {
                Ok(()) => return Ok(git),
                // Huge files are named instead of read for hours; many small ones get more time.
                Err(WorktreeError::TimedOut { .. }) if tried == 0 => {
                    self.refuse_special_files()?;
                    self.refuse_large_files()?;
                    git = self.git.clone();
                    tried += 1;
                    continue;
                }
                Err(error) => error,
            };
            if tried < ATTEMPTS_MAX && is_about_attributes(&error) {
                // Attributes of the working tree, which an agent may have changed, apply a filter that fails.
                self.warn("a filter of `.gitattributes` fails; snapshots ignore the attributes".to_owned());
                let empty = self.git.word(&["hash-object", "-t", "tree", "-w", "--stdin"])?;
                git = git.with("GIT_ATTR_SOURCE", empty);
                tried = ATTEMPTS_MAX;
                continue;
            }
            tried += 1;
            if tried >= ATTEMPTS_MAX || matches!(error, WorktreeError::Killed { .. }) {
                return Err(error);
            }
            if matches!(error, WorktreeError::Git { .. }) {
                // Our index may be damaged. Removing it is safe: it is created again.
                self.remove_if_present(&self.index())?;
            }
        }
    }

    /// Brings our index up to date with the files. Not by `git add`, which starts a git in each embedded repository with
    /// the settings that an agent may have written there.
    fn add_once(&self, git: &Git, is_new: bool) -> Result<(), WorktreeError> {
        // Files that were only touched are not read again next time. It fails if a file has changed.
        git.output(&["update-index", "-q", "--refresh"], b"")?;
        let former = self.former_repositories(git)?;
        if !former.is_empty() {
            git.run_with(&["update-index", "--force-remove", "-z", "--stdin"], &former)?;
        }
        let mut changed = self.list(git, &["--others", "--modified", "--deleted", "--exclude-standard"])?;
        changed.extend(self.forced_files()?);
        if is_new {
            // Of a merge that the user has not finished.
            for entry in self.list(git, &["--unmerged"])?.split(|byte| *byte == 0) {
                if let Some(tab) = entry.iter().position(|byte| *byte == b'\t') {
                    changed.extend_from_slice(&entry[tab + 1..]);
                    changed.push(0);
                }
            }
        }
        let (mut replaced, mut paths, mut repositories) = (Vec::new(), Vec::new(), Vec::new());
        let mut links = HashMap::new();
        for path in changed.split(|byte| *byte == 0).filter(|path| !path.is_empty()) {
            let Some(folder) = path.strip_suffix(b"/") else {
                let at = self.root.join(OsStr::from_bytes(path));
                // A folder took the place of the file, and no submodule. Its own files are listed one by one.
                let is_folder =
                    at.symlink_metadata().is_ok_and(|about| about.is_dir()) && !at.join(".git").exists();
                // As did a link that of the folder around it.
                let is_gone =
                    is_folder || is_behind_link(&self.root, Path::new(OsStr::from_bytes(path)), &mut links);
                let list = if is_gone { &mut replaced } else { &mut paths };
                list.extend_from_slice(path);
                list.push(0);
                continue;
            };
            let at = self.root.join(OsStr::from_bytes(folder));
            if crate::worktree::repository::is_linked_worktree(&self.root, &at) {
                let name = String::from_utf8_lossy(folder).into_owned();
                self.warn(format!(
                    "`{name}` is another working tree of this repository; snapshots leave it out"
                ));
                continue;
            }
            // An embedded repository.
            if let Some(commit) = crate::worktree::repository::head_commit(&at) {
                repositories.extend_from_slice(format!("{GITLINK} {commit} 0\t").as_bytes());
                repositories.extend_from_slice(folder);
                repositories.push(0);
            }
        }
        // Many new objects go into one pack instead of a file each, which would be synced one by one. Git has no other way
        // to ask for that.
        let many = paths.iter().filter(|byte| **byte == 0).count() > PACKED_FROM;
        let git = if many { &git.clone().setting("core.bigFileThreshold=1") } else { git };
        if !replaced.is_empty() {
            git.run_with(&["update-index", "--force-remove", "-z", "--stdin"], &replaced)?;
        }
        for (args, input) in [
            (["update-index", "--add", "--remove", "--replace", "-z", "--stdin"], paths),
            (["update-index", "--add", "--remove", "--replace", "-z", "--index-info"], repositories),
        ] {
            if input.is_empty() {
                continue;
            }
            let output = git.output(&args, &input)?;
            for path in check_update(&args, &output)? {
                self.warn(format!("git refuses the name `{path}`; snapshots leave the file out"));
            }
        }
        Ok(())
    }

    /// The folders that our index knows as repositories, and that hold files and no repository: git lists none of them.
    fn former_repositories(&self, git: &Git) -> Result<Vec<u8>, WorktreeError> {
        let mut former = Vec::new();
        for entry in git.run(&["ls-files", "-z", "--stage"])?.split(|byte| *byte == 0) {
            let Some(tab) = entry.iter().position(|byte| *byte == b'\t') else { continue };
            let (about, path) = (&entry[..tab], &entry[tab + 1..]);
            let folder = self.root.join(OsStr::from_bytes(path));
            if about.starts_with(GITLINK.as_bytes())
                && folder.read_dir().is_ok_and(|mut entries| entries.next().is_some())
                && folder.join(".git").symlink_metadata().is_err()
            {
                former.extend_from_slice(path);
                former.push(0);
            }
        }
        Ok(former)
    }

    /// Lists files of the working tree or the index.
    fn list(&self, git: &Git, which: &[&str]) -> Result<Vec<u8>, WorktreeError> {
        let mut args: Vec<OsString> = vec!["ls-files".into(), "-z".into()];
        args.extend(which.iter().map(OsString::from));
        args.extend(["--", ".", ":(exclude,literal).cuegate"].map(OsString::from));
        if let Ok(state) = self.state.strip_prefix(&self.root) {
            let mut exclude = OsString::from(":(exclude,literal)");
            exclude.push(state);
            args.push(exclude);
        }
        let output = git.output(&args, b"")?;
        if let Some(unreadable) = parse_unreadable_error(&String::from_utf8_lossy(&output.stderr)) {
            return Err(unreadable);
        }
        if output.status.success() { Ok(output.stdout) } else { Err(build_git_error(&args, &output)) }
    }

    /// Fails when a changed file is too large for a snapshot.
    fn refuse_large_files(&self) -> Result<(), WorktreeError> {
        let args = ["ls-files", "--others", "--modified", "--exclude-standard", "-z"];
        for path in self.git.run(&args)?.split(|&byte| byte == 0) {
            let path = Path::new(OsStr::from_bytes(path));
            match self.root.join(path).symlink_metadata() {
                Ok(found) if found.is_file() && found.len() > LARGE => {
                    return Err(WorktreeError::TooLarge {
                        path: path.display().to_string(),
                        bytes: found.len(),
                    });
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// Fails when a file of an embedded repository is a FIFO or a device, for whose other end git waits.
    fn refuse_special_files(&self) -> Result<(), WorktreeError> {
        let mut folders = vec![self.root.clone()];
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(&folder).into_iter().flatten().flatten() {
                let (path, kind) = (entry.path(), entry.file_type());
                let is_folder = kind.as_ref().is_ok_and(fs::FileType::is_dir);
                if is_folder && entry.file_name() != ".git" {
                    folders.push(path);
                    continue;
                }
                let is_read = |name: &str| entry.file_name() == name;
                let special = match is_read(".git") {
                    true => ["", "HEAD", "config", "commondir", "packed-refs", "index"]
                        .map(|name| if name.is_empty() { path.clone() } else { path.join(name) })
                        .into_iter()
                        .find(|file| file.metadata().is_ok_and(|found| !found.is_file() && !found.is_dir())),
                    false if is_read(".gitattributes") || is_read(".gitignore") => {
                        kind.is_ok_and(|kind| !kind.is_file() && !kind.is_symlink()).then(|| path.clone())
                    }
                    false => None,
                };
                if let Some(special) = special {
                    let path = special.strip_prefix(&self.root).unwrap_or(&special).display().to_string();
                    return Err(WorktreeError::Unreadable {
                        path,
                        why: "it is not a regular file".to_owned(),
                    });
                }
            }
        }
        Ok(())
    }

    /// Removes the lock that a killed run left on our index, which the guard makes safe, and creates a missing index.
    /// Returns whether it was missing.
    fn prepare_index(&self) -> Result<bool, WorktreeError> {
        let index = self.index();
        self.remove_if_present(&index.with_extension("lock"))?;
        if index.exists() {
            return Ok(false);
        }
        let partial = index.with_extension("partial");
        // Start from the user's index: it knows the state of each file, so that git need not read them all.
        match fs::copy(&self.user_index, &partial) {
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(true),
            Err(error) => return Err(io_at("copy", &self.user_index)(error)),
        }
        // Keep the time of the user's index: git rereads files that are not older than the index. With a newer time it
        // would miss a change made in the same clock tick.
        let modified = self.user_index.metadata().and_then(|data| data.modified());
        let modified = modified.map_err(io_at("read", &self.user_index))?;
        let file = OpenOptions::new().write(true).open(&partial).map_err(io_at("open", &partial))?;
        file.set_modified(modified).and_then(|()| file.sync_all()).map_err(io_at("write", &partial))?;
        fs::rename(&partial, &index).map_err(io_at("rename to", &index))?;
        self.clear_hiding_flags()?;
        Ok(true)
    }

    /// Clears the assume-unchanged and skip-worktree flags in our index, which could hide changes by an agent. Files
    /// outside of a sparse checkout stay excluded.
    fn clear_hiding_flags(&self) -> Result<(), WorktreeError> {
        // `-v` shows assume-unchanged as a lower-case letter, skip-worktree as `S`.
        let listed = self.git.run(&["ls-files", "-v", "-z"])?;
        let mut assumed = Vec::new();
        let mut skipped = Vec::new();
        for entry in listed.split(|&byte| byte == 0) {
            let [tag, b' ', path @ ..] = entry else { continue };
            let is_there = || self.root.join(OsStr::from_bytes(path)).symlink_metadata().is_ok();
            if tag.is_ascii_lowercase() {
                assumed.extend_from_slice(path);
                assumed.push(0);
            }
            if tag.eq_ignore_ascii_case(&b's') && is_there() {
                skipped.extend_from_slice(path);
                skipped.push(0);
            }
        }
        for (option, paths) in [("--no-assume-unchanged", assumed), ("--no-skip-worktree", skipped)] {
            if !paths.is_empty() {
                self.git.run_with(&["update-index", option, "-z", "--stdin"], &paths)?;
            }
        }
        Ok(())
    }

    /// Syncs the folders of new objects: git only syncs the files, so a power failure could lose the folder entries.
    fn sync_folders(&self, began: SystemTime) -> Result<(), WorktreeError> {
        // File system times are coarser than the clock.
        let since = began - Duration::from_secs(2);
        let objects = self.state.join("objects");
        let sync = |path: &Path| File::open(path).and_then(|dir| dir.sync_all()).map_err(io_at("sync", path));
        for entry in fs::read_dir(&objects).map_err(io_at("read", &objects))?.flatten() {
            let data = entry.metadata().map_err(io_at("read", &entry.path()))?;
            if data.is_dir() && data.modified().is_ok_and(|modified| modified >= since) {
                sync(&entry.path())?;
            }
        }
        sync(&objects)
    }

    fn remove_if_present(&self, path: &Path) -> Result<(), WorktreeError> {
        match fs::remove_file(path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(io_at("remove", path)(error)),
            _ => Ok(()),
        }
    }
}

/// Whether a folder above `path` is a symbolic link: git then refuses the path. `known` caches the answers for folders.
fn is_behind_link<'p>(root: &Path, path: &'p Path, known: &mut HashMap<&'p Path, bool>) -> bool {
    let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty()) else { return false };
    if let Some(is) = known.get(folder) {
        return *is;
    }
    let is = root.join(folder).is_symlink() || is_behind_link(root, folder, known);
    known.insert(folder, is);
    is
}

/// Whether `git add` failed because of attributes.
/// The commit of the checked-out branch, of a list of branches that marks it with `*`.
fn checked_out_commit(refs: &[u8]) -> Option<String> {
    let marked = refs.split(|byte| *byte == b'\n').find_map(|line| line.strip_prefix(b"* "))?;
    let commit = marked.split(|byte| *byte == b' ').next()?;
    Some(String::from_utf8_lossy(commit).into_owned())
}

fn is_about_attributes(error: &WorktreeError) -> bool {
    let WorktreeError::Git { stderr, .. } = error else { return false };
    ["filter", "encoded as", "failed to encode", "BOM"].iter().any(|word| stderr.contains(word))
}

/// Checks the result of `git update-index`. Returns the files whose names git refuses.
fn check_update(args: &[&str], output: &Output) -> Result<Vec<String>, WorktreeError> {
    let stderr = String::from_utf8_lossy(&output.stderr);
    if let Some(unreadable) = parse_unreadable_error(&stderr) {
        return Err(unreadable);
    }
    if !output.status.success() {
        return Err(build_git_error(args, output));
    }
    Ok(stderr.lines().filter_map(|line| line.strip_prefix("Ignoring path ").map(str::to_owned)).collect())
}

/// Finds the unreadable file in git's stderr. For an unreadable folder git only prints a warning.
fn parse_unreadable_error(stderr: &str) -> Option<WorktreeError> {
    if let Some((_, rest)) = stderr.split_once("could not open directory '") {
        let (path, why) = rest.split_once("': ")?;
        let why = why.lines().next().unwrap_or_default();
        return Some(WorktreeError::Unreadable { path: path.to_owned(), why: why.to_owned() });
    }
    // A name may contain quotes and line feeds; the last message ends with it.
    let (before, path) = stderr.trim_end_matches('\n').split_once("fatal: Unable to process path ")?;
    let (_, why) = before.split_once(&format!("open(\"{path}\"): "))?;
    Some(WorktreeError::Unreadable {
        path: path.to_owned(),
        why: why.lines().next().unwrap_or_default().to_owned(),
    })
}

/// FNV-1a, 64 bits, in hex: a short file name for a long path. Two paths with the same digest would share an index,
/// which only costs time.
pub(in crate::worktree) fn fnv_digest_of_bytes(bytes: &[u8]) -> String {
    let digest = bytes.iter().fold(0xcbf2_9ce4_8422_2325_u64, |digest, &byte| {
        (digest ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    });
    format!("{digest:016x}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_unreadable_file_is_named() {
        for (stderr, path, why) in [
            (
                "error: open(\"a b\"): Permission denied\nfatal: Unable to process path a b\n",
                "a b",
                "Permission denied",
            ),
            (
                "error: open(\"a'\nb\"): Permission denied\nfatal: Unable to process path a'\nb\n",
                "a'\nb",
                "Permission denied",
            ),
            ("warning: could not open directory 'd/': Permission denied\n", "d/", "Permission denied"),
        ] {
            let Some(WorktreeError::Unreadable { path: found, why: because }) =
                parse_unreadable_error(stderr)
            else {
                panic!("{stderr}")
            };
            assert_eq!((found.as_str(), because.as_str()), (path, why), "{stderr}");
        }
        assert!(
            parse_unreadable_error("warning: in the working copy of 'x', LF will be replaced by CRLF\n")
                .is_none()
        );
    }

    #[test]
    fn a_path_with_a_colon_stays_one_path() {
        assert_eq!(quote_list_path("/a:b/\"c\\\n".into()), r#""/a:b/\"c\\\n""#);
    }
}
