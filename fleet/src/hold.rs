//! Takes a run on this machine and drives it until it ends or waits.
//!
//! Temporal's word never ends a run: a cancellation of the activity may be a server that was away. What counts are the lease
//! of the run and its inbox, which `cuegate` reads.

use std::{
    fs::{File, OpenOptions},
    path::{Path, PathBuf},
    process::Stdio,
    sync::Arc,
    time::Duration,
};

use cuegate_journal::{Error as JournalError, Journal, Owner, RunId};
use cuegate_postgres::{
    PostgresJournal,
    fleet::{FleetRun, FleetStore, HoldOutcome, HoldRequest, HoldVerdict, OfferedAccount},
};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use temporalio_common::error::ApplicationFailure;
use temporalio_macros::activities;
use temporalio_sdk::activities::{ActivityContext, ActivityError};
use tokio::{
    process::Child,
    sync::{Semaphore, watch},
};

use crate::Failure;
use crate::checkout::Checkouts;
use crate::program::{command_in, read_status, run_to_end};
use crate::settings::{RepositorySettings, Settings, on_thread};
use crate::submit::{SubmitArgs, add_runs, describe_task, list_tasks};
use crate::workflow::Left;

/// What OpenTelemetry's exporters add to all that they send.
const RESOURCE: &str = "OTEL_RESOURCE_ATTRIBUTES";
/// How often Temporal hears of a run. It passes on fewer.
const BEAT: Duration = Duration::from_secs(1);
/// How often a lease of another machine is looked at.
const LOOK: Duration = Duration::from_secs(1);
/// How often it is asked whether a run is paused.
const PAUSE_LOOK: Duration = Duration::from_secs(3);
/// How long a run waits for a free slot on this machine before another one may have it.
const PATIENCE: Duration = Duration::from_secs(5);

/// A machine that holds runs. Its activities are named after it.
#[derive(Clone)]
pub(crate) struct Machine {
    pub(crate) name: String,
    pub(crate) settings: Arc<Settings>,
    pub(crate) home: PathBuf,
    pub(crate) journal: Arc<PostgresJournal>,
    pub(crate) store: Arc<FleetStore>,
    pub(crate) checkouts: Arc<Checkouts>,
    /// One for each run at the same time.
    pub(crate) slots: Arc<Semaphore>,
    /// Turns true when the worker is to end.
    pub(crate) drain: watch::Receiver<bool>,
    /// How long calls in progress may go on then.
    pub(crate) drain_max: Duration,
}

#[activities]
impl Machine {
    /// Drives a run until it ends or waits.
    #[activity]
    pub(crate) async fn hold(
        self: Arc<Self>,
        ctx: ActivityContext,
        run: String,
    ) -> Result<Left, ActivityError> {
        let holding = self.hold_run(&run);
        tokio::pin!(holding);
        loop {
            tokio::select! {
                left = &mut holding => return left.map_err(to_activity_error),
                () = tokio::time::sleep(BEAT) => {
                    // If the server is away, the run goes on all the same.
                    let _ = ctx.record_heartbeat(()).await;
                }
            }
        }
    }

    /// Submits what a schedule says.
    #[activity]
    pub(crate) async fn feed(
        self: Arc<Self>,
        _ctx: ActivityContext,
        (schedule, occasion): (String, String),
    ) -> Result<(), ActivityError> {
        self.feed_runs(&schedule, occasion).await.map_err(to_activity_error)
    }

    /// Ends a run: at once if nobody drives it, else by a message to whoever does.
    #[activity]
    pub(crate) async fn cancel(
        self: Arc<Self>,
        _ctx: ActivityContext,
        run: String,
    ) -> Result<(), ActivityError> {
        cancel_run(&self.settings, &self.store, &self.home, &run).await.map_err(to_activity_error)
    }
}

fn to_activity_error(Failure { message, hint }: Failure) -> ActivityError {
    let text = hint.map_or_else(|| message.clone(), |hint| format!("{message}; {hint}"));
    ActivityError::application(ApplicationFailure::new(std::io::Error::other(text)))
}

/// Ends a run, see [`Machine::cancel`].
///
/// # Errors
/// When the journal or `cuegate` fails.
pub(crate) async fn cancel_run(
    settings: &Settings,
    store: &Arc<FleetStore>,
    folder: &Path,
    run: &str,
) -> Result<(), Failure> {
    let (shared, id) = (store.clone(), run.to_owned());
    if !on_thread(move || Ok(shared.cancel(&id)?)).await? {
        return Ok(());
    }
    let (code, _, errors) = run_to_end(settings, folder, &["cancel", run]).await?;
    match code {
        0 => Ok(()),
        // It has ended meanwhile, or begins just now: then a worker ends it.
        _ if ["ended", "is over", "no run"].iter().any(|what| errors.contains(what)) => Ok(()),
        _ => Err(Failure::new(format!("run {run} cannot be cancelled: {}", errors.trim()))),
    }
}

