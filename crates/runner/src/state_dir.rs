//! The state dir: the folder that holds the state of all runs of a project.

#![expect(clippy::disallowed_methods, reason = "state of ours, where no agent writes")]

use std::{
    fmt, fs,
    path::{Path, PathBuf},
    sync::Arc,
};

use cuegate_engine::{CommandId, Machine};
use cuegate_flow::model::BlobRef;
use cuegate_journal::{
    Error as JournalError, Journal, Owner, RunId,
    log::{Durability, LogJournal, Options, RUNS_DIR},
    random_token,
};

use crate::beneath::FolderHandle;
use crate::error::{Error, io_error_at};

/// `.cuegate` at the top of a project.
#[derive(Debug, Clone)]
pub struct StateDir {
    root: PathBuf,
    dir: PathBuf,
    shared: Option<Arc<dyn SharedStore>>,
}

/// The journals of a project that are not in its state dir: in a database, which other machines share.
pub trait SharedStore: Send + Sync + fmt::Debug + fmt::Display {
    /// The journal of the runs: for writing with a durability, else for reading. `None` if there is none to read.
    ///
    /// # Errors
    /// When it cannot be reached.
    fn open_runs(&self, durability: Option<Durability>) -> Result<Option<Arc<dyn Journal>>, JournalError>;

    /// The same for the batches.
    ///
    /// # Errors
    /// When it cannot be reached.
    fn open_batches(&self, durability: Option<Durability>) -> Result<Option<Arc<dyn Journal>>, JournalError>;

    /// Another number after each change of the runs that are read.
    fn changes(&self) -> u64;

    /// The machines that take runs from it, as `cuegate/fleet/v1`; `None` if there is no fleet.
    ///
    /// # Errors
    /// When it cannot be reached.
    fn fleet(&self) -> Result<Option<serde_json::Value>, JournalError>;

    /// The argument by which a program that this one starts finds it, if its settings do not say it.
    fn flag(&self) -> Option<String>;
}

impl StateDir {
    /// The state dir of the project at `root`. Creates it if missing, with a `.gitignore` that excludes it, and excludes it
    /// in the repository as well, unless that is read-only.
    ///
    /// # Errors
    /// When it cannot be created.
    pub fn create(root: &Path) -> Result<StateDir, Error> {
        StateDir::new(root).create_missing()
    }

    /// The same for a state dir that is known.
    ///
    /// # Errors
    /// When it cannot be created.
    pub fn create_missing(&self) -> Result<StateDir, Error> {
        let state_dir = self.clone();
        // A sandbox hides the folder of a link and not the link, which an agent could replace.
        if state_dir.dir.is_symlink() {
            let why =
                std::io::Error::other("it is a link; the state of runs has to be a folder of the project");
            return Err(io_error_at("use", &state_dir.dir)(why));
        }
        self.refuse_links()?;
        fs::create_dir_all(&state_dir.dir).map_err(io_error_at("create", &state_dir.dir))?;
        let ignore = state_dir.dir.join(".gitignore");
        if !ignore.exists() {
            fs::write(&ignore, "# State of cuegate runs. Nothing in here belongs into version control.\n*\n")
                .map_err(io_error_at("write", &ignore))?;
        }
        let _ = crate::worktree::exclude_state_dir(&self.root);
        Ok(state_dir)
    }

    /// Refuses links in the state dir: a repository may have brought them, and files of ours would be written through them.
    fn refuse_links(&self) -> Result<(), Error> {
        let Ok(folder) = FolderHandle::open(&self.dir) else { return Ok(()) };
        let failed = |below: &Path| io_error_at("use", self.dir.join(below));
        let mut unread = vec![(PathBuf::new(), true)];
        while let Some((below, is_top)) = unread.pop() {
            for (name, kind) in folder.list(&below).map_err(failed(&below))? {
                let entry = below.join(name);
                if kind.is_symlink() {
                    let why = std::io::Error::other("it is a link, which Cuegate has not made: remove it");
                    return Err(failed(&entry)(why));
                }
                if is_top && kind.is_dir() {
                    unread.push((entry, false));
                }
            }
        }
        Ok(())
    }

    /// The state dir of the project at `root`. Creates nothing. From now on no program is started from a folder of
    /// `PATH` inside of the project.
    pub fn new(root: &Path) -> StateDir {
        cuegate_provider::exclude_from_path(root);
        StateDir { root: root.to_owned(), dir: root.join(".cuegate"), shared: None }
    }

    /// The same state dir, with its journals elsewhere.
    #[must_use]
    pub fn with_shared(self, shared: Option<Arc<dyn SharedStore>>) -> StateDir {
        StateDir { shared, ..self }
    }

    /// The journals that are elsewhere.
    pub fn shared(&self) -> Option<&Arc<dyn SharedStore>> {
        self.shared.as_ref()
    }

    /// Opens the journal of the runs: for writing with a durability, where it is created if missing; else for reading.
    /// `None` if there is none to read.
    ///
    /// # Errors
    /// When it exists and cannot be opened, or cannot be created.
    pub fn open_runs(
        &self,
        durability: Option<Durability>,
    ) -> Result<Option<Arc<dyn Journal>>, JournalError> {
        match &self.shared {
            Some(shared) => shared.open_runs(durability),
            None => open_logs(self.runs(), durability),
        }
    }

