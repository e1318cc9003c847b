//! `resume`: continues a run that stopped.

use crate::cli::commands::shared_args::{RunRef, parse_agent_chain};
use std::time::Duration;

use cuegate_engine::{
    AdoptedDefinition, AgentChoice, EndState, Run, RunStarted, SourceBlob, State, SuspensionCause, WaitKind,
};
use cuegate_flow::model::BlobRef;
use cuegate_journal::{Journal, Liveness, RunId};
use cuegate_runner::{now_ms, worktree::is_run_tracked};
use cuegate_view::{TimeZone, clean_to_one_line, format_fact_line};

use crate::cli::commands::local_project::LocalProject;
use crate::cli::commands::shared_args::DurabilityChoice;
use crate::cli::commands::shared_args::RunLimits;
use crate::cli::commands::start::{prompt_user, run};
use crate::cli::commands::{ProjectPlace, load_as, sound_flow, tell_end, texts_of_run, view_of};
use crate::cli::print;
use crate::config::{self, AgentAssignment, AgentChain, Config, parse_assignment};
use crate::definition::{CompiledDefinition, StepEdit, describe_step_edits, list_step_edits};
use crate::run::adopted_workflow::AdoptedWorkflow;
use crate::run::resume_run::{reload_flow, tree_owner};
use crate::run::rights::are_rights_own;
use crate::run::start_run;
use crate::run::start_run::{Host, PreparedRun, Program, ResumeRequest};
use crate::run::tree_lock::TreeLock;
use crate::{Failure, exit, project};
use clap::Args;
use std::path::PathBuf;

#[derive(Debug, Args)]
pub(crate) struct ResumeArgs {
    #[command(flatten)]
    pub(crate) run: RunRef,
    #[command(flatten)]
    pub(crate) options: ContinueOptions,
    /// Take the run over from a container or machine that is gone; a process that lives keeps it
    #[arg(long)]
    pub(crate) take_over: bool,
    /// Go on in the background; `cuegate attach` follows it
    #[arg(long)]
    pub(crate) detach: bool,
    /// Belong to no terminal, so that none ends it; `serve` resumes runs so
    #[arg(long, hide = true)]
    pub(crate) background: bool,
    /// The process of `cuegate work` that this run belongs to: it is interrupted when that ends
    #[arg(long, hide = true, value_name = "PID")]
    pub(crate) batch_process: Option<i32>,
}

/// How a run goes on.
#[derive(Debug, Args)]
pub(crate) struct ContinueOptions {
    /// Switch to this agent, or to several that step in for each other, separated by commas
    #[arg(long, value_name = "AGENT", value_parser = parse_agent_chain)]
    pub(crate) provider: Option<AgentChain>,
    /// Switch the calls of a role to this agent, as in `cuegate run`
    #[arg(long = "agent", value_name = "ROLE=AGENT", value_parser = parse_assignment)]
    pub(crate) roles: Vec<AgentAssignment>,
    /// Switch the scripted agent to this script, from its first answer
    #[arg(long, value_name = "FILE")]
    pub(crate) script: Option<PathBuf>,
    /// Switch to this model for all calls
    #[arg(long, value_name = "NAME")]
    pub(crate) model: Option<String>,
    /// Start the agents' conversations anew; their prompts retell what is needed
    #[arg(long)]
    pub(crate) new_session: bool,
    /// Continue without the sandbox that the run was started in
    #[arg(long)]
    pub(crate) no_sandbox: bool,
    /// Go on with this workflow, an edited version of the one that the run was started with
    #[arg(long, value_name = "PATH")]
    pub(crate) flow: Option<String>,
    /// Use the settings of `cuegate.toml` as they are now; otherwise the run keeps those it was started with
    #[arg(long)]
    pub(crate) reload_config: bool,
    /// Wait until the limit of the agent is reset, and wait out further limits, also of hours
    #[arg(long)]
    pub(crate) wait: bool,
    /// The iteration limit, counted from the start of the run
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) max_iterations: Option<u32>,
    /// How often an unusable answer is requested again, 0 to 100
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(..=100))]
    pub(crate) repairs: Option<u32>,
    #[command(flatten)]
    pub(crate) limits: RunLimits,
    /// What every journal record survives
    #[arg(long, value_enum, default_value = "synced")]
    pub(crate) durability: DurabilityChoice,
    /// Print the result as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

pub(in crate::cli::commands) fn resume_stopped_run(
    place: &ProjectPlace,
    args: ResumeArgs,
) -> Result<u8, Failure> {
    continue_run(place, args, None)
}

