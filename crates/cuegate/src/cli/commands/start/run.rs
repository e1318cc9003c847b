//! `run`.

use crate::cli::commands::shared_args::{AgentArgs, DurabilityChoice};
use crate::run::finalize_plan::finalize_of;
use std::{io::IsTerminal, path::Path, sync::Arc};

use clap::ArgMatches;
use cuegate_engine::{
    AgentChoice, FinalizePlan, HiddenText, IssueClaim, RecordedLoadOptions, remove_hidden_characters,
    remove_hidden_markdown,
};
use cuegate_flow::model::Flow;
use cuegate_formats::{ISSUE_TEXTS, SHARED_FLAGS, same_name};
use cuegate_journal::log;
use cuegate_runner::{github::Patience, sandbox::put_aside_kept_out};

use super::budget::UsualCost;
use super::run_start::{
    StartNotes, check_baseline, set_up, tell_beginning, tell_name, tell_unfinished, tell_unread, while_slow,
};
use super::{budget, detach, prompt_user};
use crate::agents::{
    AgentQuery, AgentWishes, PlannedAgents, RunAgents, plan_run_agents, read_takt_roles, reassign_roles,
};
use crate::before_start::review::{hidden_by, review_question};
use crate::before_start::start_checks::check_start;
use crate::cli::commands::start::run_args::RunArgs;
use crate::cli::commands::{ProjectPlace, load_as, tell_end};
use crate::cli::commands::{diagnostics, read_options};
use crate::cli::{params, print};
use crate::config::Config;
use crate::definition::{CompiledDefinition, Location};
use crate::github::{self, GithubConnection, IssueTexts};
use crate::run::limits::cost_terms_of_flow;
use crate::run::sandbox_setup::PendingSandbox;
use crate::run::start_run::{Host, Program, RunRequest};
use crate::run::tree_lock::Waiting;
use crate::run::typical_cost::{KnownCosts, usual_calls};
use crate::run::{leftovers, sandbox_setup, start_run};
use crate::text_file::{hint_for_unread, read_text, read_text_from};
use crate::{Failure, config, doctor, project, providers};

/// `work` and `resume --wait` wait out limits of up to a week.
pub(in crate::cli::commands) const WAIT_WITHOUT_END_MS: u64 = 7 * 24 * 60 * 60 * 1000;
/// The longest wait for a provider limit in milliseconds, at a terminal and without one.
const WAIT_MAX_MS: (u64, u64) = (10 * 60 * 1000, 60 * 1000);

pub(in crate::cli::commands) fn run(
    place: &ProjectPlace,
    args: RunArgs,
    matches: Option<&ArgMatches>,
) -> Result<u8, Failure> {
    if args.key.as_ref().is_some_and(|key| key.trim().is_empty()) {
        return Err(Failure::usage(
            "the key of `--once` is empty",
            "give the task a name, such as `--once fix-iso-weeks`",
        ));
    }
    if args.key.is_some() && !args.detach && args.run_id.is_none() {
        return Err(Failure::usage("`--once` is for runs in the background", "add `--detach`"));
    }
    if args.detach {
        return detach::run_detached(place, &args);
    }
    if args.watch {
        return detach::run_and_watch(place, &args);
    }
    run_after(place, args, matches, None)
}

/// Asks whether a definition that nobody may have read may do what it does.
///
/// # Errors
/// When nobody can be asked, or the answer is no.
pub(in crate::cli::commands) fn require_review(
    place: &ProjectPlace,
    typed: &str,
    location: &Location,
    flow: &Flow,
    off: bool,
) -> Result<(), Failure> {
    let Some(question) = review_question(&place.home, &place.here, typed, location, flow, off)? else {
        if let Some(hidden) = hidden_by(&place.home, &place.here, typed, location) {
            print::print_line(&format!("note: `{typed}` of this project is used instead of {hidden}"));
        }
        return Ok(());
    };
    if !print::is_interactive() {
        return Err(question.refusal());
    }
    print::print_important(&cuegate_view::clean_to_one_line(&question.message));
    let answer = prompt_user::read_terminal_line("run it? [y/N] ")?.unwrap_or_default();
    if !matches!(answer.as_str(), "y" | "Y" | "yes") {
        return Err(question.refusal());
    }
    question.accept(&place.home.create_missing()?)
}

