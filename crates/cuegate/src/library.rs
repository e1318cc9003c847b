//! The library API: load a definition, run it, read the result and its history.

use std::sync::Arc;
use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

use cuegate_engine::{AgentChoice, Budget, RecordedLoadOptions};
use cuegate_flow::diagnostics::{Diagnostic, Severity};
use cuegate_journal::{RunId, log};
use cuegate_runner::{Notice, SharedStore, StateDir};
use cuegate_view::RunView;
use tokio::sync::watch;

use crate::agents::{AgentQuery, AgentWishes, RunAgents, plan_run_agents};
use crate::before_start::start_checks::check_start;
use crate::cli::params;
use crate::definition::{DiskFiles, Location, find_definition};
use crate::run::finalize_plan::finalize_of;
use crate::run::start_run::{Host, RunRequest};
use crate::run::{leftovers, sandbox_setup, start_run};
use crate::shared_journal::PostgresStore;
use crate::text_file::{hint_for_unread, read_text};
use crate::{Failure, Program, config, definition, exit, github, project};

/// The default for the longest wait for a provider limit, in milliseconds.
const WAIT_MAX_MS: u64 = 60_000;

/// A loaded and checked definition.
pub struct Definition {
    typed: String,
    set: Vec<String>,
    folder: PathBuf,
    root: PathBuf,
    location: Location,
    read: definition::CompiledDefinition,
}

impl Definition {
    /// Loads a definition as `cuegate run` does: an agent folder, a registry file, or the name of an agent below
    /// `.agent` of the project that contains `folder`. [`Definition::findings`] lists its errors and warnings.
    ///
    /// # Errors
    /// When it does not exist or cannot be opened.
    pub fn load(typed: &str, folder: &Path) -> Result<Definition, Failure> {
        Definition::load_with(typed, folder, &[])
    }

    /// As [`Definition::load`]; these names count as declared, as with `--set`. [`RunOptions::arg`] sets their values.
    ///
    /// # Errors
    /// As [`Definition::load`].
    pub fn load_with(typed: &str, folder: &Path, set: &[&str]) -> Result<Definition, Failure> {
        let folder = std::fs::canonicalize(folder).map_err(|error| {
            Failure::usage(
                format!("failed to open `{}`: {error}", folder.display()),
                "name the project's folder",
            )
        })?;
        let root = project::root_of(&folder);
        let location = find_definition(typed, &folder, &root, None)
            .map_err(|(message, hint)| Failure::usage(message, hint))?;
        let takt = location.takt.as_deref();
        let files = DiskFiles::new(&location.root).map(|files| files.with_takt(takt)).map_err(|error| {
            Failure::environment(format!("failed to open `{}`: {error}", location.root.display()))
        })?;
        let set: Vec<String> = set.iter().map(|name| (*name).to_owned()).collect();
        let read = definition::compile_definition(
            &files,
            &location.base,
            location.file.as_deref(),
            &set,
            &RecordedLoadOptions::default(),
        );
        Ok(Definition { typed: typed.to_owned(), set, folder, root, location, read })
    }

    /// All errors and warnings, sorted by position.
    pub fn findings(&self) -> &[Diagnostic] {
        &self.read.diagnostics
    }

    /// Whether it has no errors and can run.
    pub fn is_sound(&self) -> bool {
        self.read.flow.is_some()
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.read.settings.agent
    }
}

/// The options of a run.
#[derive(Debug, Clone)]
pub struct RunOptions {
    program: Program,
    wishes: RunRequest,
    args: Vec<(String, String)>,
    script: Option<PathBuf>,
}

impl RunOptions {
    /// Uses this provider (`claude`, `codex`, `openai`). `program` serves the hidden subcommands of the run: use
    /// [`Program::enter`], or [`Program::new`] with the path of the `cuegate` binary.
    pub fn new(program: Program, provider: &str) -> RunOptions {
        let wishes = RunRequest { agent: AgentChoice::new(provider), ..RunRequest::default() };
        RunOptions { program, wishes, args: Vec::new(), script: None }
    }

    /// Uses the scripted agent with the answers in this file.
    pub fn scripted(program: Program, script: impl Into<PathBuf>) -> RunOptions {
        RunOptions { script: Some(script.into()), ..RunOptions::new(program, "scripted") }
    }

    /// Sets a parameter of the definition, or an undeclared variable that its prompts read.
    #[must_use]
    pub fn arg(mut self, name: &str, value: impl ToString) -> RunOptions {
        self.args.push((name.to_owned(), value.to_string()));
        self
    }

    /// Sets the task.
    #[must_use]
    pub fn task(mut self, task: impl Into<String>) -> RunOptions {
        self.wishes.task = Some(task.into());
        self
    }

    /// Leaves GitHub alone, whatever the definition says.
    #[must_use]
    pub fn no_github(mut self) -> RunOptions {
        self.wishes.no_github = true;
        self
    }

