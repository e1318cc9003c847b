//! Performs commands on this machine: runs validators, looks at the working tree and puts it back. Asking is in
//! [`ask`], looking whether a run is done in [`probe`].

mod ask;
mod effects;
mod kept_programs;
mod probe;

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    sync::Arc,
    time::{Duration, SystemTime},
};

use cuegate_engine::{Command, CommandId, Completion, Exec, ExecCommand, Exit, Run, Seen, TreeState};
use cuegate_flow::{Str, model::Flow};
use cuegate_journal::{Journal, RunId};
use cuegate_provider as provider;
use tokio::sync::{Mutex, mpsc, watch};

use crate::{
    clock::now_ms,
    drive::Heard,
    error::Error,
    executor::{Executor, Look, Performance, Performed},
    process,
    process::{Finished, Launch, Shim},
    reports,
    sandbox::{Sandbox, SandboxSpec, Teller, Used, Who},
    state_dir::StateDir,
    worktree,
    worktree::{Kind, Trees},
};

/// How many bytes a validator may print: the end of it goes into a prompt, and all of it into the journal.
const VALIDATOR_OUTPUT_MAX: u64 = 4 << 20;

/// Makes a provider by its name; `None` when that cannot be.
pub type FormerProviders = Box<dyn Fn(&str) -> Option<provider::Shared> + Send + Sync>;

/// What the performer works with.
pub struct Setting {
    /// The run.
    pub run: RunId,
    /// The project's state folder.
    pub home: StateDir,
    /// Where texts are kept.
    pub journal: Arc<dyn Journal>,
    /// Who is asked.
    pub provider: provider::Shared,
    /// A model for all asks, in place of the definition's; by the provider's name.
    pub model: Option<String>,
    /// The provider's names of the models that the definition names.
    pub models: BTreeMap<Str, String>,
    /// The model of asks that name none; `None` = as the provider likes.
    pub default_model: Option<String>,
    /// After how long an ask is stopped.
    pub ask_timeout: Duration,
    /// How our own binary is started as a shim.
    pub shim: Shim,
    /// The folder agents and validators work in.
    pub work: PathBuf,
    /// Whether the run owns that folder and may restore it.
    pub owned: bool,
    /// The branch of a folder that the run owns.
    pub branch: Option<String>,
    /// Makes a provider that may have been asked before, to read what it left.
    pub former: FormerProviders,
    /// The working tree, where there is git.
    pub trees: Option<Trees>,
    /// Whether the tree may differ from what the journal says: after a crash or an interruption.
    pub suspect: bool,
    /// Whether new files of those who may not write are no violation.
    pub spares_new_files: bool,
    /// The sandbox, where the definition demands one.
    pub sandbox: Option<Sandbox>,
    /// Where to tell what is heard of those at work.
    pub heard: mpsc::Sender<Heard>,
}

/// The performer of this machine.
pub struct Local {
    setting: Setting,
    /// Held while the tree is put back, so that no other ask begins in a half restored one.
    suspect: Mutex<bool>,
}

impl Local {
    /// A performer for one run.
    pub fn new(mut setting: Setting) -> Local {
        if setting.sandbox.is_some()
            && let Some(sandboxed) = setting.provider.in_sandbox()
        {
            setting.provider = sandboxed;
        }
        let suspect = Mutex::new(setting.suspect);
        Local { setting, suspect }
    }

    /// Mends what a command that was cut off since then may have left: a lock of git that nobody holds.
    async fn after_cut(&self, since: Option<SystemTime>) -> Result<(), Error> {
        let (Some(since), Some(_)) = (since, &self.setting.trees) else { return Ok(()) };
        let work = self.setting.work.clone();
        blocking(move || {
            worktree::clear_stale_lock(&work, since)?;
            Ok(())
        })
        .await
    }

