//! Makes the git folder of agents from the repository of the user, and brings it up to date.

#![expect(clippy::disallowed_methods, reason = "state of ours, where no agent writes")]

use std::{
    collections::BTreeMap,
    ffi::OsStr,
    fs, io,
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
};

use cuegate_flow::model::BlobRef;

use super::{
    AgentGit, BORROWED, GitFolderReach, MODULES, Record, RepositoryPair, SeedRecord, Stamp,
    inner_repositories::{links_of, list_inner_links},
    read_refs,
    take_over::ELSEWHERE,
    visible_settings,
};
use crate::{
    beneath::FolderHandle,
    worktree::{
        error::{WorktreeError, io_at},
        git_state::is_state,
    },
};

/// Files of the shared folder that are copied, beside hooks.
const SHARED_FILES: [&str; 4] = ["shallow", "description", "info/exclude", "info/attributes"];
/// Folders that are made.
const FOLDERS: [&str; 9] = [
    "objects/info",
    "objects/pack",
    "refs/heads",
    "refs/tags",
    "refs/remotes",
    "info",
    "hooks",
    "logs",
    BORROWED,
];
/// Folders with the state of an operation that is not finished.
const UNFINISHED: [&str; 3] = ["rebase-merge", "rebase-apply", "sequencer"];
/// The file with the addresses that the user fetched from, which may contain keys.
const FETCHED: &str = "FETCH_HEAD";
/// References of the user that agents do not see.
const HIDDEN_REFS: [&str; 1] = ["refs/stash"];
/// The limit of entries of a folder of agents in which locks are searched.
const LOCKS_DEPTH: usize = 20;

/// A copied file: its name in the record, its path there, and its path below the folder of the agents.
struct CopiedFile {
    name: String,
    from: PathBuf,
    to: PathBuf,
    stamp: Stamp,
}

impl AgentGit {
    /// Makes or updates the folder and those of submodules, if no command uses them. `again`: HEAD, index and branches of
    /// the user win, also where the user changed nothing. A folder that an agent damaged is kept under another name.
    pub(super) fn seed(&self, again: bool) -> Result<(), WorktreeError> {
        // Files are written into folders that a command could replace by links.
        if self.users > 0 {
            return Ok(());
        }
        match self.seed_all(again) {
            Err(WorktreeError::Git { .. } | WorktreeError::Unreadable { .. } | WorktreeError::Io { .. })
                if self.folder.is_dir() =>
            {
                for pair in self.find_pairs() {
                    pair.set_aside()?;
                }
                self.seed_all(again)
            }
            done => done,
        }
    }

    fn seed_all(&self, again: bool) -> Result<(), WorktreeError> {
        let mut record = self.read_record();
        let mut seeded = Record::new();
        let pairs = self.find_pairs();
        if pairs.len() > 1 {
            let modules = self.folder.with_extension(MODULES);
            fs::create_dir_all(&modules).map_err(io_at("create", &modules))?;
        }
        for pair in &pairs {
            let known = record.remove(&pair.name).unwrap_or_default();
            let is_there = pair.own().join("HEAD").symlink_metadata().is_ok();
            let mut known = match is_there {
                true => known,
                // The `.git` texts from before the first call are recorded only once.
                false => SeedRecord { dots: known.dots, ..SeedRecord::default() },
            };
            pair.seed(&mut known, self.reach, again)?;
            seeded.insert(pair.name.clone(), known);
        }
        // What the folder of a submodule is mounted over is inside of that of the repository around it.
        for pair in &pairs[1..] {
            let around = pairs.iter().filter(|other| other.folder != pair.folder);
            let around = around.filter(|other| pair.real.common.starts_with(&other.real.common));
            let Some(around) = around.max_by_key(|other| other.real.common.components().count()) else {
                continue;
            };
            let below = pair.real.common.strip_prefix(&around.real.common).unwrap_or(Path::new(""));
            around.handle()?.force_folder(below).map_err(io_at("create", &around.folder.join(below)))?;
        }
        self.write_record(&seeded)
    }
}