    /// Uses this model for all asks.
    #[must_use]
    pub fn model(mut self, model: impl Into<String>) -> RunOptions {
        self.wishes.agent.model = Some(model.into());
        self
    }

    /// Runs without a sandbox.
    #[must_use]
    pub fn no_sandbox(mut self) -> RunOptions {
        self.wishes.unsandboxed = true;
        self
    }

    /// Runs in a new worktree, whatever the definition says.
    #[must_use]
    pub fn worktree(mut self) -> RunOptions {
        self.wishes.worktree = true;
        self
    }

    /// Sets the iteration limit, at least 1.
    #[must_use]
    pub fn iterations_max(mut self, max: u32) -> RunOptions {
        self.wishes.iterations_max = Some(max.max(1));
        self
    }

    /// Sets how often an unusable answer is requested again, 0 to 100.
    #[must_use]
    pub fn repairs_max(mut self, max: u32) -> RunOptions {
        self.wishes.repairs_max = Some(max.min(100));
        self
    }

    /// Sets the budget; limits that it does not set come from the configuration.
    #[must_use]
    pub fn budget(mut self, budget: Budget) -> RunOptions {
        self.wishes.budget = budget;
        self
    }
}

/// The result of a run that ended or is suspended.
#[derive(Debug, Clone)]
pub struct RunResult {
    view: RunView,
    json: serde_json::Value,
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
    /// The transition: in a check flow `next`, `fallback`, `retry`, `complete` or `fail`; else the outcome of the step.
    /// `None` without an outcome.
    pub transition: Option<&'r str>,
    /// The next step, or an end such as `@completed`.
    pub target: Option<&'r str>,
    /// The result of its check, if it has one.
    pub check: Option<CheckResult<'r>>,
}

/// The result of a check.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CheckResult<'r> {
    /// `ok` or `ng`.
    pub result: &'r str,
    /// Its message.
    pub message: Option<&'r str>,
}

impl RunResult {
    /// The run's id, for `cuegate status`, `log`, `report` and `resume`.
    pub fn run(&self) -> &str {
        &self.view.run
    }

    /// Whether the run completed.
    pub fn success(&self) -> bool {
        self.view.exit_code() == Some(exit::DONE)
    }

    /// `completed`, `aborted`, `failed`, `exhausted`, `cancelled` or `suspended`.
    pub fn state(&self) -> &str {
        self.view.state.as_str()
    }

    /// The last step that was entered.
    pub fn final_step(&self) -> Option<&str> {
        self.view.final_step.as_deref()
    }

    /// Why the run ended, or what it waits for.
    pub fn completion_reason(&self) -> Option<&str> {
        self.view.reason.as_deref()
    }

    /// The step executions in the order in which they ended.
    pub fn history(&self) -> impl Iterator<Item = HistoryEntry<'_>> {
        // In a check flow the check decides the transition.
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

    /// The result as a `cuegate/run/v1` object.
    pub fn to_json(&self) -> serde_json::Value {
        self.json.clone()
    }
}

/// Runs a definition until it ends or suspends. Blocks; inside a tokio runtime, use [`run_async`].
///
/// # Errors
/// When the definition has errors, a required input is missing, or this machine or the provider cannot run it. A run
/// that ends without success is not an error: see [`RunResult::state`].
pub fn run(definition: &Definition, options: RunOptions) -> Result<RunResult, Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| Failure::environment(format!("failed to start: {error}")))?;
    // Keep the sender alive until the run is over; it never interrupts the run.
    let (_keep, stop) = watch::channel(false);
    let result = runtime.block_on(run_async(definition, options, stop, &mut |_| {}));
    // Do not wait for git processes that still scan a large tree.
    runtime.shutdown_background();
    result
}