/// Continues with the same options in a process of its own. Returns when that drives the run, or has refused to.
fn go_on_in_background(place: &ProjectPlace, args: &ResumeArgs, is_retry: bool) -> Result<u8, Failure> {
    let id = project::find_run_id(&place.home, &*place.view()?, &args.run.id)?;
    let project = LocalProject::new(place)?;
    if !is_retry {
        project.goes_on(&id, "resumed")?;
    }
    let own: Vec<String> =
        std::env::args_os().skip(1).map(|word| word.to_string_lossy().into_owned()).collect();
    let end = own.iter().position(|word| word == "--").unwrap_or(own.len());
    let words = own.iter().enumerate().map(|(index, word)| match index < end && word == "--detach" {
        true => "--background",
        false => word.as_str(),
    });
    project.go_on_with(&id, &words.collect::<Vec<_>>())?;
    tell_background(&id, args.options.json);
    Ok(exit::DONE)
}

/// Says where a run goes on.
pub(super) fn tell_background(id: &RunId, json: bool) {
    if json {
        print::print_json(&serde_json::json!({ "schema": "cuegate/detached/v1", "run": id.as_str() }));
    } else {
        print::print_data(id.as_str());
        print::print_line(&format!("follow  cuegate attach {id}"));
    }
}

pub(super) fn continue_run(
    place: &ProjectPlace,
    args: ResumeArgs,
    retry: Option<(Option<String>, Option<String>)>,
) -> Result<u8, Failure> {
    if args.detach {
        return go_on_in_background(place, &args, retry.is_some());
    }
    let ResumeArgs {
        run: typed, options: mut args, take_over: takes_over, background, batch_process, ..
    } = args;
    if background {
        let _ = rustix::process::setsid();
    }
    if let Some(process) = batch_process {
        run::end_with(process)?;
    }
    let journal = project::open_existing(&place.home, run::convert_durability(args.durability))?;
    let id = project::find_run_id(&place.home, &*journal, &typed.id)?;
    let settings = settings_of_run(place, &*journal, &id, args.reload_config)?;
    let EffectiveConfig { config, adopted } = settings;
    if takes_over {
        take_over(place, &*journal, &id)?;
    }
    let workflow = args.flow.as_deref().map(|path| load_edited(place, &*journal, &id, path)).transpose()?;
    if let Some(workflow) = &workflow {
        args.max_iterations = args.max_iterations.or(adopted_limit(&*journal, &id, workflow)?);
    }
    if !cuegate_runner::has_inbox_answer(&*journal, &id)? {
        prompt_user::prompt_and_post_answer(&*journal, &id)?;
    }
    let over = match &retry {
        Some(_) => cannot_retry(&*journal, &id)?,
        None => None,
    };
    if let Some(failure) = over {
        return Err(failure);
    }
    if retry.is_none()
        && let Some(code) = nothing_to_do(&*journal, &id, &args)?
    {
        return Ok(code);
    }
    if args.wait && args.provider.is_none() && args.script.is_none() {
        wait_for_limit(&*journal, &id)?;
    }
    let script = args.script.as_deref().map(run::read_script).transpose()?;
    let again = ResumeRequest {
        iterations_max: args.max_iterations,
        repairs_max: args.repairs,
        agents: match (&args.provider, &script) {
            (Some(chain), _) => chain.0.clone(),
            (None, Some(_)) => vec![AgentChoice::new("scripted")],
            (None, None) => Vec::new(),
        },
        roles: args.roles.clone(),
        script,
        model: args.model.clone(),
        wait_max_ms: Some(match args.wait {
            true => run::WAIT_WITHOUT_END_MS,
            false => run::wait_max_ms(&config, batch_process.is_some()),
        }),
        budget: args.limits.budget(),
        unsandboxed: args.no_sandbox,
        new_sessions: args.new_session,
        adopts_settings: adopted,
        retry,
        workflow,
    };
    let host =
        Host { home: place.home.clone(), journal: journal.clone(), program: Program::current()?, config };
    let said = again.retry.as_ref().is_some_and(|(_, note)| note.is_some());
    let ready = start_run::prepare_resumed_run(&host, &id, &again)?;
    if args.flow.is_none()
        && let Some(note) = describe_edits(place, &*journal, &id, ready.run())
    {
        print::print_line(&note);
    }
    print::print_line(&format!("run {id}: continues"));
    tell_permission(&ready);
    let code = go_on(place, &host, &id, ready, args.json)?;
    if said && has_unsent_note(&*host.journal, &id)? {
        print::print_line("note: no agent was called, so the text of `--say` was not used");
    }
    Ok(code)
}

