//! The table of providers, and what the configuration says about each.

use std::{collections::BTreeMap, sync::Arc};

use cuegate_provider::{
    Prices, Shared,
    claude::{self, Claude},
    codex::{self, Codex},
    exec::{ExecAgent, ExecSettings},
    openai::{self, OpenAiProvider},
    scripted::{Script, ScriptedProvider},
};

use crate::Failure;
use crate::config::Config;
use crate::run::start_run::Program;

/// What a provider is made from. `script` is the path and content of the script for `scripted`.
struct ProviderInputs<'m> {
    script: Option<&'m (String, String)>,
    program: &'m Program,
    config: &'m Config,
}

/// A registered provider: a row of [`TABLE`].
struct Registration {
    name: &'static str,
    make: fn(&ProviderInputs<'_>) -> Result<Shared, Failure>,
    /// The configured model for asks that name none.
    model: fn(&Config) -> Option<&str>,
    /// The configured prices, which override those for all providers.
    prices: fn(&Config) -> Option<&Prices>,
    /// The configured map from model names in definitions to the provider's model names.
    models: fn(&Config) -> Option<&BTreeMap<String, String>>,
    /// Whether its asks can cost money.
    costs: fn(&Config) -> bool,
}

static TABLE: [Registration; 4] = [
    Registration {
        name: "claude",
        make: |making| {
            let prices = prices_of(Some("claude"), making.config);
            let settings = claude::ClaudeSettings { prices, ..making.config.providers.claude.clone() };
            Ok(Arc::new(Claude::new(settings)))
        },
        model: |config| config.providers.claude.model.as_deref(),
        prices: |config| Some(&config.providers.claude.prices),
        models: |config| Some(&config.models.claude),
        costs: |_| true,
    },
    Registration {
        name: "codex",
        make: |making| {
            let prices = prices_of(Some("codex"), making.config);
            let settings = codex::CodexSettings { prices, ..making.config.providers.codex.clone() };
            Ok(Arc::new(Codex::new(settings)))
        },
        model: |config| config.providers.codex.model.as_deref(),
        prices: |config| Some(&config.providers.codex.prices),
        models: |config| Some(&config.models.codex),
        costs: |_| true,
    },
    Registration {
        name: "openai",
        make: |making| {
            let settings = making.config.providers.openai.clone().ok_or_else(|| {
                Failure::usage(
                    "the agent openai has no `base_url`",
                    "set `base_url` in `[providers.openai]` of cuegate.toml, such as `\"http://localhost:11434/v1\"`",
                )
            })?;
            let settings =
                openai::OpenAiSettings { prices: prices_of(Some("openai"), making.config), ..settings };
            Ok(Arc::new(OpenAiProvider::new(settings, making.program.openai())))
        },
        model: |config| config.providers.openai.as_ref()?.model.as_deref(),
        prices: |config| Some(&config.providers.openai.as_ref()?.prices),
        models: |config| Some(&config.models.openai),
        // A service on this machine or in its network is free.
        costs: |config| !config.providers.openai.as_ref().is_some_and(openai::OpenAiSettings::is_near),
    },
    Registration {
        name: SCRIPTED,
        make: |making| {
            let (path, text) = making.script.ok_or_else(|| {
                Failure::usage("the scripted agent has no script", "give one with `--script FILE`")
            })?;
            let script = Script::parse(text, path).map_err(|error| Failure {
                message: error.to_string(),
                hint: error.hint.clone(),
                code: crate::exit::USAGE,
            })?;
            Ok(Arc::new(ScriptedProvider::new(script, Some(making.program.scripted()))))
        },
        model: |_| None,
        prices: |_| None,
        models: |_| None,
        costs: |_| false,
    },
];

/// The provider that answers from a script.
const SCRIPTED: &str = "scripted";

/// The names of all providers except `scripted`.
pub fn list_provider_names(config: &Config) -> impl Iterator<Item = &str> {
    let own = config.agents.programs.keys().map(String::as_str);
    TABLE.iter().map(|provider| provider.name).filter(|name| *name != SCRIPTED).chain(own)
}

/// Creates a provider by name. `script` is the path and content of the script for `scripted`.
///
/// # Errors
/// When the name is unknown, or the script or the settings are invalid.
pub fn create_provider(
    name: &str,
    script: Option<&(String, String)>,
    program: &Program,
    config: &Config,
) -> Result<Shared, Failure> {
    if let Some(settings) = config.agents.programs.get(name) {
        let prices = prices_of(Some(name), config);
        return Ok(Arc::new(ExecAgent::new(name, ExecSettings { prices, ..settings.clone() })));
    }
    (find_registration(name, config)?.make)(&ProviderInputs { script, program, config })
}

/// Checks that a provider name is known.
///
/// # Errors
/// When it is unknown.
pub fn check_name(name: &str, config: &Config) -> Result<(), Failure> {
    match config.agents.programs.contains_key(name) {
        true => Ok(()),
        false => find_registration(name, config).map(|_| ()),
    }
}

/// The configured model of a provider for asks that name none.
pub fn own_model<'c>(name: &str, config: &'c Config) -> Option<&'c str> {
    match config.agents.programs.get(name) {
        Some(settings) => settings.model.as_deref(),
        None => (find_registration(name, config).ok()?.model)(config),
    }
}

/// The configured prices: those for all providers, overridden by those for this one.
pub fn prices_of(name: Option<&str>, config: &Config) -> Prices {
    let own = |name: &str| match config.agents.programs.get(name) {
        Some(settings) => Some(&settings.prices),
        None => (find_registration(name, config).ok()?.prices)(config),
    };
    let own = name.and_then(own).cloned().unwrap_or_default();
    let mut prices = config.prices.clone();
    prices.0.extend(own.0);
    prices
}

/// The configured map from model names in definitions to the provider's model names.
pub fn model_map_of_provider<'c>(name: &str, config: &'c Config) -> &'c BTreeMap<String, String> {
    static NONE: BTreeMap<String, String> = BTreeMap::new();
    match config.agents.programs.get(name) {
        Some(settings) => &settings.models,
        None => find_registration(name, config)
            .ok()
            .and_then(|provider| (provider.models)(config))
            .unwrap_or(&NONE),
    }
}

/// Whether asks of a provider can cost money; `true` for an unknown one.
pub fn may_cost_money(name: &str, config: &Config) -> bool {
    config.agents.programs.contains_key(name)
        || find_registration(name, config).map_or(true, |provider| (provider.costs)(config))
}

fn find_registration(name: &str, config: &Config) -> Result<&'static Registration, Failure> {
    TABLE.iter().find(|provider| provider.name == name).ok_or_else(|| {
        let names: Vec<&str> = list_provider_names(config).collect();
        Failure::usage(
            format!("unknown agent `{name}`"),
            format!("use one of {}, or `scripted` with `--script FILE`", names.join(", ")),
        )
    })
}
