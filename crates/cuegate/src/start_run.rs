//! Beginning runs: from a checked definition to a driven book.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use cuegate_engine::{Budget, Load, Place, Run, SourceBlob, Start, Started, TreeState};
use cuegate_flow::{
    Str,
    analysis::cost_bound::Terms,
    model::{Act, BlobRef, Fact, Flow, Resource, Source, Verdict},
};
use cuegate_journal::{Journal, RunId};
use cuegate_runner::{
    Entry, Heard, Local, Notice, RunWriter, Setting, StateDir, drive,
    sandbox::Sandbox,
    state_of,
    worktree::{Trees, branch_worktree, is_dirty},
};
use tokio::sync::{mpsc, watch};

use crate::{
    Agent, Failure,
    config::Config,
    definition::{Definition, Location},
    logfile::LogFile,
};

pub use crate::binary::Program;
pub use crate::resume_run::{Again, no_flow, reload, resume, seen};

/// What runs need of this machine.
#[derive(Clone)]
pub struct Host {
    /// The project's state folder.
    pub home: StateDir,
    /// The journal in it.
    pub journal: Arc<dyn Journal>,
    /// Our own binary.
    pub program: Program,
    /// What is configured for the project and the person.
    pub config: Config,
}

/// What a run is begun with, besides its definition.
#[derive(Debug, Clone, Default)]
pub struct Wishes {
    /// What was typed for the definition.
    pub path: String,
    /// Values by variable name.
    pub params: BTreeMap<String, String>,
    /// Names given from outside: they count as declared.
    pub set: Vec<String>,
    /// The task.
    pub task: Option<String>,
    /// Who is asked.
    pub provider: String,
    /// The script file, by path and content.
    pub script: Option<(String, String)>,
    /// A model for all asks.
    pub model: Option<String>,
    /// Whether to work in a worktree of its own, whatever the definition says.
    pub worktree: bool,
    /// Another limit of iterations.
    pub iterations_max: Option<u32>,
    /// How often a bad answer is asked again.
    pub repairs_max: Option<u32>,
    /// How long a limit of the provider is waited for, in milliseconds.
    pub wait_max_ms: u64,
    /// What the run may use up.
    pub budget: Budget,
    /// How the definition was read.
    pub load: Load,
    /// Whether it runs without the sandbox that the definition demands.
    pub unsandboxed: bool,
}

/// How often a bad answer is asked again when nobody says.
pub const REPAIRS_MAX: u32 = 1;
/// After how long an ask is stopped when nobody says. Agents work for tens of minutes; one that is silent for an hour is
/// lost.
pub(crate) const ASK_TIMEOUT: Duration = Duration::from_secs(60 * 60);

/// A run, ready to be driven.
pub struct Ready {
    pub(crate) book: RunWriter,
    pub(crate) setting: Setting,
    pub(crate) heard: mpsc::Receiver<Heard>,
    /// The log file that the definition wants.
    pub(crate) log: Option<LogFile>,
    /// Records that were written before it was made ready.
    pub before: Vec<Entry>,
    /// Records that were written while it was made ready.
    pub entries: Vec<Entry>,
}

/// A run that was driven.
#[derive(Debug, Clone)]
pub struct Driven {
    /// The state that it was left in.
    pub run: Run,
    /// Why its log file is not whole, if it is not.
    pub trouble: Option<String>,
}

/// Where a run is going to work, before it begins.
#[derive(Debug, Clone)]
pub struct Ground {
    /// The place.
    pub place: Place,
    /// The tree it starts from.
    pub tree: Option<TreeState>,
    trees: Option<Trees>,
    sandbox: Option<Sandbox>,
}

impl Ground {
    /// The same, with this sandbox around what works there.
    #[must_use]
    pub fn behind(self, sandbox: Option<Sandbox>) -> Ground {
        Ground { sandbox, ..self }
    }
}

