//! Performs commands on this machine: runs validators, inspects and restores the working tree. See [`ask`] for asks and
//! [`probe`] for checks whether a run is done.

#![expect(clippy::disallowed_methods, reason = "state of ours, where no agent writes")]

mod ask;
mod called_agent;
mod command_git;
mod effects;
mod kept_programs;
mod main_checkout;
mod probe;
pub(crate) mod proof;
mod reads;
mod step_effects;
mod tool_log;

use crate::effect_plan::EffectPlan;
pub use ask::{RUN_VARIABLE, WITHIN_VARIABLE};
pub use called_agent::{CalledAgent, CalledAgents};
use command_git::{CommandGuard, SharedGit, SharedHeld, agent_git, lock_shared};

use std::{
    path::{Path, PathBuf},
    sync::Arc,
    time::{Duration, SystemTime},
};

use cuegate_engine::{
    Command, CommandId, Completion, ExecCommand, ExecResult, Exit, FenceKey, Run, TreeChange, TreeState,
};
use cuegate_flow::{
    Str,
    model::{BlobRef, Flow, Source},
};
use cuegate_journal::{Journal, RunId};
use cuegate_provider as provider;
use tokio::sync::{Mutex, mpsc, watch};

use crate::{
    clock::Clock,
    drive::ExecutorMessage,
    error::Error,
    executor::{CommandFuture, CommandResult, Executor, TreeInspection},
    github::TOKEN_VARS,
    process,
    process::{FinishedCommand, Launch, Shim},
    prompt_text::read_stored_text,
    reports,
    sandbox::{ProcessKind, RefusalReporter, Sandbox, SandboxSpec},
    state_dir::StateDir,
    trace::Trace,
    worktree,
    worktree::{ChangeKind, RevertedChanges, Snapshot, Trees},
};

/// The limit of the output of a validator that is kept, in bytes: its beginning and its end are journaled, and its end goes
/// into a prompt.
const VALIDATOR_OUTPUT_MAX: u64 = 4 << 20;

/// Creates a provider by name; `None` when that fails.
pub type FormerProviders = Box<dyn Fn(&str) -> Option<provider::Shared> + Send + Sync>;

pub struct ExecutorSettings {
    pub run: RunId,
    /// The state dir of the project.
    pub home: StateDir,
    /// The right to drive the run: checked before something outside is changed.
    pub lease: cuegate_journal::Lease,
    /// The journal, which holds the texts of prompts.
    pub journal: Arc<dyn Journal>,
    /// The secret of the fences in prompts.
    pub fence_key: FenceKey,
    /// The agents that it calls.
    pub agents: CalledAgents,
    /// The time limit of an ask.
    pub ask_timeout: Duration,
    /// The time after which an ask without activity is reported.
    pub idle_warning: Duration,
    /// How to start our own binary as a shim.
    pub shim: Shim,
    /// The clock of the run.
    pub clock: Arc<dyn Clock>,
    /// The top of the working tree.
    pub work: PathBuf,
    /// The folder in it where agents and commands start.
    pub cwd: PathBuf,
    /// Whether the run owns that folder and may restore it.
    pub owned: bool,
    /// The branch of a folder that the run owns.
    pub branch: Option<String>,
    /// Whether tokens of GitHub are removed from the environment of agents.
    pub hides_tokens: bool,
    /// What effects need.
    pub effects: EffectPlan,
    /// Creates the provider of a former start, to read the output that it left.
    pub former: FormerProviders,
    /// Snapshots of the working tree; `None` without git.
    pub trees: Option<Trees>,
    /// The top folder of the main checkout, if the run works in a worktree of its own.
    pub main: Option<PathBuf>,
    /// The time since which the working tree may differ from the journal, because of a crash or an interruption.
    pub suspect: Option<SystemTime>,
    /// Whether new files of read-only asks are allowed.
    pub spares_new_files: bool,
    /// The sandbox, if the run is in one.
    pub sandbox: Option<Sandbox>,
    /// Files of the definition and the settings, relative to the project, which agents cannot change in a sandbox.
    pub sealed: Vec<PathBuf>,
    /// The trace of the run, which agents continue; `None` without telemetry.
    pub trace: Option<Trace>,
    /// Receives messages from commands in progress.
    pub heard: mpsc::Sender<ExecutorMessage>,
}

