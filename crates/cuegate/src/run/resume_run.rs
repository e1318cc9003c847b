//! Resumes runs, and inspects runs without an owner.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    sync::Arc,
    time::{Duration, SystemTime},
};

use cuegate_engine::{
    AgentChoice, Budget, Command, Event, ResumeSettings, Retry, Run, RunStarted, SourceBlob, State,
    TreeChange, WaitKind, list_pending_commands,
};
use cuegate_flow::{
    Str,
    diagnostics::find_nearest_name,
    model::{BlobRef, Conduct, Flow, Limits, StepId, Verdict},
};
use cuegate_formats::RunSettings;
use cuegate_journal::{Journal, RunId, RunSummary};
use cuegate_runner::{
    Entry, ExecutorMessage, ExecutorSettings, FormerProviders, RunWriter, StateDir, process, put_back,
    read_stored_text,
    sandbox::{Sandbox, remove_git_redirects},
    state_of, worktree,
    worktree::{AgentGit, GitFolderReach, StopFlag, Trees, same_repository},
};
use tokio::sync::mpsc;

use super::adopted_workflow::AdoptedWorkflow;
use super::executor_settings::build_executor_settings;
use super::logfile::LogFile;
use super::moved_run::{bring_here, create_packer, describe_lost_commands, is_elsewhere};
use super::resumed_agents::plan_of_resumed_run;
use super::rights;
use super::sandbox_setup::SandboxAtStart;
use super::start_run::{Host, PreparedRun, Program, reads_report_dir, worktrees_of};
use super::tree_lock::TreeLock;
use super::{leftovers, sandbox_setup};
use crate::agents::{AgentQuery, RunAgents};
use crate::config::AgentAssignment;
use crate::config::Config;
use crate::definition::KeptFiles;
use crate::github::{effect_plan, reconnect_run};
use crate::{Failure, definition, project, providers};

/// The options of `resume`; `None` keeps the earlier value.
#[derive(Debug, Clone, Default)]
pub struct ResumeRequest {
    /// A new iteration limit.
    pub iterations_max: Option<u32>,
    /// A new limit of repairs per answer.
    pub repairs_max: Option<u32>,
    /// A new usual agent, and what steps in for it; empty: as before.
    pub agents: Vec<AgentChoice>,
    /// New agents of roles.
    pub(crate) roles: Vec<AgentAssignment>,
    /// The path and content of a new script.
    pub script: Option<(String, String)>,
    /// A new model for all asks.
    pub model: Option<String>,
    /// The longest wait for a provider limit, in milliseconds.
    pub wait_max_ms: Option<u64>,
    /// The limits that it sets replace the earlier ones.
    pub budget: Budget,
    /// Whether the run keeps the configuration of the host from now on, in place of its own.
    pub adopts_settings: bool,
    /// Whether all conversations are started anew.
    pub new_sessions: bool,
    /// Whether to continue without the sandbox that the run was started in.
    pub unsandboxed: bool,
    /// Continues a run that failed or was aborted: the step to enter, and what a person adds to its prompt.
    pub retry: Option<(Option<String>, Option<String>)>,
    /// The edited workflow with which the run goes on.
    pub workflow: Option<AdoptedWorkflow>,
}

/// The run that made the worktree in which this one works; `None` in the tree of the project.
pub(crate) fn tree_owner(id: &RunId, started: &RunStarted) -> Option<String> {
    let place = &started.place;
    place.owned.then(|| place.follows.clone().unwrap_or_else(|| id.to_string()))
}

/// Loads the flow of a run from the files in its journal.
///
/// # Errors
/// When the journal lacks a file, or this version rejects the definition.
pub fn reload_flow(journal: &dyn Journal, id: &RunId, run: &Run) -> Result<Arc<Flow>, Failure> {
    Ok(reload_with(journal, id, run)?.0)
}

/// As [`reload_flow`], with the settings for the runner.
pub(super) fn reload_with(
    journal: &dyn Journal,
    id: &RunId,
    run: &Run,
) -> Result<(Arc<Flow>, RunSettings), Failure> {
    load_recorded_definition(journal, id, run.started())
}

