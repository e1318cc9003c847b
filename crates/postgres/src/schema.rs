//! The tables, and their format.

use postgres::{Client, Error};

/// The format that this program writes. A newer one is readable, and never written.
pub(crate) const FORMAT: i32 = 1;

/// Numbers are those of the journal; `bigint` holds what it counts. Times are by the writers' clocks, except for those of
/// type `timestamptz`, which are by the clock of the database. A lease that was not renewed for `lease_s` seconds may be taken
/// by anybody.
const TABLES: &str = "
create table format (version int not null, lease_s int not null default 45);
create table runs (
    run text primary key,
    age bigint generated always as identity,
    created_at_ms bigint not null,
    records bigint not null default 0,
    token bigint not null default 0,
    owner text,
    renewed_at timestamptz,
    posted bigint not null default 0
);
create table records (
    run text not null references runs on delete cascade,
    seq bigint not null,
    at_ms bigint not null,
    token bigint not null,
    body bytea not null,
    primary key (run, seq)
);
create table blobs (
    run text not null references runs on delete cascade,
    digest bytea not null,
    body bytea not null,
    primary key (run, digest)
);
create table inbox (
    run text not null references runs on delete cascade,
    id bigint not null,
    key text not null,
    at_ms bigint not null,
    body bytea not null,
    consumed_by bigint,
    primary key (run, id),
    unique (run, key)
);
create index on inbox (run) where consumed_by is null;
-- Prompts and answers do not compress well twice, and are read whole.
alter table blobs alter column body set storage external;
insert into format (version) values (1);
";

/// A name in a statement.
pub(crate) fn quote_name(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

/// Selects the schema for all later statements. With `creates`, missing tables are created. Returns the format of the tables;
/// `None` without tables.
pub(crate) fn prepare_schema(client: &mut Client, schema: &str, creates: bool) -> Result<Option<i32>, Error> {
    let quoted = quote_name(schema);
    client.batch_execute(&format!("set search_path to {quoted}"))?;
    let find = "select to_regclass($1) is not null";
    let table = format!("{quoted}.format");
    let mut is_there: bool = client.query_one(find, &[&table])?.get(0);
    if !is_there && creates {
        let mut work = client.transaction()?;
        // Several programs may come first at the same time.
        work.execute("select pg_advisory_xact_lock(hashtext('cuegate'), hashtext($1))", &[&schema])?;
        is_there = work.query_one(find, &[&table])?.get(0);
        if !is_there {
            work.batch_execute(&format!("create schema if not exists {quoted}"))?;
            work.batch_execute(TABLES)?;
        }
        work.commit()?;
        is_there = true;
    }
    if !is_there {
        return Ok(None);
    }
    Ok(Some(client.query_one("select max(version) from format", &[])?.get(0)))
}
