//! `fleet.toml`.

use std::{collections::BTreeMap, path::Path, sync::Arc};

use cuegate_postgres::{Address, AddressError, PostgresJournal, fleet::FleetStore};
use serde::Deserialize;

use crate::Failure;

/// The settings of a worker, or of whoever submits runs.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(crate) struct Settings {
    /// `postgres://…`, or `$NAME` for the value of a variable.
    pub(crate) journal: String,
    /// The program `cuegate`.
    #[serde(default = "default_program")]
    pub(crate) cuegate: String,
    #[serde(default)]
    pub(crate) repositories: BTreeMap<String, RepositorySettings>,
    #[serde(default)]
    pub(crate) accounts: BTreeMap<String, AccountSettings>,
}

/// A repository that runs work on.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RepositorySettings {
    /// What git clones.
    pub(crate) url: String,
    /// The branch that runs start from; by default that of the remote.
    pub(crate) branch: Option<String>,
}

/// An account of a provider.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct AccountSettings {
    /// How many runs of the fleet use it at the same time.
    #[serde(default = "default_slots")]
    pub(crate) slots: i32,
    /// The variables by which agents use it. `$NAME` is the value of a variable of the worker.
    #[serde(default)]
    pub(crate) env: BTreeMap<String, String>,
}

fn default_program() -> String {
    "cuegate".to_owned()
}

fn default_slots() -> i32 {
    1
}

/// Reads the settings.
///
/// # Errors
/// With file, line and cause.
pub(crate) fn load_settings(path: &Path) -> Result<Settings, Failure> {
    let shown = path.display();
    let text = std::fs::read_to_string(path).map_err(|error| {
        Failure::new(format!("failed to read `{shown}`: {error}"))
            .hint("name the settings with `--config`; docs/fleet.md shows some")
    })?;
    let mut settings: Settings = toml::from_str(&text).map_err(|error| {
        Failure::new(format!("`{shown}`: {error}")).hint("docs/fleet.md lists the settings")
    })?;
    settings.journal = expand_variable(&settings.journal)?;
    for (name, account) in &mut settings.accounts {
        if account.slots < 1 {
            return Err(Failure::new(format!("`{shown}`: account `{name}` has no slots"))
                .hint("`slots` is how many runs use it at the same time: 1 or more"));
        }
        for value in account.env.values_mut() {
            *value = expand_variable(value)?;
        }
    }
    Ok(settings)
}

/// `$NAME` as the value of the variable, anything else as it is.
fn expand_variable(text: &str) -> Result<String, Failure> {
    match text.strip_prefix('$') {
        None => Ok(text.to_owned()),
        Some(name) => std::env::var(name).map_err(|_| {
            Failure::new(format!("the variable `{name}` that the settings name is not set"))
                .hint("set it where this program starts, or write the value into the settings")
        }),
    }
}

impl Settings {
    /// The address of the journal.
    ///
    /// # Errors
    /// When it is not one.
    pub(crate) fn address(&self) -> Result<Address, Failure> {
        let address = Address::parse(&self.journal, None).and_then(Address::with_environment_password);
        address.map_err(|AddressError(why)| {
            Failure::new(format!("`journal` is no address of Postgres: {why}"))
                .hint("such as `postgres://USER@HOST/DATABASE`")
        })
    }

    /// Opens the tables of the fleet and the journal beside them. Blocks.
    ///
    /// # Errors
    /// When the server cannot be reached.
    pub(crate) fn open(&self) -> Result<(Arc<PostgresJournal>, Arc<FleetStore>), Failure> {
        let address = self.address()?;
        let journal = PostgresJournal::open(address.clone(), true)?;
        Ok((Arc::new(journal), Arc::new(FleetStore::open(address)?)))
    }
}

/// Runs what blocks.
///
/// # Errors
/// As `work`.
pub(crate) async fn on_thread<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, Failure> + Send + 'static,
) -> Result<T, Failure> {
    tokio::task::spawn_blocking(work)
        .await
        .unwrap_or_else(|error| Err(Failure::new(format!("a background task failed: {error}"))))
}