/// The flow that a run was started with.
///
/// # Errors
/// As [`reload_flow`].
pub(crate) fn reload_recorded_flow(
    journal: &dyn Journal,
    id: &RunId,
    started: &RunStarted,
) -> Result<Arc<Flow>, Failure> {
    Ok(load_recorded_definition(journal, id, started)?.0)
}

/// The flow that a run was started with, and the settings for the runner.
///
/// # Errors
/// As [`reload_flow`].
pub(super) fn load_recorded_definition(
    journal: &dyn Journal,
    id: &RunId,
    started: &RunStarted,
) -> Result<(Arc<Flow>, RunSettings), Failure> {
    let files = KeptFiles::new(
        journal,
        id,
        started.sources.iter().map(|kept| (kept.path.clone(), kept.blob.clone())),
    );
    let loaded = definition::compile_definition(
        &files,
        &started.base,
        started.file.as_deref(),
        &started.set,
        &started.load,
    );
    let settings = loaded.settings.clone();
    let flow = loaded.flow.ok_or_else(|| {
        let first =
            loaded.diagnostics.first().map(|finding| format!(": {}", finding.message)).unwrap_or_default();
        Failure {
            message: format!(
                "this version of cuegate rejects the definition that the run was started with{first}"
            ),
            hint: Some(format!("resume it with cuegate {}", started.program)),
            code: crate::exit::ENVIRONMENT,
        }
    })?;
    Ok((flow, settings))
}

/// Creates the providers used before this resume, to read the output of their interrupted asks.
fn former_providers(
    started: &RunStarted,
    script: Option<(String, String)>,
    program: &Program,
    config: &Config,
) -> FormerProviders {
    let (program, config) = (program.clone(), config.clone());
    let scripted = started.provider == "scripted";
    Box::new(move |name| {
        // Only the scripted provider itself tracks its position in the script. After a switch to another provider, its
        // interrupted asks are repeated.
        if name == "scripted" && !scripted {
            return None;
        }
        providers::create_provider(name, script.as_ref(), &program, &config).ok()
    })
}

/// A flow without steps, for operations that need no flow.
pub fn no_flow() -> Arc<Flow> {
    Arc::new(Flow {
        name: "".into(),
        dialect: "",
        entry: StepId(0),
        lost_entry: None,
        steps: Vec::new(),
        schemas: Vec::new(),
        counters: Vec::new(),
        monitors: Vec::new(),
        proofs: Vec::new(),
        verdict: Verdict::Flow,
        limits: Limits::new(0),
        default_model: None,
        params: Vec::new(),
        conduct: Conduct::default(),
        keys: Vec::new(),
    })
}

/// The worktree of a run without an owner, and its differences to the last recorded tree. `None` without git, or if the
/// folder no longer exists.
///
/// # Errors
/// When git fails.
pub fn tree_change_of_run(home: &StateDir, id: &RunId, run: &Run) -> Result<Option<TreeChange>, Failure> {
    let place = &run.started().place;
    let work = if place.owned { Path::new(&place.work) } else { home.root() };
    seen_in(work, home, id, run)
}

fn seen_in(work: &Path, home: &StateDir, id: &RunId, run: &Run) -> Result<Option<TreeChange>, Failure> {
    let Some(before) = run.tree.as_ref().filter(|_| work.is_dir()) else { return Ok(None) };
    let Some(trees) = Trees::open(work, &home.trees())? else { return Ok(None) };
    // Gates that ran on another base when they were killed left its files.
    let kept = cuegate_runner::undo_proofs(&trees, home, id)?;
    let gap = |kept| format!("what was changed while the gates ran again is kept as `{kept}`");
    let tree = state_of(&trees, run.started().place.branch.as_deref())?;
    let changed = trees.changes(&before.tree, &tree.tree)?.into_iter().map(|change| change.path).collect();
    Ok(Some(TreeChange { tree, changed, gaps: kept.into_iter().map(gap).collect(), ..TreeChange::default() }))
}