/// Says what the agents of a run that goes on may do, as its start did.
pub(super) fn tell_permission(ready: &PreparedRun) {
    if let Some(permission) = &ready.permission {
        print::print_line(&format_fact_line("permission", permission));
    }
}

/// The configuration with which a run continues.
pub(in crate::cli::commands) struct EffectiveConfig {
    pub(in crate::cli::commands) config: Config,
    /// Whether it is not the one that the run has kept until now.
    adopted: bool,
}

/// The configuration that a run was started with. That of the files is used only if the user says so: an agent may have
/// changed them, and they name programs, hosts and folders.
pub(in crate::cli::commands) fn settings_of_run(
    place: &ProjectPlace,
    journal: &dyn Journal,
    id: &RunId,
    reload: bool,
) -> Result<EffectiveConfig, Failure> {
    let run = cuegate_runner::read_run(journal, id)?;
    // Where git cannot read its index, nothing goes on either.
    if is_run_tracked(&place.home, id).unwrap_or(false) {
        return Err(Failure::usage(
            format!("run {id} came with the repository: git tracks its folder"),
            "a run goes on only where it was made; start a new one with `cuegate run`",
        ));
    }
    let is_own = are_rights_own(&place.home, id, run.started());
    if !is_own && !reload {
        print::print_line(&format!(
            "note: nothing shows that run {id} was started by you in this folder: its settings, hosts and MCP servers are \
             those of this project, and it goes on in a sandbox unless `--no-sandbox` is given"
        ));
    }
    let reload = reload || !is_own;
    let Some(kept) = &run.started().settings else {
        return Ok(EffectiveConfig { config: config::load_config(place.home.root())?, adopted: true });
    };
    let kept = cuegate_runner::read_stored_text(journal, id, kept)?;
    let now = config::load_config(place.home.root());
    if reload {
        let config = now?;
        let adopted = config.source != kept;
        return Ok(EffectiveConfig { config, adopted });
    }
    if !now.as_ref().is_ok_and(|now| now.source == kept) {
        print::print_line(
            "note: `cuegate.toml` changed since the run started; the run keeps the settings that it started with \
             (`--reload-config` uses the changed ones)",
        );
    }
    Ok(EffectiveConfig { config: config::parse_kept_config(&kept)?, adopted: false })
}

/// Whether the text of `retry --say` is in no prompt yet.
fn has_unsent_note(journal: &dyn Journal, id: &RunId) -> Result<bool, Failure> {
    let run = cuegate_runner::read_run(journal, id)?;
    Ok(matches!(run.context.note, Some((_, false))))
}

/// Loads the workflow with which a run is to go on.
fn load_edited(
    place: &ProjectPlace,
    journal: &dyn Journal,
    id: &RunId,
    path: &str,
) -> Result<AdoptedWorkflow, Failure> {
    let run = cuegate_runner::read_run(journal, id)?;
    let started = run.started();
    let location = place.locate(path)?;
    let definition = load_as(&location, &started.set, &started.load)?;
    let flow = sound_flow(&definition, path)?;
    let CompiledDefinition { settings, files, .. } = definition;
    let kept = files.iter();
    let kept = kept.map(|(path, bytes)| SourceBlob { path: path.clone(), blob: BlobRef::for_bytes(bytes) });
    let definition = AdoptedDefinition {
        path: path.to_owned(),
        base: location.base.clone(),
        file: location.file.clone(),
        sources: kept.collect(),
    };
    Ok(AdoptedWorkflow { flow, settings, definition, texts: files.into_values().collect() })
}

/// The iteration limit of an edited workflow, if the run still has the one of its own workflow.
fn adopted_limit(
    journal: &dyn Journal,
    id: &RunId,
    workflow: &AdoptedWorkflow,
) -> Result<Option<u32>, Failure> {
    let run = cuegate_runner::read_run(journal, id)?;
    let own = reload_flow(journal, id, &run)?.limits.iterations_max;
    let limit = workflow.flow.limits.iterations_max;
    Ok((run.progress.iterations_max == own && limit != own).then_some(limit))
}