    async fn exec(
        &self,
        command: ExecCommand,
        mut cut: watch::Receiver<bool>,
    ) -> Result<Option<Performed>, Error> {
        let dir = self.setting.home.command(&self.setting.run, command.id);
        let finished = match process::adopt(&dir).await? {
            Some(finished) => finished,
            None => {
                self.after_cut(former_start(&dir)).await?;
                let launch = Launch {
                    args: vec!["-c".into(), command.validator.command.to_string().into()],
                    timeout: Some(Duration::from_millis(command.validator.timeout_ms)),
                    output_max: VALIDATOR_OUTPUT_MAX,
                    ..Launch::new("sh", self.setting.work.clone())
                };
                let mut child = process::start(&self.setting.shim, &dir, &launch).await?;
                let finished = loop {
                    tokio::select! {
                        line = child.line() => if line.is_none() { break child.wait().await?; },
                        () = is_cut(&mut cut) => break child.cancel().await?,
                    }
                };
                if finished.cut {
                    return Ok(None);
                }
                finished
            }
        };
        let seen = self.seen(command.tree.as_ref()).await?;
        let exec = Exec {
            exit: exit(&finished),
            stdout: String::from_utf8_lossy(&finished.stdout).into_owned(),
            stderr: String::from_utf8_lossy(&finished.stderr).into_owned(),
            duration_ms: finished.elapsed_ms,
        };
        Ok(Some(Performed {
            completion: Completion::Executed { id: command.id, exec, seen },
            texts: Vec::new(),
        }))
    }

    /// Puts what is to be started behind the sandbox, where the definition demands one. What is returned besides has to
    /// be kept until it has ended.
    fn sandboxed(
        &self,
        id: CommandId,
        dir: &Path,
        shown: &str,
        launch: Launch,
        who: Who,
    ) -> Result<(Launch, Option<Used>), Error> {
        let Setting { sandbox, home, work, run, heard, .. } = &self.setting;
        let Some(sandbox) = sandbox else { return Ok((launch, None)) };
        let shown = vec![dir.join(shown), home.reports(run)];
        let room =
            SandboxSpec { sandbox, who, root: home.root(), work, state: home.dir(), shown, command: dir };
        let (launch, used) = room.enclose(launch, Teller::new(id, heard.clone()))?;
        Ok((launch, Some(used)))
    }

    /// The working tree now, and what differs from `before`.
    async fn seen(&self, before: Option<&TreeState>) -> Result<Option<Seen>, Error> {
        let Some(trees) = self.setting.trees.clone() else { return Ok(None) };
        let before = before.map(|state| state.tree.clone());
        let spares = self.setting.spares_new_files;
        blocking(move || {
            let tree = state_of(&trees)?;
            let changes = match before {
                Some(before) if before != tree.tree => trees.changes(&before, &tree.tree)?,
                _ => Vec::new(),
            };
            let added = changes.iter().filter(|change| spares && change.kind == Kind::Added);
            let spared = added.map(|change| change.path.clone()).collect();
            let changed = changes.into_iter().map(|change| change.path).collect();
            Ok(Some(Seen { tree, changed, spared }))
        })
        .await
    }

    /// Puts a tree that the run owns back to where the journal says it is, when it may differ. What differs is set
    /// aside as a tree object first.
    async fn restore(&self, to: Option<&TreeState>) -> Result<(), Error> {
        let (Some(trees), Some(to)) = (self.setting.trees.clone(), to.cloned()) else { return Ok(()) };
        let mut suspect = self.suspect.lock().await;
        if !self.setting.owned || !*suspect {
            return Ok(());
        }
        let branch = self.setting.branch.clone();
        blocking(move || {
            let is = state_of(&trees)?;
            if is.tree != to.tree {
                trees.set_aside()?;
                trees.restore(&to.tree)?;
            }
            if let (Some(branch), Some(head)) = (branch, &to.head)
                && is.head != to.head
            {
                trees.restore_head(&branch, head)?;
            }
            Ok(())
        })
        .await?;
        *suspect = false;
        Ok(())
    }
}

