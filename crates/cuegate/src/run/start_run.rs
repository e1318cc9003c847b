//! Starts runs: from a checked definition to a driven run.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use cuegate_engine::{
    AgentChoice, AgentPlan, Budget, FenceKey, FinalizePlan, HiddenText, IssueClaim, Place,
    RecordedLoadOptions, Run, RunStarted, SourceBlob, Start, TreeState,
};
use cuegate_flow::{
    Str,
    analysis::cost_bound::Terms,
    model::{Act, BlobRef, Fact, Flow, Resource, Source, Verdict},
};
use cuegate_journal::{Journal, RunId, random_token};
use cuegate_provider::locate_program;
use cuegate_runner::{
    Entry, ExecutorMessage, ExecutorSettings, LocalExecutor, Notice, RunWriter, StateDir, StopRequests,
    Trace, drive_run, now_ms,
    sandbox::{SETTINGS_FILES, Sandbox},
    state_of,
    worktree::{Trees, branch_worktree, find_review_base, is_dirty},
};
use tokio::sync::mpsc;

use super::executor_settings::build_executor_settings;
use super::finalize_plan::finalize_of;
use super::leftovers::branch_of;
use super::limits::ModelChoice;
use super::logfile::LogFile;
use super::moved_run::{create_packer, find_machine};
use super::rights::sign_new_run;
use super::tree_lock::{TreeLock, Waiting};
use crate::agents::RunAgents;
use crate::config::Config;
use crate::definition::{CompiledDefinition, Location};
use crate::github::{GithubConnection, effect_plan};
use crate::otel::{OtelConfig, Telemetry};
use crate::{Failure, providers};

pub use super::effects_of_ended_run::{for_effects, prepare_effect_settlement};
pub use super::resume_run::{ResumeRequest, no_flow, prepare_resumed_run, reload_flow, tree_change_of_run};
pub use crate::binary::Program;

/// The resources of this machine that runs need.
#[derive(Clone)]
pub struct Host {
    /// The project's state dir.
    pub home: StateDir,
    /// The journal in `home`.
    pub journal: Arc<dyn Journal>,
    /// The cuegate binary.
    pub program: Program,
    /// The merged configuration of the project and the user.
    pub config: Config,
}

/// The inputs of a run besides its definition.
#[derive(Debug, Clone, Default)]
pub struct RunRequest {
    /// The definition as it was typed.
    pub path: String,
    /// Parameter values by name.
    pub params: BTreeMap<String, String>,
    /// Names given with `--set`; they count as declared.
    pub set: Vec<String>,
    /// The task.
    pub task: Option<String>,
    /// What was hidden in it, and removed.
    pub hidden: HiddenText,
    /// The usual agent; its model replaces those of the definition.
    pub agent: AgentChoice,
    /// The other agents.
    pub plan: AgentPlan,
    /// The path and content of the script.
    pub script: Option<(String, String)>,
    /// What is done with the work, in addition to what the definition says.
    pub finalize: FinalizePlan,
    /// The claim on the remote that its work replaces.
    pub claim: Option<IssueClaim>,
    /// The number of the issue or pull request that the run works on.
    pub issue: Option<u64>,
    /// Whether its texts are wanted, whatever the definition says.
    pub reads_issue: bool,
    /// Whether GitHub is left alone.
    pub no_github: bool,
    /// The repository on GitHub.
    pub github: Option<GithubConnection>,
    /// The place of an earlier run, to continue there.
    pub follows: Option<Place>,
    /// Whether to use a new worktree, whatever the definition says.
    pub worktree: bool,
    /// The folder of the project to work in, with `/`; `None`: at its top.
    pub folder: Option<String>,
    /// The iteration limit, if it differs from the definition's.
    pub iterations_max: Option<u32>,
    /// How often an unusable answer is requested again.
    pub repairs_max: Option<u32>,
    /// The longest wait for a provider limit, in milliseconds.
    pub wait_max_ms: u64,
    /// The budget.
    pub budget: Budget,
    /// The load options of the definition.
    pub load: RecordedLoadOptions,
    /// Whether to run without a sandbox.
    pub unsandboxed: bool,
    /// The key with which it is started once.
    pub key: Option<String>,
}