impl Machine {
    async fn feed_runs(&self, schedule: &str, occasion: String) -> Result<(), Failure> {
        let (store, name) = (self.store.clone(), schedule.to_owned());
        let Some(text) = on_thread(move || Ok(store.find_schedule(&name)?)).await? else { return Ok(()) };
        let args: SubmitArgs = serde_json::from_str(&text)
            .map_err(|error| Failure::new(format!("schedule `{schedule}` cannot be read: {error}")))?;
        // Tasks are in a file of the repository, and issues belong to it.
        let name = describe_task(&self.settings, &args)?.repository;
        let clone = self.checkouts.prepare(&name, self.find_repository(&name)?, false).await?;
        let tasks = list_tasks(&self.settings, &args, &clone, Some(occasion)).await?;
        add_runs(&self.store, None, tasks).await.map(|_| ())
    }

    async fn hold_run(&self, run: &str) -> Result<Left, Failure> {
        let id: RunId = run.parse().map_err(|_| Failure::new(format!("`{run}` is not a run id")))?;
        let Ok(slot) = tokio::time::timeout(PATIENCE, self.slots.clone().acquire_owned()).await else {
            return Ok(Left::Again);
        };
        let _slot = slot.map_err(|_| Failure::new("the worker ends"))?;
        loop {
            if *self.drain.borrow() {
                return Ok(Left::Again);
            }
            let (journal, id) = (self.journal.clone(), id.clone());
            if on_thread(move || is_free(&journal, &id)).await? {
                break;
            }
            // Its holder may have lost its connection to Temporal and work on.
            tokio::time::sleep(LOOK).await;
        }
        let request =
            HoldRequest { run: run.to_owned(), worker: self.name.clone(), accounts: self.accounts() };
        let store = self.store.clone();
        match on_thread(move || Ok(store.begin_hold(request)?)).await? {
            HoldVerdict::Unknown => Ok(Left::Ended { state: "unknown".to_owned() }),
            HoldVerdict::Ended { state } => Ok(Left::Ended { state }),
            HoldVerdict::Wait { until_ms, .. } => Ok(Left::Waits { until_ms }),
            HoldVerdict::Go { account } => {
                let outcome = match self.drive(run, account.as_deref()).await {
                    Ok(outcome) => outcome,
                    // Another machine may be able to: this one lacks the repository, git or the program.
                    Err(failure) => {
                        let outcome = HoldOutcome {
                            state: "queued".to_owned(),
                            why: failure.message.clone(),
                            ..self.outcome(run)
                        };
                        self.leave(outcome).await?;
                        return Err(failure);
                    }
                };
                let left = match (&*outcome.state, outcome.is_ended) {
                    (state, true) => Left::Ended { state: state.to_owned() },
                    ("queued", _) => Left::Again,
                    _ => Left::Waits { until_ms: outcome.until_ms },
                };
                self.leave(outcome).await?;
                Ok(left)
            }
        }
    }

    fn find_repository(&self, name: &str) -> Result<&RepositorySettings, Failure> {
        self.settings.repositories.get(name).ok_or_else(|| {
            Failure::new(format!("this worker has no repository `{name}`")).hint("add it to `[repositories]`")
        })
    }

    async fn leave(&self, outcome: HoldOutcome) -> Result<(), Failure> {
        let store = self.store.clone();
        on_thread(move || Ok(store.end_hold(outcome)?)).await
    }

    fn outcome(&self, run: &str) -> HoldOutcome {
        HoldOutcome { run: run.to_owned(), worker: self.name.clone(), ..HoldOutcome::default() }
    }

    fn accounts(&self) -> Vec<OfferedAccount> {
        let accounts = self.settings.accounts.iter();
        accounts.map(|(name, account)| OfferedAccount { name: name.clone(), slots: account.slots }).collect()
    }

