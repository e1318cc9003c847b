//! Decides which worker drives a run, with which account, and whether the budgets allow it.

use cuegate_journal::Error;
use postgres::{Error as DbError, Transaction};

use super::store::{COUNTED, FleetStore, IN_SCOPE};
use crate::journal::IS_FRESH;

/// How often workers may die in a run without a new record of it. A run that kills its workers would kill all of them.
pub const TAKE_OVERS_MAX: i32 = 5;

/// An account of a provider that a worker can use.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OfferedAccount {
    pub name: String,
    /// How many runs of the fleet may use it at the same time.
    pub slots: i32,
}

/// A worker that wants to go on with a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HoldRequest {
    pub run: String,
    pub worker: String,
    /// Its accounts; empty if its agents need none.
    pub accounts: Vec<OfferedAccount>,
}

/// Whether a worker may go on with a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HoldVerdict {
    /// It does, with this account.
    Go { account: Option<String> },
    /// Not now.
    Wait {
        /// `paused`, `budget` or `account`.
        state: &'static str,
        /// Why, in words.
        why: String,
        /// When to ask again, in milliseconds since 1970; `None`: when somebody wakes the run.
        until_ms: Option<i64>,
    },
    /// It has ended.
    Ended { state: String },
    /// Nobody submitted it.
    Unknown,
}

/// How a worker left a run.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct HoldOutcome {
    pub run: String,
    pub worker: String,
    /// As [`FleetRun::state`](super::FleetRun::state).
    pub state: String,
    pub why: String,
    pub until_ms: Option<i64>,
    pub is_ended: bool,
    pub spent_micro: i64,
    /// Whether the account that it used is out until then.
    pub is_account_out: bool,
}

impl FleetStore {
    /// Asks whether a worker may go on with a run of which nobody holds the lease. Budget and account are taken with it.
    ///
    /// # Errors
    /// When the server cannot be reached.
    pub fn begin_hold(&self, request: HoldRequest) -> Result<HoldVerdict, Error> {
        self.run(move |client| {
            let mut work = client.transaction()?;
            let verdict = decide_hold(&mut work, &request)?;
            if let HoldVerdict::Wait { state, why, until_ms } = &verdict {
                work.execute(
                    "update fleet_runs set state = $2, why = $3, until_ms = $4, is_held = false where run = $1",
                    &[&request.run, state, why, until_ms],
                )?;
            }
            work.commit()?;
            Ok(verdict)
        })
    }

    /// Notes how a worker left a run. What it reserved and did not spend is free again when it has ended.
    ///
    /// # Errors
    /// When the server cannot be reached.
    pub fn end_hold(&self, outcome: HoldOutcome) -> Result<(), Error> {
        self.run(move |client| {
            let mut work = client.transaction()?;
            // A former holder that was away for long may not speak for the run any more.
            let updated = work.execute(
                "update fleet_runs f set state = $3, why = $4, until_ms = $5, is_held = false, spent_micro = greatest(spent_micro, $6),
                     records_seen = coalesce((select records from runs r where r.run = f.run), 0),
                     ended_at = case when $7 then now() end where run = $1 and worker = $2 and ended_at is null",
                &[
                    &outcome.run,
                    &outcome.worker,
                    &outcome.state,
                    &outcome.why,
                    &outcome.until_ms,
                    &outcome.spent_micro,
                    &outcome.is_ended,
                ],
            )?;
            if updated > 0 {
                if outcome.is_account_out {
                    work.execute(
                        "update fleet_accounts set resets_at = to_timestamp($2::float8 / 1000)
                         where name = (select account from fleet_slots where run = $1)",
                        &[&outcome.run, &outcome.until_ms.map(|until| until as f64)],
                    )?;
                }
                work.execute("delete from fleet_slots where run = $1", &[&outcome.run])?;
            }
            work.commit()
        })
    }
}

fn decide_hold(work: &mut Transaction<'_>, request: &HoldRequest) -> Result<HoldVerdict, DbError> {
    let found = work.query_opt(
        "select repository, batch, account, limit_micro, is_held, records_seen, take_overs, reserved_micro, state,
             ended_at is not null, coalesce((select records from runs r where r.run = f.run), 0), wants_cancel
         from fleet_runs f where run = $1 for update",
        &[&request.run],
    )?;
    let Some(row) = found else { return Ok(HoldVerdict::Unknown) };
    let (repository, batch): (String, Option<String>) = (row.get(0), row.get(1));
    let (account, limit): (Option<String>, Option<i64>) = (row.get(2), row.get(3));
    let (was_held, seen, take_overs): (bool, i64, i32) = (row.get(4), row.get(5), row.get(6));
    let (reserved, state, is_ended, records): (i64, String, bool, i64) =
        (row.get(7), row.get(8), row.get(9), row.get(10));
    if is_ended {
        return Ok(HoldVerdict::Ended { state });
    }
    if row.get(11) && records == 0 {
        work.execute(
            "update fleet_runs set state = 'cancelled', why = 'cancelled before it began', ended_at = now(),
                 is_held = false where run = $1",
            &[&request.run],
        )?;
        return Ok(HoldVerdict::Ended { state: "cancelled".to_owned() });
    }
    // Whoever held it ended without a word.
    let take_overs = match (was_held, records > seen) {
        (true, false) => take_overs + 1,
        (_, true) => 0,
        (false, false) => take_overs,
    };
    work.execute(
        "update fleet_runs set take_overs = $2, records_seen = $3, is_held = false where run = $1",
        &[&request.run, &take_overs, &records],
    )?;
    if take_overs >= TAKE_OVERS_MAX {
        let why = format!("{take_overs} workers ended in it, and none of them wrote a record");
        work.execute(
            "insert into fleet_pauses (scope, why) values ('run:' || $1, $2) on conflict do nothing",
            &[&request.run, &why],
        )?;
    }
    let pause = work.query_opt(
        "select scope, why from fleet_pauses where scope in ('all', 'repository:' || $1, 'run:' || $2) limit 1",
        &[&repository, &request.run],
    )?;
    if let Some(pause) = pause {
        let (scope, why): (String, String) = (pause.get(0), pause.get(1));
        let why = if why.is_empty() { format!("{scope} is paused") } else { why };
        return Ok(HoldVerdict::Wait { state: "paused", why, until_ms: None });
    }
    if let Some(wait) = reserve_budget(work, request, (&repository, batch.as_deref()), (limit, reserved))? {
        return Ok(wait);
    }
    let taken = match request.accounts.is_empty() {
        true => None,
        false => match take_account(work, request, account.as_deref())? {
            Ok(name) => Some(name),
            Err(wait) => return Ok(wait),
        },
    };
    work.execute(
        "update fleet_runs set state = 'running', why = '', until_ms = null, is_held = true, worker = $2,
             used_account = $3 where run = $1",
        &[&request.run, &request.worker, &taken],
    )?;
    Ok(HoldVerdict::Go { account: taken })
}