impl RunRequest {
    /// Whether one of its agents can cost money.
    pub(crate) fn may_cost_money(&self, config: &Config) -> bool {
        let agents = std::iter::once(&self.agent).chain(self.plan.choices());
        agents.into_iter().any(|choice| providers::may_cost_money(&choice.agent, config))
    }

    /// What the cost bound is calculated with.
    pub(crate) fn model_choice(&self) -> ModelChoice<'_> {
        ModelChoice {
            provider: Some(&self.agent.agent),
            model: self.agent.model.as_deref(),
            plan: Some(&self.plan),
        }
    }
}

/// The default for how often an unusable answer is requested again.
pub const REPAIRS_MAX: u32 = 1;
/// The default timeout of an ask. Agents work for tens of minutes; one without output for an hour hangs.
pub(crate) const ASK_TIMEOUT: Duration = Duration::from_secs(60 * 60);
/// The default time after which an ask without activity is reported.
pub(crate) const IDLE_WARNING: Duration = Duration::from_secs(10 * 60);

/// A prepared run.
pub struct PreparedRun {
    pub(crate) book: RunWriter,
    pub(crate) setting: ExecutorSettings,
    pub(crate) heard: mpsc::Receiver<ExecutorMessage>,
    /// The log file, if the definition configures one.
    pub(crate) log: Option<LogFile>,
    /// The lock of a working tree that the run does not own.
    pub(crate) lock: Option<Arc<TreeLock>>,
    /// Where telemetry goes.
    pub(crate) otel: OtelConfig,
    /// Records from before.
    pub before: Vec<Entry>,
    /// Records written during the preparation.
    pub entries: Vec<Entry>,
    /// What the agents of a run that goes on may do, in words.
    pub(crate) permission: Option<String>,
}

/// The result of driving a run.
#[derive(Debug, Clone)]
pub struct DrivenRun {
    /// The final state.
    pub run: Run,
    /// Why its log file or its telemetry is incomplete, if one is.
    pub trouble: Option<String>,
}

/// The place of a run, before it starts.
#[derive(Debug, Clone)]
pub struct Workspace {
    /// The place.
    pub place: Place,
    /// The tree that the run starts from.
    pub tree: Option<TreeState>,
    trees: Option<Trees>,
    /// The main checkout, if the run works in a worktree of its own.
    main: Option<PathBuf>,
    sandbox: Option<Sandbox>,
    /// The lock of a tree that the run does not own.
    lock: Option<Arc<TreeLock>>,
    /// The validators that failed before the first call.
    pub(crate) failed_before: Vec<String>,
}

impl Workspace {
    /// Reads the tree again: validators that ran meanwhile may have written files, which are no agent's.
    ///
    /// # Errors
    /// When git fails.
    pub(crate) fn after_baseline(self) -> Result<Workspace, Failure> {
        let branch = self.place.branch.as_deref();
        let tree = self.trees.as_ref().map(|trees| state_of(trees, branch)).transpose()?;
        Ok(Workspace { tree, ..self })
    }

    /// Adds the sandbox.
    #[must_use]
    pub fn behind(self, sandbox: Option<Sandbox>) -> Workspace {
        Workspace { sandbox, ..self }
    }
}

/// What to do if another run works in the tree.
const FOR_RUN: &str =
    "`--worktree` gives the run its own tree; `--wait` starts it when the other one has ended";

/// What to do if another run works in a worktree.
const FOR_FOLLOWER: &str = "wait until that has ended";

/// Makes the folder of a run, by which this project knows that the files of the run are here.
pub(crate) fn keep_folder_of_run(home: &StateDir, id: &RunId) -> Result<(), Failure> {
    let folder = home.run(id);
    match home.shared() {
        // With the records in files it is theirs.
        None => Ok(()),
        Some(_) => std::fs::create_dir_all(&folder).map_err(|error| {
            Failure::environment(format!("failed to create `{}`: {error}", folder.display()))
        }),
    }
}

