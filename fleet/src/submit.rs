//! `submit`: adds runs.

use std::{
    path::{Path, PathBuf},
    process::ExitCode,
    sync::Arc,
};

use clap::Args;
use cuegate_journal::random_token;
use cuegate_postgres::fleet::FleetStore;
use cuegate_postgres::fleet::FleetTask;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use temporalio_client::{
    Client,
    schedules::{CreateScheduleOptions, ScheduleAction, ScheduleSpec},
};

use crate::Failure;
use crate::checkout::Checkouts;
use crate::program::run_to_end;
use crate::server::{QUEUE, connect, shorten_error, start_run};
use crate::settings::{Settings, on_thread};
use crate::workflow::{FeedWorkflow, HeldRun};

#[derive(Args, Debug, Clone, Serialize, Deserialize)]
pub(crate) struct SubmitArgs {
    /// The workflow, as for `cuegate run`
    workflow: String,
    /// The task
    task: Option<String>,
    /// One run for each open issue of GitHub with this label
    #[arg(long, conflicts_with_all = ["task", "from"])]
    label: Option<String>,
    /// One run for each task of a file, as for `cuegate work`
    #[arg(long, value_name = "FILE", conflicts_with = "task")]
    from: Option<PathBuf>,
    /// The repository, by its name in the settings [default: the only one]
    #[arg(long)]
    repository: Option<String>,
    /// The most that each run may cost, in US dollars
    #[arg(long, value_name = "USD")]
    max_usd: Option<f64>,
    /// The name of the runs that share a budget
    #[arg(long)]
    batch: Option<String>,
    /// What a machine must have
    #[arg(long, value_name = "NAME", default_value = "")]
    needs: String,
    /// The account that the agents must use
    #[arg(long)]
    account: Option<String>,
    /// Runs with a lower number begin first, 1 to 5
    #[arg(long, value_parser = clap::value_parser!(i32).range(1..=5))]
    priority: Option<i32>,
    /// A second submission with this key adds nothing; issues and the tasks of a file have one of their own
    #[arg(long, conflicts_with_all = ["label", "from", "schedule"])]
    key: Option<String>,
    /// After how many seconds without a word a machine is taken for dead
    #[arg(long, value_name = "SECONDS", default_value_t = 30, value_parser = clap::value_parser!(i32).range(2..=3600))]
    silence: i32,
    /// Submit it again at these times, as in `0 2 * * MON-FRI` (UTC); `off` ends that. Needs `--name`
    #[arg(long, value_name = "CRON", requires = "name")]
    schedule: Option<String>,
    /// The name of the schedule
    #[arg(long, requires = "schedule")]
    name: Option<String>,
    /// Print JSON
    #[arg(long)]
    json: bool,
    /// Further arguments of `cuegate run`, such as `--pull-request`
    #[arg(last = true)]
    args: Vec<String>,
}

/// What Temporal gets of a run.
pub(crate) fn hold_of(task: &FleetTask) -> HeldRun {
    let account = task.account.as_ref().map(|account| format!("@{account}")).unwrap_or_default();
    let mut fairness = format!("{}{account}", task.repository);
    // Temporal's limit.
    fairness.truncate((0..=64).rev().find(|at| fairness.is_char_boundary(*at)).unwrap_or(0));
    let silence_s = task.silence_s.and_then(|silence| u64::try_from(silence).ok()).unwrap_or(30);
    HeldRun { run: task.run.clone(), needs: task.needs.clone(), fairness, silence_s }
}

/// Adds the runs and prints their ids, or schedules them.
///
/// # Errors
/// When the journal or the server refuses or cannot be reached. What was added then is begun by a worker later.
pub(crate) async fn submit_runs(settings: &Settings, args: SubmitArgs) -> Result<ExitCode, Failure> {
    let opened = settings.clone();
    let (_, store) = on_thread(move || opened.open()).await?;
    if let (Some(times), Some(name)) = (&args.schedule, &args.name) {
        // What is wrong with it is said now, not at night.
        describe_task(settings, &args)?;
        return schedule_runs(&store, &args, times, name).await;
    }
    let tasks = match (args.label.is_some() || args.from.is_some(), Path::new(".git").exists()) {
        (true, false) => list_in_clone(settings, &args).await?,
        _ => list_tasks(settings, &args, Path::new("."), None).await?,
    };
    let client = connect().await;
    let ids = add_runs(&store, client.as_ref().ok(), tasks).await?;
    if args.json {
        let ids: Vec<&String> = ids.iter().map(|(run, _)| run).collect();
        say!("{}", serde_json::json!({ "schema": "cuegate-fleet/submitted/v1", "runs": ids }));
    } else {
        for (run, is_new) in &ids {
            say!("{run}{}", if *is_new { "" } else { "  was submitted before" });
        }
    }
    client.map(|_| ExitCode::SUCCESS).map_err(|failure| {
        let hint = failure.hint.unwrap_or_default();
        Failure { hint: Some(format!("{hint}; the runs are noted, and a worker begins them")), ..failure }
    })
}

