//! Makes the git folder of agents from the repository of the user, and brings it up to date.

use std::{
    collections::BTreeMap,
    fs, io,
    os::unix::fs::symlink,
    path::{Path, PathBuf},
};

use cuegate_flow::model::BlobRef;

use super::{
    AgentGit, BORROWED, GitFolderReach, RepositoryPair, SeedRecord, Stamp, inner_repositories::links_of,
    read_refs, remove_if_present, take_over::ELSEWHERE, visible_settings, write_whole,
};
use crate::worktree::{
    error::{WorktreeError, io_at},
    git_state::is_state,
    stale_locks::finish_commit,
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

/// A copied file: its name in the record, and its path there and here.
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
                self.set_aside()?;
                self.seed_all(again)
            }
            done => done,
        }
    }

    /// Keeps a damaged folder under another name, so that the next command gets a new one.
    pub(super) fn set_aside(&self) -> Result<(), WorktreeError> {
        let aside = (1..).map(|n| self.folder.with_extension(format!("damaged-{n}")));
        let aside = aside.into_iter().find(|path| path.symlink_metadata().is_err()).unwrap_or_default();
        fs::rename(&self.folder, &aside).map_err(io_at("rename", &self.folder))
    }

    fn seed_all(&self, again: bool) -> Result<(), WorktreeError> {
        let mut record = self.read_record();
        let mut seeded = BTreeMap::new();
        for pair in self.pairs() {
            let mut known = match pair.own().join("HEAD").is_file() {
                true => record.remove(&pair.name),
                false => None,
            };
            pair.seed(known.get_or_insert_default(), self.reach, again)?;
            seeded.insert(pair.name, known.unwrap_or_default());
        }
        self.write_record(&seeded)
    }
}

impl RepositoryPair {
    fn seed(&self, known: &mut SeedRecord, reach: GitFolderReach, again: bool) -> Result<(), WorktreeError> {
        let own = self.own();
        let is_new = !known.is_made;
        fs::create_dir_all(&self.folder).map_err(io_at("create", &self.folder))?;
        for folder in FOLDERS {
            make_folder(&self.folder, Path::new(folder))?;
        }
        make_folder(&self.folder, own.strip_prefix(&self.folder).unwrap_or(Path::new("")))?;
        self.borrow_objects(reach)?;
        if !is_new {
            let index = own.join("index.lock");
            if index.is_file() && self.agents_git().is_ok_and(|git| finish_commit(&git, &index)) {
                tracing::info!("a commit that was killed before its last step is ended");
            }
            remove_locks(&own, false);
            remove_locks(&self.folder, false);
            remove_locks(&self.folder.join("refs"), true);
        }
        self.write_settings(known)?;
        if own != self.folder {
            write_whole(&own.join("commondir"), b"../..\n")?;
            write_if_other(&self.folder.join("HEAD"), b"ref: refs/heads/main\n")?;
            let dot = self.real.top.join(".git");
            write_whole(&own.join("gitdir"), format!("{}\n", dot.display()).as_bytes())?;
        }
        self.copy_files(known, again)?;
        self.copy_refs(known, is_new, again)?;
        let links: Vec<String> = known.dots.keys().cloned().collect();
        known.dots = self.read_dots(&links);
        known.is_made = true;
        Ok(())
    }

    /// Lets git find the objects of the user, which stay where they are.
    fn borrow_objects(&self, reach: GitFolderReach) -> Result<(), WorktreeError> {
        // Inside, where this folder is in the place of the user's, the second one is its own.
        let users = self.real.common.join("objects");
        let alternates = format!("../{BORROWED}/objects\n{}\n", users.display());
        write_if_other(&self.folder.join("objects/info/alternates"), alternates.as_bytes())?;
        for name in ["objects", "lfs"] {
            let (at, real) = (self.folder.join(BORROWED).join(name), self.real.common.join(name));
            match reach {
                GitFolderReach::Mounted => make_folder(&self.folder, &Path::new(BORROWED).join(name))?,
                GitFolderReach::Named if fs::read_link(&at).is_ok_and(|found| found == real) => {}
                GitFolderReach::Named => {
                    remove_if_present(&at)?;
                    symlink(&real, &at).map_err(io_at("create", &at))?;
                }
            }
        }
        Ok(())
    }

    /// Writes the settings of the user without secrets, if they have changed: agents may have changed theirs.
    fn write_settings(&self, known: &mut SeedRecord) -> Result<(), WorktreeError> {
        let text = visible_settings::read_settings_for_agents(&self.real.git_dir, &self.real.common)?;
        if known.settings != text {
            write_whole(&self.folder.join("config"), text.as_bytes())?;
            known.settings = text;
        }
        Ok(())
    }