/// Reserves what the run may cost at most, once. Returns what it waits for.
fn reserve_budget(
    work: &mut Transaction<'_>,
    request: &HoldRequest,
    (repository, batch): (&str, Option<&str>),
    (limit, reserved): (Option<i64>, i64),
) -> Result<Option<HoldVerdict>, DbError> {
    if reserved > 0 {
        return Ok(None);
    }
    // In one order, or two workers could wait for each other.
    let limits = work.query(
        "select scope, micro from fleet_limits
         where scope in ('day', 'repository:' || $1, 'batch:' || coalesce($2, '')) order by scope for update",
        &[&repository, &batch],
    )?;
    // Somebody may change a limit at any time.
    let again: i64 = work.query_one("select (extract(epoch from now()) * 1000)::bigint + 60000", &[])?.get(0);
    for row in &limits {
        let (scope, most): (String, i64) = (row.get(0), row.get(1));
        let Some(limit) = limit else {
            let why = format!("{scope} has a limit, and the run has none: submit it with `--max-usd`");
            return Ok(Some(HoldVerdict::Wait { state: "budget", why, until_ms: Some(again) }));
        };
        let used = work.query_one(
            &format!("select coalesce(sum({COUNTED}), 0)::bigint from fleet_runs where {IN_SCOPE}"),
            &[&scope],
        )?;
        let used: i64 = used.get(0);
        if used + limit > most {
            let why = format!("the limit of {scope} is reached");
            return Ok(Some(HoldVerdict::Wait { state: "budget", why, until_ms: Some(again) }));
        }
    }
    work.execute(
        "update fleet_runs set reserved_micro = coalesce(limit_micro, 0), day = current_date where run = $1",
        &[&request.run],
    )?;
    Ok(None)
}

/// Takes a slot of an account that is not out. A slot whose run nobody drives any more is free.
fn take_account(
    work: &mut Transaction<'_>,
    request: &HoldRequest,
    wanted: Option<&str>,
) -> Result<Result<String, HoldVerdict>, DbError> {
    let offered: Vec<&OfferedAccount> = request
        .accounts
        .iter()
        .filter(|account| wanted.is_none_or(|wanted| wanted == account.name))
        .collect();
    if offered.is_empty() {
        let why = format!("`{}` has no account `{}`", request.worker, wanted.unwrap_or_default());
        return Ok(Err(HoldVerdict::Wait { state: "account", why, until_ms: None }));
    }
    let mut names: Vec<&str> = offered.iter().map(|account| &*account.name).collect();
    names.sort_unstable();
    for name in &names {
        let slots = offered.iter().find(|account| account.name == *name).map_or(1, |account| account.slots);
        work.execute(
            "insert into fleet_accounts (name, slots) values ($1, $2) on conflict (name) do update set slots = $2",
            &[name, &slots],
        )?;
    }
    // Whoever took it has the lease by then, or has died.
    work.execute(
        &format!(
            "delete from fleet_slots s where run = $1
                 or taken_at < now() - make_interval(secs => 2 * (select max(lease_s) from format)) and not exists
                     (select from runs r where r.run = s.run and r.owner is not null and {IS_FRESH})"
        ),
        &[&request.run],
    )?;
    let free = work.query_opt(
        "select name from fleet_accounts a where name = any($1) and (resets_at is null or resets_at <= now())
             and slots > (select count(*) from fleet_slots s where s.account = a.name)
         order by (select count(*) from fleet_slots s where s.account = a.name), name limit 1",
        &[&names],
    )?;
    if let Some(free) = free {
        let name: String = free.get(0);
        work.execute("insert into fleet_slots (run, account) values ($1, $2)", &[&request.run, &name])?;
        return Ok(Ok(name));
    }
    // All are out, or all slots are taken: a slot may be free in a moment.
    let until = work.query_one(
        "select (extract(epoch from greatest(now() + interval '5 s', case when bool_and(resets_at > now())
             then min(resets_at) else now() end)) * 1000)::bigint from fleet_accounts where name = any($1)",
        &[&names],
    )?;
    let why = format!("no account is free: {}", names.join(", "));
    Ok(Err(HoldVerdict::Wait { state: "account", why, until_ms: Some(until.get(0)) }))
}
