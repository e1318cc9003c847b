//! The commands that look at the fleet and direct it.

use std::{path::Path, process::ExitCode, time::Duration};

use clap::Args;
use cuegate_postgres::fleet::FleetRun;
use serde_json::json;

use crate::Failure;
use crate::hold::now_ms;
use crate::program::{read_version, run_to_end};
use crate::server::{connect, forget_run, wake_run};
use crate::settings::{Settings, on_thread};

/// How long runs that have ended are shown.
const SHOWN_S: i64 = 24 * 3600;
/// After how long a silent worker is taken for dead.
const SILENT_S: i64 = 30;

#[derive(Args)]
pub(crate) struct RunsArgs {
    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(Args)]
pub(crate) struct AnswerArgs {
    /// The run, by its id
    run: String,
    /// The answer
    text: String,
}

#[derive(Args)]
pub(crate) struct PauseArgs {
    /// A run, by its id
    run: Option<String>,
    /// All runs of a repository
    #[arg(long, conflicts_with = "run")]
    repository: Option<String>,
    /// All runs
    #[arg(long, conflicts_with_all = ["run", "repository"])]
    all: bool,
    /// End the pause; a run in which workers died begins anew to count
    #[arg(long)]
    off: bool,
}

#[derive(Args)]
pub(crate) struct BudgetArgs {
    /// `batch:NAME`, `repository:NAME` or `day`; without it the limits are printed
    #[arg(value_parser = parse_scope)]
    scope: Option<String>,
    /// The most that runs may cost together, in US dollars; `none`: without a limit
    #[arg(requires = "scope")]
    usd: Option<String>,
}

fn parse_scope(text: &str) -> Result<String, String> {
    let is_scope = text == "day"
        || ["batch:", "repository:"]
            .iter()
            .any(|kind| text.strip_prefix(kind).is_some_and(|name| !name.is_empty()));
    is_scope
        .then(|| text.to_owned())
        .ok_or_else(|| "it is `batch:NAME`, `repository:NAME` or `day`".to_owned())
}

/// The beginning of a text, in one line.
fn shorten(text: &str) -> String {
    const CHARS_MAX: usize = 120;
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    match line.char_indices().nth(CHARS_MAX) {
        Some((at, _)) => format!("{}…", &line[..at]),
        None => line,
    }
}

fn format_usd(micro: i64) -> String {
    format!("${:.2}", micro as f64 / 1e6)
}

/// Prints the runs.
///
/// # Errors
/// When the journal cannot be reached.
pub(crate) async fn print_runs(settings: &Settings, args: &RunsArgs) -> Result<ExitCode, Failure> {
    let opened = settings.clone();
    let (runs, limits, pauses) = on_thread(move || {
        let (_, store) = opened.open()?;
        Ok((store.list(SHOWN_S)?, store.limits()?, store.pauses()?))
    })
    .await?;
    if args.json {
        let one = |run: &FleetRun| {
            json!({
                "run": run.task.run, "repository": run.task.repository, "workflow": run.task.workflow,
                "batch": run.task.batch, "state": run.state, "why": run.why, "until_ms": run.until_ms,
                "worker": run.worker, "account": run.used_account, "take_overs": run.take_overs,
                "spent_usd": run.spent_micro as f64 / 1e6, "submitted_ms": run.submitted_ms, "is_ended": run.is_ended,
            })
        };
        say!(
            "{}",
            json!({ "schema": "cuegate-fleet/runs/v1", "runs": runs.iter().map(one).collect::<Vec<_>>() })
        );
        return Ok(ExitCode::SUCCESS);
    }
    for (scope, why) in pauses {
        say!("paused  {scope}{}{why}", if why.is_empty() { "" } else { ": " });
    }
    for limit in limits {
        say!("budget  {}: {} of {}", limit.scope, format_usd(limit.used_micro), format_usd(limit.micro));
    }
    if runs.is_empty() {
        say!("no runs; `cuegate-fleet submit WORKFLOW TASK` adds one");
    }
    for run in runs {
        let worker = run.worker.as_deref().unwrap_or("–");
        let what = match (&*run.state, run.until_ms) {
            ("person", _) => "asks you".to_owned(),
            ("until", Some(until)) => format!("waits {} s", (until - now_ms()).max(0) / 1000),
            (state, _) => state.to_owned(),
        };
        let why = if run.why.is_empty() || run.state == "completed" {
            String::new()
        } else {
            format!("  {}", shorten(&run.why))
        };
        say!("{}  {}  {}  {worker}  {what}{why}", run.task.run, run.task.repository, run.task.workflow);
    }
    Ok(ExitCode::SUCCESS)
}