    /// Copies the files that have changed in the user's repository since they were last copied.
    fn copy_files(&self, known: &mut SeedRecord, again: bool) -> Result<(), WorktreeError> {
        let own = self.own();
        if again {
            for name in UNFINISHED {
                let _ = fs::remove_dir_all(own.join(name));
            }
            let is_of_user = |name: &str| self.real.git_dir.join(name).symlink_metadata().is_ok();
            for entry in fs::read_dir(&own).into_iter().flatten().flatten() {
                let name = entry.file_name().to_string_lossy().into_owned();
                if is_state(&name) && !is_of_user(&name) && entry.path().is_file() {
                    remove_if_present(&entry.path())?;
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
                let name = copied.to.strip_prefix(&self.folder).unwrap_or(&copied.to);
                make_folder(&self.folder, name.parent().unwrap_or(Path::new("")))?;
                copy_file(&copied.from, &copied.to)?;
            }
            files.insert(copied.name, (copied.to, copied.stamp));
        }
        for gone in known.files.keys().filter(|name| !files.contains_key(*name)) {
            let path = match gone.strip_prefix("own/") {
                Some(name) => own.join(name),
                None => self.folder.join(gone),
            };
            // Not through a link that an agent made.
            let name = path.strip_prefix(&self.folder).unwrap_or(&path);
            make_folder(&self.folder, name.parent().unwrap_or(Path::new("")))?;
            remove_if_present(&path)?;
        }
        let head = own.join("HEAD");
        if fs::read_to_string(self.real.git_dir.join("HEAD")).is_ok_and(|text| text.contains(ELSEWHERE))
            && let Some(text) = self.users_head().map(|head| head.text())
            && (known.head != text || again || !head.is_file())
        {
            write_whole(&head, text.as_bytes())?;
            known.head = text;
        }
        known.files = files.into_iter().map(|(name, (_, stamp))| (name, stamp)).collect();
        Ok(())
    }

    /// Reads the entries of the user's index: their digest, and the submodules among them.
    pub(super) fn read_entries(&self, known: &mut SeedRecord) -> Result<(), WorktreeError> {
        let listed = self.users_git().run(&["ls-files", "--stage", "-v", "-z"])?;
        known.entries = BlobRef::for_bytes(&listed).digest.to_string();
        known.dots = self.read_dots(&links_of(&listed));
        Ok(())
    }

    /// The files of the user's repository that agents see copies of.
    fn files_of_user(&self) -> Vec<CopiedFile> {
        let (real, own) = (&self.real, self.own());
        let mut files = Vec::new();
        let mut add = |name: String, from: PathBuf, to: PathBuf| {
            if let Some(stamp) = Stamp::of(&from) {
                files.push(CopiedFile { name, from, to, stamp });
            }
        };
        for name in SHARED_FILES {
            add(name.to_owned(), real.common.join(name), self.folder.join(name));
        }
        for entry in fs::read_dir(real.common.join("hooks")).into_iter().flatten().flatten() {
            let name = entry.file_name().to_string_lossy().into_owned();
            if !name.ends_with(".sample") {
                add(format!("hooks/{name}"), entry.path(), self.folder.join("hooks").join(&name));
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
    fn copy_refs(&self, known: &mut SeedRecord, is_new: bool, again: bool) -> Result<(), WorktreeError> {
        let mut refs = read_refs(&self.users_git())?;
        refs.retain(|name, _| !HIDDEN_REFS.contains(&name.as_str()));
        if is_new {
            let mut text = "# pack-refs with: sorted \n".to_owned();
            refs.iter().for_each(|(name, id)| text.push_str(&format!("{id} {name}\n")));
            write_whole(&self.folder.join("packed-refs"), text.as_bytes())?;
            self.copy_symbolic_refs()?;
            known.refs = refs;
            return Ok(());
        }
        let changed: Vec<&String> = refs
            .keys()
            .chain(known.refs.keys())
            .filter(|name| again || refs.get(*name) != known.refs.get(*name))
            .collect();
        if !changed.is_empty() {
            let git = self.agents_git()?;
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
    fn copy_symbolic_refs(&self) -> Result<(), WorktreeError> {
        for remote in fs::read_dir(self.real.common.join("refs/remotes")).into_iter().flatten().flatten() {
            let Ok(text) = fs::read_to_string(remote.path().join("HEAD")) else { continue };
            if text.starts_with("ref: ") {
                let folder = Path::new("refs/remotes").join(remote.file_name());
                make_folder(&self.folder, &folder)?;
                write_whole(&self.folder.join(folder).join("HEAD"), text.as_bytes())?;
            }
        }
        Ok(())
    }
}

/// Copies a file with its permissions and its time: git reads files again that are not older than the index. An agent may
/// have put a link or a folder in its place.
fn copy_file(from: &Path, to: &Path) -> Result<(), WorktreeError> {
    if to.symlink_metadata().is_ok_and(|about| about.is_dir()) {
        fs::remove_dir_all(to).map_err(io_at("remove", to))?;
    }
    remove_if_present(to)?;
    match fs::copy(from, to) {
        // Removed meanwhile, as git does with its files.
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        copied => copied.map_err(io_at("copy", from))?,
    };
    let modified = from.metadata().and_then(|about| about.modified());
    let set = |time| fs::OpenOptions::new().append(true).open(to)?.set_modified(time);
    let _ = modified.and_then(set);
    Ok(())
}

/// Creates the folders of a path below `base`. A link or a file that an agent put in the place of one is removed.
fn make_folder(base: &Path, below: &Path) -> Result<(), WorktreeError> {
    let mut folder = base.to_owned();
    for part in below.components() {
        folder.push(part);
        if folder.symlink_metadata().is_ok_and(|about| !about.is_dir()) {
            remove_if_present(&folder)?;
        }
        match fs::create_dir(&folder) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
                return Err(io_at("create", &folder)(error));
            }
            _ => {}
        }
    }
    Ok(())
}

fn write_if_other(path: &Path, bytes: &[u8]) -> Result<(), WorktreeError> {
    match fs::read(path).is_ok_and(|found| found == bytes) {
        true => Ok(()),
        false => write_whole(path, bytes),
    }
}

/// Removes the locks that a killed git left.
fn remove_locks(folder: &Path, below: bool) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            if below {
                remove_locks(&path, true);
            }
        } else if path.extension().is_some_and(|extension| extension == "lock") {
            let _ = fs::remove_file(path);
        }
    }
}