/// Runs a definition, in the place of an earlier run if there is one.
pub(in crate::cli::commands) fn run_after(
    place: &ProjectPlace,
    args: RunArgs,
    matches: Option<&ArgMatches>,
    follows: Option<cuegate_engine::Place>,
) -> Result<u8, Failure> {
    if args.run_id.is_some() {
        // The terminal of the command that started this process must not end it.
        let _ = rustix::process::setsid();
    }
    if let Some(process) = args.batch_process {
        end_with(process)?;
    }
    let within = args.cd.as_deref().map(|folder| place.within(folder)).transpose()?;
    let typed_here = place.here.join(&args.path);
    // A path means the file that the shell would complete.
    let path = match within.is_some() && typed_here.exists() {
        true => typed_here.to_string_lossy().into_owned(),
        false => args.path.clone(),
    };
    let place = within.as_ref().unwrap_or(place);
    let location = place.locate(&path)?;
    let follows_one = follows.is_some();
    let number = args.issue.as_ref().or(args.pr.as_ref());
    let given: Vec<String> =
        args.set.iter().filter_map(|pair| pair.split_once('=')).map(|(name, _)| name.to_owned()).collect();
    let mut set = given.clone();
    if number.is_some() {
        set.extend(issue_names());
    }
    let config = config::load_config(place.home.root())?;
    let usual = read_options::read_load_options(place, &path, &location, args.phases)?;
    let how = RecordedLoadOptions {
        interactive: may_ask_person(&location),
        iterations_max: args.max_iterations.or(usual.iterations_max),
        ..usual
    };
    let definition = load_as(&location, &set, &how)?;
    let Some(flow) = definition.flow.clone() else {
        diagnostics::print_diagnostics(&definition.diagnostics, &definition.sources, false);
        let (errors, _) = diagnostics::count_errors_and_warnings(&definition.diagnostics, false);
        return Err(Failure::usage(
            format!("`{}` has {errors} error{}", args.path, diagnostics::plural_ending(errors)),
            "the run was not started; fix the errors and run it again",
        ));
    };
    require_review(place, &path, &location, &flow, args.no_sandbox)?;
    let params = params::collect_param_values(&flow, matches, &with_number(&args, &flow))?;
    // A definition's own `--issue` need not be about GitHub.
    let is_declared = flow.params.iter().any(|param| SHARED_FLAGS.contains(&&*param.flag));
    let issue = match number.filter(|_| !is_declared) {
        Some(number) => Some(github_number(number)?),
        None => number.and_then(|number| github_number(number).ok()).or_else(|| github::issue_of(&params)),
    };
    let takt = read_takt_roles(&flow, place.home.root(), &config)?;
    let agents = choose_agents(&args.agents, args.script.as_deref(), takt.usual.as_ref(), &config)?;
    let planned = match &args.inherited {
        Some(plan) => {
            let plan = reassign_roles(&flow, plan, &agents.roles, &config)?;
            PlannedAgents { plan, notes: Vec::new() }
        }
        None => plan_run_agents(&flow, &agents, takt, &config)?,
    };
    let mut wishes = RunRequest {
        hidden: HiddenText::default(),
        path: args.path.clone(),
        params,
        set,
        task: None,
        agent: agents.usual.clone(),
        plan: planned.plan,
        script: args.script.as_deref().map(read_script).transpose()?,
        // A run that follows another one works where that one did.
        worktree: args.worktree && follows.is_none(),
        folder: within.as_ref().and_then(ProjectPlace::folder),
        finalize: FinalizePlan {
            merge: args.merge,
            push: args.push.clone(),
            pull_request: args.pull_request.is_some(),
            into: args.pull_request.clone().filter(|into| !into.is_empty()),
            claim: None,
        },
        issue,
        reads_issue: number.is_some() && !is_declared,
        no_github: args.no_github,
        github: None,
        follows,
        iterations_max: args.max_iterations,
        repairs_max: args.repairs.or(config.run.repairs_max),
        claim: args.claim.as_deref().map(parse_claim).transpose()?,
        wait_max_ms: wait_max_ms(&config, args.batch_process.is_some()),
        budget: config.budget.budget().with(args.limits.budget()),
        load: how,
        unsandboxed: args.no_sandbox,
        key: args.key.clone(),
    };
    let finalize = finalize_of(&definition, &wishes);
    wishes.github = github::connect_run(place.home.root(), &config, &flow, &wishes, &finalize)?;
    if let Some(note) = github::warn_of_token(&finalize, |name| std::env::var(name).ok()) {
        print::print_line(note);
    }
    let texts = match (&wishes.github, issue) {
        (Some(connected), Some(issue)) => Some(read_issue(connected, issue, &args, wishes.wait_max_ms)?),
        _ => None,
    };
    wishes.hidden = texts.as_ref().map(|texts| texts.hidden).unwrap_or_default();
    wishes.task = read_task(&args, &definition, texts.as_ref())?.map(|task| {
        // What is typed is seen; the texts of an issue are clean.
        let (task, removed) = match args.task.is_some() || texts.is_some() {
            true => remove_hidden_characters(&task),
            false => remove_hidden_markdown(&task),
        };
        wishes.hidden += removed;
        task
    });
    if !wishes.hidden.is_empty() {
        print::print_line(&format!("note: hidden text was removed from the task: {}", wishes.hidden));
    }
    if let (Some(connected), Some(texts)) = (&mut wishes.github, &texts) {
        connected.target.title = Some(texts.title.clone());
        connected.target.is_pull_request = texts.is_pull_request;
    }
    for (name, text) in texts.iter().flat_map(|texts| &texts.variables) {
        let read = flow.params.iter().any(|param| *param.name == **name);
        if read && !given.iter().any(|given| given == name) {
            wishes.params.insert((*name).to_owned(), text.clone());
        }
    }
    start_run::nothing_missing(&flow, &wishes)?;
    let owned = wishes.follows.as_ref().is_some_and(|place| place.owned);
    let has_worktree = owned || wishes.worktree || definition.settings.worktree.enabled;
    if wishes.finalize != FinalizePlan::default() && !has_worktree {
        return Err(Failure::usage(
            "`--merge`, `--push` and `--pull-request` are for runs with a worktree of their own",
            "add `--worktree`",
        ));
    }
    let apart = wishes.worktree || definition.settings.worktree.enabled;
    let in_git = (apart, wishes.github.is_some());
    let program = Program::current()?;
    let run_sandbox = PendingSandbox::begin(&flow, wishes.unsandboxed, &program, &config);
    let notes = check_start(place.home.root(), &config, &finalize, wishes.follows.as_ref(), in_git)?;
    for note in planned.notes.iter().chain(&notes) {
        print::print_line(&format!("note: {note}"));
    }
    start_run::nothing_out_of_sight(place.home.root(), &flow, &wishes, apart)?;
    tell_unread(&flow, &wishes, &given);
    // Fail before any file is created.
    let mut agent = find_agents(&flow, &wishes, &program, &config)?;
    let terms = |wishes: &RunRequest| {
        let asked = wishes.model_choice();
        cost_terms_of_flow(&flow, asked, &wishes.budget, wishes.iterations_max, wishes.repairs_max, &config)
    };
    let mut most = cuegate_flow::analysis::cost_bound::price_without_sensitivity(&flow, &terms(&wishes));
    let in_money = agent.prices_known(&flow).is_ok();
    let known = || KnownCosts::find(&*place.view().ok()?, &flow.name, &wishes.agent.agent);
    let known = if print::is_interactive() { known() } else { None };
    let usual = UsualCost { flow: &flow.name, known, calls: usual_calls(&flow) };
    if let Some(budget) = budget::prompt_for_budget(&args, &wishes, &most, in_money, &usual, &config)? {
        wishes.budget = wishes.budget.with(budget);
        agent = find_agents(&flow, &wishes, &program, &config)?;
        most = cuegate_flow::analysis::cost_bound::price_without_sensitivity(&flow, &terms(&wishes));
    }
    let run_sandbox = run_sandbox.finish()?;
    let home = place.home.create_missing()?;
    let journal = project::open_project_journal(&home, convert_durability(args.durability))?;
    let host = Host { home, journal, program, config };
    leftovers::remove_leftovers(&host.home, &*host.journal);
    put_aside_kept_out(host.home.dir()).iter().for_each(|note| print::print_line(&format!("note: {note}")));
    tell_unfinished(&host);
    let id = match &args.run_id {
        Some(id) => id.parse().map_err(|_| Failure::usage("invalid run id", "`--detach` gives one"))?,
        None => project::new_run_id(),
    };
    let mut told = None;
    let mut tell = |other: &str| {
        if told.as_deref() != Some(other) {
            print::print_line(&format!("waiting for {other}, which works in this working tree"));
            told = Some(other.to_owned());
        }
    };
    let waiting: Waiting<'_> = if args.wait { Some(&mut tell) } else { None };
    tell_name(&flow, location.built_in, &id);
    let ground = while_slow("reading the working tree", || {
        start_run::prepare_workspace(&host, &id, &definition, &wishes, waiting)
    })?;
    let ground = if follows_one { ground } else { set_up(&host, &id, ground)? };
    let ground = match args.no_baseline {
        true => ground,
        false => {
            let sealed = start_run::sealed_files(definition.files.keys().map(String::as_str));
            check_baseline(&host, &id, &flow, &wishes, (run_sandbox.sandbox(), &sealed), ground)?
        }
    };
    let cannot =
        sandbox_setup::describe_sandbox_gaps(&run_sandbox, Path::new(&ground.place.work), host.home.root());
    let by = sandbox_setup::held_by(&flow, &run_sandbox, &host.config);
    let held = StartNotes { place, by, cannot, built_in: location.built_in };
    tell_beginning(&definition, &ground, &wishes, &agent, &most, held);
    let ready = start_run::prepare_new_run(
        &host,
        &id,
        &location,
        &definition,
        ground.behind(run_sandbox.sandbox().cloned()),
        agent,
        &wishes,
    )?;
    prompt_user::drive_with_prompts(&host, &id, ready)?;
    tell_end(place, &*host.journal, &id, &host.config, args.json)
}