/// The newest run that followed this one in its worktree. Resuming an earlier run would put the worktree back to the
/// state that its own journal knows.
///
/// # Errors
/// When the journal cannot be read.
pub(crate) fn later_run(journal: &dyn Journal, id: &RunId, run: &Run) -> Result<Option<RunId>, Failure> {
    let place = &run.started().place;
    if !place.owned {
        return Ok(None);
    }
    let first = place.follows.as_deref().unwrap_or(id.as_str());
    Ok(newest_in_worktrees(journal, journal.runs()?)?.remove(first).filter(|newest| newest != id))
}

/// The newest of the runs that follow another one in its worktree, by the run that made the worktree.
///
/// # Errors
/// When the journal cannot be read.
pub(crate) fn newest_in_worktrees(
    journal: &dyn Journal,
    mut all: Vec<RunSummary>,
) -> Result<BTreeMap<String, RunId>, Failure> {
    let mut newest = BTreeMap::new();
    all.sort_by_key(|known| known.created_at_ms);
    for known in all.into_iter().filter(|known| known.has_records && known.damage.is_none()) {
        let first = cuegate_runner::read_first_record(journal, &known.run)?;
        if let Some(Event::RunStarted(started)) = first.as_ref().and_then(|first| first.events.first())
            && started.place.follows.is_some()
            // A fork begins with the records of another run, and follows nobody.
            && let Some(first) = cuegate_runner::read_run(journal, &known.run)?.started().place.follows.clone()
        {
            newest.insert(first, known.run);
        }
    }
    Ok(newest)
}

