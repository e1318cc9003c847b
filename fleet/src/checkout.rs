//! The clones of the repositories on this machine.

use std::path::{Path, PathBuf};

use tokio::{process::Command, sync::Mutex};

use crate::Failure;
use crate::settings::RepositorySettings;

/// The clones of a worker.
pub(crate) struct Checkouts {
    folder: PathBuf,
    /// One git at a time changes them.
    alone: Mutex<()>,
}

impl Checkouts {
    /// The clones in a folder.
    pub(crate) fn new(folder: PathBuf) -> Checkouts {
        Checkouts { folder, alone: Mutex::new(()) }
    }

    /// The clone of a repository, where runs can start: at the newest commit of its branch. With `is_begun` the run
    /// needs only that its commits are there.
    ///
    /// # Errors
    /// With what git says. A run that has begun goes on without the remote.
    pub(crate) async fn prepare(
        &self,
        name: &str,
        repository: &RepositorySettings,
        is_begun: bool,
    ) -> Result<PathBuf, Failure> {
        let _alone = self.alone.lock().await;
        let clone = self.folder.join(name);
        if !clone.join(".git").is_dir() {
            std::fs::create_dir_all(&self.folder).map_err(|error| {
                Failure::new(format!("failed to create `{}`: {error}", self.folder.display()))
            })?;
            let partial = self.folder.join(format!(".{name}.{}", std::process::id()));
            let _ = std::fs::remove_dir_all(&partial);
            let shown = partial.display().to_string();
            run_git(&self.folder, &["clone", "--quiet", "--", &repository.url, &shown]).await?;
            std::fs::rename(&partial, &clone).map_err(|error| {
                Failure::new(format!("failed to rename to `{}`: {error}", clone.display()))
            })?;
        } else {
            let fetched = run_git(&clone, &["fetch", "--quiet", "--prune", "origin"]).await;
            if !is_begun {
                fetched?;
            }
        }
        if is_begun {
            return Ok(clone);
        }
        let branch = match &repository.branch {
            Some(branch) => branch.clone(),
            None => {
                let head = run_git(&clone, &["symbolic-ref", "--short", "refs/remotes/origin/HEAD"]).await?;
                head.trim().trim_start_matches("origin/").to_owned()
            }
        };
        let commit = format!("refs/remotes/origin/{branch}");
        run_git(&clone, &["checkout", "--quiet", "--force", "-B", &branch, &commit]).await?;
        Ok(clone)
    }
}

async fn run_git(folder: &Path, args: &[&str]) -> Result<String, Failure> {
    let ran =
        Command::new("git").args(args).current_dir(folder).env("GIT_TERMINAL_PROMPT", "0").output().await;
    let ran = ran.map_err(|error| Failure::new(format!("failed to start git: {error}")))?;
    if !ran.status.success() {
        let said = String::from_utf8_lossy(&ran.stderr).trim().to_owned();
        return Err(Failure::new(format!("`git {}` in `{}`: {said}", args[0], folder.display())));
    }
    Ok(String::from_utf8_lossy(&ran.stdout).into_owned())
}
