//! `work`: a run for each task of a queue.

use std::{collections::HashSet, path::Path};

use clap::ValueEnum;
use cuegate_engine::{
    Amounts, Batch, BatchEnd, BatchEvent, BatchStarted, FinalizePlan, Progress, QueueSource,
    RecordedLoadOptions, SkipReason, StopKind,
};
use cuegate_flow::{
    analysis::cost_bound::{Certificate, price_without_sensitivity},
    model::Flow,
};
use cuegate_journal::RunId;
use cuegate_runner::{
    now_ms,
    worktree::{claim, finalize::remote_url},
};
use cuegate_view::{
    TaskRow, batch_json, batch_lines, batches_json, batches_table, clean_lines, clean_to_one_line,
    queue_lines,
};

use super::run;
use super::work_args::WorkArgs;
use crate::agents::{AgentQuery, AgentWishes, RunAgents, plan_run_agents, read_takt_roles};
use crate::batch::{
    BatchMessage, Queue, QueueContext, Worker,
    shown::{find_batch, journal_of_batches, list_batches, rows_of_batch},
};
use crate::before_start::start_checks::check_start;
use crate::cli::commands::{ProjectPlace, load_as};
use crate::cli::commands::{diagnostics, read_options};
use crate::cli::{print, set_values, stop};
use crate::config::AgentAssignment;
use crate::config::Config;
use crate::run::finalize_plan::finalize_of;
use crate::run::limits::cost_terms_of_flow;
use crate::run::start_run::RunRequest;
use crate::{Failure, Program, config, exit, github, project};

/// Why the repository is needed, and how to do without it.
const ISSUES: &str = "the tasks are issues";
const FROM: &str = "`--from FILE` takes the tasks of a file";

pub(in crate::cli::commands) fn work_on_queue(place: &ProjectPlace, args: &WorkArgs) -> Result<u8, Failure> {
    if args.list {
        let rows = list_batches(&place.home, place.view().ok().as_deref())?;
        match args.json {
            true => print::print_json(&batches_json(&rows)),
            false => print::print_data(&batches_table(&rows, now_ms())),
        }
        return Ok(exit::DONE);
    }
    if let Some(typed) = &args.show {
        let (id, batch) = find_batch(&place.home, typed)?;
        let runs = place.view().ok();
        let rows = rows_of_batch(&place.home, runs.as_deref(), &batch);
        match args.json {
            true => print::print_json(&batch_json(id.as_str(), &batch, &rows)),
            false => print::print_data(&batch_lines(id.as_str(), &batch, &rows).join("\n")),
        }
        return Ok(exit::DONE);
    }
    let config = config::load_config(place.home.root())?;
    if let Some(typed) = &args.resume {
        let (id, batch) = find_batch(&place.home, typed)?;
        let queue = open_queue(place, &config, batch.started().source.clone())?;
        return drive_batch(place, args, queue, BatchBeginning::Resume(id));
    }
    let agent = args.agent.clone().unwrap_or_default();
    let started = prepare_batch(place, args, &config, &agent)?;
    let queue = open_queue(place, &config, started.source.clone())?;
    if args.dry_run {
        return dry_run(place, &queue, started, args.json);
    }
    drive_batch(place, args, queue, BatchBeginning::Start(Box::new(started)))
}

/// Where the tasks come from.
fn choose_queue_source(
    place: &ProjectPlace,
    args: &WorkArgs,
    config: &Config,
    remote: &str,
) -> Result<QueueSource, Failure> {
    let root = place.home.root();
    if let Some(file) = &args.from {
        let path = std::fs::canonicalize(place.here.join(file)).map_err(|error| {
            Failure::usage(
                format!("failed to read `{}`: {error}", file.display()),
                "check the path given with `--from`",
            )
        })?;
        if !path.is_file() {
            return Err(Failure::usage(
                format!("`{}` is not a file", file.display()),
                "name a file with tasks",
            ));
        }
        return Ok(QueueSource::File { path: path.display().to_string() });
    }
    let Some(label) = args.label.clone().filter(|label| !label.trim().is_empty()) else {
        return Err(Failure::usage(
            "no tasks are given",
            "`--label LABEL` takes the issues with this label, `--from FILE` the tasks of a file",
        ));
    };
    let connected = github::connect_queue(root, config, remote, ISSUES, FROM)?;
    if remote_url(root, remote).map_err(cuegate_runner::Error::from)?.is_none() {
        return Err(Failure::usage(
            format!("issues are claimed by branches on the remote `{remote}`, which does not exist"),
            format!("add it with `git remote add {remote} URL`"),
        ));
    }
    let (api, repository) = (connected.target.api, connected.target.repository);
    Ok(QueueSource::Issues { api, repository, label, remote: remote.to_owned() })
}