impl RepositoryPair {
    /// Keeps a damaged folder under another name, so that the next command gets a new one.
    pub(super) fn set_aside(&self) -> Result<(), WorktreeError> {
        if self.folder.symlink_metadata().is_err() {
            return Ok(());
        }
        let name = self.folder.file_name().unwrap_or_default().display().to_string();
        let aside = (1..).map(|n| self.folder.with_file_name(format!("{name}.damaged-{n}")));
        let aside = aside.into_iter().find(|path| path.symlink_metadata().is_err()).unwrap_or_default();
        fs::rename(&self.folder, &aside).map_err(io_at("rename", &self.folder))
    }

    fn seed(&self, known: &mut SeedRecord, reach: GitFolderReach, again: bool) -> Result<(), WorktreeError> {
        let own = self.own_below();
        let is_new = !known.is_made;
        fs::create_dir_all(&self.folder).map_err(io_at("create", &self.folder))?;
        let folder = self.handle()?;
        for name in FOLDERS.iter().map(Path::new).chain([own.as_path()]) {
            folder.force_folder(name).map_err(io_at("create", &self.folder.join(name)))?;
        }
        self.borrow_objects(&folder, reach)?;
        if !is_new {
            self.end_killed_commit(&folder);
            remove_locks(&folder, &own, 0);
            remove_locks(&folder, Path::new(""), 0);
            remove_locks(&folder, Path::new("refs"), LOCKS_DEPTH);
        }
        self.write_settings(&folder, known)?;
        if !own.as_os_str().is_empty() {
            let dot = format!("{}\n", self.real.top.join(".git").display());
            self.write(&folder, &own.join("commondir"), b"../..\n")?;
            self.write(&folder, Path::new("HEAD"), b"ref: refs/heads/main\n")?;
            self.write(&folder, &own.join("gitdir"), dot.as_bytes())?;
        }
        self.copy_files(&folder, known, again)?;
        self.copy_refs(&folder, known, is_new, again)?;
        if known.dots.is_none() {
            known.dots = Some(self.read_dots(&known.links)?);
        }
        known.is_made = true;
        Ok(())
    }

    /// Writes a file of the agents' folder, if its bytes are others.
    fn write(&self, folder: &FolderHandle, below: &Path, bytes: &[u8]) -> Result<(), WorktreeError> {
        folder.write_if_other(below, bytes).map_err(io_at("write", &self.folder.join(below)))
    }

    /// Ends a `git commit` of an agent that was killed after it had moved the branch and before it put the new index in
    /// place, as [`crate::worktree::stale_locks`] does for the user.
    fn end_killed_commit(&self, folder: &FolderHandle) {
        let index = self.own_below().join("index.lock");
        if !folder
            .state_of(&index)
            .is_ok_and(|state| state.is_some_and(|lock| lock.is_file() && lock.size > 0))
        {
            return;
        }
        let git = self.agents_git().with("GIT_INDEX_FILE", self.folder.join(&index));
        let is_head = git.output(&["diff-index", "--cached", "--quiet", "HEAD", "--"], b"");
        if is_head.is_ok_and(|output| output.status.success())
            && folder.remove(&self.own_below().join("index")).is_ok()
            && folder.rename(&index, OsStr::new("index")).is_ok()
        {
            tracing::info!("a commit that was killed before its last step is ended");
        }
    }

    /// Lets git find the objects of the user, which stay where they are.
    fn borrow_objects(&self, folder: &FolderHandle, reach: GitFolderReach) -> Result<(), WorktreeError> {
        // Inside, where this folder is in the place of the user's, the second one is its own.
        let users = self.real.common.join("objects");
        let alternates = format!("../{BORROWED}/objects\n{}\n", users.display());
        self.write(folder, Path::new("objects/info/alternates"), alternates.as_bytes())?;
        for name in ["objects", "lfs"] {
            let (at, real) = (Path::new(BORROWED).join(name), self.real.common.join(name));
            let made = match reach {
                GitFolderReach::Mounted => folder.force_folder(&at).map(drop),
                GitFolderReach::Named if folder.read_link(&at).is_ok_and(|target| target == real) => Ok(()),
                GitFolderReach::Named => folder.remove_all(&at).and_then(|()| folder.write_link(&real, &at)),
            };
            made.map_err(io_at("create", &self.folder.join(&at)))?;
        }
        Ok(())
    }