/// Prepares a run to continue from its last record.
///
/// # Errors
/// When another process drives it, or the provider, the journal or this machine fails.
pub fn prepare_resumed_run(host: &Host, id: &RunId, again: &ResumeRequest) -> Result<PreparedRun, Failure> {
    let Host { home, journal, program, config } = host;
    project::wait_for_release(&**journal, id)?;
    let entries = cuegate_runner::read_records(&**journal, id)?;
    let run = Run::fold(entries.iter().map(|entry| entry.events.as_slice()));
    let (recorded, settings) = reload_with(&**journal, id, &run)?;
    let (flow, settings) = match &again.workflow {
        Some(adopted) => {
            let retry = again.retry.as_ref().map(|(from, _)| from.as_deref());
            adopted.check(id, &run, &recorded, retry)?;
            (adopted.flow.clone(), adopted.settings.clone())
        }
        None => (recorded, settings),
    };
    if let Some(node) = &run.progress.node
        && flow.find(&node.step).is_none()
    {
        return Err(Failure {
            message: format!(
                "this version of cuegate finds no step `{}` in the definition that the run was started with",
                node.step
            ),
            hint: Some(format!("resume it with cuegate {}", run.started().program)),
            code: crate::exit::ENVIRONMENT,
        });
    }
    if let Some((Some(from), _)) = &again.retry {
        check_step(&flow, from)?;
    }
    if let Some(later) = later_run(&**journal, id, &run)? {
        return Err(Failure::usage(
            format!("run {later} continued the work of run {id} in its worktree"),
            format!("`cuegate instruct {later} \"…\"` continues from there"),
        ));
    }
    let mut book = RunWriter::reopen(journal.clone(), id, flow)?;
    let made_by = tree_owner(id, book.run().started());
    let hint = "continue this one when that one has ended";
    let lock = Some(Arc::new(TreeLock::take(home, id, made_by.as_deref(), hint, None)?));
    let started = book.run().started().clone();
    let wanted = again.agents.first();
    let name = wanted.map_or_else(|| started.provider.clone(), |wanted| wanted.agent.clone());
    let script = match (&again.script, &started.script) {
        (Some(script), _) => Some(script.clone()),
        (None, Some(kept)) => Some((kept.path.clone(), read_stored_text(&**journal, id, &kept.blob)?)),
        (None, None) => None,
    };
    // Model names are specific to a provider.
    let model = again.model.clone().or_else(|| wanted?.model.clone());
    let model = model.or_else(|| started.model.clone().filter(|_| name == started.provider));
    let is_own = rights::are_rights_own(home, id, &started);
    let plan = plan_of_resumed_run(book.flow(), &started, again, home.root(), is_own, config)?;
    let budget = book.run().spending.ledger.budget.with(again.budget);
    let agents = RunAgents::find(&AgentQuery {
        usual: AgentChoice { agent: name, model, effort: plan.effort.clone() },
        plan: &plan,
        script: script.as_ref(),
        flow: book.flow(),
        budget: &budget,
        program,
        config,
    })?;
    // A run that was started without a sandbox continues without one, and never the other way round by itself.
    let unsandboxed = again.unsandboxed || (is_own && !started.sandboxed);
    let before = match (started.sandboxed, started.programs.contains_key("bwrap")) {
        _ if !is_own => SandboxAtStart::Unknown,
        (false, _) => SandboxAtStart::None,
        (true, false) => SandboxAtStart::Partial,
        (true, true) => SandboxAtStart::Full,
    };
    let run_sandbox = sandbox_setup::create_run_sandbox(book.flow(), unsandboxed, before, program, config)?;
    if !is_own && !again.unsandboxed && run_sandbox.sandbox().is_none() {
        return Err(Failure::usage(
            format!(
                "nothing shows that run {id} was started by you in this folder, and its definition turns the sandbox off"
            ),
            format!("read it (`cuegate show`), then `cuegate resume {id} --no-sandbox`"),
        ));
    }
    let sandbox = run_sandbox.sandbox().cloned();
    // Before anybody asks to which repository the worktree belongs.
    AgentGit::restore_name(home.root(), &home.git(id)).map_err(cuegate_runner::Error::from)?;
    if !is_own {
        AgentGit::put_foreign_aside(&home.git(id)).map_err(cuegate_runner::Error::from)?;
    }
    let arrival = match is_elsewhere(home, id, &started)? {
        true => {
            let reads_reports = reads_report_dir(book.flow());
            Some(bring_here(host, &book, &settings, reads_reports)?)
        }
        false => None,
    };
    let work = work_of(home, id, &started, &settings, config)?;
    if started.sandboxed {
        remove_git_redirects(&work);
    }
    let trees =
        if work.is_dir() { Trees::open(&work, &home.trees())? } else { return Err(missing_folder(&work)) };
    book.set_packer(create_packer(home, trees.as_ref(), started.tree.as_ref(), book.run().tree.as_ref()));
    if trees.is_none() && started.tree.is_some() {
        return Err(Failure {
            message: format!(
                "`{}` is no longer in a git repository, or git is not installed",
                work.display()
            ),
            hint: Some("restore `.git`: without it nobody can tell what agents change".to_owned()),
            code: crate::exit::ENVIRONMENT,
        });
    }
    // A resume that was killed as well may not have cleaned up after the kill before it.
    let works = |entry: &&Entry| !entry.events.iter().all(|event| matches!(event, Event::Resumed { .. }));
    let last = entries.iter().rev().find(works).and_then(|entry| u64::try_from(entry.at_ms).ok());
    let last = SystemTime::UNIX_EPOCH + Duration::from_millis(last.unwrap_or_default());
    let left = take_over_git(home, id, trees.as_ref(), sandbox.as_ref(), last)?;
    let mut found = seen_in(&work, home, id, book.run())?;
    if let Some(found) = &mut found {
        found.left_in_git = left;
    }
    // An interrupted ask may have left partial edits. In other suspended states no ask was running.
    let interrupted = matches!(&book.run().state, State::Running)
        || matches!(&book.run().state, State::Suspended(waiting) if waiting.kind == WaitKind::Interrupted);
    // The clock may have been set back since.
    let suspect = interrupted.then_some(last.min(SystemTime::now()));
    let mut notes = cuegate_runner::sandbox::put_aside_kept_out(home.dir());
    let (moved, lost) = match arrival {
        Some(arrival) => {
            notes.extend(arrival.notes);
            let last_ms = entries.last().map_or(0, |entry| entry.at_ms);
            (Some(Box::new(arrival.moved)), describe_lost_commands(&book, last_ms))
        }
        None => (None, Vec::new()),
    };
    let kept = match (suspect, &trees) {
        (Some(last), Some(trees)) if started.place.owned && moved.is_none() => {
            keep_changes_of_user(home, id, trees, book.run(), last, &mut notes)?
        }
        _ => None,
    };
    let mut texts = Vec::new();
    let new_script = again.script.as_ref().map(|(path, text)| {
        texts.push(text.as_bytes().to_vec());
        SourceBlob { path: path.clone(), blob: BlobRef::for_bytes(text.as_bytes()) }
    });
    let retry = again.retry.as_ref().map(|(from, note)| Retry {
        from: from.as_deref().map(Str::from),
        note: note.as_ref().map(|note| {
            texts.push(note.as_bytes().to_vec());
            BlobRef::for_bytes(note.as_bytes())
        }),
    });
    texts.extend(again.workflow.iter().flat_map(|adopted| adopted.texts.clone()));
    let entry = book.resume(
        ResumeSettings {
            retry,
            definition: again.workflow.as_ref().map(|adopted| Box::new(adopted.definition.clone())),
            iterations_max: again.iterations_max,
            repairs_max: again.repairs_max,
            provider: wanted.map(|wanted| wanted.agent.clone()),
            script: new_script,
            model: again.model.clone().or_else(|| wanted?.model.clone()),
            agents: Some(plan).filter(|plan| *plan != started.agents),
            wait_max_ms: again.wait_max_ms.filter(|wait| *wait != started.wait_max_ms),
            notional: Some(agents.is_notional()).filter(|notional| *notional != started.notional),
            budget: again.budget.limits().then_some(again.budget),
            unsandboxed: again.unsandboxed && started.sandboxed,
            new_sessions: again.new_sessions,
            moved,
            lost,
            settings: again.adopts_settings.then(|| {
                texts.push(config.source.as_bytes().to_vec());
                BlobRef::for_bytes(config.source.as_bytes())
            }),
            found,
            kept,
        },
        texts,
    )?;
    let started = book.run().started().clone();
    if is_own {
        // What it may do has perhaps changed.
        let _ = rights::sign_rights(home, id, &started);
    }
    let dir_of = |command: Command| home.command(id, command.id());
    let pending: Vec<PathBuf> =
        list_pending_commands(book.flow(), book.run()).into_iter().map(dir_of).collect();
    leftovers::remove_commands(home, id, &pending);
    leftovers::remove_leftovers(home, &**journal);
    let former = former_providers(&started, script.clone(), program, config);
    let journaled = entries.iter().chain(&entry).map(|entry| entry.events.as_slice());
    agents.restore(journaled);
    let (tell, heard) = mpsc::channel(256);
    for note in notes {
        let _ = tell.try_send(ExecutorMessage::Warning(note));
    }
    let effects = effect_plan(host, &started, book.flow(), id, reconnect_run(&started));
    let setting = ExecutorSettings {
        former,
        trees,
        main: started.place.owned.then(|| home.root().to_owned()),
        suspect,
        sandbox,
        ..build_executor_settings(host, &book, agents, work, effects, tell)
    };
    let log = match &settings.log {
        Some(rule) => Some(LogFile::open(home.root(), rule, id, &**journal, &entries)?),
        None => None,
    };
    let otel = config.otel.clone();
    let permission = sandbox_setup::describe_permission(book.flow(), &run_sandbox, config);
    Ok(PreparedRun {
        book,
        setting,
        heard,
        log,
        lock,
        otel,
        before: entries,
        entries: entry.into_iter().collect(),
        permission: Some(permission),
    })
}

