//! What `run` does and prints before the first call: the setup of a worktree, the baseline, the facts of the run.

use crate::cli::commands::diagnostics;
use crate::run::finalize_plan::finalize_of;
use crate::run::sandbox_setup::list_permissions;
use std::{
    path::{Path, PathBuf},
    time::Duration,
};

use cuegate_engine::{FinalizePlan, Place};
use cuegate_flow::{
    analysis::cost_bound::Certificate,
    diagnostics::Severity,
    model::{Act, Flow, Permission, Source, Step, StepId, sandbox::SandboxRule},
};
use cuegate_journal::RunId;
use cuegate_runner::{sandbox::Sandbox, worktree::branch_worktree};
use cuegate_view::{
    Liveness, RunStartFacts, RunState, clean_to_one_line, planned_effects, plural, render_run_start,
    shorten_end,
};

use super::prompt_user;
use crate::agents::RunAgents;
use crate::before_start::baseline::{BaselineFailure, failing_validators};
use crate::before_start::diagnose::FailureCause;
use crate::cli::commands::{ProjectPlace, view_of};
use crate::cli::{print, set_values};
use crate::config::BaselineRule;
use crate::definition::CompiledDefinition;
use crate::run::leftovers;
use crate::run::start_run::{Host, RunRequest, Workspace};
use crate::run::typical_cost::{describe_calls, usual_calls};
use crate::run::worktree_setup;
use crate::{Failure, doctor, exit};

/// How much of a command is shown.
const COMMAND_MAX: usize = 100;

/// Runs the setup commands of a new worktree. What they write is there before the run and belongs to no agent.
///
/// # Errors
/// When one fails; the worktree is removed then.
pub(in crate::cli::commands) fn set_up(
    host: &Host,
    id: &RunId,
    ground: Workspace,
) -> Result<Workspace, Failure> {
    match run_setup_commands(host, id, &ground.place)? {
        true => ground.after_baseline(),
        false => Ok(ground),
    }
}

/// Runs the setup commands in a worktree of the run; returns whether there are any.
///
/// # Errors
/// As [`set_up`].
pub(in crate::cli::commands) fn run_setup_commands(
    host: &Host,
    id: &RunId,
    place: &Place,
) -> Result<bool, Failure> {
    let ran = worktree_setup::run_setup_commands(host, id, place, &mut |line| print::print_line(line));
    if let (Err(_), Some(branch)) = (&ran, place.branch.as_deref().filter(|_| place.owned)) {
        let (work, keep) = (Path::new(&place.work), format!("refs/{branch}"));
        branch_worktree::remove_worktree(host.home.root(), work, branch, &keep)?;
    }
    ran
}

/// Runs the validators before the first ask, unless the agent is a script, and reports those that fail.
///
/// # Errors
/// When one fails and the configuration or the user refuses the run then.
pub(in crate::cli::commands) fn check_baseline(
    host: &Host,
    id: &RunId,
    flow: &Flow,
    wishes: &RunRequest,
    sandbox: (Option<&Sandbox>, &[PathBuf]),
    ground: Workspace,
) -> Result<Workspace, Failure> {
    let rule = host.config.run.baseline;
    if rule == BaselineRule::Off || wishes.agent.agent == "scripted" {
        return Ok(ground);
    }
    if ground.place.owned && ground.place.follows.is_none() {
        leftovers::note_preparation(&host.home, id, true)?;
    }
    let failed = failing_validators(host, id, flow, sandbox, &ground.place)?;
    for BaselineFailure { command, ended, output, .. } in &failed {
        print::print_line(&format!(
            "`{}` fails before any change: {ended}",
            shorten_end(&clean_to_one_line(command), COMMAND_MAX)
        ));
        output.iter().for_each(|line| print::print_line(&format!("  | {line}")));
    }
    let Some(first) = failed.first() else { return ground.after_baseline() };
    let hopeless = failed.iter().find_map(|one| Some((one, one.cause.as_ref()?)));
    match (rule, hopeless) {
        (BaselineRule::Refuse, None) => {
            let message = format!("`{}` fails before any change", clean_to_one_line(&first.command));
            let hint = "no agent was called; fix it first, or start the run anyway with `--no-baseline`";
            return Err(Failure::usage(message, hint));
        }
        // An agent would be paid for work that nothing can verify.
        (BaselineRule::Ask, Some((one, cause))) if print::is_interactive() => offer_cure(host, one, cause)?,
        (BaselineRule::Ask | BaselineRule::Refuse, Some((one, cause))) => {
            let message = cause.describe(&clean_to_one_line(&one.command));
            return Err(Failure { message, hint: Some(cause.hint()), code: exit::ENVIRONMENT });
        }
        // What fails may be the task.
        (BaselineRule::Ask, None) => print::print_line("note: the agent may mend that, so the run starts"),
        (BaselineRule::Report, Some((one, cause))) => {
            print::print_line(&format!("note: {}", cause.describe(&clean_to_one_line(&one.command))));
        }
        (BaselineRule::Report | BaselineRule::Off, _) => {}
    }
    let mut ground = ground.after_baseline()?;
    ground.failed_before = failed.into_iter().map(|one| one.validator).collect();
    Ok(ground)
}

