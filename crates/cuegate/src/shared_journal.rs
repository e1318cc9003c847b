//! The journal of a project on Postgres, if its settings or the command line name one.

use std::{
    fmt,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
};

use cuegate_journal::{Error, Journal, log::Durability};
use cuegate_postgres::{Address, AddressError, PostgresJournal, fleet::FleetStore};
use cuegate_runner::SharedStore;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::config::list_config_paths;

/// `[journal]`: where the records of runs are, if not in the state dir.
#[derive(Debug, Clone, PartialEq, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct JournalConfig {
    /// `postgres://USER@HOST/DATABASE`, or `$NAME` for the value of a variable.
    pub url: Option<String>,
    /// A file of certificates in PEM that the server's is checked with, relative to the project.
    pub ca: Option<PathBuf>,
    /// The schema of the tables: those with the same one share their runs.
    pub schema: Option<String>,
    /// Who chose the address.
    #[serde(skip)]
    pub(crate) named_by: NamedBy,
}

/// Who chose the address of a journal. Whoever may change a project also chooses what its settings name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum NamedBy {
    #[default]
    Project,
    /// A variable, which the project names.
    Variable,
    /// The user: by a flag, or in a file outside of the project.
    User,
}

/// An address without its password, to be kept and shown.
pub(crate) fn hide_password(url: &str) -> String {
    let mut shown = String::new();
    let mut rest = url;
    if let Some((scheme, behind)) = url.split_once("://") {
        let end = behind.find(['/', '?']).unwrap_or(behind.len());
        let login = behind[..end].rsplit_once('@').map(|(login, _)| login);
        if let Some((user, _)) = login.and_then(|login| login.split_once(':')) {
            shown = format!("{scheme}://{user}:***");
            rest = &behind[login.unwrap_or_default().len()..];
        }
    }
    // As a word of its own, or after the `?` of an address.
    while let Some(at) = rest.find("password=") {
        let (before, behind) = rest.split_at(at + "password=".len());
        let end = match behind.starts_with('\'') {
            true => behind[1..].find('\'').map_or(behind.len(), |end| end + 2),
            false => behind.find(['&', ' ']).unwrap_or(behind.len()),
        };
        shown.push_str(before);
        shown.push_str("***");
        rest = &behind[end..];
    }
    shown + rest
}

/// The journals at an address. They are opened when somebody needs them.
#[derive(Debug)]
pub(crate) struct PostgresStore {
    address: Result<Address, AddressError>,
    /// As it was typed, for programs that this one starts; `None` if they read it in the settings.
    flag: Option<String>,
    opened: Mutex<Opened>,
}

/// The journals that are open, by what is done with them.
#[derive(Debug, Default)]
struct Opened {
    written: Option<Arc<PostgresJournal>>,
    read: Option<Arc<PostgresJournal>>,
    written_batches: Option<Arc<PostgresJournal>>,
    read_batches: Option<Arc<PostgresJournal>>,
    fleet: Option<FleetStore>,
}

impl PostgresStore {
    /// The journal that `--journal` or `[journal]` names; `None` without either.
    pub(crate) fn of(root: &Path, flag: Option<String>, config: &JournalConfig) -> Option<PostgresStore> {
        let typed = flag.clone().or_else(|| config.url.clone())?;
        let url = match typed.strip_prefix('$') {
            None => Ok(typed),
            Some(name) => std::env::var(name)
                .map_err(|_| AddressError(format!("the variable `{name}` that it names is not set"))),
        };
        let ca = config.ca.as_ref().map(|path| root.join(path));
        let named_by = if flag.is_some() { NamedBy::User } else { config.named_by };
        let address = url.and_then(|url| Address::parse(&url, ca.as_deref()));
        let address = match named_by {
            NamedBy::Project => address,
            NamedBy::Variable | NamedBy::User => address.and_then(Address::with_environment_password),
        };
        // An address that is typed says all.
        let address = match config.schema.as_ref().filter(|_| flag.is_none()) {
            Some(schema) => address.map(|address| address.with_schema(schema)),
            None => address,
        };
        Some(PostgresStore { address, flag, opened: Mutex::default() })
    }

    /// A store that fails to open because of `why`, if settings that cannot be read may name a journal.
    pub(crate) fn of_broken_settings(root: &Path, why: &str) -> Option<PostgresStore> {
        let names_journal = |path: &PathBuf| {
            // A FIFO would be waited for.
            std::fs::metadata(path).is_ok_and(|about| about.is_file())
                && std::fs::read_to_string(path).is_ok_and(|text| text.contains("journal"))
        };
        list_config_paths(root).iter().any(names_journal).then(|| PostgresStore {
            address: Err(AddressError(why.to_owned())),
            flag: None,
            opened: Mutex::default(),
        })
    }

