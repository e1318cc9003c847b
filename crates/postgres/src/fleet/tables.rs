//! The tables of a fleet.

use postgres::{Client, Error};

/// The format that this program writes.
pub(super) const FORMAT: i32 = 1;

/// Money is in millionths of a US dollar.
const TABLES: &str = "
create table fleet_format (version int not null);
create table fleet_runs (
    run text primary key,
    key text unique,
    repository text not null,
    workflow text not null,
    task text,
    args text not null,
    needs text not null,
    batch text,
    account text,
    limit_micro bigint,
    priority int,
    silence_s int,
    submitted_at timestamptz not null default now(),
    state text not null default 'queued',
    why text not null default '',
    until_ms bigint,
    worker text,
    used_account text,
    is_started boolean not null default false,
    is_held boolean not null default false,
    wants_cancel boolean not null default false,
    records_seen bigint not null default 0,
    take_overs int not null default 0,
    reserved_micro bigint not null default 0,
    spent_micro bigint not null default 0,
    day date,
    ended_at timestamptz
);
create index on fleet_runs (state);
create table fleet_workers (
    name text primary key,
    host text not null,
    version text not null,
    program text not null,
    slots int not null,
    capabilities text not null,
    is_draining boolean not null default false,
    started_at timestamptz not null default now(),
    seen_at timestamptz not null default now()
);
create table fleet_limits (scope text primary key, micro bigint not null);
create table fleet_accounts (name text primary key, slots int not null, resets_at timestamptz);
create table fleet_slots (
    run text primary key,
    account text not null references fleet_accounts,
    taken_at timestamptz not null default now()
);
create table fleet_schedules (name text primary key, submission text not null);
create table fleet_pauses (scope text primary key, why text not null, at timestamptz not null default now());
insert into fleet_format values (1);
";

/// Makes the tables if they are missing. Returns their format; `None` if there are none.
pub(super) fn prepare_tables(client: &mut Client, creates: bool) -> Result<Option<i32>, Error> {
    let find = "select to_regclass('fleet_format') is not null";
    let mut is_there: bool = client.query_one(find, &[])?.get(0);
    if !is_there && creates {
        let mut work = client.transaction()?;
        work.execute("select pg_advisory_xact_lock(hashtext('cuegate fleet'))", &[])?;
        is_there = work.query_one(find, &[])?.get(0);
        if !is_there {
            work.batch_execute(TABLES)?;
        }
        work.commit()?;
        is_there = true;
    }
    if !is_there {
        return Ok(None);
    }
    Ok(Some(client.query_one("select max(version) from fleet_format", &[])?.get(0)))
}