/// The queue of a source, with a client if it needs one.
fn open_queue(place: &ProjectPlace, config: &Config, source: QueueSource) -> Result<Queue, Failure> {
    let github = match &source {
        QueueSource::Issues { remote, .. } => {
            let client = github::connect_queue(place.home.root(), config, remote, ISSUES, FROM)?.client;
            Some(client.with_patience(run::tell_waits(run::wait_max_ms(config, true))))
        }
        QueueSource::File { .. } => None,
    };
    Ok(Queue { source, github, root: place.home.root().to_owned() })
}

/// Checks the definition and the provider, prices a run, and collects the arguments of all runs.
fn prepare_batch(
    place: &ProjectPlace,
    args: &WorkArgs,
    config: &Config,
    agent: &str,
) -> Result<BatchStarted, Failure> {
    let typed_here = place;
    let within = args.cd.as_deref().map(|folder| place.within(folder)).transpose()?;
    let place = within.as_ref().unwrap_or(place);
    let location = place.locate(agent)?;
    let set = set_values::parse_set_names(&args.set)?;
    if let Some(pair) = args.set.iter().find(|pair| !pair.contains('=')) {
        return Err(Failure::usage(format!("`--set {pair}` has no value"), "write `--set NAME=VALUE`"));
    }
    let usual = read_options::read_load_options(place, agent, &location, args.phases)?;
    let how = RecordedLoadOptions {
        interactive: false,
        iterations_max: args.max_iterations.or(usual.iterations_max),
        ..usual
    };
    let names = [&set[..], &run::issue_names()].concat();
    let definition = load_as(&location, &names, &how)?;
    let Some(flow) = definition.flow.clone() else {
        diagnostics::print_diagnostics(&definition.diagnostics, &definition.sources, false);
        let (errors, _) = diagnostics::count_errors_and_warnings(&definition.diagnostics, false);
        return Err(Failure::usage(
            format!("`{agent}` has {errors} error{}", diagnostics::plural_ending(errors)),
            "nothing was started; fix the errors first",
        ));
    };
    run::require_review(place, agent, &location, &flow, false)?;
    if cuegate_runner::worktree::Trees::open(place.home.root(), &place.home.trees())
        .map_err(cuegate_runner::Error::from)?
        .is_none()
    {
        return Err(Failure::usage(
            "each run works in a worktree of its own, but this folder is not in a git repository",
            "run `git init` and commit first",
        ));
    }
    if !claim::has_commit(place.home.root()).map_err(cuegate_runner::Error::from)? {
        return Err(Failure::usage(
            "the repository has no commit, from which worktrees start",
            "commit first",
        ));
    }
    set_values::check_set_values(&definition.params, &args.set)?;
    let wishes = RunRequest {
        worktree: true,
        finalize: FinalizePlan {
            merge: args.merge,
            push: args.push.clone(),
            pull_request: args.pull_request.is_some(),
            ..FinalizePlan::default()
        },
        ..RunRequest::default()
    };
    let finalize = finalize_of(&definition, &wishes);
    let remote = finalize.push.clone().unwrap_or_else(|| "origin".to_owned());
    let source = choose_queue_source(typed_here, args, config, &remote)?;
    if finalize.pull_request {
        github::connect_queue(
            place.home.root(),
            config,
            &remote,
            "the runs propose pull requests",
            "do without `--pull-request`",
        )?;
    }
    for note in check_start(place.home.root(), config, &finalize, None, (true, true))? {
        print::print_line(&format!("note: {note}"));
    }
    let takt = read_takt_roles(&flow, place.home.root(), config)?;
    let wanted = run::choose_agents(&args.agents, args.script.as_deref(), takt.usual.as_ref(), config)?;
    let planned = plan_run_agents(&flow, &wanted, takt, config)?;
    for note in &planned.notes {
        print::print_line(&format!("note: {note}"));
    }
    let script = args.script.as_deref().map(run::read_script).transpose()?;
    let own = args.limits.each();
    let budget = config.budget.budget().with(own);
    let program = Program::current()?;
    let each_run = RunRequest { agent: wanted.usual.clone(), plan: planned.plan, ..RunRequest::default() };
    RunAgents::find(&AgentQuery {
        usual: wanted.usual.clone(),
        plan: &each_run.plan,
        script: script.as_ref(),
        flow: &flow,
        budget: &budget,
        program: &program,
        config,
    })?;
    let most = price_without_sensitivity(
        &flow,
        &cost_terms_of_flow(
            &flow,
            each_run.model_choice(),
            &budget,
            args.max_iterations,
            args.repairs,
            config,
        ),
    );
    let all = args.limits.all();
    let each = Amounts {
        usd_micro: most.usd_micro,
        tokens: most.tokens,
        asks: Some(most.asks).filter(|_| !most.endless),
    };
    is_bounded(args, each_run.may_cost_money(config), &most, each, config)?;
    let here = place.here.strip_prefix(place.home.root()).unwrap_or(Path::new(""));
    Ok(BatchStarted {
        program: env!("CARGO_PKG_VERSION").to_owned(),
        agent: agent.to_owned(),
        here: here.display().to_string(),
        source,
        blocked_by: blocked_by(&flow),
        max: args.max,
        parallel: args.parallel,
        once: args.once,
        watch_s: args.watch,
        budget: all,
        each,
        args: run_args(place, args, &wanted, each),
    })
}