    fn open(
        &self,
        slot: fn(&mut Opened) -> &mut Option<Arc<PostgresJournal>>,
        is_of_batches: bool,
        durability: Option<Durability>,
    ) -> Result<Option<Arc<dyn Journal>>, Error> {
        let mut opened = self.opened.lock().unwrap_or_else(PoisonError::into_inner);
        let slot = slot(&mut opened);
        if slot.is_none() {
            let address = self.address.clone().map_err(|AddressError(why)| Error::Database {
                address: "the address of `--journal` or `[journal]`".to_owned(),
                what: why,
            })?;
            let address = match is_of_batches {
                true => address.with_schema(&format!("{}_batches", address.schema())),
                false => address,
            };
            let journal = match durability {
                Some(durability) => PostgresJournal::open(address, durability == Durability::Synced),
                None => PostgresJournal::open_read_only(address),
            };
            match journal {
                Ok(journal) => *slot = Some(Arc::new(journal)),
                // Nothing was recorded.
                Err(Error::Missing { .. }) => return Ok(None),
                Err(error) => return Err(error),
            }
        }
        Ok(slot.clone().map(|journal| journal as Arc<dyn Journal>))
    }
}

/// Where it is, without a password.
impl fmt::Display for PostgresStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.address {
            Ok(address) => address.fmt(f),
            Err(AddressError(why)) => f.write_str(why),
        }
    }
}

impl SharedStore for PostgresStore {
    fn open_runs(&self, durability: Option<Durability>) -> Result<Option<Arc<dyn Journal>>, Error> {
        match durability {
            Some(_) => self.open(|opened| &mut opened.written, false, durability),
            None => self.open(|opened| &mut opened.read, false, None),
        }
    }

    fn open_batches(&self, durability: Option<Durability>) -> Result<Option<Arc<dyn Journal>>, Error> {
        match durability {
            Some(_) => self.open(|opened| &mut opened.written_batches, true, durability),
            None => self.open(|opened| &mut opened.read_batches, true, None),
        }
    }

    fn changes(&self) -> u64 {
        let opened = self.opened.lock().unwrap_or_else(PoisonError::into_inner);
        opened.read.as_ref().map_or(0, |journal| journal.changes())
    }

    fn fleet(&self) -> Result<Option<Value>, Error> {
        let mut opened = self.opened.lock().unwrap_or_else(PoisonError::into_inner);
        if opened.fleet.is_none() {
            let Ok(address) = &self.address else { return Ok(None) };
            opened.fleet = match FleetStore::open_read_only(address.clone()) {
                Ok(store) => store,
                // Nothing was recorded.
                Err(Error::Missing { .. }) => None,
                Err(error) => return Err(error),
            };
        }
        opened.fleet.as_ref().map(describe_fleet).transpose()
    }

    fn flag(&self) -> Option<String> {
        self.flag.as_ref().map(|url| format!("--journal={url}"))
    }
}

/// How long runs of a fleet that have ended are shown, in seconds.
const ENDED_SHOWN_S: i64 = 24 * 3600;

/// A fleet as `cuegate/fleet/v1`: workers, runs, limits, pauses and what was spent in the last two weeks.
fn describe_fleet(store: &FleetStore) -> Result<Value, Error> {
    let usd = |micro: i64| micro as f64 / 1e6;
    let workers: Vec<Value> = store
        .workers()?
        .iter()
        .map(|worker| {
            json!({
                "name": worker.name, "host": worker.host, "version": worker.version, "program": worker.program,
                "slots": worker.slots, "capabilities": worker.capabilities, "draining": worker.is_draining,
                "silent_s": worker.silent_s,
            })
        })
        .collect();
    let runs: Vec<Value> = store
        .list(ENDED_SHOWN_S)?
        .iter()
        .map(|run| {
            json!({
                "run": run.task.run, "repository": run.task.repository, "workflow": run.task.workflow,
                "needs": run.task.needs, "batch": run.task.batch, "state": run.state, "why": run.why,
                "until_ms": run.until_ms, "worker": run.worker, "account": run.used_account,
                "ended": run.is_ended, "spent_usd": usd(run.spent_micro), "submitted_ms": run.submitted_ms,
            })
        })
        .collect();
    let limits: Vec<Value> = store
        .limits()?
        .iter()
        .map(|limit| json!({ "scope": limit.scope, "usd": usd(limit.micro), "used_usd": usd(limit.used_micro) }))
        .collect();
    let pauses: Vec<Value> =
        store.pauses()?.iter().map(|(scope, why)| json!({ "scope": scope, "why": why })).collect();
    let spent: Vec<Value> = store
        .spent_per_day()?
        .iter()
        .map(|(day, repository, micro)| json!({ "day": day, "repository": repository, "usd": usd(*micro) }))
        .collect();
    Ok(json!({
        "schema": "cuegate/fleet/v1", "workers": workers, "runs": runs, "limits": limits, "pauses": pauses,
        "spent": spent,
    }))
}

#[cfg(test)]
mod tests {
    use super::hide_password;

    #[test]
    fn a_kept_address_has_no_password() {
        for (url, shown) in [
            ("$JOURNAL_URL", "$JOURNAL_URL"),
            ("postgres://me@host/db", "postgres://me@host/db"),
            (
                "postgres://me:s3c@ret@host:1/db?sslmode=require",
                "postgres://me:***@host:1/db?sslmode=require",
            ),
            (
                "postgres://host/db?user=me&password=s3cret&sslmode=require",
                "postgres://host/db?user=me&password=***&sslmode=require",
            ),
            ("host=h user=me password='s3 cret' dbname=x", "host=h user=me password=*** dbname=x"),
        ] {
            assert_eq!(hide_password(url), shown);
        }
    }
}