/// The working tree as the engine keeps it.
///
/// # Errors
/// When git cannot read it.
pub fn state_of(trees: &Trees) -> Result<TreeState, Error> {
    let snapshot = trees.snapshot()?;
    Ok(TreeState { tree: snapshot.tree, head: snapshot.head, refs: snapshot.refs })
}

impl Executor for Local {
    fn perform(
        self: Arc<Self>,
        flow: Arc<Flow>,
        command: Command,
        cut: watch::Receiver<bool>,
    ) -> Performance {
        Box::pin(async move {
            match command {
                Command::Ask(ask) => self.ask(&flow, *ask, cut).await,
                Command::Exec(exec) => self.exec(exec, cut).await,
                Command::Probe(probe) => self.probe(*probe, cut).await,
                Command::Effect(effect) => self.effect(*effect, cut).await,
            }
        })
    }

    fn look(self: Arc<Self>, before: Option<TreeState>) -> Look {
        Box::pin(async move { self.seen(before.as_ref()).await })
    }

    fn keep(&self, run: &Run) -> Result<(), Error> {
        let Setting { home, run: id, journal, .. } = &self.setting;
        reports::keep(&**journal, &home.run(id), &run.reports)
    }

    fn forget(&self, id: CommandId) {
        let dir = self.setting.home.command(&self.setting.run, id);
        if dir.exists() {
            // What stays behind costs disk, nothing else: its command never becomes pending again.
            let _ = std::fs::remove_dir_all(dir);
        }
    }
}

/// When the command of this folder was started before, if it was.
fn former_start(dir: &Path) -> Option<SystemTime> {
    std::fs::metadata(dir.join("spec.json")).and_then(|about| about.modified()).ok()
}

/// Waits for a moment; false when it was cut.
async fn wait_until(moment_ms: Option<i64>, cut: &mut watch::Receiver<bool>) -> bool {
    loop {
        if *cut.borrow() {
            return false;
        }
        let left = moment_ms.unwrap_or(0).saturating_sub(now_ms());
        let Ok(left @ 1..) = u64::try_from(left) else { return true };
        // In short sleeps: after a night with the lid closed the moment has come, whatever the timer thinks.
        let nap = Duration::from_millis(left.min(1_000));
        tokio::select! {
            () = tokio::time::sleep(nap) => {}
            () = is_cut(cut) => return false,
        }
    }
}

async fn is_cut(cut: &mut watch::Receiver<bool>) {
    // A sender that is gone has nobody left to cut for.
    if cut.wait_for(|cut| *cut).await.is_err() {
        std::future::pending::<()>().await;
    }
}

async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, Error> + Send + 'static,
) -> Result<T, Error> {
    tokio::task::spawn_blocking(work).await.map_err(|error| Error::Task(error.to_string()))?
}

fn ended(finished: &Finished) -> provider::Ended {
    if finished.timed_out {
        return provider::Ended::TimedOut;
    }
    if finished.capped {
        return provider::Ended::TooMuchOutput;
    }
    match &finished.exit {
        process::Exit::Code(code) => provider::Ended::Exit(*code),
        process::Exit::Signal(signal) => provider::Ended::Signal(*signal),
        process::Exit::NotFound(why) | process::Exit::NotStarted(why) => {
            provider::Ended::NotStarted(why.clone())
        }
    }
}

fn exit(finished: &Finished) -> Exit {
    match ended(finished) {
        provider::Ended::TimedOut => Exit::TimedOut,
        provider::Ended::TooMuchOutput => Exit::TooMuchOutput,
        provider::Ended::Exit(code) => Exit::Code(code),
        provider::Ended::Signal(signal) => Exit::Signal(signal),
        provider::Ended::NotStarted(why) => Exit::NotStarted(why),
    }
}