/// The executor of this machine.
pub struct LocalExecutor {
    setting: ExecutorSettings,
    /// Locked while the tree is restored, so that no other ask starts in a half restored tree.
    suspect: Mutex<Option<SystemTime>>,
    /// The git folder of the programs of the run, if they do not use that of the user.
    git: Option<Arc<SharedGit>>,
    /// The repository of the user as it was before the commands in progress, if they use it.
    held: Arc<SharedHeld>,
}

impl LocalExecutor {
    /// Creates the executor of one run.
    pub fn new(mut setting: ExecutorSettings) -> LocalExecutor {
        if setting.sandbox.is_some() {
            setting.agents = setting.agents.in_sandbox();
        }
        let suspect = Mutex::new(setting.suspect);
        let ExecutorSettings { trees, sandbox, owned, home, run, .. } = &setting;
        let git = agent_git(trees.as_ref(), sandbox.as_ref(), *owned, home, run);
        if let Some(git) = &git {
            setting.trees = setting.trees.take().map(|trees| trees.with_agent_index(git.index()));
        }
        let git = git.map(|git| Arc::new(SharedGit::new(git)));
        LocalExecutor { setting, suspect, git, held: Arc::default() }
    }

    /// Removes stale git locks that a command, started at `since`, may have left: it was killed, or ended while a git
    /// that it had started was killed.
    async fn clear_locks(&self, since: Option<SystemTime>) -> Result<(), Error> {
        let (Some(since), Some(_)) = (since, &self.setting.trees) else { return Ok(()) };
        let work = self.setting.work.clone();
        run_blocking(move || {
            worktree::clear_stale_locks(&work, since)?;
            Ok(())
        })
        .await
    }

    async fn exec(
        &self,
        command: ExecCommand,
        mut cut: watch::Receiver<bool>,
    ) -> Result<Option<CommandResult>, Error> {
        let dir = self.setting.home.command(&self.setting.run, command.id);
        let Some(finished) = self.run_command(&command, &dir, &mut cut).await? else { return Ok(None) };
        let seen = self.seen_until(command.tree.as_ref(), &mut cut).await?;
        let exec = ExecResult {
            exit: exit_of_finished(&finished),
            stdout: text_of(&finished.stdout),
            stderr: text_of(&finished.stderr),
            duration_ms: finished.elapsed_ms,
        };
        Ok(Some(CommandResult {
            completion: Completion::Executed { id: command.id, exec, seen },
            texts: Vec::new(),
        }))
    }

    /// Runs a command, with its files in `dir`, or takes what it did before a crash. `None` if it was cut off.
    async fn run_command(
        &self,
        command: &ExecCommand,
        dir: &Path,
        cut: &mut watch::Receiver<bool>,
    ) -> Result<Option<FinishedCommand>, Error> {
        if let Some(finished) = process::adopt_finished_command(dir).await? {
            return Ok(Some(finished));
        }
        self.clear_locks(former_start(dir)).await?;
        let started = SystemTime::now();
        let journal = &*self.setting.journal;
        let value = |(name, blob): &(Str, BlobRef)| {
            Ok((name.to_string().into(), read_stored_text(journal, &self.setting.run, blob)?.into()))
        };
        let mut env = command.values.iter().map(value).collect::<Result<Vec<_>, Error>>()?;
        env.push((RUN_VARIABLE.into(), self.setting.run.as_str().into()));
        let launch = Launch {
            env,
            args: vec!["-c".into(), script_of_command(command).into()],
            timeout: Some(Duration::from_millis(command.validator.timeout_ms)),
            output_max: VALIDATOR_OUTPUT_MAX,
            keeps_end: true,
            ..Launch::new(provider::locate_or_missing("sh"), self.setting.cwd.clone())
        };
        let inside = self.setting.sandbox.as_ref().is_some_and(Sandbox::holds_validators);
        let (launch, guard) = match inside {
            true => self.sandboxed(command.id, dir, None, launch, ProcessKind::Program)?,
            false => (launch, CommandGuard { _sandbox: None, _git: self.use_git()? }),
        };
        let mut child = process::start_command(&self.setting.shim, dir, &launch).await?;
        let finished = loop {
            tokio::select! {
                line = child.line() => if line.is_none() { break child.wait().await?; },
                () = is_cut(cut) => break child.cancel().await?,
            }
        };
        drop(guard);
        if finished.cut {
            return Ok(None);
        }
        self.clear_locks(Some(started)).await?;
        Ok(Some(finished))
    }