/// A claim in the form that `cuegate work` passes it.
fn parse_claim(text: &str) -> Result<IssueClaim, Failure> {
    let (branch, commit) = text
        .split_once('=')
        .ok_or_else(|| Failure::usage(format!("invalid claim `{text}`"), "`cuegate work` passes it"))?;
    Ok(IssueClaim { branch: branch.to_owned(), commit: commit.to_owned() })
}

/// Interrupts this process when the process that started it ends, however that ends.
pub(in crate::cli::commands) fn end_with(parent: i32) -> Result<(), Failure> {
    use rustix::process::{Pid, Signal, getppid, set_parent_process_death_signal};
    // Ctrl-C at the terminal reaches only the parent, which passes it on.
    let _ = rustix::process::setsid();
    let _ = set_parent_process_death_signal(Some(Signal::TERM));
    if getppid().map(Pid::as_raw_pid) == Some(parent) {
        return Ok(());
    }
    Err(Failure::environment("the `cuegate work` that started this run has ended".to_owned()))
}

/// The values given with `--set`, and the number of `--issue` or `--pr` for a parameter with that flag or name.
fn with_number(args: &RunArgs, flow: &Flow) -> Vec<String> {
    let mut set = args.set.clone();
    let numbers = [("--issue", "issue", &args.issue), ("--pr", "pr", &args.pr), ("--pr", "issue", &args.pr)];
    for (flag, name, number) in numbers {
        let Some(number) = number else { continue };
        let by_flag = flow.params.iter().find(|param| *param.flag == *flag && !flag.is_empty());
        let named = flow.params.iter().find(|param| same_name(&param.name, name));
        if let Some(param) = named.or(by_flag) {
            set.push(format!("{}={}", param.name, number.trim_start_matches('#')));
        }
    }
    set
}

