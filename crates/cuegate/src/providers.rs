//! Making providers out of what is configured.

use std::{collections::BTreeMap, sync::Arc};

use cuegate_provider::{
    Prices, Shared,
    claude::{self, Claude},
    codex::{self, Codex},
    openai::{self, OpenAiProvider},
    scripted::{Script, ScriptedProvider},
};

use crate::{Failure, config::Config, start_run::Program};

/// Every provider that agents can be asked by, the scripted one apart.
pub const NAMES: [&str; 3] = ["claude", "codex", "openai"];

/// The provider of this name. A script, by path and content, is for the scripted one.
///
/// # Errors
/// When there is none of that name, or its script or settings cannot be used.
pub fn make(
    name: &str,
    script: Option<&(String, String)>,
    program: &Program,
    config: &Config,
) -> Result<Shared, Failure> {
    match name {
        "scripted" => {
            let (path, text) = script.ok_or_else(|| {
                Failure::usage("the scripted agent has no script", "give one with `--script FILE`")
            })?;
            let script = Script::parse(text, path).map_err(|error| Failure {
                message: error.to_string(),
                hint: error.hint.clone(),
                code: crate::exit::USAGE,
            })?;
            Ok(Arc::new(ScriptedProvider::new(script, Some(program.scripted()))))
        }
        "claude" => {
            let settings = config.providers.claude.clone();
            let prices = prices_of(Some(name), config);
            Ok(Arc::new(Claude::new(claude::Settings { prices, ..settings })))
        }
        "codex" => {
            let settings = config.providers.codex.clone();
            let prices = prices_of(Some(name), config);
            Ok(Arc::new(Codex::new(codex::Settings { prices, ..settings })))
        }
        "openai" => {
            let settings = config.providers.openai.clone().ok_or_else(|| {
                Failure::usage(
                    "it is not said where the openai provider asks",
                    "write `base_url = \"http://localhost:11434/v1\"` or the like below `[providers.openai]` in cuegate.toml",
                )
            })?;
            let settings = openai::Settings { prices: prices_of(Some(name), config), ..settings };
            Ok(Arc::new(OpenAiProvider::new(settings, program.openai())))
        }
        other => Err(unknown(other)),
    }
}

/// Says that nobody is called so.
fn unknown(name: &str) -> Failure {
    Failure::usage(
        format!("there is no provider `{name}`"),
        format!("there are {}, and `scripted` with `--script FILE`", NAMES.join(", ")),
    )
}

/// Holds a name against those of the providers.
///
/// # Errors
/// When nobody is called so.
pub fn known(name: &str) -> Result<(), Failure> {
    match name {
        "scripted" => Ok(()),
        name if NAMES.contains(&name) => Ok(()),
        other => Err(unknown(other)),
    }
}

/// The model that a provider is asked with where an ask names none, as configured.
pub fn own_model<'c>(name: &str, config: &'c Config) -> Option<&'c str> {
    match name {
        "claude" => config.providers.claude.model.as_deref(),
        "codex" => config.providers.codex.model.as_deref(),
        "openai" => config.providers.openai.as_ref()?.model.as_deref(),
        _ => None,
    }
}

/// What models cost: what is configured for all providers, and over it what is for this one.
pub fn prices_of(name: Option<&str>, config: &Config) -> Prices {
    let own = match name {
        Some("claude") => config.providers.claude.prices.clone(),
        Some("codex") => config.providers.codex.prices.clone(),
        Some("openai") => {
            config.providers.openai.as_ref().map(|settings| settings.prices.clone()).unwrap_or_default()
        }
        _ => Prices::default(),
    };
    let mut prices = config.prices.clone();
    prices.0.extend(own.0);
    prices
}

/// The provider's names of models that definitions name, as configured.
pub fn mapped<'c>(name: &str, config: &'c Config) -> &'c BTreeMap<String, String> {
    static NONE: BTreeMap<String, String> = BTreeMap::new();
    match name {
        "claude" => &config.models.claude,
        "codex" => &config.models.codex,
        "openai" => &config.models.openai,
        _ => &NONE,
    }
}