    /// The same for the journal of the batches.
    ///
    /// # Errors
    /// As [`open_runs`](Self::open_runs).
    pub fn open_batches(
        &self,
        durability: Option<Durability>,
    ) -> Result<Option<Arc<dyn Journal>>, JournalError> {
        match &self.shared {
            Some(shared) => shared.open_batches(durability),
            None => open_logs(self.batches(), durability),
        }
    }

    /// Where this project is, for other machines. Makes its random name at the first call.
    ///
    /// # Errors
    /// When the name cannot be kept.
    pub fn machine(&self) -> Result<Machine, Error> {
        let path = self.dir.join("machine");
        let read = || fs::read_to_string(&path).ok().filter(|id| !id.trim().is_empty());
        if read().is_none() {
            self.create_missing()?;
            let partial = self.dir.join(format!("machine-{}", std::process::id()));
            fs::write(&partial, random_token()).map_err(io_error_at("write", &partial))?;
            // Another process may have made it meanwhile: that one stays.
            let _ = fs::hard_link(&partial, &path);
            let _ = fs::remove_file(&partial);
        }
        let missing = || Error::Task(format!("`{}` cannot be written", path.display()));
        let id = read().ok_or_else(missing)?.trim().to_owned();
        let host = Owner::current().host;
        Ok(Machine { id, host, root: self.root.display().to_string() })
    }

    /// The top of the project.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// The state folder itself.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// The folder with a folder for each run, which is the journal.
    pub fn runs(&self) -> PathBuf {
        self.dir.join(RUNS_DIR)
    }

    /// The folder with a folder for each batch, which is their journal.
    pub fn batches(&self) -> PathBuf {
        self.dir.join("batches")
    }

    /// The git objects and indexes of worktree snapshots.
    pub fn trees(&self) -> PathBuf {
        self.dir.join("trees")
    }

    /// Files of one run.
    pub fn run(&self, run: &RunId) -> PathBuf {
        self.runs().join(run.as_str())
    }

    /// Whether this project has the files of a run: a shared journal has runs of other projects and machines too.
    pub fn has_files_of(&self, run: &RunId) -> bool {
        self.shared.is_none() || self.run(run).is_dir()
    }

    /// The git folder of the agents of one run.
    pub fn git(&self, run: &RunId) -> PathBuf {
        self.run(run).join("git")
    }

    /// The newest versions of the reports of one run.
    pub fn reports(&self, run: &RunId) -> PathBuf {
        self.run(run).join("reports")
    }

    /// The default folder for worktrees of runs. It is outside of the project, whose test runners and linters would
    /// otherwise find the files of all worktrees: `$XDG_STATE_HOME/cuegate/worktrees/PROJECT`.
    pub fn worktrees(&self) -> PathBuf {
        let state = user_state_folder();
        // A repository may hold the whole home folder; the state dir excludes itself from version control.
        match state.filter(|state| !state.starts_with(&self.root)) {
            Some(state) => state.join("cuegate/worktrees").join(project_key(&self.root)),
            None => self.dir.join("worktrees"),
        }
    }

    /// The folder of one command while it runs.
    pub fn command(&self, run: &RunId, id: CommandId) -> PathBuf {
        self.run(run).join("commands").join(id.to_string())
    }
}

fn open_logs(
    folder: PathBuf,
    durability: Option<Durability>,
) -> Result<Option<Arc<dyn Journal>>, JournalError> {
    let opened = match durability {
        Some(durability) => LogJournal::open(folder, Options { durability }),
        None => LogJournal::open_read_only(folder),
    };
    match opened {
        Ok(journal) => Ok(Some(Arc::new(journal))),
        // Nothing was recorded.
        Err(JournalError::Missing { .. }) => Ok(None),
        Err(error) => Err(error),
    }
}

/// The folder for the state of programs of this user: `$XDG_STATE_HOME`, else `~/.local/state`.
pub fn user_state_folder() -> Option<PathBuf> {
    let set = |name: &str| {
        let path = std::env::var_os(name).map(PathBuf::from)?;
        path.is_absolute().then_some(path)
    };
    set("XDG_STATE_HOME").or_else(|| Some(set("HOME")?.join(".local/state")))
}

/// The file with the key that this user's runs are signed with.
pub fn user_key_path() -> Option<PathBuf> {
    Some(user_state_folder()?.join("cuegate/key"))
}

/// A folder name for a project: its own name, and a part of the digest of its path.
fn project_key(root: &Path) -> String {
    let digest = BlobRef::for_bytes(root.as_os_str().as_encoded_bytes()).digest;
    let name = root.file_name().unwrap_or_default().to_string_lossy();
    let plain = |c: char| if c.is_alphanumeric() || matches!(c, '-' | '_' | '.') { c } else { '-' };
    format!("{}-{}", name.chars().map(plain).collect::<String>(), &digest[..8])
}