/// The names of the variables that an issue sets.
pub(in crate::cli::commands) fn issue_names() -> Vec<String> {
    ["issue"].iter().chain(&ISSUE_TEXTS).map(|name| (*name).to_owned()).collect()
}

/// The number of an issue, as `7` or `#7`.
fn github_number(text: &str) -> Result<u64, Failure> {
    text.trim().trim_start_matches('#').parse().map_err(|_| {
        Failure::usage(format!("`{text}` is not the number of an issue"), "write it like `--issue 7`")
    })
}

/// The texts of the issue that a run works on.
fn read_issue(
    connected: &GithubConnection,
    issue: u64,
    args: &RunArgs,
    wait_max_ms: u64,
) -> Result<IssueTexts, Failure> {
    let client = connected.client.with_patience(tell_waits(wait_max_ms));
    let texts = github::read_issue(&client, issue, args.pr.is_some(), args.released_by.as_deref())?;
    if texts.unapproved > 0 {
        let comments = cuegate_view::plural(texts.unapproved as u64, "comment");
        print::print_line(&format!(
            "note: {comments} on #{issue} not read: by people outside of the repository, after the label `{}`",
            args.released_by.as_deref().unwrap_or_default()
        ));
    }
    if texts.closed {
        print::print_line(&format!("note: #{issue} of {} is closed", connected.target.repository));
    }
    Ok(texts)
}