/// Runs a definition until it ends or suspends, inside a tokio runtime. When `stop` turns true, the run is suspended
/// and can be resumed. `tell` receives every notice.
///
/// # Errors
/// As [`run`].
pub async fn run_async(
    definition: &Definition,
    options: RunOptions,
    stop: watch::Receiver<bool>,
    tell: &mut (dyn FnMut(Notice<'_>) + Send),
) -> Result<RunResult, Failure> {
    let RunOptions { program, mut wishes, args, script } = options;
    let again = with_args(definition, &args)?;
    let definition = again.as_ref().unwrap_or(definition);
    let Some(flow) = definition.read.flow.clone() else {
        return Err(failure_of_unsound_definition(definition));
    };
    let config = config::load_config(&definition.root)?;
    wishes.path = definition.typed.clone();
    wishes.set = definition.set.clone();
    wishes.params = resolve_run_parameters(definition, &args)?;
    wishes.script = script.as_deref().map(read_script).transpose()?;
    wishes.wait_max_ms =
        config.run.wait_max.map_or(WAIT_MAX_MS, |wait| u64::try_from(wait.as_millis()).unwrap_or(u64::MAX));
    wishes.repairs_max = wishes.repairs_max.or(config.run.repairs_max);
    wishes.budget = config.budget.budget().with(wishes.budget);
    if wishes.task.is_none() && definition.read.settings.needs_task {
        return Err(Failure::usage("the definition needs a task", "set it with `RunOptions::task`"));
    }
    wishes.issue = github::issue_of(&wishes.params);
    let finalize = finalize_of(&definition.read, &wishes);
    wishes.github = github::connect_run(&definition.root, &config, &flow, &wishes, &finalize)?;
    start_run::nothing_missing(&flow, &wishes)?;
    let apart = wishes.worktree || definition.read.settings.worktree.enabled;
    start_run::nothing_out_of_sight(&definition.root, &flow, &wishes, apart)?;
    let wanted = AgentWishes { usual: wishes.agent.clone(), is_named: true, ..AgentWishes::default() };
    wishes.plan = plan_run_agents(&flow, &wanted, Default::default(), &config)?.plan;
    let agents = RunAgents::find(&AgentQuery {
        usual: wishes.agent.clone(),
        plan: &wishes.plan,
        script: wishes.script.as_ref(),
        flow: &flow,
        budget: &wishes.budget,
        program: &program,
        config: &config,
    })?;
    let run_sandbox = sandbox_setup::create_run_sandbox(
        &flow,
        wishes.unsandboxed,
        sandbox_setup::SandboxAtStart::None,
        &program,
        &config,
    )?;
    let store = PostgresStore::of(&definition.root, None, &config.journal);
    let store = store.map(|store| Arc::new(store) as Arc<dyn SharedStore>);
    let home = StateDir::create(&definition.root)?.with_shared(store);
    let journal = project::open_project_journal(&home, log::Durability::Synced)?;
    let host = Host { home, journal, program, config };
    leftovers::remove_leftovers(&host.home, &*host.journal);
    cuegate_runner::sandbox::put_aside_kept_out(host.home.dir());
    let id = project::new_run_id();
    let (root, apart) = (host.home.root(), definition.read.settings.worktree.enabled || wishes.worktree);
    // Its notes are for a terminal.
    check_start(root, &host.config, &finalize, None, (apart, wishes.github.is_some()))?;
    let ground = start_run::prepare_workspace(&host, &id, &definition.read, &wishes, None)?;
    let ready = start_run::prepare_new_run(
        &host,
        &id,
        &definition.location,
        &definition.read,
        ground.behind(run_sandbox.sandbox().cloned()),
        agents,
        &wishes,
    )?;
    ready.drive(stop, tell).await?;
    read_run_result(&host, &id)
}

/// Reloads a definition with errors, with the argument names declared: an agent may leave the variables of its prompts
/// undeclared.
fn with_args(definition: &Definition, args: &[(String, String)]) -> Result<Option<Definition>, Failure> {
    if definition.is_sound() || args.is_empty() {
        return Ok(None);
    }
    let given = args.iter().map(|(name, _)| name.as_str());
    let set: Vec<&str> = definition.set.iter().map(String::as_str).chain(given).collect();
    Definition::load_with(&definition.typed, &definition.folder, &set).map(Some)
}

/// The result of a run, from its journal.
fn read_run_result(host: &Host, id: &RunId) -> Result<RunResult, Failure> {
    let view = project::view_of(&*host.journal, id)?;
    let json = view.to_json(&|blob| cuegate_runner::read_stored_text(&*host.journal, id, blob).ok());
    Ok(RunResult { view, json })
}

fn failure_of_unsound_definition(definition: &Definition) -> Failure {
    let errors = definition.findings().iter().filter(|finding| finding.severity == Severity::Error);
    let first = errors.clone().next().map(|finding| format!(": {}", finding.message)).unwrap_or_default();
    let (typed, count) = (&definition.typed, errors.count());
    Failure::usage(
        format!("`{typed}` has {count} error{}{first}", if count == 1 { "" } else { "s" }),
        format!("`cuegate check {typed}` lists all errors"),
    )
}

/// The values of all parameters, with defaults.
fn resolve_run_parameters(
    definition: &Definition,
    args: &[(String, String)],
) -> Result<BTreeMap<String, String>, Failure> {
    let Some(flow) = &definition.read.flow else { return Ok(BTreeMap::new()) };
    let known = |name: &str| flow.params.iter().any(|param| params::is_same_param(&param.name, name));
    if let Some((name, _)) = args.iter().find(|(name, _)| !known(name)) {
        return Err(Failure::usage(
            format!("`{}` has no parameter `{name}`", definition.name()),
            "correct the name, or declare it with `Definition::load_with`",
        ));
    }
    let pairs: Vec<String> = args.iter().map(|(name, value)| format!("{name}={value}")).collect();
    params::collect_param_values(flow, None, &pairs)
}

fn read_script(path: &Path) -> Result<(String, String), Failure> {
    let shown = path.display().to_string();
    let text = read_text(path).map_err(|error| {
        let hint = hint_for_unread(&error, "check the path of the script");
        Failure::usage(format!("failed to read `{shown}`: {error}"), hint)
    })?;
    Ok((shown, text))
}