/// Takes over the commits of agents of an earlier process, which a kill may have prevented. Returns what stays in their
/// git folder.
fn take_over_git(
    home: &StateDir,
    id: &RunId,
    trees: Option<&Trees>,
    sandbox: Option<&Sandbox>,
    last: SystemTime,
) -> Result<Vec<String>, Failure> {
    let Some(trees) = trees else { return Ok(Vec::new()) };
    // A kill may have hit our own git while it took them over.
    worktree::clear_stale_locks(trees.root(), last).map_err(cuegate_runner::Error::from)?;
    let confinement = sandbox.map(Sandbox::confine_git).unwrap_or_default();
    let mut git = AgentGit::new(trees, &home.git(id), GitFolderReach::Mounted).confined(confinement);
    let taken = git.take_over(&StopFlag::default());
    Ok(taken.map_err(cuegate_runner::Error::from)?.left)
}

/// Keeps what a person changed in the worktree of an interrupted run since its commands ended, and puts the rest back to
/// the last record. Returns the state then; `None` if there is nothing of a person, or nobody noted when the commands ended:
/// then everything is put back, and kept aside, before the next call.
fn keep_changes_of_user(
    home: &StateDir,
    id: &RunId,
    trees: &Trees,
    run: &Run,
    last: SystemTime,
    notes: &mut Vec<String>,
) -> Result<Option<TreeChange>, Failure> {
    const NAMES_MAX: usize = 5;
    let Some(to) = &run.tree else { return Ok(None) };
    let folders = leftovers::list_command_folders(home, id);
    let ended: Option<Vec<SystemTime>> = folders.iter().map(|folder| process::cut_off_at(folder)).collect();
    let Some(ended) = ended.map(|ended| ended.into_iter().max().unwrap_or(last)) else { return Ok(None) };
    let branch = run.started().place.branch.as_deref();
    worktree::clear_stale_locks(trees.root(), last).map_err(cuegate_runner::Error::from)?;
    let is = trees.snapshot()?.tree;
    let kept = trees.changed_after(&to.tree, &is, ended)?;
    if kept.is_empty() {
        return Ok(None);
    }
    notes.extend(put_back(trees, branch, to, &kept)?);
    let mut names: Vec<String> = kept.iter().take(NAMES_MAX).map(|path| format!("`{path}`")).collect();
    if kept.len() > NAMES_MAX {
        names.push(format!("{} more", kept.len() - NAMES_MAX));
    }
    notes.push(format!(
        "changed in the worktree since the interruption, and kept as a part of the work: {}",
        names.join(", ")
    ));
    let tree = state_of(trees, branch)?;
    Ok(Some(TreeChange { tree, changed: kept, ..TreeChange::default() }))
}