/// The agents, checked against the flow and the budget.
fn find_agents(
    flow: &Flow,
    wishes: &RunRequest,
    program: &Program,
    config: &Config,
) -> Result<RunAgents, Failure> {
    RunAgents::find(&AgentQuery {
        usual: wishes.agent.clone(),
        plan: &wishes.plan,
        script: wishes.script.as_ref(),
        flow,
        budget: &wishes.budget,
        program,
        config,
    })
}

/// Whether rules of the definition can ask a person.
fn may_ask_person(location: &Location) -> bool {
    read_options::is_takt_workflow(location) && print::is_interactive()
}

pub(in crate::cli::commands) fn convert_durability(durability: DurabilityChoice) -> log::Durability {
    match durability {
        DurabilityChoice::Synced => log::Durability::Synced,
        DurabilityChoice::Relaxed => log::Durability::Relaxed,
    }
}

/// The agents that are asked for: by flags, else by the configuration, else by TAKT's settings. `--script` implies `scripted`.
pub(in crate::cli::commands) fn choose_agents(
    args: &AgentArgs,
    script: Option<&Path>,
    takt: Option<&AgentChoice>,
    config: &Config,
) -> Result<AgentWishes, Failure> {
    let named = args.provider.as_ref().map(|chain| chain.0.clone());
    let is_named = named.is_some() || script.is_some();
    let chain = match (named, script) {
        (Some(chain), Some(_)) if chain[0].agent != "scripted" => {
            return Err(Failure::usage(
                format!("`--script` requires `--provider scripted`, not `--provider {}`", chain[0]),
                "leave out one of them",
            ));
        }
        (Some(chain), _) => chain,
        (None, Some(_)) => vec![AgentChoice::new("scripted")],
        (None, None) => match (&config.run.provider, takt) {
            (Some(chain), _) => chain.0.clone(),
            (None, Some(choice)) => vec![choice.clone()],
            (None, None) => vec![AgentChoice::new(only_working_provider(config)?)],
        },
    };
    let mut chain = chain.into_iter();
    let mut usual = chain.next().unwrap_or_default();
    providers::check_name(&usual.agent, config)?;
    if args.model.is_some() {
        usual.model.clone_from(&args.model);
    }
    Ok(AgentWishes { usual, stand_ins: chain.collect(), is_named, roles: args.roles.clone() })
}

