//! `cuegate.toml`: what holds for all runs of a project, or of a person.
//!
//! The one in the user's configuration folder holds first, the one at the top of the project over it, flags over both.
//! Every key has a reader; an unknown one is an error.

mod limits;
mod load;
mod span;

use std::{collections::BTreeMap, time::Duration};

use cuegate_provider::{Prices, claude, codex, openai};
use serde::Deserialize;

pub use limits::{BudgetConfig, Count, Minutes, Usd};
pub use load::{files, load};

/// All of it.
#[derive(Debug, Clone, PartialEq, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Config {
    /// A command that is run in a shell when a run has ended or waits: what happened stands in its environment.
    pub notify: Option<String>,
    /// How runs are driven.
    pub run: RunConfig,
    /// How it is looked whether a run is done.
    pub verdict: VerdictConfig,
    /// What a run may use up.
    pub budget: BudgetConfig,
    /// Who is asked how.
    pub providers: ProviderConfigs,
    /// What the models that definitions name are called.
    pub models: Models,
    /// What tokens cost, by the provider's name of the model.
    pub prices: Prices,
}

/// `[run]`.
#[derive(Debug, Clone, PartialEq, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct RunConfig {
    /// Who is asked when nobody says.
    pub provider: Option<String>,
    /// How often a bad answer is asked again: at most 100.
    pub repairs_max: Option<u32>,
    /// How long a limit of the provider is waited for: `10m`.
    #[serde(with = "span")]
    pub wait_max: Option<Duration>,
    /// After how long an ask is stopped: `60m`.
    #[serde(with = "span")]
    pub ask_timeout: Option<Duration>,
}

/// `[verdict]`.
#[derive(Debug, Clone, PartialEq, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct VerdictConfig {
    /// After how long a resource is looked at again: `60s`.
    #[serde(with = "span")]
    pub poll_interval: Option<Duration>,
}

/// `[providers]`.
#[derive(Debug, Clone, PartialEq, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ProviderConfigs {
    /// Claude Code.
    pub claude: claude::Settings,
    /// Codex.
    pub codex: codex::Settings,
    /// Any service that speaks OpenAI's Chat Completions. It has to be said where.
    pub openai: Option<openai::Settings>,
}

/// `[models]`: the providers' names of models that definitions name, as `opus`.
#[derive(Debug, Clone, PartialEq, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Models {
    /// Of Claude Code.
    pub claude: BTreeMap<String, String>,
    /// Of Codex.
    pub codex: BTreeMap<String, String>,
    /// Of the service of `[providers.openai]`.
    pub openai: BTreeMap<String, String>,
}