/// Explains why a command cannot pass, and writes the setting that cures it if the user wants that. Otherwise asks
/// whether the run starts anyway.
///
/// # Errors
/// When it does not start.
fn offer_cure(host: &Host, one: &BaselineFailure, cause: &FailureCause) -> Result<(), Failure> {
    print::print_line(&cause.describe(&clean_to_one_line(&one.command)));
    if let Some(setting) = cause.setting() {
        let question = format!("write `{setting}` under `[{}]` into cuegate.toml? [Y/n] ", setting.table);
        let answer = prompt_user::read_terminal_line(&question)?;
        if answer.is_some_and(|answer| !answer.to_lowercase().starts_with('n')) {
            setting.write(host.home.root())?;
            let hint = "start the run again: it uses the setting";
            let written = Failure::usage("the run was not started; the setting is written", hint);
            return Err(Failure { code: exit::ENVIRONMENT, ..written });
        }
    }
    start_anyway()
}

/// Asks whether a run starts whose validator fails before any change.
///
/// # Errors
/// When it does not.
fn start_anyway() -> Result<(), Failure> {
    let answer = prompt_user::read_terminal_line("start the run anyway? [y/N] ")?;
    if answer.is_some_and(|answer| answer.trim().to_lowercase().starts_with('y')) {
        return Ok(());
    }
    let hint = "fix the command first, or leave it out with `--no-baseline`";
    Err(Failure { code: exit::ENVIRONMENT, ..Failure::usage("the run was not started", hint) })
}

/// Notes inputs without effect: they are probably misspelt or meant for another definition.
pub(in crate::cli::commands) fn tell_unread(flow: &Flow, wishes: &RunRequest, given: &[String]) {
    let mut read = Vec::new();
    for step in &flow.steps {
        if let Act::Ask(ask) = &step.act {
            read.extend(ask.prompt.sources());
            read.extend(ask.system.iter().flat_map(|system| system.sources()));
        }
        read.extend(
            step.edges.iter().filter_map(|edge| edge.remedy.as_ref()).flat_map(|remedy| remedy.sources()),
        );
    }
    if wishes.unsandboxed && flow.conduct.sandbox == SandboxRule::Off {
        print::print_line("note: `--no-sandbox` has no effect: the definition turns the sandbox off");
    }
    if wishes.task.is_some() && !read.contains(&&Source::Task) {
        print::print_line("note: no prompt of the definition reads the task");
    }
    set_values::tell_unread(given, [flow]);
}

/// What else the beginning says.
pub(in crate::cli::commands) struct StartNotes<'p> {
    /// Where the command was typed.
    pub(in crate::cli::commands) place: &'p ProjectPlace,
    /// The sandbox of the agents.
    pub(in crate::cli::commands) by: String,
    /// The parts of it that are not available.
    pub(in crate::cli::commands) cannot: Vec<String>,
    /// The built-in starter that runs.
    pub(in crate::cli::commands) built_in: Option<&'static str>,
}