/// Finds the place of a run, or creates a worktree for it. With `waiting`, waits for a run that works in the tree.
///
/// # Errors
/// When a required worktree cannot be created, or git fails.
pub(crate) fn prepare_workspace(
    host: &Host,
    id: &RunId,
    definition: &CompiledDefinition,
    wishes: &RunRequest,
    waiting: Waiting<'_>,
) -> Result<Workspace, Failure> {
    let (home, settings) = (&host.home, &definition.settings.worktree);
    keep_folder_of_run(home, id)?;
    let main = Trees::open(home.root(), &home.trees())?;
    if let Some(place) = wishes.follows.clone().filter(|place| place.owned) {
        let lock = Some(Arc::new(TreeLock::take(home, id, place.follows.as_deref(), FOR_FOLLOWER, None)?));
        let trees = Trees::open(Path::new(&place.work), &home.trees())?;
        let tree = trees.as_ref().map(|trees| state_of(trees, place.branch.as_deref())).transpose()?;
        let main = Some(home.root().to_owned());
        return Ok(Workspace { place, tree, trees, main, sandbox: None, lock, failed_before: Vec::new() });
    }
    if !(wishes.worktree || settings.enabled) {
        let lock = Some(Arc::new(TreeLock::take(home, id, None, FOR_RUN, waiting)?));
        let dirty = main.is_some() && is_dirty(home.root())?;
        let tree = main.as_ref().map(|trees| state_of(trees, None)).transpose()?;
        let (work, folder) = (home.root().display().to_string(), wishes.folder.clone());
        let bounded = host.config.boundary.keeps_to_folder();
        let place = Place { work, dirty, folder, bounded, ..Place::default() };
        return Ok(Workspace {
            place,
            tree,
            trees: main,
            main: None,
            sandbox: None,
            lock,
            failed_before: Vec::new(),
        });
    }
    if main.is_none() {
        return Err(Failure::usage(
            "the run needs a worktree, but this folder is not in a git repository",
            "run `git init` and commit, or run without a worktree",
        ));
    }
    let folder = worktrees_of(home, settings.root.as_deref().map(Path::new), &host.config);
    let branch = branch_of(id);
    RunWriter::claim_lease(&*host.journal, id, now_ms())?;
    let lock = Some(Arc::new(TreeLock::take(home, id, Some(id.as_str()), FOR_FOLLOWER, None)?));
    let made = branch_worktree::create_worktree(home.root(), &folder.join(id.as_str()), &branch, None)?;
    let folder = wishes.folder.clone();
    if let Some(missing) = folder.as_ref().filter(|folder| !made.path.join(folder).is_dir()) {
        branch_worktree::remove_worktree(home.root(), &made.path, &branch, &format!("refs/{branch}"))?;
        return Err(Failure::usage(
            format!("the folder `{missing}` is not in the commit that the worktree starts from"),
            "commit it first, or run without a worktree",
        ));
    }
    let dirty = is_dirty(home.root())?;
    let trees = Trees::open(&made.path, &home.trees())?;
    let tree = trees.as_ref().map(|trees| state_of(trees, Some(&branch))).transpose()?;
    let work = std::fs::canonicalize(&made.path).unwrap_or(made.path).display().to_string();
    let base = branch_worktree::current_branch(home.root())?;
    let bounded = host.config.boundary.keeps_to_folder();
    let branch = Some(made.branch);
    let place = Place { work, owned: true, branch, base, dirty, folder, bounded, ..Place::default() };
    let main = Some(home.root().to_owned());
    Ok(Workspace { place, tree, trees, main, sandbox: None, lock, failed_before: Vec::new() })
}

/// The folder where agents and commands of a run start. `work` is the top of its working tree.
pub(crate) fn folder_of(work: &Path, place: &Place) -> PathBuf {
    place.folder.as_ref().map_or_else(|| work.to_owned(), |folder| work.join(folder))
}