/// The labels of issues that somebody works on, or that wait for a person.
fn blocked_by(flow: &Flow) -> Vec<String> {
    let rule = flow.conduct.issue.as_ref();
    let labels = rule.into_iter().flat_map(|rule| [&rule.blocked, &rule.in_progress]);
    labels.flatten().map(ToString::to_string).collect()
}

/// Checks that what the batch may use is limited, and that a run is bounded in each of its limits.
fn is_bounded(
    args: &WorkArgs,
    costs_money: bool,
    most: &Certificate,
    each: Amounts,
    config: &Config,
) -> Result<(), Failure> {
    let all = args.limits.all();
    let missing = [
        (all.usd_micro, each.usd_micro, "--budget-usd", "--run-usd 5"),
        (all.tokens, each.tokens, "--budget-tokens", "--run-tokens 2000000"),
        (all.asks, each.asks, "--budget-calls", "--run-calls 50"),
    ];
    for (limit, one, flag, hint) in missing {
        if limit.is_some() && one.is_none() {
            return Err(Failure::usage(
                format!("`{flag}` limits all runs, but nothing limits what one run uses of it"),
                format!("limit each run, for example with `{hint}`"),
            ));
        }
        if let (Some(limit), Some(one)) = (limit, one)
            && one > limit
        {
            let only = |amount: u64| match flag {
                "--budget-usd" => cuegate_view::format_money(Some(amount as f64 / 1e6)),
                _ => cuegate_view::format_count(amount),
            };
            return Err(Failure::usage(
                format!(
                    "not one run fits: a run may use up to {}, and `{flag}` is {}",
                    only(one),
                    only(limit)
                ),
                format!("raise `{flag}`, or limit each run, for example with `{hint}`"),
            ));
        }
    }
    let limits_one = args.limits.each().with(config.budget.budget());
    let is_limited = [limits_one.usd_micro, limits_one.tokens, limits_one.asks, limits_one.driven_ms]
        .iter()
        .any(Option::is_some);
    let bounded =
        most.usd_micro.is_some() || most.tokens.is_some() || is_limited || all != Amounts::default();
    if bounded || args.unlimited || config.budget.unlimited || !costs_money {
        return Ok(());
    }
    Err(Failure::usage(
        "nothing limits what the runs may spend",
        "add limits, such as `--run-usd 5 --budget-usd 50`, or `--run-minutes 60`; or work with `--unlimited`",
    ))
}