/// How many of the newest runs are looked at.
const NEWEST: usize = 20;

/// Names the newest run that is not over and worked in place: its changes are in this working tree, and a later resume
/// meets those of the run that starts now.
pub(in crate::cli::commands) fn tell_unfinished(host: &Host) {
    let Ok(mut runs) = host.journal.runs() else { return };
    runs.sort_by_key(|run| std::cmp::Reverse(run.created_at_ms));
    for known in runs.into_iter().filter(|run| run.has_records && run.damage.is_none()).take(NEWEST) {
        let Ok(view) = view_of(&*host.journal, &known.run) else { continue };
        let is_open = matches!(view.state, RunState::Running | RunState::Suspended(_));
        if is_open && !view.place.owned && view.live != Liveness::Alive {
            let id = &known.run;
            print::print_line(&format!(
                "note: run {id} in this working tree is not over ({}): `cuegate resume {id}` continues it, `cuegate \
                 cancel {id}` ends it",
                view.standing()
            ));
            return;
        }
    }
}

/// The commands that decide whether the work is done.
fn verified_by(flow: &Flow) -> Option<String> {
    const NAMES_MAX: usize = 3;
    let mut commands: Vec<&str> = Vec::new();
    for step in &flow.steps {
        let own: Vec<&str> = match &step.act {
            Act::Exec { commands } => commands.iter().map(|known| &*known.command).collect(),
            Act::Ask(ask) => ask
                .guard
                .iter()
                .flat_map(|guard| guard.commands.iter().map(|known| &*known.validator.command))
                .collect(),
            _ => Vec::new(),
        };
        for command in own {
            if !commands.contains(&command) {
                commands.push(command);
            }
        }
    }
    let more = commands.len().saturating_sub(NAMES_MAX);
    let shown: Vec<String> =
        commands.iter().take(NAMES_MAX).map(|command| shorten_end(&clean_to_one_line(command), 60)).collect();
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    (!shown.is_empty()).then(|| format!("{}{more}", shown.join("; ")))
}

/// Says that nothing but the agents' answers decides, when a flow edits files and has no command that verifies them.
fn describe_missing_verification(
    flow: &Flow,
    built_in: Option<&str>,
    place: &ProjectPlace,
) -> Option<String> {
    let verifies = |step: &Step<StepId>| match &step.act {
        Act::Exec { .. } => true,
        Act::Ask(ask) => ask.guard.is_some(),
        _ => false,
    };
    let edits =
        |step: &Step<StepId>| matches!(step.act, Act::Ask(_)) && step.boundary.permission > Permission::Plan;
    let is_bare = flow.steps.iter().any(edits) && !flow.steps.iter().any(verifies);
    is_bare.then(|| match built_in {
        Some(_) if !crate::init::detect_commands(place.home.root(), &place.here).packages.is_empty() => {
            "several packages have test commands and none was chosen, so the agents' answers decide alone; start the run \
             in the folder of a package"
                .to_owned()
        }
        Some(name) => format!(
            "no test command was found, so the agents' answers decide alone; `cuegate init {name} --test \"COMMAND\"` \
             sets one"
        ),
        None => "no command verifies the work; the agents' answers decide alone".to_owned(),
    })
}

/// What a run does to its issue and with its work.
fn describe_planned_effects(
    flow: &Flow,
    finalize: &FinalizePlan,
    ground: &Workspace,
    wishes: &RunRequest,
) -> Option<String> {
    let finalize = Some(finalize).filter(|_| ground.place.owned && *finalize != FinalizePlan::default());
    let on = wishes.github.as_ref().map(|connected| match connected.target.issue {
        Some(issue) => format!("issue #{issue} of {}", connected.target.repository),
        None => connected.target.repository.clone(),
    });
    let mut words: Vec<String> = Vec::new();
    for effect in planned_effects(flow, finalize) {
        let word = effect.kind.word().to_owned();
        let possible = wishes.github.is_some() || !effect.kind.is_github();
        if possible && !words.contains(&word) {
            words.push(word);
        }
    }
    match (on, words.is_empty()) {
        (Some(on), true) => Some(format!("on {on}: none")),
        (Some(on), false) => Some(format!("{} on {on}", words.join(", "))),
        (None, true) => None,
        (None, false) => Some(words.join(", ")),
    }
}