    /// Starts `cuegate` for a run until that ends or waits.
    async fn drive(&self, run: &str, account: Option<&str>) -> Result<HoldOutcome, Failure> {
        let (store, id) = (self.store.clone(), run.to_owned());
        let wanted = on_thread(move || Ok(store.find(&id)?)).await?;
        let wanted = wanted.ok_or_else(|| Failure::new(format!("nobody submitted run {run}")))?;
        let name = &wanted.task.repository;
        let repository = self.find_repository(name)?;
        let status = read_status(&self.settings, &self.home, run).await?;
        if let Some(status) = &status
            && let Some(outcome) = self.settle(&wanted, status, run_inbox(&self.journal, run).await?, false)
        {
            return Ok(outcome);
        }
        let clone = self.checkouts.prepare(name, repository, status.is_some()).await?;
        let mut command = command_in(&self.settings, &clone);
        match &status {
            Some(_) => command.args(resume_args(&wanted)),
            None => command.args(start_args(&wanted)),
        };
        if let Some(account) = account.and_then(|name| self.settings.accounts.get(name)) {
            command.envs(&account.env);
        }
        // Its spans name the worker.
        let resource = std::env::var(RESOURCE).unwrap_or_default();
        let comma = if resource.is_empty() { "" } else { "," };
        command.env(RESOURCE, format!("{resource}{comma}cuegate.worker={}", self.name));
        let said = self.home.join("logs").join(format!("{run}.log"));
        let log = open_log(&said)?;
        let errors = log.try_clone().map_err(|error| Failure::new(error.to_string()))?;
        // A signal to the worker's terminal must not reach it; it outlives a worker that is killed, and nothing is lost.
        command.process_group(0).stdout(log).stderr(errors).stdin(Stdio::null());
        let mut child = command
            .spawn()
            .map_err(|error| Failure::new(format!("failed to start `{}`: {error}", self.settings.cuegate)))?;
        let code = self.wait_for(run, &mut child).await?;
        let status = read_status(&self.settings, &self.home, run).await?;
        let Some(status) = status else {
            return match code {
                // What was submitted is wrong, as everywhere.
                2 => {
                    let why = format!("it could not start: {}", last_lines(&said));
                    Ok(HoldOutcome { state: "failed".to_owned(), why, is_ended: true, ..self.outcome(run) })
                }
                // This machine lacks something, or the journal was away.
                4 => Err(Failure::new(format!("it could not start here: {}", last_lines(&said)))),
                // It was killed or interrupted before its first record.
                _ => Ok(HoldOutcome { state: "queued".to_owned(), ..self.outcome(run) }),
            };
        };
        match self.settle(&wanted, &status, run_inbox(&self.journal, run).await?, true) {
            Some(outcome) => Ok(outcome),
            // It cannot go on here, such as without a commit or an agent. Another machine may be able to, after a while.
            None if [2, 4].contains(&code) => Err(Failure::new(last_lines(&said))),
            // Interrupted here, or an answer came meanwhile, or its process died.
            None => Ok(HoldOutcome { state: "queued".to_owned(), ..self.outcome(run) }),
        }
    }

    /// Waits for the process of a run. When the worker is to end, or the run is paused, its calls in progress end first.
    async fn wait_for(&self, run: &str, child: &mut Child) -> Result<i32, Failure> {
        let pid = child.id().and_then(|pid| Pid::from_raw(i32::try_from(pid).ok()?));
        let send = |signal| pid.map(|pid| kill_process(pid, signal));
        let lost = |error: std::io::Error| Failure::new(format!("a process was lost: {error}"));
        let mut drain = self.drain.clone();
        loop {
            tokio::select! {
                ended = child.wait() => return Ok(ended.map_err(lost)?.code().unwrap_or(-1)),
                Ok(_) = drain.wait_for(|drain| *drain) => break,
                () = tokio::time::sleep(PAUSE_LOOK) => {}
            }
            let (store, id) = (self.store.clone(), run.to_owned());
            if let Ok(true) = on_thread(move || Ok(store.is_paused(&id)?)).await {
                break;
            }
        }
        send(Signal::USR1);
        match tokio::time::timeout(self.drain_max, child.wait()).await {
            Ok(ended) => Ok(ended.map_err(lost)?.code().unwrap_or(-1)),
            Err(_) => {
                send(Signal::TERM);
                Ok(child.wait().await.map_err(lost)?.code().unwrap_or(-1))
            }
        }
    }