    /// Wraps a launch into the sandbox, if the run is in one. Keep the returned guard until the command has
    /// ended.
    fn sandboxed(
        &self,
        id: CommandId,
        dir: &Path,
        shown: Option<&str>,
        launch: Launch,
        kind: ProcessKind,
    ) -> Result<(Launch, CommandGuard), Error> {
        let git = self.use_git()?;
        let ExecutorSettings { sandbox, home, work, run, heard, hides_tokens, sealed, .. } = &self.setting;
        let passed: Vec<&str> = if *hides_tokens { Vec::new() } else { TOKEN_VARS.to_vec() };
        let Some(sandbox) = sandbox else { return Ok((launch, CommandGuard { _sandbox: None, _git: git })) };
        let shown = shown.map(|shown| dir.join(shown)).into_iter().chain([home.reports(run)]).collect();
        let shared = self.git.as_ref().map(|git| lock_shared(git));
        let spec = SandboxSpec {
            sandbox,
            kind,
            root: home.root(),
            work,
            state: home.dir(),
            shown,
            sealed,
            passed: &passed,
            git: shared.as_deref(),
        };
        let (launch, used) = spec.enclose(launch, RefusalReporter::new(id, heard.clone()))?;
        drop(shared);
        Ok((launch, CommandGuard { _sandbox: Some(used), _git: git }))
    }

    /// The state of the working tree and the changes since `before`.
    async fn seen(&self, before: Option<&TreeState>) -> Result<Option<TreeChange>, Error> {
        let (_never, mut cut) = watch::channel(false);
        self.seen_until(before, &mut cut).await
    }

    /// As [`LocalExecutor::seen`], but for commits of agents that are not taken over yet when the command is cut: the next
    /// call takes them over.
    async fn seen_until(
        &self,
        before: Option<&TreeState>,
        cut: &mut watch::Receiver<bool>,
    ) -> Result<Option<TreeChange>, Error> {
        let Some(trees) = self.setting.trees.clone() else { return Ok(None) };
        let mut left = self.take_over(cut).await?;
        let RevertedChanges { forbidden: trespassed, others } = self.put_back_repository().await?;
        left.extend(others);
        let before = before.cloned();
        let heard = self.setting.heard.clone();
        let (spares, branch) = (self.setting.spares_new_files, self.setting.branch.clone());
        run_blocking(move || {
            if let Some(before) = &before
                && !trees.is_repository()
            {
                // Nothing else can be said of it.
                let lost = vec![".git".to_owned()];
                return Ok(Some(TreeChange { tree: before.clone(), lost, ..TreeChange::default() }));
            }
            let tree = state_of(&trees, branch.as_deref())?;
            let lost = match before.as_ref().and_then(|before| before.head.as_deref()) {
                Some(head) => trees.lost(head, tree.head.as_deref())?,
                None => Vec::new(),
            };
            let changes = match before {
                Some(before) if before.tree != tree.tree && lost.is_empty() => {
                    trees.changes(&before.tree, &tree.tree)?
                }
                _ => Vec::new(),
            };
            let added = changes.iter().filter(|change| spares && change.kind == ChangeKind::Added);
            let spared = added.map(|change| change.path.clone()).collect();
            let changed = changes.into_iter().map(|change| change.path).collect();
            let gaps = trees.warnings();
            for gap in &gaps {
                // A slow display misses it.
                let _ = heard.try_send(ExecutorMessage::Warning(gap.clone()));
            }
            Ok(Some(TreeChange {
                tree,
                changed,
                spared,
                lost,
                left_in_git: left,
                gaps,
                trespassed,
                ..TreeChange::default()
            }))
        })
        .await
    }

