//! The program without its command line: load a definition, run it, read the result with its history.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

use cuegate_engine::{Budget, Load};
use cuegate_flow::diagnostics::{Diagnostic, Severity};
use cuegate_journal::{RunId, sqlite};
use cuegate_runner::{Notice, StateDir};
use cuegate_view::{Liveness, RunView, Stamped, run_view};
use tokio::sync::watch;

use crate::{
    Agent, Failure, Program,
    cli::params,
    config, definition,
    definition::{DiskFiles, Location, locate},
    exit, project, sandbox_setup, start_run,
    start_run::{Host, Wishes},
};

/// How long a limit of the provider is waited for when nobody says, in milliseconds: a program is not a person who looks
/// on.
const WAIT_MAX_MS: u64 = 60_000;

/// A definition that was found, read and checked.
pub struct Definition {
    typed: String,
    set: Vec<String>,
    folder: PathBuf,
    root: PathBuf,
    location: Location,
    read: definition::Definition,
}

impl Definition {
    /// Loads a definition as `cuegate run` does: an agent folder, a registry file, or the name of an agent below
    /// `.agent` of the project that `folder` belongs to. What is wrong with it stands in [`Definition::findings`].
    ///
    /// # Errors
    /// When there is nothing of that name, or it cannot be opened.
    pub fn load(typed: &str, folder: &Path) -> Result<Definition, Failure> {
        Definition::load_with(typed, folder, &[])
    }

    /// The same; these names count as given from outside, as with `--set`, and [`RunOptions::arg`] gives them.
    ///
    /// # Errors
    /// As of [`Definition::load`].
    pub fn load_with(typed: &str, folder: &Path, set: &[&str]) -> Result<Definition, Failure> {
        let folder = std::fs::canonicalize(folder).map_err(|error| {
            Failure::usage(
                format!("failed to open `{}`: {error}", folder.display()),
                "name the project's folder",
            )
        })?;
        let root = project::root_of(&folder);
        let location =
            locate(typed, &folder, &root).map_err(|(message, hint)| Failure::usage(message, hint))?;
        let files = DiskFiles::new(&location.root).map_err(|error| {
            Failure::environment(format!("failed to open `{}`: {error}", location.root.display()))
        })?;
        let set: Vec<String> = set.iter().map(|name| (*name).to_owned()).collect();
        let read = definition::load(&files, &location.base, location.file.as_deref(), &set, &Load::default());
        Ok(Definition { typed: typed.to_owned(), set, folder, root, location, read })
    }

    /// Everything that was found, errors and warnings, sorted by place.
    pub fn findings(&self) -> &[Diagnostic] {
        &self.read.diagnostics
    }

    /// Whether it can be run.
    pub fn is_sound(&self) -> bool {
        self.read.flow.is_some()
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.read.settings.agent
    }
}

/// What a run is begun with.
#[derive(Debug, Clone)]
pub struct RunOptions {
    program: Program,
    wishes: Wishes,
    args: Vec<(String, String)>,
    script: Option<PathBuf>,
}

impl RunOptions {
    /// Asks this provider (`claude`, `codex`, `openai`). `program` is what serves as the hidden parts of the run:
    /// [`Program::enter`] gives it, or [`Program::at`] with the path of the `cuegate` binary.
    pub fn new(program: Program, provider: &str) -> RunOptions {
        let wishes = Wishes { provider: provider.to_owned(), ..Wishes::default() };
        RunOptions { program, wishes, args: Vec::new(), script: None }
    }

    /// Asks the scripted agent: its answers stand in this file.
    pub fn scripted(program: Program, script: impl Into<PathBuf>) -> RunOptions {
        RunOptions { script: Some(script.into()), ..RunOptions::new(program, "scripted") }
    }

    /// Gives a parameter of the definition a value; or a variable that its prompts read and nothing declares.
    #[must_use]
    pub fn arg(mut self, name: &str, value: impl ToString) -> RunOptions {
        self.args.push((name.to_owned(), value.to_string()));
        self
    }

    /// Says what to do.
    #[must_use]
    pub fn task(mut self, task: impl Into<String>) -> RunOptions {
        self.wishes.task = Some(task.into());
        self
    }

    /// Asks for this model in all asks.
    #[must_use]
    pub fn model(mut self, model: impl Into<String>) -> RunOptions {
        self.wishes.model = Some(model.into());
        self
    }

    /// Runs without the sandbox that the definition demands.
    #[must_use]
    pub fn no_sandbox(mut self) -> RunOptions {
        self.wishes.unsandboxed = true;
        self
    }