/// Ends a run.
///
/// # Errors
/// When there is none, or the journal cannot be reached.
pub(crate) async fn cancel_run(settings: &Settings, run: &str) -> Result<ExitCode, Failure> {
    let store = find_run(settings, run).await?;
    let (shared, id) = (store.clone(), run.to_owned());
    let found = on_thread(move || Ok(shared.find(&id)?)).await?;
    if let Some(found) = found.filter(|found| found.is_ended) {
        return Err(Failure::new(format!("run {run} has ended: {}", found.state)));
    }
    crate::hold::cancel_run(settings, &store, Path::new("."), run).await?;
    let (shared, id) = (store.clone(), run.to_owned());
    let is_over = on_thread(move || Ok(shared.find(&id)?)).await?.is_some_and(|found| found.is_ended);
    match (is_over, connect().await) {
        (true, Ok(client)) => forget_run(&client, run).await,
        (true, Err(_)) => {}
        (false, _) => wake_later(run).await,
    }
    say!("run {run}: cancelled");
    Ok(ExitCode::SUCCESS)
}

/// Answers a run. The answer is in the journal before anybody is woken.
///
/// # Errors
/// When the run does not wait for one, or the journal cannot be reached.
pub(crate) async fn answer_run(settings: &Settings, args: &AnswerArgs) -> Result<ExitCode, Failure> {
    find_run(settings, &args.run).await?;
    let words = ["answer", &args.run, &args.text, "--no-continue"];
    let (code, _, errors) = run_to_end(settings, Path::new("."), &words).await?;
    if code != 0 {
        return Err(Failure::new(errors.trim().trim_start_matches("error: ").to_owned()));
    }
    wake_later(&args.run).await;
    say!("run {}: answered", args.run);
    Ok(ExitCode::SUCCESS)
}

async fn find_run(
    settings: &Settings,
    run: &str,
) -> Result<std::sync::Arc<cuegate_postgres::fleet::FleetStore>, Failure> {
    let (opened, id) = (settings.clone(), run.to_owned());
    on_thread(move || {
        let (_, store) = opened.open()?;
        match store.find(&id)? {
            Some(_) => Ok(store),
            None => {
                Err(Failure::new(format!("the fleet has no run `{id}`"))
                    .hint("`cuegate-fleet runs` lists them"))
            }
        }
    })
    .await
}

/// Wakes a run; if Temporal is away, a worker does it later.
async fn wake_later(run: &str) {
    let woken = async { wake_run(&connect().await?, run).await };
    if let Ok(Err(Failure { message, .. })) = tokio::time::timeout(Duration::from_secs(10), woken).await {
        eprintln!("note: {message}; a worker wakes the run later");
    }
}

/// Begins or ends a pause.
///
/// # Errors
/// When the journal cannot be reached.
pub(crate) async fn pause_runs(settings: &Settings, args: &PauseArgs) -> Result<ExitCode, Failure> {
    let scope = match (&args.run, &args.repository, args.all) {
        (Some(run), ..) => format!("run:{run}"),
        (_, Some(name), _) => format!("repository:{name}"),
        (_, _, true) => "all".to_owned(),
        _ => return Err(Failure::new("nothing is named").hint("name a run, `--repository NAME` or `--all`")),
    };
    if let Some(run) = &args.run {
        find_run(settings, run).await?;
    }
    if let Some(name) = args.repository.as_ref().filter(|name| !settings.repositories.contains_key(*name)) {
        return Err(Failure::new(format!("there is no repository `{name}`"))
            .hint("the settings name those there are"));
    }
    let (opened, named, off) = (settings.clone(), scope.clone(), args.off);
    let changed = on_thread(move || {
        let (_, store) = opened.open()?;
        match off {
            true => Ok(store.end_pause(&named)?),
            false => Ok(store.pause(&named, "").map(|()| true)?),
        }
    })
    .await?;
    match (args.off, changed) {
        (true, true) => say!("{scope}: goes on"),
        (true, false) => say!("{scope}: was not paused"),
        (false, _) => say!("{scope}: no further run begins, and those at work stop after their calls"),
    }
    Ok(ExitCode::SUCCESS)
}