/// The folder of worktrees: that of the definition, of the configuration, or the default.
pub(crate) fn worktrees_of(home: &StateDir, root: Option<&Path>, config: &Config) -> PathBuf {
    match root.or(config.worktree.root.as_deref()) {
        Some(root) => home.root().join(root),
        None => home.worktrees(),
    }
}

/// Checks that a given task is not empty and that every parameter that a prompt reads has a value, which may be empty.
///
/// # Errors
/// With what is missing.
pub fn nothing_missing(flow: &Flow, wishes: &RunRequest) -> Result<(), Failure> {
    if wishes.task.as_ref().is_some_and(|task| task.trim().is_empty()) {
        return Err(Failure::usage("the task is empty", "describe what to do; nothing was started"));
    }
    for (_, part) in flow.verdict.places() {
        let Verdict::Poll(poll) = part else { continue };
        let (what, hint) = match poll.resource {
            Resource::Issue => ("an issue", "give it with `--issue NUMBER`".to_owned()),
            Resource::Project => ("a project", format!("give it with `--set {}=NUMBER`", poll.param)),
            Resource::File | Resource::Api => continue,
        };
        if !wishes.params.contains_key(&*poll.param) {
            return Err(Failure::usage(format!("the verdict polls {what}, and no number is given"), hint));
        }
    }
    for step in &flow.steps {
        let Act::Ask(ask) = &step.act else { continue };
        let system = ask.system.iter().flat_map(|system| system.sources());
        for source in ask.prompt.sources().into_iter().chain(system) {
            let Source::Param(name) = source else { continue };
            let declared = flow.params.iter().any(|param| param.name == *name);
            if declared && !wishes.params.contains_key(&**name) {
                let hint = match cuegate_formats::ISSUE_TEXTS.contains(&&**name) {
                    true => "give the issue with `--issue NUMBER`".to_owned(),
                    false => format!("set it with `--set {name}=VALUE`; the value may be empty"),
                };
                return Err(Failure::usage(
                    format!("the prompt of `{}` reads parameter `{name}`, which has no value", step.name),
                    hint,
                ));
            }
        }
    }
    Ok(())
}

/// Checks that a run in `root`, or in its own worktree, can read every file that its verdict polls.
///
/// # Errors
/// With the parameter that names an unreadable file, and the reason.
pub fn nothing_out_of_sight(
    root: &Path,
    flow: &Flow,
    wishes: &RunRequest,
    worktree: bool,
) -> Result<(), Failure> {
    for (_, part) in flow.verdict.places() {
        let Verdict::Poll(poll) = part else { continue };
        let Some(value) = wishes.params.get(&*poll.param).filter(|_| poll.resource == Resource::File) else {
            continue;
        };
        let why = match cuegate_runner::check_polled_path(value, root) {
            Ok(()) if worktree && Path::new(value).is_absolute() => {
                "is in the project, but the run works in its own worktree"
            }
            Ok(()) => continue,
            Err(why) => why,
        };
        return Err(Failure::usage(
            format!("the verdict waits for the file `{value}`, which {why}"),
            format!("set `{}` to a path relative to the project folder, such as `out/done`", poll.param),
        ));
    }
    Ok(())
}

