//! Creates providers from the configuration.

use std::{collections::BTreeMap, sync::Arc};

use cuegate_provider::{
    Prices, Shared,
    claude::{self, Claude},
    codex::{self, Codex},
    openai::{self, OpenAiProvider},
    scripted::{Script, ScriptedProvider},
};

use crate::{Failure, config::Config, start_run::Program};

/// All providers except `scripted`.
pub const NAMES: [&str; 3] = ["claude", "codex", "openai"];

/// Creates a provider by name. `script` is the path and content of the script for `scripted`.
///
/// # Errors
/// When the name is unknown, or the script or the settings are invalid.
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
                    "the openai provider has no `base_url`",
                    "set `base_url` in `[providers.openai]` of cuegate.toml, such as `\"http://localhost:11434/v1\"`",
                )
            })?;
            let settings = openai::Settings { prices: prices_of(Some(name), config), ..settings };
            Ok(Arc::new(OpenAiProvider::new(settings, program.openai())))
        }
        other => Err(unknown(other)),
    }
}

/// The failure for an unknown provider name.
fn unknown(name: &str) -> Failure {
    Failure::usage(
        format!("there is no provider `{name}`"),
        format!("use one of {}, or `scripted` with `--script FILE`", NAMES.join(", ")),
    )
}

/// Checks that a provider name is known.
///
/// # Errors
/// When it is unknown.
pub fn known(name: &str) -> Result<(), Failure> {
    match name {
        "scripted" => Ok(()),
        name if NAMES.contains(&name) => Ok(()),
        other => Err(unknown(other)),
    }
}

/// The configured model of a provider for asks that name none.
pub fn own_model<'c>(name: &str, config: &'c Config) -> Option<&'c str> {
    match name {
        "claude" => config.providers.claude.model.as_deref(),
        "codex" => config.providers.codex.model.as_deref(),
        "openai" => config.providers.openai.as_ref()?.model.as_deref(),
        _ => None,
    }
}

/// The configured prices: those for all providers, overridden by those for this one.
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

/// The configured map from model names in definitions to the provider's model names.
pub fn mapped<'c>(name: &str, config: &'c Config) -> &'c BTreeMap<String, String> {
    static NONE: BTreeMap<String, String> = BTreeMap::new();
    match name {
        "claude" => &config.models.claude,
        "codex" => &config.models.codex,
        "openai" => &config.models.openai,
        _ => &NONE,
    }
}