/// The arguments that each run gets.
fn run_args(place: &ProjectPlace, args: &WorkArgs, agents: &AgentWishes, each: Amounts) -> Vec<String> {
    let mut own: Vec<String> = place.home.shared().and_then(|shared| shared.flag()).into_iter().collect();
    let mut give = |flag: &str, value: Option<String>| {
        if let Some(value) = value {
            own.push(format!("{flag}={value}"));
        }
    };
    give("--builtins", place.builtins.as_ref().map(|builtins| builtins.display().to_string()));
    // Without the flag each run finds its agents as this batch did: then those that the definition names count as well.
    if agents.is_named {
        let chain = std::iter::once(&agents.usual.agent).cloned();
        let chain = chain.chain(agents.stand_ins.iter().map(ToString::to_string));
        give("--provider", Some(chain.collect::<Vec<_>>().join(",")));
    }
    for AgentAssignment { role, chain, .. } in &agents.roles {
        let chain: Vec<String> = chain.iter().map(ToString::to_string).collect();
        give("--agent", Some(format!("{role}={}", chain.join(","))));
    }
    // The runs start in the folder of `--cd`.
    let whole = |path: &std::path::PathBuf| {
        std::fs::canonicalize(path).unwrap_or_else(|_| path.clone()).display().to_string()
    };
    give("--script", args.script.as_ref().map(whole));
    give("--model", agents.usual.model.clone().filter(|_| agents.is_named || args.agents.model.is_some()));
    for pair in &args.set {
        give("--set", Some(pair.clone()));
    }
    give("--cd", args.cd.as_ref().map(|_| ".".to_owned()));
    give("--push", args.push.clone());
    give("--max-iterations", args.max_iterations.map(|n| n.to_string()));
    give("--repairs", args.repairs.map(|n| n.to_string()));
    let phases = args.phases.and_then(|phases| phases.to_possible_value());
    give("--phases", phases.map(|phases| phases.get_name().to_owned()));
    let durability = args.durability.to_possible_value();
    give("--durability", durability.map(|durability| durability.get_name().to_owned()));
    let (limits, all) = (args.limits.each(), args.limits.all());
    // A limit of all runs holds because each run keeps its share of it.
    let share = |own: Option<u64>, all: Option<u64>, each: Option<u64>| own.or(all.and(each));
    let dollars = |micro: u64| format!("{}.{:06}", micro / 1_000_000, micro % 1_000_000);
    give("--budget-usd", share(limits.usd_micro, all.usd_micro, each.usd_micro).map(dollars));
    give("--budget-tokens", share(limits.tokens, all.tokens, each.tokens).map(|n| n.to_string()));
    give("--budget-calls", share(limits.asks, all.asks, each.asks).map(|n| n.to_string()));
    give("--budget-minutes", limits.driven_ms.map(|ms| (ms as f64 / 60_000.0).to_string()));
    give("--call-usd", limits.ask_usd_micro.map(dollars));
    give("--call-tokens", limits.ask_tokens.map(|n| n.to_string()));
    let target = |into: &String| {
        if into.is_empty() { "--pull-request".to_owned() } else { format!("--pull-request={into}") }
    };
    own.extend(args.pull_request.as_ref().map(target));
    let switches = [
        ("--merge", args.merge),
        ("--no-sandbox", args.no_sandbox),
        ("--no-baseline", args.no_baseline),
        ("--unlimited", args.unlimited),
    ];
    own.extend(switches.into_iter().filter(|(_, on)| *on).map(|(flag, _)| flag.to_owned()));
    own
}

/// How a batch begins.
enum BatchBeginning {
    Start(Box<BatchStarted>),
    Resume(RunId),
}