    /// What becomes of a run at rest; `None` if it can go on at once. With `is_tried` it was just driven here.
    fn settle(
        &self,
        wanted: &FleetRun,
        status: &Value,
        has_letter: bool,
        is_tried: bool,
    ) -> Option<HoldOutcome> {
        let run = &wanted.task.run;
        let state = status["state"].as_str().unwrap_or_default();
        let cost = status["cost_usd"].as_f64().map(|usd| (usd * 1e6).ceil() as i64);
        let outcome = HoldOutcome {
            // What nobody knows is as much as it may be.
            spent_micro: cost.or(wanted.task.limit_micro).unwrap_or(0),
            why: status["reason"].as_str().unwrap_or_default().to_owned(),
            ..self.outcome(run)
        };
        if !["running", "suspended", "new"].contains(&state) {
            return Some(HoldOutcome { state: state.to_owned(), is_ended: true, ..outcome });
        }
        let waiting = &status["waiting"];
        let until_ms = waiting["until"].as_str().and_then(parse_time);
        match waiting["kind"].as_str() {
            Some("person") if !has_letter => Some(HoldOutcome { state: "person".to_owned(), ..outcome }),
            Some("quota") if until_ms.is_some_and(|until| until > now_ms()) && !has_letter => {
                Some(HoldOutcome { state: "until".to_owned(), until_ms, is_account_out: true, ..outcome })
            }
            Some("environment") if !has_letter && is_tried => {
                Some(HoldOutcome { state: "stuck".to_owned(), ..outcome })
            }
            _ => None,
        }
    }
}

/// The arguments that start a run.
fn start_args(wanted: &FleetRun) -> Vec<String> {
    let task = &wanted.task;
    let mut args = vec!["run".to_owned(), task.workflow.clone()];
    args.extend(task.task.clone());
    args.extend(["--run-id", &task.run, "--worktree"].map(str::to_owned));
    if let Some(micro) = task.limit_micro {
        args.push(format!("--budget-usd={}.{:06}", micro / 1_000_000, micro % 1_000_000));
    }
    args.extend(task.args.iter().cloned());
    args
}

/// The arguments that continue a run. Its record gives it no rights on another machine, so `--no-sandbox` is passed again if
/// the run was submitted with it.
fn resume_args(wanted: &FleetRun) -> Vec<String> {
    let mut args = vec!["resume".to_owned(), wanted.task.run.clone()];
    args.extend(wanted.task.args.iter().filter(|arg| *arg == "--no-sandbox").cloned());
    args
}

/// Whether nobody drives a run.
fn is_free(journal: &PostgresJournal, run: &RunId) -> Result<bool, Failure> {
    match journal.acquire(run, &Owner::current()) {
        Ok(lease) => {
            journal.release(&lease)?;
            Ok(true)
        }
        Err(JournalError::Held { .. }) => Ok(false),
        Err(JournalError::NoSuchRun { .. }) => Ok(true),
        Err(error) => Err(error.into()),
    }
}

/// Whether somebody answered or cancelled the run, and it has not read that yet.
async fn run_inbox(journal: &Arc<PostgresJournal>, run: &str) -> Result<bool, Failure> {
    let (journal, run) = (journal.clone(), run.to_owned());
    on_thread(move || {
        let id: RunId = run.parse().map_err(|_| Failure::new("invalid run id"))?;
        match journal.inbox(&id) {
            Ok(letters) => Ok(!letters.is_empty()),
            Err(JournalError::NoSuchRun { .. }) => Ok(false),
            Err(error) => Err(error.into()),
        }
    })
    .await
}

fn open_log(path: &Path) -> Result<File, Failure> {
    let failed = |error| Failure::new(format!("failed to write `{}`: {error}", path.display()));
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder).map_err(failed)?;
    }
    OpenOptions::new().append(true).create(true).open(path).map_err(failed)
}

fn last_lines(path: &Path) -> String {
    const LINES: usize = 4;
    let text =
        std::fs::read(path).map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).unwrap_or_default();
    let lines: Vec<&str> = text.lines().filter(|line| !line.trim().is_empty()).collect();
    lines[lines.len().saturating_sub(LINES)..].join(" / ")
}

/// The time now, in milliseconds since 1970.
pub(crate) fn now_ms() -> i64 {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    now.map_or(0, |now| i64::try_from(now.as_millis()).unwrap_or(i64::MAX))
}

/// A time as Cuegate prints it, `2026-11-21T12:00:00.000Z`, in milliseconds since 1970.
fn parse_time(text: &str) -> Option<i64> {
    let number = |range: std::ops::Range<usize>| text.get(range)?.parse::<i64>().ok();
    let (year, month, day) = (number(0..4)?, number(5..7)?, number(8..10)?);
    let (hour, minute, second) = (number(11..13)?, number(14..16)?, number(17..19)?);
    let ms = number(20..23).unwrap_or(0);
    // Days since 1970 of the proleptic Gregorian calendar, after Howard Hinnant's `days_from_civil`.
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let of_era = year - era * 400;
    let of_year = (153 * (month + if month > 2 { -3 } else { 9 }) + 2) / 5 + day - 1;
    let days = era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719_468;
    Some((((days * 24 + hour) * 60 + minute) * 60 + second) * 1000 + ms)
}
