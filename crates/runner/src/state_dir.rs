//! The state dir: the folder that holds the state of all runs of a project.

use std::{
    fs,
    path::{Path, PathBuf},
};

use cuegate_engine::CommandId;
use cuegate_flow::model::BlobRef;
use cuegate_journal::{RunId, log::RUNS_DIR};

use crate::error::{Error, io_error_at};

/// `.cuegate` at the top of a project.
#[derive(Debug, Clone)]
pub struct StateDir {
    root: PathBuf,
    dir: PathBuf,
}

impl StateDir {
    /// The state dir of the project at `root`. Creates it if missing, with a `.gitignore` that excludes it, and excludes it
    /// in the repository as well, unless that is read-only.
    ///
    /// # Errors
    /// When it cannot be created.
    pub fn create(root: &Path) -> Result<StateDir, Error> {
        let state_dir = StateDir::new(root);
        fs::create_dir_all(&state_dir.dir).map_err(io_error_at("create", &state_dir.dir))?;
        let ignore = state_dir.dir.join(".gitignore");
        if !ignore.exists() {
            fs::write(&ignore, "# State of cuegate runs. Nothing in here belongs into version control.\n*\n")
                .map_err(io_error_at("write", &ignore))?;
        }
        let _ = crate::worktree::exclude_state_dir(root);
        Ok(state_dir)
    }

    /// The state dir of the project at `root`. Creates nothing. From now on no program is started from a folder of
    /// `PATH` inside of the project.
    pub fn new(root: &Path) -> StateDir {
        cuegate_provider::exclude_from_path(root);
        StateDir { root: root.to_owned(), dir: root.join(".cuegate") }
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
        let set = |name: &str| {
            let path = std::env::var_os(name).map(PathBuf::from)?;
            path.is_absolute().then_some(path)
        };
        let state = set("XDG_STATE_HOME").or_else(|| Some(set("HOME")?.join(".local/state")));
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

/// A folder name for a project: its own name, and a part of the digest of its path.
fn project_key(root: &Path) -> String {
    let digest = BlobRef::for_bytes(root.as_os_str().as_encoded_bytes()).digest;
    let name = root.file_name().unwrap_or_default().to_string_lossy();
    let plain = |c: char| if c.is_alphanumeric() || matches!(c, '-' | '_' | '.') { c } else { '-' };
    format!("{}-{}", name.chars().map(plain).collect::<String>(), &digest[..8])
}
