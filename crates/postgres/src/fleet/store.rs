//! Reads and writes the tables of a fleet. Which worker drives a run is decided in `hold.rs`.

use std::time::Duration;

use cuegate_journal::Error;
use postgres::{Client, Error as DbError, Row};

use super::tables::{FORMAT, prepare_tables};
use crate::address::Address;
use crate::connection::{Access, Connection};

/// How long a statement waits for a server that is away.
const PATIENCE: Duration = Duration::from_secs(30);
/// How often the connection is looked at while nobody uses it.
const REST: Duration = Duration::from_secs(3600);

/// A run that somebody wants. It is started once, however often it is submitted.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct FleetTask {
    /// The id that the run will have.
    pub run: String,
    /// What makes a second submission the same one.
    pub key: Option<String>,
    /// A repository by its name in the settings of the workers.
    pub repository: String,
    /// The workflow, as for `cuegate run`.
    pub workflow: String,
    /// The task, in words.
    pub task: Option<String>,
    /// Further arguments of `cuegate run`.
    pub args: Vec<String>,
    /// What a machine must have.
    pub needs: String,
    /// The runs that share a budget.
    pub batch: Option<String>,
    /// The account that its agents must use.
    pub account: Option<String>,
    /// The most that it may cost, in millionths of a US dollar.
    pub limit_micro: Option<i64>,
    /// Lower ones begin first, 1 to 5.
    pub priority: Option<i32>,
    /// After how many seconds without a word a machine is taken for dead.
    pub silence_s: Option<i32>,
}

/// A run of a fleet, and where it stands.
#[derive(Debug, Clone, PartialEq)]
pub struct FleetRun {
    pub task: FleetTask,
    /// `queued`, `running`, `person`, `until`, `paused`, `stuck`, or how it ended.
    pub state: String,
    /// Why it waits or how it ended, in words.
    pub why: String,
    /// Until when it waits, in milliseconds since 1970.
    pub until_ms: Option<i64>,
    /// The worker that has it, or had it last.
    pub worker: Option<String>,
    /// The account that its agents use.
    pub used_account: Option<String>,
    /// How often a worker died in it since its last record.
    pub take_overs: i32,
    /// What it cost, in millionths of a US dollar.
    pub spent_micro: i64,
    /// When it was submitted, in milliseconds since 1970.
    pub submitted_ms: i64,
    pub is_ended: bool,
}

/// A machine that takes runs.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct FleetWorker {
    pub name: String,
    pub host: String,
    /// The version of its `cuegate-fleet`.
    pub version: String,
    /// The version of its `cuegate`.
    pub program: String,
    /// How many runs it drives at the same time.
    pub slots: i32,
    pub capabilities: String,
    pub is_draining: bool,
    /// How long nothing was heard of it, in seconds.
    pub silent_s: i64,
}

/// A limit of what several runs cost together, and how much of it they use.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FleetLimit {
    /// `batch:NAME`, `repository:NAME` or `day`.
    pub scope: String,
    /// In millionths of a US dollar.
    pub micro: i64,
    /// What runs spent or may still spend of it.
    pub used_micro: i64,
}

/// The tables of a fleet. Its threads share it; every call blocks.
#[derive(Debug)]
pub struct FleetStore {
    connection: Connection,
}

/// The runs that count for a limit, as a condition on `fleet_runs` with the scope as `$1`.
pub(super) const IN_SCOPE: &str = "('batch:' || coalesce(batch, '') = $1 or 'repository:' || repository = $1 or $1 = 'day' and day = current_date)";
/// What a run counts: what it may cost while it lives, and what it cost then.
pub(super) const COUNTED: &str =
    "case when ended_at is null then greatest(reserved_micro, spent_micro) else spent_micro end";

impl FleetStore {
    /// Opens the tables beside those of a journal, and makes them if they are missing.
    ///
    /// # Errors
    /// When the server cannot be reached, or the tables are of a newer format.
    pub fn open(address: Address) -> Result<FleetStore, Error> {
        let access = Access::Write { is_synced: true };
        let store = FleetStore { connection: Connection::start(address.clone(), access, REST, |_| {}) };
        let format = store.run(|client| prepare_tables(client, true))?.unwrap_or(FORMAT);
        match format > FORMAT {
            true => Err(Error::TooNew {
                path: address.to_string().into(),
                found: u32::try_from(format).unwrap_or(u32::MAX),
                supported: FORMAT.cast_unsigned(),
            }),
            false => Ok(store),
        }
    }

