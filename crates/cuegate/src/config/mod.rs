//! `cuegate.toml`: what holds for all runs of a project, or of a person.
//!
//! The one in the user's configuration folder holds first, the one at the top of the project over it, flags over both.
//! Every key has a reader; an unknown one is an error.

mod durations;
mod limit_values;
mod load;

use std::{collections::BTreeMap, time::Duration};

use cuegate_provider::{Prices, claude, codex, openai};
use serde::Deserialize;

pub use limit_values::{BudgetConfig, Count, Minutes, Usd};
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
    /// How pieces are read.
    pub piece: PieceConfig,
    /// What steps may do that may not write.
    pub boundary: BoundaryConfig,
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
    #[serde(deserialize_with = "limit_values::times")]
    pub repairs_max: Option<u32>,
    /// How long a limit of the provider is waited for: `10m`.
    #[serde(with = "durations")]
    pub wait_max: Option<Duration>,
    /// After how long an ask is stopped: `60m`.
    #[serde(with = "durations")]
    pub ask_timeout: Option<Duration>,
    /// How often a movement of a piece mends what a command of its quality gates found: at most 100.
    #[serde(deserialize_with = "limit_values::times")]
    pub quality_gate_retries: Option<u32>,
    /// How many members of a parallel movement are at work at the same time: 1 to 1000.
    #[serde(deserialize_with = "limit_values::members")]
    pub width: Option<u16>,
}

/// `[piece]`.
#[derive(Debug, Clone, PartialEq, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct PieceConfig {
    /// How many asks a movement takes.
    pub phases: Option<Phases>,
}

/// How many asks a movement of a piece takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum Phases {
    /// One: it works, reports and names its outcome at once
    Fused,
    /// One for the work, one for each report, one for the outcome
    Separate,
}

/// `[boundary]`.
#[derive(Debug, Clone, PartialEq, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct BoundaryConfig {
    /// What a new file is that a step leaves which may not write, and that git does not ignore.
    pub untracked: Option<Untracked>,
}

impl BoundaryConfig {
    /// Whether new files are let be.
    pub fn spares_new_files(&self) -> bool {
        self.untracked == Some(Untracked::Warn)
    }
}

/// What a new file is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Untracked {
    /// As forbidden as any other change
    Violation,
    /// Let be, and listed with what the step changed
    Warn,
}

/// `[verdict]`.
#[derive(Debug, Clone, PartialEq, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct VerdictConfig {
    /// After how long a resource is looked at again: `60s`.
    #[serde(with = "durations")]
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