/// Prints or sets limits.
///
/// # Errors
/// When the journal cannot be reached.
pub(crate) async fn set_budget(settings: &Settings, args: &BudgetArgs) -> Result<ExitCode, Failure> {
    let micro = match args.usd.as_deref() {
        None | Some("none") => None,
        Some(text) => match text.trim_start_matches('$').parse::<f64>() {
            Ok(usd) if (0.0..1e9).contains(&usd) => Some((usd * 1e6).round() as i64),
            _ => return Err(Failure::new(format!("`{text}` is no amount")).hint("such as `25`, or `none`")),
        },
    };
    let (opened, scope, sets) = (settings.clone(), args.scope.clone(), args.usd.is_some());
    let limits = on_thread(move || {
        let (_, store) = opened.open()?;
        if let (Some(scope), true) = (&scope, sets) {
            store.set_limit(scope, micro)?;
        }
        Ok(store.limits()?)
    })
    .await?;
    if limits.is_empty() {
        say!("no limits; `cuegate-fleet budget day 50` sets one");
    }
    for limit in limits {
        say!("{}: {} of {}", limit.scope, format_usd(limit.used_micro), format_usd(limit.micro));
    }
    Ok(ExitCode::SUCCESS)
}

/// Checks what a fleet needs, a line each. The exit code is 1 if something is wrong.
///
/// # Errors
/// When a check cannot be made at all.
pub(crate) async fn check_all(settings: &Settings) -> Result<ExitCode, Failure> {
    let mut is_well = true;
    let mut tell = |what: &str, found: Result<String, Failure>| match found {
        Ok(found) => say!("{what:<10} {found}"),
        Err(Failure { message, hint }) => {
            is_well = false;
            say!("{what:<10} wrong: {message}");
            if let Some(hint) = hint {
                say!("{:<10} {hint}", "");
            }
        }
    };
    let own = read_version(settings).await;
    let program = own.as_ref().map(Clone::clone).unwrap_or_default();
    tell("cuegate", own);
    let opened = settings.clone();
    let journal = on_thread(move || {
        let (_, store) = opened.open()?;
        Ok((opened.address()?.to_string(), store.workers()?))
    })
    .await;
    let workers = match journal {
        Ok((address, workers)) => {
            tell("journal", Ok(address));
            workers
        }
        Err(failure) => {
            tell("journal", Err(failure));
            Vec::new()
        }
    };
    match connect().await {
        Err(failure) => tell("temporal", Err(failure)),
        Ok(client) => {
            tell("temporal", crate::fairness::find_namespace(&client).await);
            tell("fairness", crate::fairness::check_fairness(&client).await);
        }
    }
    let alive: Vec<_> = workers.iter().filter(|worker| worker.silent_s <= SILENT_S).collect();
    if alive.is_empty() {
        tell("workers", Err(Failure::new("none is at work").hint("start one with `cuegate-fleet worker`")));
    }
    for worker in alive {
        let mut about = format!("{} on {}, {} slots", worker.name, worker.host, worker.slots);
        if !worker.capabilities.is_empty() {
            about.push_str(&format!(", has {}", worker.capabilities));
        }
        if worker.is_draining {
            about.push_str(", ends");
        }
        let is_same = worker.version == env!("CARGO_PKG_VERSION") && worker.program == program;
        tell(
            "worker",
            match is_same {
                true => Ok(about),
                false => Err(Failure::new(format!(
                    "{about}: it has cuegate-fleet {} and {}, here are {} and {program}",
                    worker.version,
                    worker.program,
                    env!("CARGO_PKG_VERSION"),
                ))
                .hint("a newer journal is not written by an older program: update all workers")),
            },
        );
    }
    Ok(if is_well { ExitCode::SUCCESS } else { ExitCode::from(1) })
}