    /// As [`open`](Self::open), to look only; `None` if no fleet uses the journal.
    ///
    /// # Errors
    /// When the server cannot be reached.
    pub fn open_read_only(address: Address) -> Result<Option<FleetStore>, Error> {
        let store = FleetStore { connection: Connection::start(address, Access::Read, REST, |_| {}) };
        Ok(store.run(|client| prepare_tables(client, false))?.map(|_| store))
    }

    pub(super) fn run<T: Send + 'static>(
        &self,
        mut work: impl FnMut(&mut Client) -> Result<T, DbError> + Send + 'static,
    ) -> Result<T, Error> {
        self.connection.run(PATIENCE, move |client, _| work(client))
    }

    /// Adds a run. Returns the id of the run that has its key, which is an earlier one if the task was submitted before.
    ///
    /// # Errors
    /// When the server cannot be reached.
    pub fn submit(&self, task: FleetTask) -> Result<String, Error> {
        self.run(move |client| {
            let args = serde_json::to_string(&task.args).unwrap_or_default();
            client.execute(
                "insert into fleet_runs (run, key, repository, workflow, task, args, needs, batch, account, limit_micro,
                     priority, silence_s)
                 values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12) on conflict do nothing",
                &[
                    &task.run,
                    &task.key,
                    &task.repository,
                    &task.workflow,
                    &task.task,
                    &args,
                    &task.needs,
                    &task.batch,
                    &task.account,
                    &task.limit_micro,
                    &task.priority,
                    &task.silence_s,
                ],
            )?;
            let row = client
                .query_one("select run from fleet_runs where run = $1 or key = $2", &[&task.run, &task.key])?;
            Ok(row.get(0))
        })
    }

    /// A run by its id.
    ///
    /// # Errors
    /// When the server cannot be reached.
    pub fn find(&self, run: &str) -> Result<Option<FleetRun>, Error> {
        let run = run.to_owned();
        self.run(move |client| {
            let row = client.query_opt(&format!("{SELECT_RUNS} where run = $1"), &[&run])?;
            Ok(row.map(|row| read_run(&row)))
        })
    }

    /// The runs, the oldest first: those that have not ended, and those that ended in the last `ended_s` seconds.
    ///
    /// # Errors
    /// When the server cannot be reached.
    pub fn list(&self, ended_s: i64) -> Result<Vec<FleetRun>, Error> {
        let ended_s = i32::try_from(ended_s).unwrap_or(i32::MAX);
        self.run(move |client| {
            let rows = client.query(
                &format!(
                    "{SELECT_RUNS} where ended_at is null or ended_at > now() - make_interval(secs => $1)
                     order by submitted_at, run"
                ),
                &[&f64::from(ended_s)],
            )?;
            Ok(rows.iter().map(read_run).collect())
        })
    }

    /// The runs that wait although what they wait for is there: an answer, the end of a pause, or what somebody did with the
    /// run elsewhere, such as its cancellation.
    ///
    /// # Errors
    /// When the server cannot be reached.
    pub fn list_wakeable(&self) -> Result<Vec<String>, Error> {
        self.run(|client| {
            let rows = client.query(
                "select run from fleet_runs f where ended_at is null and not is_held and (
                    state <> 'running' and state <> 'queued' and (exists
                        (select from inbox i where i.run = f.run and i.consumed_by is null)
                        or records_seen < (select records from runs r where r.run = f.run))
                    or state = 'paused' and not exists (select from fleet_pauses p
                        where p.scope in ('all', 'repository:' || f.repository, 'run:' || f.run)))",
                &[],
            )?;
            Ok(rows.iter().map(|row| row.get(0)).collect())
        })
    }

    /// Runs of which nobody knows that Temporal has them: whoever submitted them may have died before.
    ///
    /// # Errors
    /// When the server cannot be reached.
    pub fn list_unstarted(&self) -> Result<Vec<FleetRun>, Error> {
        self.run(|client| {
            let rows = client.query(
                &format!(
                    "{SELECT_RUNS} where ended_at is null and not is_started and submitted_at < now() - interval '5 s'
                     order by submitted_at limit 20"
                ),
                &[],
            )?;
            Ok(rows.iter().map(read_run).collect())
        })
    }

    /// Notes that Temporal has a run.
    ///
    /// # Errors
    /// When the server cannot be reached.
    pub fn note_started(&self, run: &str) -> Result<(), Error> {
        let run = run.to_owned();
        self.run(move |client| {
            client.execute("update fleet_runs set is_started = true where run = $1", &[&run])?;
            Ok(())
        })
    }

    /// Ends a run that has not begun. One that begins or has begun is noted; returns whether `cuegate cancel` has to end it.
    ///
    /// # Errors
    /// When the server cannot be reached.
    pub fn cancel(&self, run: &str) -> Result<bool, Error> {
        let run = run.to_owned();
        self.run(move |client| {
            let ended = client.execute(
                "update fleet_runs f set state = 'cancelled', why = 'cancelled before it began', ended_at = now()
                 where run = $1 and ended_at is null and not is_held and not exists
                    (select from runs r where r.run = f.run and r.records > 0)",
                &[&run],
            )?;
            let noted = client.execute(
                "update fleet_runs set wants_cancel = true where run = $1 and ended_at is null",
                &[&run],
            )?;
            Ok(ended == 0 && noted > 0)
        })
    }

    /// Runs that were to be cancelled when they had not begun, and have begun since.
    ///
    /// # Errors
    /// When the server cannot be reached.
    pub fn list_unwanted(&self) -> Result<Vec<String>, Error> {
        self.run(|client| {
            let rows = client.query(
                "select run from fleet_runs f where wants_cancel and ended_at is null
                     and exists (select from runs r where r.run = f.run and r.records > 0)
                     and not exists (select from inbox i where i.run = f.run and i.consumed_by is null)",
                &[],
            )?;
            Ok(rows.iter().map(|row| row.get(0)).collect())
        })
    }

    /// Tells of a worker. It is repeated every few seconds.
    ///
    /// # Errors
    /// When the server cannot be reached.
    pub fn beat(&self, worker: FleetWorker) -> Result<(), Error> {
        self.run(move |client| {
            client.execute(
                "insert into fleet_workers (name, host, version, program, slots, capabilities, is_draining)
                 values ($1, $2, $3, $4, $5, $6, $7)
                 on conflict (name) do update set host = $2, version = $3, program = $4, slots = $5, capabilities = $6,
                     is_draining = $7, seen_at = now()",
                &[
                    &worker.name,
                    &worker.host,
                    &worker.version,
                    &worker.program,
                    &worker.slots,
                    &worker.capabilities,
                    &worker.is_draining,
                ],
            )?;
            client.execute("delete from fleet_workers where seen_at < now() - interval '7 days'", &[])?;
            Ok(())
        })
    }

    /// The workers of which something was heard in the last week.
    ///
    /// # Errors
    /// When the server cannot be reached.
    pub fn workers(&self) -> Result<Vec<FleetWorker>, Error> {
        self.run(|client| {
            let rows = client.query(
                "select name, host, version, program, slots, capabilities, is_draining,
                     extract(epoch from now() - seen_at)::bigint from fleet_workers order by name",
                &[],
            )?;
            let read = |row: &Row| FleetWorker {
                name: row.get(0),
                host: row.get(1),
                version: row.get(2),
                program: row.get(3),
                slots: row.get(4),
                capabilities: row.get(5),
                is_draining: row.get(6),
                silent_s: row.get(7),
            };
            Ok(rows.iter().map(read).collect())
        })
    }

    /// Sets what runs may cost together; `None`: without a limit.
    ///
    /// # Errors
    /// When the server cannot be reached.
    pub fn set_limit(&self, scope: &str, micro: Option<i64>) -> Result<(), Error> {
        let scope = scope.to_owned();
        self.run(move |client| {
            match micro {
                Some(micro) => client.execute(
                    "insert into fleet_limits values ($1, $2) on conflict (scope) do update set micro = $2",
                    &[&scope, &micro],
                )?,
                None => client.execute("delete from fleet_limits where scope = $1", &[&scope])?,
            };
            Ok(())
        })
    }

    /// The limits, with what is used of each.
    ///
    /// # Errors
    /// When the server cannot be reached.
    pub fn limits(&self) -> Result<Vec<FleetLimit>, Error> {
        self.run(|client| {
            let mut limits = Vec::new();
            for row in client.query("select scope, micro from fleet_limits order by scope", &[])? {
                let (scope, micro): (String, i64) = (row.get(0), row.get(1));
                let used = client.query_one(
                    &format!("select coalesce(sum({COUNTED}), 0)::bigint from fleet_runs where {IN_SCOPE}"),
                    &[&scope],
                )?;
                limits.push(FleetLimit { scope, micro, used_micro: used.get(0) });
            }
            Ok(limits)
        })
    }

    /// Stops new calls of `all`, `repository:NAME` or `run:ID`.
    ///
    /// # Errors
    /// When the server cannot be reached.
    pub fn pause(&self, scope: &str, why: &str) -> Result<(), Error> {
        let (scope, why) = (scope.to_owned(), why.to_owned());
        self.run(move |client| {
            client.execute(
                "insert into fleet_pauses (scope, why) values ($1, $2) on conflict do nothing",
                &[&scope, &why],
            )?;
            Ok(())
        })
    }

    /// Ends a pause, and forgets that workers died in the run.
    ///
    /// # Errors
    /// When the server cannot be reached.
    pub fn end_pause(&self, scope: &str) -> Result<bool, Error> {
        let scope = scope.to_owned();
        self.run(move |client| {
            client.execute("update fleet_runs set take_overs = 0 where 'run:' || run = $1", &[&scope])?;
            Ok(client.execute("delete from fleet_pauses where scope = $1", &[&scope])? > 0)
        })
    }

    /// What runs spent, by day and repository, of the last two weeks: `YYYY-MM-DD`, the repository, millionths of a US dollar.
    ///
    /// # Errors
    /// When the server cannot be reached.
    pub fn spent_per_day(&self) -> Result<Vec<(String, String, i64)>, Error> {
        self.run(|client| {
            let rows = client.query(
                "select to_char(day, 'YYYY-MM-DD'), repository, sum(spent_micro)::bigint from fleet_runs
                 where day > current_date - 14 group by day, repository order by day desc, repository",
                &[],
            )?;
            Ok(rows.iter().map(|row| (row.get(0), row.get(1), row.get(2))).collect())
        })
    }

    /// Keeps what a schedule submits; `None` removes it. Returns whether there was something to do.
    ///
    /// # Errors
    /// When the server cannot be reached.
    pub fn set_schedule(&self, name: &str, submission: Option<&str>) -> Result<bool, Error> {
        let (name, submission) = (name.to_owned(), submission.map(str::to_owned));
        self.run(move |client| {
            let changed = match &submission {
                Some(text) => client.execute(
                    "insert into fleet_schedules values ($1, $2) on conflict (name) do update set submission = $2",
                    &[&name, text],
                )?,
                None => client.execute("delete from fleet_schedules where name = $1", &[&name])?,
            };
            Ok(changed > 0)
        })
    }

    /// What a schedule submits.
    ///
    /// # Errors
    /// When the server cannot be reached.
    pub fn find_schedule(&self, name: &str) -> Result<Option<String>, Error> {
        let name = name.to_owned();
        self.run(move |client| {
            let row = client.query_opt("select submission from fleet_schedules where name = $1", &[&name])?;
            Ok(row.map(|row| row.get(0)))
        })
    }

    /// Whether a run is paused, by itself or with others.
    ///
    /// # Errors
    /// When the server cannot be reached.
    pub fn is_paused(&self, run: &str) -> Result<bool, Error> {
        let run = run.to_owned();
        self.run(move |client| {
            let row = client.query_one(
                "select exists (select from fleet_pauses p, fleet_runs f where f.run = $1
                     and p.scope in ('all', 'repository:' || f.repository, 'run:' || f.run))",
                &[&run],
            )?;
            Ok(row.get(0))
        })
    }

    /// The pauses: what is paused, and why.
    ///
    /// # Errors
    /// When the server cannot be reached.
    pub fn pauses(&self) -> Result<Vec<(String, String)>, Error> {
        self.run(|client| {
            let rows = client.query("select scope, why from fleet_pauses order by at", &[])?;
            Ok(rows.iter().map(|row| (row.get(0), row.get(1))).collect())
        })
    }
}

const SELECT_RUNS: &str = "select run, key, repository, workflow, task, args, needs, batch, account, limit_micro, state, why,
    until_ms, worker, used_account, take_overs, spent_micro, (extract(epoch from submitted_at) * 1000)::bigint,
    ended_at is not null, priority, silence_s from fleet_runs";

fn read_run(row: &Row) -> FleetRun {
    let args: String = row.get(5);
    FleetRun {
        task: FleetTask {
            run: row.get(0),
            key: row.get(1),
            repository: row.get(2),
            workflow: row.get(3),
            task: row.get(4),
            args: serde_json::from_str(&args).unwrap_or_default(),
            needs: row.get(6),
            batch: row.get(7),
            account: row.get(8),
            limit_micro: row.get(9),
            priority: row.get(19),
            silence_s: row.get(20),
        },
        state: row.get(10),
        why: row.get(11),
        until_ms: row.get(12),
        worker: row.get(13),
        used_account: row.get(14),
        take_overs: row.get(15),
        spent_micro: row.get(16),
        submitted_ms: row.get(17),
        is_ended: row.get(18),
    }
}