    /// Restores a worktree that the run owns to the journaled state, if it may differ. The present state is kept as a
    /// tree object.
    async fn restore(&self, to: Option<&TreeState>) -> Result<(), Error> {
        let (Some(trees), Some(to)) = (self.setting.trees.clone(), to.cloned()) else { return Ok(()) };
        let mut suspect = self.suspect.lock().await;
        let Some(since) = suspect.filter(|_| self.setting.owned) else { return Ok(()) };
        let (branch, heard) = (self.setting.branch.clone(), self.setting.heard.clone());
        let git = self.git.clone();
        let notes = run_blocking(move || {
            worktree::clear_stale_locks(trees.root(), since)?;
            let notes = put_back(&trees, branch.as_deref(), &to, &[])?;
            if let Some(git) = git {
                lock_shared(&git).reset()?;
            }
            Ok(notes)
        })
        .await?;
        for note in notes {
            let _ = heard.try_send(ExecutorMessage::Warning(note));
        }
        *suspect = None;
        Ok(())
    }
}

/// Puts a worktree that a run owns back to a recorded state, but for the files `kept`. What is put away stays reachable;
/// the returned notes say how.
///
/// # Errors
/// When git fails. The call can be repeated.
pub fn put_back(
    trees: &Trees,
    branch: Option<&str>,
    to: &TreeState,
    kept: &[String],
) -> Result<Vec<String>, Error> {
    const NAMES_MAX: usize = 5;
    let mut notes = Vec::new();
    let is = state_of(trees, branch)?;
    let tree = trees.with_entries_of(&to.tree, &is.tree, kept)?;
    let away = trees.changes(&tree, &is.tree)?;
    if !away.is_empty() {
        let aside = trees.keep_aside(&trees.set_aside()?)?;
        let mut names: Vec<String> =
            away.iter().take(NAMES_MAX).map(|change| format!("`{}`", change.path)).collect();
        if away.len() > NAMES_MAX {
            names.push(format!("{} more", away.len() - NAMES_MAX));
        }
        notes.push(format!(
            "the worktree is as before that call again; put away: {}; `git -C {} restore --source {aside} -- .` brings them back",
            names.join(", "),
            trees.root().display()
        ));
        trees.restore(&tree)?;
    }
    if let (Some(branch), Some(git)) = (branch, &to.git)
        && (is.head != to.head || is.git != to.git)
    {
        for reference in trees.restore_git_state(branch, git, to.head.as_deref())? {
            notes.push(format!(
                "what was committed or stashed after the last record is kept as `{reference}`"
            ));
        }
    }
    Ok(notes)
}

/// The state of the working tree, for the engine. `branch` is the branch of a worktree that the run owns.
///
/// # Errors
/// When git cannot read it.
pub fn state_of(trees: &Trees, branch: Option<&str>) -> Result<TreeState, Error> {
    state_with(trees, branch, trees.snapshot()?)
}

/// As [`state_of`], with a snapshot that is known already.
///
/// # Errors
/// When git cannot read it.
pub fn state_with(trees: &Trees, branch: Option<&str>, snapshot: Snapshot) -> Result<TreeState, Error> {
    let git = branch.map(|branch| trees.git_state(branch)).transpose()?.flatten();
    Ok(TreeState { tree: snapshot.tree, head: snapshot.head, refs: snapshot.refs, git, pack: None })
}

impl Executor for LocalExecutor {
    fn perform(
        self: Arc<Self>,
        flow: Arc<Flow>,
        command: Command,
        cut: watch::Receiver<bool>,
    ) -> CommandFuture {
        Box::pin(async move {
            match command {
                Command::Ask(ask) => self.ask(&flow, *ask, cut).await,
                Command::Exec(exec) => self.exec(*exec, cut).await,
                Command::Probe(probe) => self.probe(*probe, cut).await,
                Command::Effect(effect) => Self::effect(&self, *effect, cut).await,
                Command::Read(read) => self.read(*read, cut).await,
            }
        })
    }

    fn look(self: Arc<Self>, before: Option<TreeState>) -> TreeInspection {
        Box::pin(async move { self.seen(before.as_ref()).await })
    }

    fn keep(&self, run: &Run) -> Result<(), Error> {
        let ExecutorSettings { home, run: id, journal, .. } = &self.setting;
        reports::write_report_files(&**journal, id, &home.run(id), &run.context.reports)
    }