/// The provider that works on this machine, if it is only one.
fn only_working_provider(config: &Config) -> Result<String, Failure> {
    let program = Program::current()?;
    let mut names = doctor::list_working_agents(&program, config);
    if let [only] = names.as_slice() {
        print::print_line(&format!("agent {only}: the only one that works here"));
        return Ok(only.clone());
    }
    if names.len() > 1 && print::is_interactive() {
        let numbered = names.iter().enumerate().map(|(index, name)| format!("{} {name}", index + 1));
        let question = format!("which agent? {} [1] ", numbered.collect::<Vec<_>>().join(", "));
        let answer = prompt_user::read_terminal_line(&question)?.unwrap_or_default();
        let answer = answer.trim();
        let by_number = answer.parse::<usize>().ok().and_then(|number| names.get(number.checked_sub(1)?));
        let chosen = if answer.is_empty() { names.first() } else { by_number };
        let chosen = chosen.or_else(|| names.iter().find(|name| *name == answer));
        if let Some(chosen) = chosen {
            print::print_line(&format!("`provider = \"{chosen}\"` in `[run]` of cuegate.toml keeps that"));
            return Ok(chosen.clone());
        }
    }
    let all: Vec<String> = providers::list_provider_names(config).map(str::to_owned).collect();
    if names.is_empty() {
        names.clone_from(&all);
    }
    let found = if names == all { "" } else { ", which work here" };
    Err(Failure::usage(
        "no agent is set",
        format!(
            "set one with `--provider` ({}{found}), or `provider` in `[run]` of cuegate.toml; `cuegate doctor` shows \
             which of them work here",
            names.join(", ")
        ),
    ))
}

/// Waits for limits of GitHub before a run starts, and says so.
pub(in crate::cli::commands) fn tell_waits(wait_max_ms: u64) -> Patience {
    Patience { wait_max_ms, tell: Arc::new(print::print_line) }
}

/// The longest wait for a provider limit, in milliseconds.
pub(in crate::cli::commands) fn wait_max_ms(config: &Config, in_batch: bool) -> u64 {
    let usual = match (in_batch, print::is_terminal()) {
        // A night of work waits out the limits of a night.
        (true, _) => WAIT_WITHOUT_END_MS,
        (false, true) => WAIT_MAX_MS.0,
        (false, false) => WAIT_MAX_MS.1,
    };
    config.run.wait_max.map_or(usual, |wait| u64::try_from(wait.as_millis()).unwrap_or(u64::MAX))
}

/// Reads a script.
pub(in crate::cli::commands) fn read_script(path: &Path) -> Result<(String, String), Failure> {
    let shown = path.display().to_string();
    match read_text(path) {
        Ok(text) => Ok((shown, text)),
        Err(error) => {
            let hint = hint_for_unread(&error, "check the path of the script");
            Err(Failure::usage(format!("failed to read `{shown}`: {error}"), hint))
        }
    }
}

/// The task: the argument, a file, or standard input if the definition needs a task.
fn read_task(
    args: &RunArgs,
    definition: &CompiledDefinition,
    issue: Option<&IssueTexts>,
) -> Result<Option<String>, Failure> {
    let stdin = || match read_text_from(std::io::stdin()) {
        Ok(text) => Ok(text),
        Err(error) => Err(Failure::usage(
            format!("failed to read the task from standard input: {error}"),
            "give it as UTF-8 text",
        )),
    };
    let given = match (&args.task, args.input.as_deref()) {
        (Some(task), _) => Some(task.clone()),
        (None, Some("-")) => Some(stdin()?),
        (None, Some(path)) => Some(read_text(Path::new(path)).map_err(|error| {
            let hint = hint_for_unread(&error, "check the path given with `--input`");
            Failure::usage(format!("failed to read `{path}`: {error}"), hint)
        })?),
        (None, None) if issue.is_some() => issue.map(|issue| issue.task.clone()),
        (None, None) if definition.settings.needs_task && !std::io::stdin().is_terminal() => {
            Some(stdin()?).filter(|text| !text.is_empty())
        }
        (None, None) => None,
    };
    if given.is_none() && definition.settings.needs_task {
        return Err(Failure::usage(
            "the definition needs a task",
            format!(
                "give it as text, `cuegate run {} \"what to do\"`, or as a file, `--input FILE`",
                args.path
            ),
        ));
    }
    Ok(given)
}