/// Finds or makes the place that a run works in.
///
/// # Errors
/// When a worktree is wanted and cannot be made, or git fails.
pub fn ground(
    home: &StateDir,
    id: &RunId,
    definition: &Definition,
    wishes: &Wishes,
) -> Result<Ground, Failure> {
    let settings = &definition.settings.worktree;
    let main = Trees::open(home.root(), &home.trees())?;
    if !(wishes.worktree || settings.enabled) {
        let dirty = main.is_some() && is_dirty(home.root())?;
        let tree = main.as_ref().map(state_of).transpose()?;
        let place = Place { work: home.root().display().to_string(), dirty, ..Place::default() };
        return Ok(Ground { place, tree, trees: main, sandbox: None });
    }
    if main.is_none() {
        return Err(Failure::usage(
            "a worktree is wanted, but this folder is in no git repository",
            "run `git init` and commit, or leave out the worktree",
        ));
    }
    let folder = match &settings.root {
        Some(root) => home.root().join(root),
        None => home.worktrees(),
    };
    let branch = format!("cuegate/{id}");
    let made = branch_worktree::add(home.root(), &folder.join(id.as_str()), &branch, None)?;
    let dirty = is_dirty(home.root())?;
    let trees = Trees::open(&made.path, &home.trees())?;
    let tree = trees.as_ref().map(state_of).transpose()?;
    let work = std::fs::canonicalize(&made.path).unwrap_or(made.path).display().to_string();
    let place = Place { work, owned: true, branch: Some(made.branch), dirty };
    Ok(Ground { place, tree, trees, sandbox: None })
}

/// Every value that a prompt on the way can read is there. What is empty is there.
///
/// # Errors
/// When one is not: with its name.
pub fn nothing_missing(flow: &Flow, wishes: &Wishes) -> Result<(), Failure> {
    for step in &flow.steps {
        let Act::Ask(ask) = &step.act else { continue };
        let system = ask.system.iter().flat_map(|system| system.sources());
        for source in ask.prompt.sources().into_iter().chain(system) {
            let Source::Param(name) = source else { continue };
            let declared = flow.params.iter().any(|param| param.name == *name);
            if declared && !wishes.params.contains_key(&**name) {
                return Err(Failure::usage(
                    format!("the prompt of `{}` reads `{name}`, which has no value", step.name),
                    format!("give it with `--set {name}=VALUE`; an empty value is one"),
                ));
            }
        }
    }
    Ok(())
}

/// Every file that the verdict waits for can be looked at, from a run in `root` or in a worktree of its own.
///
/// # Errors
/// When one cannot: with the parameter that names it, and why.
pub fn nothing_out_of_sight(
    root: &Path,
    flow: &Flow,
    wishes: &Wishes,
    worktree: bool,
) -> Result<(), Failure> {
    for (_, part) in flow.verdict.places() {
        let Verdict::Poll(poll) = part else { continue };
        let Some(value) = wishes.params.get(&*poll.param).filter(|_| poll.resource == Resource::File) else {
            continue;
        };
        let why = match cuegate_runner::within(value, root) {
            Ok(()) if worktree && Path::new(value).is_absolute() => {
                "lies in the project, and the run works in a worktree of its own"
            }
            Ok(()) => continue,
            Err(why) => why,
        };
        return Err(Failure::usage(
            format!("the verdict waits for the file `{value}`, which {why}"),
            format!("give `{}` a path from the project's folder, such as `out/done`", poll.param),
        ));
    }
    Ok(())
}

