//! The folder that holds the state of all runs of a project.

use std::{
    fs,
    path::{Path, PathBuf},
};

use cuegate_engine::CommandId;
use cuegate_journal::RunId;

use crate::error::{Error, io};

/// `.cuegate` at the top of a project.
#[derive(Debug, Clone)]
pub struct StateDir {
    root: PathBuf,
    dir: PathBuf,
}

impl StateDir {
    /// The one of the project at `root`, made when it is missing. It keeps itself out of version control.
    ///
    /// # Errors
    /// When it cannot be made.
    pub fn create(root: &Path) -> Result<StateDir, Error> {
        let home = StateDir::at(root);
        fs::create_dir_all(&home.dir).map_err(io("create", &home.dir))?;
        let ignore = home.dir.join(".gitignore");
        if !ignore.exists() {
            fs::write(&ignore, "# State of cuegate runs. Nothing in here belongs into version control.\n*\n")
                .map_err(io("write", &ignore))?;
        }
        Ok(home)
    }

    /// The one of the project at `root`, whether it is there or not.
    pub fn at(root: &Path) -> StateDir {
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

    /// The journal of all runs.
    pub fn journal(&self) -> PathBuf {
        self.dir.join("journal.db")
    }

    /// Private git objects and indexes of tree snapshots.
    pub fn trees(&self) -> PathBuf {
        self.dir.join("trees")
    }

    /// Files of one run.
    pub fn run(&self, run: &RunId) -> PathBuf {
        self.dir.join("runs").join(run.as_str())
    }

    /// The newest versions of the reports of one run.
    pub fn reports(&self, run: &RunId) -> PathBuf {
        self.run(run).join("reports")
    }

    /// Where worktrees are made when the definition names no other place.
    pub fn worktrees(&self) -> PathBuf {
        self.dir.join("worktrees")
    }

    /// The folder of one command while it runs.
    pub fn command(&self, run: &RunId, id: CommandId) -> PathBuf {
        self.run(run).join("commands").join(id.to_string())
    }
}