fn drive_batch(
    place: &ProjectPlace,
    args: &WorkArgs,
    queue: Queue,
    begin: BatchBeginning,
) -> Result<u8, Failure> {
    let home = place.home.create_missing()?;
    let runs = project::open_project_journal(&home, run::convert_durability(args.durability))?;
    let mut reads = 0;
    let (mut said, mut begun) = (HashSet::new(), HashSet::new());
    let mut tell = |told: BatchMessage<'_>| match told {
        BatchMessage::Queue(batch) => {
            // With `--watch` the queue is read again and again: print it the first time, and then only when it has tasks.
            if reads == 0 || batch.found > 0 {
                queue_lines(batch).iter().for_each(|line| print::print_line(line));
            }
            reads += 1;
        }
        BatchMessage::Line(line) => print::print_line(&clean_to_one_line(&line)),
        BatchMessage::Output { line, .. } if line.trim().is_empty() => {}
        BatchMessage::Output { name, line } => {
            if print::is_event_line(line) {
                begun.insert(name.to_owned());
            }
            // What the first run says of its agent, permission, limits and gates holds for the others as well.
            if begun.contains(name) || said.insert(line.to_owned()) {
                print::print_line(&format!("{name} | {}", clean_lines(line)));
            }
        }
    };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| Failure::environment(format!("failed to start: {error}")))?;
    let inside = runtime.enter();
    let stop = stop::on_signals("cuegate work --resume");
    let mut worker = match begin {
        BatchBeginning::Start(started) => {
            Worker::start(&home, runs.clone(), queue, *started, stop, &mut tell)?
        }
        BatchBeginning::Resume(id) => {
            let parts = (&home, runs.clone(), queue);
            Worker::resume(parts, id, args.take_over, stop, &mut tell)?
        }
    };
    drop(inside);
    let id = worker.id().clone();
    print::print_line(&format!(
        "batch {id}: {}",
        cuegate_view::queue_source(&worker.batch().started().source)
    ));
    let driven = runtime.block_on(worker.drive());
    let batch = worker.batch().clone();
    drop(worker);
    runtime.shutdown_background();
    driven?;
    let rows = rows_of_batch(&place.home, Some(&*runs), &batch);
    print_batch(&id, &batch, &rows, args.json);
    Ok(exit_code_of_batch(&batch, &rows))
}

/// Prints a batch.
fn print_batch(id: &RunId, batch: &Batch, rows: &[TaskRow], as_json: bool) {
    match as_json {
        true => print::print_json(&batch_json(id.as_str(), batch, rows)),
        false => batch_lines(id.as_str(), batch, rows).iter().for_each(|line| print::print_line(line)),
    }
}

/// The exit code of a batch: of its interruption, or of its worst run.
fn exit_code_of_batch(batch: &Batch, rows: &[TaskRow]) -> u8 {
    let any = |stops: &[StopKind]| rows.iter().any(|row| row.stop.is_some_and(|stop| stops.contains(&stop)));
    let is_open = batch.taken.iter().any(|t| matches!(t.progress, Progress::Claiming | Progress::Claimed));
    match &batch.end {
        Some(BatchEnd::Interrupted) => exit::INTERRUPTED,
        Some(BatchEnd::Broken(_)) | None => exit::ENVIRONMENT,
        Some(BatchEnd::Failing) => exit::BAD_END,
        Some(BatchEnd::Done) if any(&[StopKind::Failed, StopKind::NotStarted]) => exit::BAD_END,
        Some(BatchEnd::Done)
            if any(&[StopKind::Suspended, StopKind::Waiting]) || is_open || has_stuck_task(batch) =>
        {
            exit::SUSPENDED
        }
        Some(BatchEnd::Done) => exit::DONE,
    }
}

/// Whether a task was left out because its run of an earlier batch stopped in it.
fn has_stuck_task(batch: &Batch) -> bool {
    batch.skipped.iter().any(|(_, reason)| matches!(reason, SkipReason::RanBefore { is_stuck: true, .. }))
}

/// Reads the queue and prints what would be taken.
fn dry_run(place: &ProjectPlace, queue: &Queue, started: BatchStarted, as_json: bool) -> Result<u8, Failure> {
    let none = cuegate_journal::memory::MemoryJournal::default();
    let batches = journal_of_batches(&place.home)?;
    let runs = project::open_journal_read_only(&place.home)?;
    let id = project::new_run_id();
    let known = QueueContext {
        batches: batches.as_deref().unwrap_or(&none),
        runs: runs.as_deref().unwrap_or(&none),
        batch: &id,
        agent: &started.agent.clone(),
    };
    let read = queue.read(&known).map_err(Failure::environment)?;
    let batch = Batch::fold(&[BatchEvent::BatchStarted(Box::new(started)), BatchEvent::QueueRead(read)]);
    match as_json {
        true => print::print_json(&batch_json(id.as_str(), &batch, &[])),
        false => {
            queue_lines(&batch).iter().for_each(|line| print::print_line(line));
            print::print_line("nothing was changed");
        }
    }
    Ok(exit::DONE)
}