/// What was edited in the files of the workflow since the run has them, and whether that would matter from here on.
pub(super) fn describe_edits(
    place: &ProjectPlace,
    journal: &dyn Journal,
    id: &RunId,
    run: &Run,
) -> Option<String> {
    let started = run.started();
    let changed = changed_sources(place, started);
    if changed.is_empty() {
        return None;
    }
    let now =
        place.locate(&started.path).and_then(|location| load_as(&location, &started.set, &started.load));
    let edits = match (now.map(|now| now.flow), reload_flow(journal, id, run)) {
        (Ok(Some(now)), Ok(recorded)) => {
            let at = run.progress.node.as_ref().map(|node| &*node.step);
            let (ahead, behind): (Vec<StepEdit>, Vec<StepEdit>) =
                list_step_edits(&recorded, &now, at).into_iter().partition(|edit| edit.matters);
            let words = |edits: &[StepEdit]| clean_to_one_line(&describe_step_edits(edits).join("; "));
            match (ahead.is_empty(), behind.is_empty()) {
                (true, true) => ", which changes no step".to_owned(),
                (true, false) => format!(": {}; the run does not come there again", words(&behind)),
                (false, true) => format!(": {}", words(&ahead)),
                (false, false) => {
                    format!(": {}; and where the run does not come again: {}", words(&ahead), words(&behind))
                }
            }
        }
        (Ok(None), _) => ", and the workflow has errors now".to_owned(),
        (Err(_), _) | (_, Err(_)) => String::new(),
    };
    Some(format!(
        "note: {} changed since the run started{edits}. The run keeps the workflow that it started with; `cuegate resume \
         {id} --flow {}` would go on with the changed one",
        changed.join(", "),
        clean_to_one_line(&started.path)
    ))
}

/// The files of the definition that are no longer as they were when the run started.
fn changed_sources(place: &ProjectPlace, started: &RunStarted) -> Vec<String> {
    let root = place.home.root();
    let is_changed = |source: &&SourceBlob| {
        match std::fs::read(root.join(&source.path)) {
            Ok(bytes) => BlobRef::for_bytes(&bytes) != source.blob,
            // The files of a built-in workflow are written anew by each run, and those of TAKT are elsewhere.
            Err(error) => error.kind() == std::io::ErrorKind::NotFound && is_of_project(&source.path),
        }
    };
    started
        .sources
        .iter()
        .filter(is_changed)
        .map(|source| format!("`{}`", clean_to_one_line(&source.path)))
        .collect()
}

fn is_of_project(path: &str) -> bool {
    !path.starts_with(".cuegate/") && !path.starts_with(['~', '<', '/'])
}

/// Waits until the limit of the provider is reset. Ctrl-C ends the program; the run stays suspended.
fn wait_for_limit(journal: &dyn Journal, id: &RunId) -> Result<(), Failure> {
    let run = cuegate_runner::read_run(journal, id)?;
    let State::Suspended(SuspensionCause { kind: WaitKind::Quota, until_ms: Some(until), .. }) = run.state
    else {
        return Ok(());
    };
    if until <= now_ms() {
        return Ok(());
    }
    print::print_line(&format!(
        "run {id}: waiting for the agent's limit, which resets {} (Ctrl-C stops waiting, and nothing is lost)",
        cuegate_view::format_future_time(until, now_ms(), &TimeZone::system())
    ));
    // In short steps, because a sleep does not count the time that the machine sleeps.
    while let Ok(left @ 1..) = u64::try_from(until.saturating_sub(now_ms())) {
        std::thread::sleep(Duration::from_millis(left.min(10_000)));
    }
    Ok(())
}

/// Releases the lease of an owner of which this machine cannot tell whether it lives. One that works in the working tree
/// holds the tree's lock, which is visible across containers: it keeps its lease.
fn take_over(place: &ProjectPlace, journal: &dyn Journal, id: &RunId) -> Result<(), Failure> {
    let Some(lease) = journal.holder(id)? else { return Ok(()) };
    match lease.owner.liveness() {
        Liveness::Dead => {}
        Liveness::Alive => {
            return Err(Failure::usage(
                format!("run {id} is held by {}, which lives", lease.owner),
                format!("end that process, or the run with `cuegate cancel {id}`"),
            ));
        }
        Liveness::Unknown => {
            let run = cuegate_runner::read_run(journal, id)?;
            let made_by = tree_owner(id, run.started());
            let hint = format!("it lives in another container; `cuegate cancel {id}` ends it");
            let lock = TreeLock::take(&place.home, id, made_by.as_deref(), &hint, None)?;
            print::print_line(&format!(
                "run {id}: taken over from {}, which cannot be seen from here",
                lease.owner
            ));
            journal.release(&lease)?;
            drop(lock);
        }
    }
    Ok(())
}

