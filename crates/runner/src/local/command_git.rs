//! The git folder that the commands of a run use, and what is taken over from it after each.

use std::sync::Arc;

use cuegate_journal::RunId;
use tokio::sync::{mpsc, watch};

use super::{LocalExecutor, is_cut, run_blocking};
use crate::{
    drive::ExecutorMessage,
    error::Error,
    sandbox::{Sandbox, SandboxGuard},
    state_dir::StateDir,
    worktree::{AgentGit, GitFolderReach, HeldRepository, RevertedChanges, StopFlag, Trees},
};

/// The repository before the commands in progress, and how many they are.
pub(super) type SharedHeld = std::sync::Mutex<(Option<HeldRepository>, usize)>;

/// The git folder of the agents of a run, which the commands of a parallel step share.
pub(super) type SharedGit = std::sync::Mutex<AgentGit>;

/// What a command in progress keeps. Drop it when all its processes have ended.
pub(super) struct CommandGuard {
    /// Declared first, because it is dropped first.
    pub(super) _sandbox: Option<SandboxGuard>,
    pub(super) _git: Option<GitUse>,
}

/// The use of git by one command.
pub(super) enum GitUse {
    /// Of the git folder of the agents.
    Own(Arc<SharedGit>, mpsc::Sender<ExecutorMessage>),
    /// Of the repository of the user.
    Users(Arc<SharedHeld>),
}

impl Drop for GitUse {
    fn drop(&mut self) {
        match self {
            GitUse::Own(git, heard) => {
                if let Err(error) = lock_shared(git).end() {
                    let _ = heard.try_send(ExecutorMessage::Warning(error.to_string()));
                }
            }
            GitUse::Users(held) => lock_shared(held).1 -= 1,
        }
    }
}

pub(super) fn lock_shared<T>(shared: &std::sync::Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    shared.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

/// The git folder of the agents of a run. `None` if they use that of the user: in its working tree, where no sandbox can
/// mount another one.
pub(crate) fn agent_git(
    trees: Option<&Trees>,
    sandbox: Option<&Sandbox>,
    owned: bool,
    home: &StateDir,
    run: &RunId,
) -> Option<AgentGit> {
    let is_mounted = sandbox.is_some_and(|sandbox| sandbox.bwrap_program().is_some());
    let reach = match is_mounted {
        true => GitFolderReach::Mounted,
        false if owned => GitFolderReach::Named,
        false => return None,
    };
    let confinement = sandbox.map(Sandbox::confine_git).unwrap_or_default();
    Some(AgentGit::new(trees?, &home.git(run), reach).confined(confinement))
}

impl LocalExecutor {
    /// Makes the git folder of the agents ready for a command.
    pub(super) fn use_git(&self) -> Result<Option<GitUse>, Error> {
        let Some(git) = &self.git else {
            let Some(trees) = &self.setting.trees else { return Ok(None) };
            let mut held = lock_shared(&self.held);
            if held.1 == 0 {
                held.0 = Some(HeldRepository::read(trees)?);
            }
            held.1 += 1;
            return Ok(Some(GitUse::Users(self.held.clone())));
        };
        lock_shared(git).begin()?;
        Ok(Some(GitUse::Own(git.clone(), self.setting.heard.clone())))
    }

    /// Lets the worktree name the git folder of the agents while a provider prepares a call, if it does so during the call:
    /// the provider may look where commits go.
    pub(super) fn name_git(&self) -> Result<Option<GitUse>, Error> {
        match &self.git {
            Some(git) if lock_shared(git).reach() == GitFolderReach::Named => self.use_git(),
            _ => Ok(None),
        }
    }

    /// Puts back what commands changed in the repository of the user, if they use it.
    pub(super) async fn put_back_repository(&self) -> Result<RevertedChanges, Error> {
        let held = self.held.clone();
        run_blocking(move || {
            let (before, users) = &mut *lock_shared(&held);
            let trespass = before.as_mut().map(HeldRepository::put_back).transpose()?.unwrap_or_default();
            // While nothing works, the repository is the user's alone.
            if *users == 0 {
                *before = None;
            }
            Ok(trespass)
        })
        .await
    }

    /// Takes over the commits that agents made, until the command is cut. Returns what else they changed in their git folder.
    pub(super) async fn take_over(&self, cut: &mut watch::Receiver<bool>) -> Result<Vec<String>, Error> {
        let Some(git) = self.git.clone() else { return Ok(Vec::new()) };
        let stop = StopFlag::default();
        let stopped = stop.clone();
        let mut taking = std::pin::pin!(run_blocking(move || Ok(lock_shared(&git).take_over(&stopped)?)));
        let taken = tokio::select! {
            taken = &mut taking => taken?,
            () = is_cut(cut) => {
                stop.stop();
                taking.await?
            }
        };
        for reference in taken.aside {
            let note =
                format!("the agent rewrote commits of the run; the former ones are kept as `{reference}`");
            let _ = self.setting.heard.try_send(ExecutorMessage::Warning(note));
        }
        Ok(taken.left)
    }
}