/// What all runs of a submission have in common.
///
/// # Errors
/// When it is wrong.
pub(crate) fn describe_task(settings: &Settings, args: &SubmitArgs) -> Result<FleetTask, Failure> {
    let repository = match &args.repository {
        Some(name) => name.clone(),
        None if settings.repositories.len() == 1 => {
            settings.repositories.keys().next().cloned().unwrap_or_default()
        }
        None => return Err(Failure::new("the repository is missing").hint("name it with `--repository`")),
    };
    if !settings.repositories.is_empty() && !settings.repositories.contains_key(&repository) {
        let names: Vec<&str> = settings.repositories.keys().map(String::as_str).collect();
        return Err(Failure::new(format!("there is no repository `{repository}`"))
            .hint(format!("the settings have {}", names.join(", "))));
    }
    let limit_micro = match args.max_usd {
        Some(usd) if usd > 0.0 && usd < 1e9 => Some((usd * 1e6).round() as i64),
        Some(usd) => return Err(Failure::new(format!("`{usd}` is no limit")).hint("it is more than 0")),
        None => None,
    };
    if let Some(account) = args.account.as_ref().filter(|name| !settings.accounts.contains_key(*name)) {
        return Err(Failure::new(format!("there is no account `{account}`"))
            .hint("add it to `[accounts]`, here and on the workers that have its login"));
    }
    if limit_micro.is_some() && args.args.iter().any(|arg| arg.starts_with("--budget-usd")) {
        return Err(Failure::new("the run would have two limits in dollars")
            .hint("`--max-usd` is the limit of the run; leave out `--budget-usd`"));
    }
    Ok(FleetTask {
        repository,
        workflow: args.workflow.clone(),
        args: args.args.clone(),
        needs: args.needs.clone(),
        batch: args.batch.clone(),
        account: args.account.clone(),
        limit_micro,
        priority: args.priority,
        silence_s: Some(args.silence),
        ..FleetTask::default()
    })
}

/// The runs of a submission that is made outside of a clone: the workflow is in the repository.
async fn list_in_clone(settings: &Settings, args: &SubmitArgs) -> Result<Vec<FleetTask>, Failure> {
    let name = describe_task(settings, args)?.repository;
    let Some(repository) = settings.repositories.get(&name) else {
        return Err(
            Failure::new(format!("there is no repository `{name}`")).hint("use the command in a clone of it")
        );
    };
    let folder = tempfile::tempdir()
        .map_err(|error| Failure::new(format!("failed to make a temporary folder: {error}")))?;
    let clone = Checkouts::new(folder.path().to_owned()).prepare(&name, repository, false).await?;
    let from = args.from.as_ref().map(std::path::absolute).transpose();
    let from = from.map_err(|error| Failure::new(format!("`--from`: {error}")))?;
    list_tasks(settings, &SubmitArgs { from, ..args.clone() }, &clone, None).await
}

/// The runs of a submission. `folder` is a clone of the repository, for the queue; `occasion` makes a repeated submission
/// the same one.
///
/// # Errors
/// When the submission is wrong, or the queue cannot be read.
pub(crate) async fn list_tasks(
    settings: &Settings,
    args: &SubmitArgs,
    folder: &Path,
    occasion: Option<String>,
) -> Result<Vec<FleetTask>, Failure> {
    let named = describe_task(settings, args)?;
    match (&args.label, &args.from) {
        (None, None) => {
            let key = occasion.or_else(|| args.key.clone());
            Ok(vec![FleetTask { task: args.task.clone(), key, ..named }])
        }
        (label, from) => {
            read_queue(settings, args, label.as_deref(), from.as_deref(), (&named, folder)).await
        }
    }
}

/// Adds runs. Returns their ids, and whether each is new.
///
/// # Errors
/// When the journal or the server refuses or cannot be reached.
pub(crate) async fn add_runs(
    store: &Arc<FleetStore>,
    client: Option<&Client>,
    tasks: Vec<FleetTask>,
) -> Result<Vec<(String, bool)>, Failure> {
    let mut ids = Vec::new();
    for task in tasks {
        let task = FleetTask { run: new_run_id(), ..task };
        let (shared, added) = (store.clone(), task.clone());
        let run = on_thread(move || Ok(shared.submit(added)?)).await?;
        let is_new = run == task.run;
        if let Some(client) = client {
            let named = FleetTask { run: run.clone(), ..task.clone() };
            start_run(client, hold_of(&named), task.priority).await?;
            let (shared, id) = (store.clone(), run.clone());
            on_thread(move || Ok(shared.note_started(&id)?)).await?;
        }
        ids.push((run, is_new));
    }
    Ok(ids)
}