/// Drives a run and prints its state afterwards.
pub(in crate::cli::commands) fn go_on(
    place: &ProjectPlace,
    host: &Host,
    id: &RunId,
    ready: PreparedRun,
    json: bool,
) -> Result<u8, Failure> {
    prompt_user::drive_with_prompts(host, id, ready)?;
    tell_end(place, &*host.journal, id, &host.config, json)
}

/// The command that resumes an exhausted run with a higher limit.
fn suggest_higher_limit(journal: &dyn Journal, id: &RunId) -> Result<String, Failure> {
    let view = view_of(journal, id)?;
    Ok(cuegate_view::suggest_continue_commands(&view).into_iter().next().unwrap_or_default())
}

/// Why a run cannot be retried.
fn cannot_retry(journal: &dyn Journal, id: &RunId) -> Result<Option<Failure>, Failure> {
    let run = cuegate_runner::read_run(journal, id)?;
    let resume = format!("`cuegate resume {id}` continues it");
    let (why, hint) = match &run.state {
        State::Ended { state: EndState::Failed | EndState::Aborted, .. } => return Ok(None),
        State::Ended { state: EndState::Completed, .. } => {
            ("is completed", format!("`cuegate instruct {id} \"…\"` continues its work"))
        }
        State::Ended { state: EndState::Cancelled, .. } => ("was cancelled", "start a new run".to_owned()),
        State::Suspended(SuspensionCause { kind: WaitKind::Person, .. }) => {
            ("waits for an answer", format!("`cuegate answer {id} \"…\"` answers it"))
        }
        State::New | State::Running => match journal.holder(id)? {
            Some(lease) if lease.owner.liveness() == Liveness::Alive => {
                ("is running", format!("`cuegate log {id} -f` follows it, `cuegate cancel {id}` ends it"))
            }
            _ => ("has not failed", resume),
        },
        State::Ended { .. } | State::Suspended(_) => ("has not failed", resume),
    };
    Ok(Some(Failure::usage(format!("run {id} {why}"), hint)))
}

/// If the run cannot continue, prints why and returns its exit code.
fn nothing_to_do(journal: &dyn Journal, id: &RunId, args: &ContinueOptions) -> Result<Option<u8>, Failure> {
    let run = cuegate_runner::read_run(journal, id)?;
    let why = match &run.state {
        State::Ended { state: EndState::Exhausted, .. }
            if run.progress.node.is_none()
                && args.max_iterations.unwrap_or(run.progress.iterations_max) <= run.progress.iterations =>
        {
            format!(
                "the limit of {} iterations is reached; raise it: `cuegate resume {id} --max-iterations {}`",
                run.progress.iterations_max,
                run.progress.iterations_max + 10
            )
        }
        State::Ended { state: EndState::Exhausted, hold: None, .. } => {
            match run.spending.ledger.lacks(args.limits.budget()) {
                None => return Ok(None),
                Some(lack) => format!("{lack}; give more: `{}`", suggest_higher_limit(journal, id)?),
            }
        }
        State::Ended { state: EndState::Exhausted, .. } => return Ok(None),
        State::Ended { state: EndState::Failed | EndState::Aborted, reason, .. } => {
            format!("it has ended: {reason}; `cuegate retry {id}` continues it after the cause was fixed")
        }
        State::Ended { reason, .. } => format!("it has ended: {reason}"),
        State::Suspended(waiting)
            if waiting.kind == WaitKind::Person && !cuegate_runner::has_inbox_answer(journal, id)? =>
        {
            format!(
                "it waits for an answer: `cuegate answer {id} \"…\"`; the question is:\n{}",
                waiting.detail.trim()
            )
        }
        State::New | State::Running | State::Suspended(_) => return Ok(None),
    };
    print::print_line(&format!("run {id} cannot continue: {why}"));
    if args.flow.is_some() && matches!(&run.state, State::Suspended(_)) {
        print::print_line(&format!(
            "note: the edited workflow was not adopted; `cuegate answer {id} \"…\" --no-continue` leaves the rest to `cuegate \
             resume {id} --flow PATH`"
        ));
    }
    if args.json {
        print::print_json(&view_of(journal, id)?.to_json(&texts_of_run(journal, id)));
    }
    // However it ended, there is nothing to resume.
    let is_over = cuegate_runner::is_over(&run.state);
    Ok(Some(if is_over { exit::USAGE } else { exit::exit_code_of_state(&run.state) }))
}