    fn forget(&self, id: CommandId) {
        let dir = self.setting.home.command(&self.setting.run, id);
        if dir.exists() {
            // A failure only costs disk space: the command never becomes pending again.
            let _ = std::fs::remove_dir_all(dir);
        }
    }
}

/// The time at which the command of this folder was started before.
fn former_start(dir: &Path) -> Option<SystemTime> {
    std::fs::metadata(dir.join("spec.json")).and_then(|about| about.modified()).ok()
}

/// Waits until a moment; false when cut.
async fn wait_until(moment_ms: Option<i64>, clock: &dyn Clock, cut: &mut watch::Receiver<bool>) -> bool {
    loop {
        if *cut.borrow() {
            return false;
        }
        let left = moment_ms.unwrap_or(0).saturating_sub(clock.now_ms());
        let Ok(left @ 1..) = u64::try_from(left) else { return true };
        // Sleeps briefly and compares the time of day: timers do not advance while the machine sleeps.
        let nap = Duration::from_millis(left.min(1_000));
        tokio::select! {
            () = tokio::time::sleep(nap) => {}
            () = is_cut(cut) => return false,
        }
    }
}

async fn is_cut(cut: &mut watch::Receiver<bool>) {
    // Without a sender the value never changes again.
    if cut.wait_for(|cut| *cut).await.is_err() {
        std::future::pending::<()>().await;
    }
}

async fn run_blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, Error> + Send + 'static,
) -> Result<T, Error> {
    tokio::task::spawn_blocking(work).await.map_err(|error| Error::Task(error.to_string()))?
}

/// The shell script of a command. A command that reads a value which the run does not have is not run: without the value it
/// might pass.
fn script_of_command(command: &ExecCommand) -> String {
    let is_missing = |name: &Str| !command.values.iter().any(|(known, _)| known == name);
    let missing = command.validator.values.iter().find(|(name, _)| is_missing(name));
    match missing.map(|(_, source)| source) {
        None => command.validator.command.to_string(),
        Some(source) => {
            let what = match source {
                Source::Handoff { key, .. } => format!("handoff.{key}"),
                Source::Param(name) => name.to_string(),
                _ => "a value".to_owned(),
            };
            let what = what.replace('\'', "");
            format!("printf '%s\\n' 'the run has no value for `{what}`' >&2; exit 125")
        }
    }
}

/// The output of a command, without the secrets of our environment.
fn text_of(output: &[u8]) -> String {
    provider::environment_secrets().clean(&String::from_utf8_lossy(output))
}

/// Whether a signal is one that no program sends itself to end with a code. A shell and the sandbox report that a signal
/// ended a program by the code 128 plus its number.
fn is_fatal(signal: i32) -> bool {
    [
        libc::SIGKILL,
        libc::SIGSEGV,
        libc::SIGABRT,
        libc::SIGBUS,
        libc::SIGFPE,
        libc::SIGILL,
        libc::SIGSYS,
        libc::SIGXFSZ,
    ]
    .contains(&signal)
}

fn end_of(finished: &FinishedCommand) -> provider::ProgramEnd {
    if finished.timed_out {
        return provider::ProgramEnd::TimedOut;
    }
    if finished.capped {
        return provider::ProgramEnd::TooMuchOutput;
    }
    match &finished.exit {
        process::Exit::Code(code) if is_fatal(code - 128) => provider::ProgramEnd::Signal(code - 128),
        process::Exit::Code(code) => provider::ProgramEnd::Exit(*code),
        process::Exit::Signal(signal) => provider::ProgramEnd::Signal(*signal),
        process::Exit::NotFound(why) | process::Exit::NotStarted(why) => {
            provider::ProgramEnd::NotStarted(why.clone())
        }
    }
}

fn exit_of_finished(finished: &FinishedCommand) -> Exit {
    match end_of(finished) {
        provider::ProgramEnd::TimedOut => Exit::TimedOut,
        provider::ProgramEnd::TooMuchOutput => Exit::TooMuchOutput,
        provider::ProgramEnd::Exit(code) => Exit::Code(code),
        provider::ProgramEnd::Signal(signal) => Exit::Signal(signal),
        provider::ProgramEnd::NotStarted(why) => Exit::NotStarted(why),
    }
}