/// The name of a schedule in Temporal.
fn schedule_of(name: &str) -> String {
    format!("cuegate-schedule-{name}")
}

/// Lets Temporal submit the same at certain times. What is submitted is in the database, not in Temporal.
async fn schedule_runs(
    store: &Arc<FleetStore>,
    args: &SubmitArgs,
    times: &str,
    name: &str,
) -> Result<ExitCode, Failure> {
    let client = connect().await?;
    let (kept, key) =
        (SubmitArgs { schedule: None, name: None, json: false, ..args.clone() }, name.to_owned());
    if times == "off" {
        let _ = client.get_schedule_handle(schedule_of(name)).delete(Default::default()).await;
        let shared = store.clone();
        let was_there = on_thread(move || Ok(shared.set_schedule(&key, None)?)).await?;
        let what = if was_there { "ended" } else { "there is none of this name" };
        say!("schedule {name}: {what}");
        return Ok(ExitCode::SUCCESS);
    }
    // What is wrong with the times is said before an earlier schedule of the name is replaced.
    let trial = format!("{}-trial-{}", schedule_of(name), random_token());
    for id in [trial, schedule_of(name)] {
        let handle = client.get_schedule_handle(id.clone());
        if id == schedule_of(name) {
            let _ = handle.delete(Default::default()).await;
        }
        let spec = ScheduleSpec::builder().cron_strings(vec![times.to_owned()]).build();
        let workflow = format!("cuegate-feed-{name}");
        let action = ScheduleAction::start_workflow(FeedWorkflow::run, name.to_owned(), QUEUE, workflow);
        let options = CreateScheduleOptions::builder().action(action).spec(spec).build();
        client.create_schedule(id.clone(), options).await.map_err(|error| {
            Failure::new(format!("Temporal refuses the times `{times}`: {}", shorten_error(&error)))
                .hint("five fields: minute, hour, day, month, day of the week, such as `0 2 * * MON-FRI`")
        })?;
        if id != schedule_of(name) {
            let _ = handle.delete(Default::default()).await;
        }
    }
    let (shared, text) = (store.clone(), serde_json::to_string(&kept).unwrap_or_default());
    on_thread(move || Ok(shared.set_schedule(&key, Some(&text))?)).await?;
    say!("schedule {name}: {times} (UTC)");
    Ok(ExitCode::SUCCESS)
}

/// The tasks that `cuegate work` would take, by its own rules.
async fn read_queue(
    settings: &Settings,
    args: &SubmitArgs,
    label: Option<&str>,
    from: Option<&Path>,
    (named, folder): (&FleetTask, &Path),
) -> Result<Vec<FleetTask>, Failure> {
    // It only lists, so no agent is called: each run has its own agent and limit.
    let script = tempfile::NamedTempFile::new()
        .and_then(|file| std::fs::write(file.path(), "{\"answers\": []}").map(|()| file))
        .map_err(|error| Failure::new(format!("failed to write a temporary file: {error}")))?;
    let mut words: Vec<String> =
        ["work", &args.workflow, "--dry-run", "--json", "--unlimited"].map(str::to_owned).to_vec();
    words.push(format!("--script={}", script.path().display()));
    words.extend(label.map(|label| format!("--label={label}")));
    words.extend(from.map(|from| format!("--from={}", from.display())));
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let (code, said, errors) = run_to_end(settings, folder, &words).await?;
    let read: Value = serde_json::from_str(&said).map_err(|_| {
        let errors = errors.trim().trim_start_matches("error: ");
        Failure::new(format!("the tasks cannot be read (exit {code}): {errors}")).hint(
            "use the command in a clone of the repository; tasks are listed as `cuegate work --dry-run` does",
        )
    })?;
    let mut tasks = Vec::new();
    // What was taken by `cuegate work` is not there, nor is what cannot be taken.
    let entries = read["tasks"].as_array().into_iter().flatten();
    for entry in entries.filter(|entry| entry["state"] == "next") {
        let mut task = named.clone();
        match entry["issue"].as_u64() {
            Some(number) => {
                task.key = Some(format!("{}#{number}", named.repository));
                task.args.splice(0..0, ["--issue".to_owned(), number.to_string()]);
            }
            None => {
                let text = entry["text"].as_str().or(entry["title"].as_str()).unwrap_or_default();
                task.task = Some(text.to_owned());
                let digest = cuegate_journal::Digest::for_bytes(text.as_bytes());
                task.key = Some(format!("{}/{}/{digest}", named.repository, args.workflow));
            }
        }
        for (name, value) in entry["set"].as_object().into_iter().flatten() {
            task.args.push(format!("--set={name}={}", value.as_str().unwrap_or_default()));
        }
        tasks.push(task);
    }
    Ok(tasks)
}

/// A random id that no other run has.
fn new_run_id() -> String {
    random_token().chars().filter(|c| c.is_ascii_lowercase() || c.is_ascii_digit()).take(12).collect()
}