/// Begins a run: its first record is written when this returns.
///
/// # Errors
/// When the journal or this machine refuses.
pub fn begin(
    host: &Host,
    id: &RunId,
    location: &Location,
    definition: &Definition,
    ground: Ground,
    agent: Agent,
    wishes: &Wishes,
) -> Result<Ready, Failure> {
    let Host { home, journal, program, config } = host;
    let flow = definition
        .flow
        .clone()
        .ok_or_else(|| Failure::usage("the definition is not sound", "see `cuegate check`"))?;
    if definition.files.is_empty() {
        let hint = "this is a bug of cuegate: please report it";
        return Err(Failure::usage("the files of the definition were not kept", hint));
    }
    let mut texts: Vec<Vec<u8>> = Vec::new();
    let mut keep = |bytes: &[u8]| {
        texts.push(bytes.to_vec());
        BlobRef::of(bytes)
    };
    let sources = definition
        .files
        .iter()
        .map(|(path, bytes)| SourceBlob { path: path.clone(), blob: keep(bytes) })
        .collect();
    let params: BTreeMap<Str, BlobRef> =
        wishes.params.iter().map(|(name, value)| (name.as_str().into(), keep(value.as_bytes()))).collect();
    let task = wishes.task.as_ref().map(|task| keep(task.as_bytes()));
    let script = wishes
        .script
        .as_ref()
        .map(|(path, text)| SourceBlob { path: path.clone(), blob: keep(text.as_bytes()) });
    let iterations_max = wishes.iterations_max.unwrap_or(flow.limits.iterations_max);
    let repairs_max = wishes.repairs_max.unwrap_or(REPAIRS_MAX);
    let price = cuegate_flow::analysis::cost_bound::bound(
        &flow,
        &Terms { iterations_max, repairs_max, ..Terms::default() },
    );
    let started = Started {
        program: env!("CARGO_PKG_VERSION").to_owned(),
        flow: flow.name.clone(),
        dialect: flow.dialect.to_owned(),
        path: wishes.path.clone(),
        base: location.base.clone(),
        file: location.file.clone(),
        sources,
        params,
        task,
        set: wishes.set.clone(),
        provider: wishes.provider.clone(),
        model: wishes.model.clone(),
        script,
        iterations_max,
        repairs_max,
        wait_max_ms: wishes.wait_max_ms,
        poll_interval_ms: config.verdict.poll_interval.map(millis),
        budget: wishes.budget,
        notional: agent.is_notional(),
        load: wishes.load.clone(),
        unsandboxed: wishes.unsandboxed && flow.conduct.sandbox.is_some(),
        asks_max: price.asks_max(),
        report_dir: reads_report_dir(&flow).then(|| home.reports(id).display().to_string().into()),
        place: ground.place.clone(),
        tree: ground.tree,
    };
    let (book, entry) = RunWriter::begin(journal.clone(), id, flow, Start { started }, texts)?;
    let (tell, heard) = mpsc::channel(256);
    let setting = Setting {
        run: id.clone(),
        home: home.clone(),
        journal: journal.clone(),
        provider: agent.provider,
        model: agent.model,
        models: agent.models,
        default_model: agent.default_model,
        ask_timeout: config.run.ask_timeout.unwrap_or(ASK_TIMEOUT),
        shim: program.shim(),
        work: PathBuf::from(&ground.place.work),
        owned: ground.place.owned,
        branch: ground.place.branch.clone(),
        former: Box::new(|_| None),
        trees: ground.trees,
        suspect: false,
        spares_new_files: config.boundary.spares_new_files(),
        sandbox: ground.sandbox,
        heard: tell,
    };
    let log = match &definition.settings.log {
        Some(rule) => Some(LogFile::open(home.root(), rule, id, &**journal, &[])?),
        None => None,
    };
    Ok(Ready { book, setting, heard, log, before: Vec::new(), entries: vec![entry] })
}

fn millis(span: Duration) -> u64 {
    u64::try_from(span.as_millis()).unwrap_or(u64::MAX)
}

/// Whether agents are told where reports are kept. Where nobody is, records stay the same in every folder.
fn reads_report_dir(flow: &Flow) -> bool {
    let wanted = Source::Fact(Fact::ReportDir);
    flow.steps.iter().any(|step| {
        let remedies = step.edges.iter().filter_map(|edge| edge.remedy.as_ref());
        let asks = match &step.act {
            Act::Ask(ask) => ask.reports.iter().map(|report| &report.request).chain([&ask.prompt]).collect(),
            _ => Vec::new(),
        };
        asks.into_iter().chain(remedies).any(|prompt| prompt.sources().contains(&&wanted))
    })
}

impl Ready {
    /// The state.
    pub fn run(&self) -> &Run {
        self.book.run()
    }

    /// The run's name.
    pub fn id(&self) -> &RunId {
        self.book.id()
    }

    /// Drives it until it ends or waits, and returns the state it was left in.
    ///
    /// # Errors
    /// When the journal or this machine fails; the run stands at its last record.
    pub async fn drive(
        mut self,
        stop: watch::Receiver<bool>,
        tell: &mut (dyn FnMut(Notice<'_>) + Send),
    ) -> Result<Driven, Failure> {
        let (mut log, journal) = (self.log.take(), self.book.journal().clone());
        let mut tell = |notice: Notice<'_>| {
            if let (Some(log), Notice::Record(entry)) = (&mut log, &notice) {
                log.write(&*journal, entry);
            }
            tell(notice);
        };
        for entry in &self.entries {
            tell(Notice::Record(entry));
        }
        let performer = Arc::new(Local::new(self.setting));
        drive(&mut self.book, &performer, self.heard, stop, &mut tell).await?;
        let trouble = log.as_ref().and_then(LogFile::trouble).map(str::to_owned);
        Ok(Driven { run: self.book.run().clone(), trouble })
    }
}