    /// Works in a worktree of its own, whatever the definition says.
    #[must_use]
    pub fn worktree(mut self) -> RunOptions {
        self.wishes.worktree = true;
        self
    }

    /// Another limit of iterations, at least 1.
    #[must_use]
    pub fn iterations_max(mut self, max: u32) -> RunOptions {
        self.wishes.iterations_max = Some(max.max(1));
        self
    }

    /// How often a bad answer is asked again, 0 to 100.
    #[must_use]
    pub fn repairs_max(mut self, max: u32) -> RunOptions {
        self.wishes.repairs_max = Some(max.min(100));
        self
    }

    /// What the run may use up, beside what is configured.
    #[must_use]
    pub fn budget(mut self, budget: Budget) -> RunOptions {
        self.wishes.budget = budget;
        self
    }
}

/// How a run stands after it was driven.
#[derive(Debug, Clone)]
pub struct RunResult {
    view: RunView,
}

/// An entry of a run's history: one execution of a step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HistoryEntry<'r> {
    /// The step.
    pub step: &'r str,
    /// Which visit of it, from 1.
    pub visit: u32,
    /// Which execution in that visit, from 1.
    pub attempt: u32,
    /// How it went on: in a check flow `next`, `fallback`, `retry`, `complete` or `fail`; else what the step decided.
    /// `None` when nothing was decided.
    pub transition: Option<&'r str>,
    /// The step it went on to, or `@completed` and the like.
    pub target: Option<&'r str>,
    /// What its check said, where it has one.
    pub check: Option<CheckResult<'r>>,
}

/// What a check said.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CheckResult<'r> {
    /// `ok` or `ng`.
    pub result: &'r str,
    /// Its message.
    pub message: Option<&'r str>,
}

impl RunResult {
    /// The run's name, for `cuegate status`, `log`, `report` and `resume`.
    pub fn run(&self) -> &str {
        &self.view.run
    }

    /// Whether it was completed.
    pub fn success(&self) -> bool {
        self.view.exit_code() == Some(exit::DONE)
    }

    /// `completed`, `aborted`, `failed`, `exhausted`, `cancelled` or `suspended`.
    pub fn state(&self) -> &str {
        self.view.state.as_str()
    }

    /// The step that was entered last.
    pub fn final_step(&self) -> Option<&str> {
        self.view.final_step.as_deref()
    }

    /// Why it ended, or what it waits for.
    pub fn completion_reason(&self) -> Option<&str> {
        self.view.reason.as_deref()
    }

    /// The executions in the order in which they ended.
    pub fn history(&self) -> impl Iterator<Item = HistoryEntry<'_>> {
        // Where steps are checked, the check decides where a row goes.
        let is_check = self.view.rows.iter().any(|row| row.check.is_some());
        self.view.rows.iter().map(move |row| HistoryEntry {
            step: &row.step,
            visit: row.visit,
            attempt: row.attempt,
            transition: if is_check { self.view.transition(row) } else { row.outcome.as_deref() },
            target: row.target.as_deref(),
            check: row
                .check
                .as_ref()
                .map(|check| CheckResult { result: &check.result, message: check.message.as_deref() }),
        })
    }

    /// The exit code that `cuegate run` would have.
    pub fn exit_code(&self) -> u8 {
        self.view.exit_code().unwrap_or(exit::ENVIRONMENT)
    }

    /// All of it as a JSON object of `cuegate/run/v1`.
    pub fn to_json(&self) -> serde_json::Value {
        self.view.to_json()
    }
}

/// Runs a definition until it ends or waits. Blocks; a program with a runtime of its own calls [`run_async`].
///
/// # Errors
/// When the definition is not sound, something that it needs is not given, or this machine or the provider cannot do what
/// is wanted. A run that ended badly is no error: see [`RunResult::state`].
pub fn run(definition: &Definition, options: RunOptions) -> Result<RunResult, Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| Failure::environment(format!("failed to start: {error}")))?;
    // Kept until the run is over: when it is dropped, nobody can interrupt the run any more, and nobody does.
    let (_keep, stop) = watch::channel(false);
    let result = runtime.block_on(run_async(definition, options, stop, &mut |_| {}));
    // A git that looks at a large tree is not waited for when the run is over.
    runtime.shutdown_background();
    result
}