    /// Writes the settings of the user without secrets, if they have changed: agents may have changed theirs.
    fn write_settings(&self, folder: &FolderHandle, known: &mut SeedRecord) -> Result<(), WorktreeError> {
        let text = visible_settings::read_settings_for_agents(&self.real.git_dir, &self.real.common)?;
        if known.settings != text {
            self.write(folder, Path::new("config"), text.as_bytes())?;
            known.settings = text;
        }
        Ok(())
    }

    /// Copies the files that have changed in the user's repository since they were last copied.
    fn copy_files(
        &self,
        folder: &FolderHandle,
        known: &mut SeedRecord,
        again: bool,
    ) -> Result<(), WorktreeError> {
        let own = self.own_below();
        let failed = |doing: &'static str, below: &Path| {
            let path = self.folder.join(below);
            move |source: io::Error| WorktreeError::Io { doing, path, source }
        };
        if again {
            for name in UNFINISHED {
                // `list_left` names a folder that cannot be removed.
                let _ = folder.remove_all(&own.join(name));
            }
            let is_of_user = |name: &OsStr| self.real.git_dir.join(name).symlink_metadata().is_ok();
            for (name, kind) in folder.list(&own).map_err(failed("read", &own))? {
                if is_state(&name.to_string_lossy()) && !is_of_user(&name) && !kind.is_dir() {
                    folder.remove(&own.join(&name)).map_err(failed("remove", &own.join(&name)))?;
                }
            }
        }
        let mut files = BTreeMap::new();
        for copied in self.files_of_user() {
            let mut is_changed = known.files.get(&copied.name) != Some(&copied.stamp);
            if is_changed && copied.name == "own/index" {
                // A `git status` of the user changes the file and no entry.
                let before = std::mem::take(&mut known.entries);
                self.read_entries(known)?;
                is_changed = known.entries != before;
            }
            if again || is_changed {
                let parent = copied.to.parent().unwrap_or(Path::new(""));
                folder.force_folder(parent).map_err(failed("create", parent))?;
                copy_file(&copied.from, folder, &copied.to).map_err(failed("copy to", &copied.to))?;
            }
            files.insert(copied.name, copied.stamp);
        }
        for gone in known.files.keys().filter(|name| !files.contains_key(*name)) {
            let path = match gone.strip_prefix("own/") {
                Some(name) => own.join(name),
                None => PathBuf::from(gone),
            };
            folder.remove_all(&path).map_err(failed("remove", &path))?;
        }
        let head = own.join("HEAD");
        if fs::read_to_string(self.real.git_dir.join("HEAD")).is_ok_and(|text| text.contains(ELSEWHERE))
            && let Some(text) = self.users_head().map(|head| head.text())
            && (known.head != text || again || !folder.state_of(&head).is_ok_and(|state| state.is_some()))
        {
            self.write(folder, &head, text.as_bytes())?;
            known.head = text;
        }
        known.files = files;
        Ok(())
    }

    /// Reads the entries of the user's index: their digest, and the submodules among them.
    pub(super) fn read_entries(&self, known: &mut SeedRecord) -> Result<(), WorktreeError> {
        let listed = self.users_git().run(&["ls-files", "--stage", "-v", "-z"])?;
        known.entries = BlobRef::for_bytes(&listed).digest.to_string();
        known.links = links_of(&listed);
        known.links.extend(list_inner_links(&self.real, &known.links));
        Ok(())
    }

    /// The files of the user's repository that agents see copies of.
    fn files_of_user(&self) -> Vec<CopiedFile> {
        let (real, own) = (&self.real, self.own_below());
        let mut files = Vec::new();
        let mut add = |name: String, from: PathBuf, to: PathBuf| {
            if let Some(stamp) = Stamp::of(&from) {
                files.push(CopiedFile { name, from, to, stamp });
            }
        };
        for name in SHARED_FILES {
            add(name.to_owned(), real.common.join(name), PathBuf::from(name));
        }
        for entry in fs::read_dir(real.common.join("hooks")).into_iter().flatten().flatten() {
            let name = entry.file_name().to_string_lossy().into_owned();
            if !name.ends_with(".sample") {
                add(format!("hooks/{name}"), entry.path(), Path::new("hooks").join(&name));
            }
        }
        let mut folders = vec![PathBuf::new()];
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(real.git_dir.join(&folder)).into_iter().flatten().flatten() {
                let name = folder.join(entry.file_name());
                let text = name.to_string_lossy().into_owned();
                let is_unfinished = UNFINISHED.iter().any(|unfinished| name.starts_with(unfinished));
                if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                    folders.extend(is_unfinished.then_some(name));
                } else if (is_unfinished || is_state(&text)) && !text.ends_with(".lock") && text != FETCHED {
                    add(format!("own/{text}"), real.git_dir.join(&name), own.join(&name));
                }
            }
        }
        let sparse = "info/sparse-checkout";
        add(format!("own/{sparse}"), real.git_dir.join(sparse), own.join(sparse));
        files
    }

    /// Copies the branches and other references that the user changed.
    fn copy_refs(
        &self,
        folder: &FolderHandle,
        known: &mut SeedRecord,
        is_new: bool,
        again: bool,
    ) -> Result<(), WorktreeError> {
        let mut refs = read_refs(&self.users_git())?;
        refs.retain(|name, _| !HIDDEN_REFS.contains(&name.as_str()));
        if is_new {
            let mut text = "# pack-refs with: sorted \n".to_owned();
            refs.iter().for_each(|(name, id)| text.push_str(&format!("{id} {name}\n")));
            self.write(folder, Path::new("packed-refs"), text.as_bytes())?;
            self.copy_symbolic_refs(folder)?;
            known.refs = refs;
            return Ok(());
        }
        let changed: Vec<&String> = refs
            .keys()
            .chain(known.refs.keys())
            .filter(|name| again || refs.get(*name) != known.refs.get(*name))
            .collect();
        if !changed.is_empty() {
            let git = self.agents_git();
            let here = read_refs(&git)?;
            let mut changed: Vec<&String> =
                changed.into_iter().filter(|name| refs.get(*name) != here.get(*name)).collect();
            changed.sort();
            changed.dedup();
            let line = |name: &String| match refs.get(name) {
                Some(id) => format!("update {name} {id}\n"),
                None => format!("delete {name}\n"),
            };
            let all: String = changed.iter().map(|name| line(name)).collect();
            if !changed.is_empty() && git.run_with(&["update-ref", "--stdin"], all.as_bytes()).is_err() {
                // A branch of an agent is in the way of one of them.
                for name in changed {
                    let _ = git.run_with(&["update-ref", "--stdin"], line(name).as_bytes());
                }
            }
        }
        known.refs = refs;
        Ok(())
    }

    /// Copies references that name another one, such as the main branch of a remote.
    fn copy_symbolic_refs(&self, folder: &FolderHandle) -> Result<(), WorktreeError> {
        for remote in fs::read_dir(self.real.common.join("refs/remotes")).into_iter().flatten().flatten() {
            let Ok(text) = fs::read_to_string(remote.path().join("HEAD")) else { continue };
            if text.starts_with("ref: ") {
                let below = Path::new("refs/remotes").join(remote.file_name());
                folder.force_folder(&below).map_err(io_at("create", &self.folder.join(&below)))?;
                self.write(folder, &below.join("HEAD"), text.as_bytes())?;
            }
        }
        Ok(())
    }
}

/// Copies a file with its permissions and its time: git reads files again that are not older than the index. An agent may
/// have put a link or a folder in its place.
fn copy_file(from: &Path, folder: &FolderHandle, to: &Path) -> io::Result<()> {
    let mut file = match fs::File::open(from) {
        // Removed meanwhile, as git does with its files.
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        file => file?,
    };
    let about = file.metadata()?;
    if folder.state_of(to)?.is_some_and(|state| state.is_folder()) {
        folder.remove_all(to)?;
    }
    folder.write_with(to, |copy| {
        io::copy(&mut file, copy)?;
        copy.set_permissions(fs::Permissions::from_mode(about.permissions().mode() & 0o777))?;
        copy.set_modified(about.modified()?)
    })
}

/// Removes the locks that a killed git left.
fn remove_locks(folder: &FolderHandle, below: &Path, depth: usize) {
    for (name, kind) in folder.list(below).unwrap_or_default() {
        let path = below.join(&name);
        if kind.is_dir() {
            if let Some(depth) = depth.checked_sub(1) {
                remove_locks(folder, &path, depth);
            }
        } else if path.extension().is_some_and(|extension| extension == "lock") {
            let _ = folder.remove(&path);
        }
    }
}