/// Starts a run and writes its first record.
///
/// # Errors
/// When the journal or this machine fails.
pub fn prepare_new_run(
    host: &Host,
    id: &RunId,
    location: &Location,
    definition: &CompiledDefinition,
    ground: Workspace,
    agents: RunAgents,
    wishes: &RunRequest,
) -> Result<PreparedRun, Failure> {
    let Host { home, journal, config, .. } = host;
    let flow = definition
        .flow
        .clone()
        .ok_or_else(|| Failure::usage("the definition has errors", "see `cuegate check`"))?;
    if definition.files.is_empty() {
        let hint = "this is a bug of cuegate: please report it";
        return Err(Failure::usage("the files of the definition were not recorded", hint));
    }
    let mut texts: Vec<Vec<u8>> = Vec::new();
    let mut keep = |bytes: &[u8]| {
        texts.push(bytes.to_vec());
        BlobRef::for_bytes(bytes)
    };
    let sources = definition
        .files
        .iter()
        .map(|(path, bytes)| SourceBlob { path: path.clone(), blob: keep(bytes) })
        .collect();
    let params: BTreeMap<Str, BlobRef> =
        wishes.params.iter().map(|(name, value)| (name.as_str().into(), keep(value.as_bytes()))).collect();
    let settings = Some(keep(config.source.as_bytes()));
    let task = wishes.task.as_ref().map(|task| keep(task.as_bytes()));
    let script = wishes
        .script
        .as_ref()
        .map(|(path, text)| SourceBlob { path: path.clone(), blob: keep(text.as_bytes()) });
    let iterations_max = wishes.iterations_max.unwrap_or(flow.limits.iterations_max);
    let repairs_max = wishes.repairs_max.unwrap_or(REPAIRS_MAX);
    let price = cuegate_flow::analysis::cost_bound::price_without_sensitivity(
        &flow,
        &Terms { iterations_max, repairs_max, ..Terms::default() },
    );
    let finalize = finalize_of(definition, wishes);
    let started = RunStarted {
        key: wishes.key.clone(),
        finalize: (finalize != FinalizePlan::default() && ground.place.owned).then_some(finalize),
        github: wishes.github.as_ref().map(|connected| connected.target.clone()),
        failed_before: ground.failed_before.clone(),
        hidden: wishes.hidden,
        program: env!("CARGO_PKG_VERSION").to_owned(),
        flow: flow.name.clone(),
        dialect: flow.dialect.to_owned(),
        path: wishes.path.clone(),
        base: location.base.clone(),
        file: location.file.clone(),
        sources,
        fence_key: FenceKey::new(random_token()),
        params,
        task,
        set: wishes.set.clone(),
        provider: wishes.agent.agent.clone(),
        model: wishes.agent.model.clone(),
        agents: agents.plan().clone(),
        script,
        iterations_max,
        repairs_max,
        same_answers_max: config.run.same_answers_max,
        same_files_max: config.run.same_files_max,
        wait_max_ms: wishes.wait_max_ms,
        poll_interval_ms: config.verdict.poll_interval.map(milliseconds_of_duration),
        budget: wishes.budget,
        notional: agents.is_notional(),
        load: wishes.load.clone(),
        sandboxed: ground.sandbox.is_some(),
        settings,
        programs: locate_programs(&agents, ground.sandbox.as_ref()),
        asks_max: price.asks_max(),
        report_dir: reads_report_dir(&flow).then(|| home.reports(id).display().to_string().into()),
        review_base: match reads_fact(&flow, Fact::ReviewScope) {
            true => find_review_base(home.root()).map_err(cuegate_runner::Error::from)?.map(Into::into),
            false => None,
        },
        place: ground.place.clone(),
        machine: find_machine(home)?,
        tree: ground.tree,
    };
    sign_new_run(host, id, &started)?;
    let packer = create_packer(home, ground.trees.as_ref(), started.tree.as_ref(), None);
    let (book, entry) = RunWriter::begin(journal.clone(), id, flow, Start { started }, texts, packer)?;
    let client = wishes.github.as_ref().map(|connected| Ok(connected.client.clone()));
    let effects = effect_plan(host, book.run().started(), book.flow(), id, client);
    let (tell, heard) = mpsc::channel(256);
    let work = PathBuf::from(&ground.place.work);
    let setting = ExecutorSettings {
        trees: ground.trees,
        main: ground.main,
        sandbox: ground.sandbox,
        ..build_executor_settings(host, &book, agents, work, effects, tell)
    };
    let log = match &definition.settings.log {
        Some(rule) => Some(LogFile::open(home.root(), rule, id, &**journal, &[])?),
        None => None,
    };
    Ok(PreparedRun {
        book,
        setting,
        heard,
        log,
        lock: ground.lock,
        otel: config.otel.clone(),
        before: Vec::new(),
        entries: vec![entry],
        permission: None,
    })
}