/// Runs a definition until it ends or waits, inside a tokio runtime. `stop` turning true interrupts it: it is then
/// suspended and can be resumed. `tell` sees everything that happens.
///
/// # Errors
/// As of [`run`].
pub async fn run_async(
    definition: &Definition,
    options: RunOptions,
    stop: watch::Receiver<bool>,
    tell: &mut (dyn FnMut(Notice<'_>) + Send),
) -> Result<RunResult, Failure> {
    let RunOptions { program, mut wishes, args, script } = options;
    let again = with_args(definition, &args)?;
    let definition = again.as_ref().unwrap_or(definition);
    let Some(flow) = definition.read.flow.clone() else { return Err(unsound(definition)) };
    let config = config::load(&definition.root)?;
    wishes.path = definition.typed.clone();
    wishes.set = definition.set.clone();
    wishes.params = values(definition, &args)?;
    wishes.script = script.as_deref().map(read_script).transpose()?;
    wishes.wait_max_ms =
        config.run.wait_max.map_or(WAIT_MAX_MS, |wait| u64::try_from(wait.as_millis()).unwrap_or(u64::MAX));
    wishes.repairs_max = wishes.repairs_max.or(config.run.repairs_max);
    wishes.budget = config.budget.budget().with(wishes.budget);
    if wishes.task.is_none() && definition.read.settings.needs_task {
        return Err(Failure::usage("the definition needs a task", "give it with `RunOptions::task`"));
    }
    start_run::nothing_missing(&flow, &wishes)?;
    let apart = wishes.worktree || definition.read.settings.worktree.enabled;
    start_run::nothing_out_of_sight(&definition.root, &flow, &wishes, apart)?;
    let agent = Agent::find(
        &wishes.provider,
        wishes.script.as_ref(),
        wishes.model.as_deref(),
        &flow,
        &wishes.budget,
        &program,
        &config,
    )?;
    let sandbox = sandbox_setup::raise(&flow, wishes.unsandboxed, &program)?;
    let home = StateDir::create(&definition.root)?;
    let journal = project::open(&home, sqlite::Durability::Synced)?;
    let host = Host { home, journal, program, config };
    let id = project::new_run_id();
    let ground = start_run::ground(&host.home, &id, &definition.read, &wishes)?;
    let ready = start_run::begin(
        &host,
        &id,
        &definition.location,
        &definition.read,
        ground.behind(sandbox),
        agent,
        &wishes,
    )?;
    ready.drive(stop, tell).await?;
    result(&host, &id)
}

/// The definition with the arguments as given from outside, where it is not sound without them: an agent need not declare
/// what its prompts read.
fn with_args(definition: &Definition, args: &[(String, String)]) -> Result<Option<Definition>, Failure> {
    if definition.is_sound() || args.is_empty() {
        return Ok(None);
    }
    let given = args.iter().map(|(name, _)| name.as_str());
    let set: Vec<&str> = definition.set.iter().map(String::as_str).chain(given).collect();
    Definition::load_with(&definition.typed, &definition.folder, &set).map(Some)
}

/// The run as the journal has it.
fn result(host: &Host, id: &RunId) -> Result<RunResult, Failure> {
    let entries = cuegate_runner::records(&*host.journal, id)?;
    let stamped =
        |entry: cuegate_runner::Entry| Stamped { seq: entry.seq, at_ms: entry.at_ms, events: entry.events };
    let records: Vec<Stamped> = entries.into_iter().map(stamped).collect();
    Ok(RunResult { view: run_view(id.as_str(), &records, Liveness::None) })
}

fn unsound(definition: &Definition) -> Failure {
    let errors = definition.findings().iter().filter(|finding| finding.severity == Severity::Error);
    let first = errors.clone().next().map(|finding| format!(": {}", finding.message)).unwrap_or_default();
    let (typed, count) = (&definition.typed, errors.count());
    Failure::usage(
        format!("`{typed}` is not sound, {count} findings{first}"),
        format!("`cuegate check {typed}` shows them all"),
    )
}

/// The values of parameters, defaults filled in.
fn values(definition: &Definition, args: &[(String, String)]) -> Result<BTreeMap<String, String>, Failure> {
    let Some(flow) = &definition.read.flow else { return Ok(BTreeMap::new()) };
    let known = |name: &str| flow.params.iter().any(|param| params::same(&param.name, name));
    if let Some((name, _)) = args.iter().find(|(name, _)| !known(name)) {
        return Err(Failure::usage(
            format!("`{}` has no parameter `{name}`", definition.name()),
            "correct the name, or load the definition with `Definition::load_with` to give it from outside",
        ));
    }
    let pairs: Vec<String> = args.iter().map(|(name, value)| format!("{name}={value}")).collect();
    params::values(flow, None, &pairs)
}

fn read_script(path: &Path) -> Result<(String, String), Failure> {
    let shown = path.display().to_string();
    let text = std::fs::read_to_string(path).map_err(|error| {
        Failure::usage(format!("failed to read `{shown}`: {error}"), "check the path of the script")
    })?;
    Ok((shown, text))
}