/// The first line of a run. It is printed before the working tree is read, which may take a while.
pub(in crate::cli::commands) fn tell_name(flow: &Flow, built_in: Option<&str>, id: &RunId) {
    print::print_line(&format!("run {id}: {}", flow.name));
    if let Some(name) = built_in {
        print::print_line(&format!("  the built-in `{name}`; `cuegate init {name}` makes it yours"));
    }
}

/// Does something that is usually quick, and says now and then that it is still going on if it is not.
pub(in crate::cli::commands) fn while_slow<T>(what: &str, work: impl FnOnce() -> T) -> T {
    /// After how many seconds that is said.
    const FIRST: u64 = 2;
    const NEXT: u64 = 10;
    let (done, ended) = std::sync::mpsc::channel::<()>();
    let what = what.to_owned();
    let teller = std::thread::spawn(move || {
        let mut seconds = FIRST;
        let mut wait = FIRST;
        while ended.recv_timeout(Duration::from_secs(wait)) == Err(std::sync::mpsc::RecvTimeoutError::Timeout)
        {
            print::print_line(&format!("  {what}, {seconds} s"));
            (seconds, wait) = (seconds + NEXT, NEXT);
        }
    });
    let result = work();
    drop(done);
    let _ = teller.join();
    result
}

pub(in crate::cli::commands) fn tell_beginning(
    definition: &CompiledDefinition,
    ground: &Workspace,
    wishes: &RunRequest,
    agents: &RunAgents,
    most: &Certificate,
    held: StartNotes<'_>,
) {
    let Some(flow) = &definition.flow else { return };
    let scripted = wishes.agent.agent == "scripted";
    let facts = RunStartFacts {
        work: ground.place.start_folder(),
        dirty: ground.place.dirty,
        git: ground.tree.is_some(),
        branch: ground.place.branch.clone(),
        follows: ground.place.follows.clone(),
        provider: match &wishes.script {
            Some((path, _)) => format!("{} ({path})", wishes.agent.agent),
            None => match &agents.usual().inspection.version {
                Some(version) => format!("{} {version}", wishes.agent.agent),
                None => wishes.agent.agent.clone(),
            },
        },
        others: agents.describe_others(flow),
        model: agents.usual_models(flow).or_else(|| scripted.then(|| "none".to_owned())),
        login: Some(doctor::describe_login(&agents.usual().inspection.login)),
        permission: list_permissions(flow),
        sandbox: held.by,
        most: format!(
            "{}, {}{}{}",
            plural(most.iterations, "iteration"),
            plural(most.asks, "call"),
            usual_calls(flow)
                .filter(|(_, usual)| *usual < most.asks)
                .map_or(String::new(), |calls| format!(", {}", describe_calls(calls))),
            match cuegate_view::format_budget_limits(&wishes.budget) {
                Some(limits) => format!("; budget {limits}"),
                None if scripted => String::new(),
                None => "; cost, tokens and time are not limited (`--budget-usd`, `-tokens`, `-minutes`)"
                    .to_owned(),
            }
        ),
        settings: agents.loads(),
        verified_by: verified_by(flow),
        unverified: describe_missing_verification(flow, held.built_in, held.place),
        effects: describe_planned_effects(flow, &finalize_of(definition, wishes), ground, wishes),
        unsupported: definition.settings.unsupported.clone(),
        cannot: agents.cannot(flow).into_iter().chain(held.cannot).collect(),
    };
    for line in render_run_start(&facts) {
        print::print_line(&line);
    }
    let warnings =
        definition.diagnostics.iter().filter(|finding| finding.severity == Severity::Warning).count();
    if warnings > 0 {
        print::print_line(&format!(
            "  {warnings} warning{} in the definition: `cuegate check {}`",
            diagnostics::plural_ending(warnings),
            wishes.path
        ));
    }
    print::print_line("");
}