/// The files of a definition and the settings, relative to the project.
pub(crate) fn sealed_files_of_run(started: &RunStarted) -> Vec<PathBuf> {
    sealed_files(started.sources.iter().map(|source| source.path.as_str()))
}

/// These files of a definition, and the settings.
pub(crate) fn sealed_files<'f>(files: impl Iterator<Item = &'f str>) -> Vec<PathBuf> {
    files.chain(SETTINGS_FILES).map(PathBuf::from).collect()
}

/// The programs that Cuegate starts itself, with their paths.
fn locate_programs(agents: &RunAgents, sandbox: Option<&Sandbox>) -> BTreeMap<String, String> {
    let located = ["git", "sh"].map(|name| Some((name, locate_program(name)?.display().to_string())));
    let bwrap = sandbox.and_then(Sandbox::bwrap_program).map(|bwrap| ("bwrap", bwrap.display().to_string()));
    let all = located.into_iter().chain([bwrap]).flatten();
    all.map(|(name, path)| (name.to_owned(), path)).chain(agents.programs()).collect()
}

fn milliseconds_of_duration(span: Duration) -> u64 {
    u64::try_from(span.as_millis()).unwrap_or(u64::MAX)
}

/// Whether a prompt contains the report folder. If none does, the journal records do not depend on the project's path.
pub(crate) fn reads_report_dir(flow: &Flow) -> bool {
    reads_fact(flow, Fact::ReportDir)
}

/// Whether a prompt contains a fact.
fn reads_fact(flow: &Flow, fact: Fact) -> bool {
    let wanted = Source::Fact(fact);
    flow.steps.iter().any(|step| {
        let remedies = step.edges.iter().filter_map(|edge| edge.remedy.as_ref());
        let asks = match &step.act {
            Act::Ask(ask) => ask.reports.iter().map(|report| &report.request).chain([&ask.prompt]).collect(),
            _ => Vec::new(),
        };
        asks.into_iter().chain(remedies).any(|prompt| prompt.sources().contains(&&wanted))
    })
}

impl PreparedRun {
    /// The state of the run.
    pub fn run(&self) -> &Run {
        self.book.run()
    }

    pub(crate) fn journal(&self) -> Arc<dyn Journal> {
        self.book.journal().clone()
    }

    /// The run's id.
    pub fn id(&self) -> &RunId {
        self.book.id()
    }

    /// Drives the run until it ends or suspends.
    ///
    /// # Errors
    /// When the journal or this machine fails; the run can be resumed from its last record.
    pub async fn drive(
        mut self,
        stop: impl Into<StopRequests>,
        tell: &mut (dyn FnMut(Notice<'_>) + Send),
    ) -> Result<DrivenRun, Failure> {
        let (mut log, journal) = (self.log.take(), self.book.journal().clone());
        let _lock = self.lock.take();
        let run = self.setting.run.clone();
        let started_ms = self.before.first().or(self.entries.first()).map_or(0, |first| first.at_ms);
        let trace = Trace::new(&run, started_ms);
        let mut telemetry = Telemetry::begin(&self.otel, &run, &trace, &self.before);
        self.setting.trace = telemetry.is_some().then_some(trace);
        let mut tell = |notice: Notice<'_>| {
            if let Notice::Record(entry) = &notice {
                if let Some(log) = &mut log {
                    log.write(&*journal, entry);
                }
                if let Some(telemetry) = &mut telemetry {
                    telemetry.record(entry);
                }
            }
            tell(notice);
        };
        for entry in &self.entries {
            tell(Notice::Record(entry));
        }
        let performer = Arc::new(LocalExecutor::new(self.setting));
        let driven = drive_run(&mut self.book, &performer, self.heard, stop.into(), &mut tell).await;
        let unsent = telemetry.and_then(Telemetry::end).map(|why| format!("telemetry was not sent: {why}"));
        driven?;
        let trouble = log.as_ref().and_then(LogFile::trouble).map(str::to_owned).or(unsent);
        Ok(DrivenRun { run: self.book.run().clone(), trouble })
    }
}