/// Checks that a run can continue at this step.
fn check_step(flow: &Flow, name: &str) -> Result<(), Failure> {
    let steps: Vec<&str> = flow.steps.iter().filter(|step| step.counts).map(|step| &*step.name).collect();
    if steps.contains(&name) {
        return Ok(());
    }
    let hint = match find_nearest_name(name, steps.iter().copied()) {
        Some(meant) => format!("did you mean `{meant}`?"),
        None => format!("the steps are {}", steps.join(", ")),
    };
    Err(Failure::usage(format!("the definition has no step `{name}`"), hint))
}

/// The folder that a run works in. A moved or copied project works in its own folders, never in those of the original.
fn work_of(
    home: &StateDir,
    id: &RunId,
    started: &RunStarted,
    settings: &RunSettings,
    config: &Config,
) -> Result<PathBuf, Failure> {
    if !started.place.owned {
        return Ok(home.root().to_owned());
    }
    let folder = worktrees_of(home, settings.worktree.root.as_deref().map(Path::new), config);
    // A run that follows another one works in the worktree of that one.
    let own = folder.join(started.place.follows.as_deref().unwrap_or(id.as_str()));
    let work = if own.is_dir() { own } else { PathBuf::from(&started.place.work) };
    if work.is_dir() && !same_repository(&work, home.root())? {
        return Err(Failure {
            message: format!("the worktree `{}` of the run belongs to another repository", work.display()),
            hint: Some(format!(
                "resume the run in that project; in a copy of it, first run `git worktree repair {}`",
                work.display()
            )),
            code: crate::exit::ENVIRONMENT,
        });
    }
    Ok(std::fs::canonicalize(&work).unwrap_or(work))
}

fn missing_folder(work: &Path) -> Failure {
    Failure {
        message: format!("the working folder `{}` of the run does not exist", work.display()),
        hint: Some(
            "`cuegate diff` and `cuegate apply` still have its changes; a new run continues from them"
                .to_owned(),
        ),
        code: crate::exit::ENVIRONMENT,
    }
}
