//! Finds an agent by its name, among those that Cuegate knows and those of `cuegate.toml`, and creates it by its settings.

use std::{collections::BTreeMap, sync::Arc};

use cuegate_provider::{
    Prices, Shared,
    claude::{Claude, ClaudeSettings},
    codex::{Codex, CodexSettings},
    driven::{DRIVEN_NAMES, DrivenAgent, DrivenSettings},
    exec::{ExecAgent, ExecSettings},
    openai::{OpenAiProvider, OpenAiSettings},
    scripted::{Script, ScriptedProvider},
};

use crate::Failure;
use crate::config::{AgentProgram, Config};
use crate::run::start_run::Program;

/// The agent that answers from a script.
const SCRIPTED: &str = "scripted";
/// The agents that are providers of their own.
const DIRECT: [&str; 3] = ["claude", "codex", "openai"];

/// What the configuration says about an agent.
enum AgentSettings<'c> {
    Claude(&'c ClaudeSettings),
    Codex(&'c CodexSettings),
    /// `None` without an address.
    OpenAi(Option<&'c OpenAiSettings>),
    /// An agent that our child drives; `None` for one that Cuegate knows and that has no settings.
    Driven(Option<&'c DrivenSettings>),
    Exec(&'c ExecSettings),
    Scripted,
}

/// Whether Cuegate knows an agent of this name itself.
pub(crate) fn is_known_agent(name: &str) -> bool {
    DIRECT.contains(&name) || DRIVEN_NAMES.contains(&name) || name == SCRIPTED
}

fn find_settings<'c>(name: &str, config: &'c Config) -> Result<AgentSettings<'c>, Failure> {
    let providers = &config.providers;
    Ok(match name {
        "claude" => AgentSettings::Claude(&providers.claude),
        "codex" => AgentSettings::Codex(&providers.codex),
        "openai" => AgentSettings::OpenAi(providers.openai.as_ref()),
        SCRIPTED => AgentSettings::Scripted,
        name if DRIVEN_NAMES.contains(&name) => AgentSettings::Driven(providers.driven(name)),
        name => match config.agents.programs.get(name) {
            Some(AgentProgram::Exec(settings)) => AgentSettings::Exec(settings),
            Some(AgentProgram::Driven(settings)) => AgentSettings::Driven(Some(settings)),
            None => {
                let names: Vec<&str> = list_provider_names(config).collect();
                return Err(Failure::usage(
                    format!("unknown agent `{name}`"),
                    format!("use one of {}, or `scripted` with `--script FILE`", names.join(", ")),
                ));
            }
        },
    })
}

/// The names of all agents except `scripted`.
pub fn list_provider_names(config: &Config) -> impl Iterator<Item = &str> {
    let own = config.agents.programs.keys().map(String::as_str);
    DIRECT.into_iter().chain(DRIVEN_NAMES).chain(own)
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
    let settings = find_settings(name, config)?;
    let prices = prices_of(Some(name), config);
    Ok(match settings {
        AgentSettings::Claude(settings) => {
            Arc::new(Claude::new(ClaudeSettings { prices, ..settings.clone() }))
        }
        AgentSettings::Codex(settings) => Arc::new(Codex::new(CodexSettings { prices, ..settings.clone() })),
        AgentSettings::OpenAi(settings) => {
            let settings = settings.ok_or_else(|| {
                Failure::usage(
                    "the agent openai has no `base_url`",
                    "set `base_url` in `[providers.openai]` of cuegate.toml, such as `\"http://localhost:11434/v1\"`",
                )
            })?;
            let settings = OpenAiSettings { prices, ..settings.clone() };
            Arc::new(OpenAiProvider::new(settings, program.openai()))
        }
        AgentSettings::Driven(settings) => Arc::new(driven_agent(name, settings, program, config)),
        AgentSettings::Exec(settings) => {
            Arc::new(ExecAgent::new(name, ExecSettings { prices, ..settings.clone() }))
        }
        AgentSettings::Scripted => {
            let (path, text) = script.ok_or_else(|| {
                Failure::usage("the scripted agent has no script", "give one with `--script FILE`")
            })?;
            let script = Script::parse(text, path).map_err(|error| Failure {
                message: error.to_string(),
                hint: error.hint.clone(),
                code: crate::exit::USAGE,
            })?;
            Arc::new(ScriptedProvider::new(script, Some(program.scripted())))
        }
    })
}

fn driven_agent(
    name: &str,
    settings: Option<&DrivenSettings>,
    program: &Program,
    config: &Config,
) -> DrivenAgent {
    let prices = prices_of(Some(name), config);
    let settings = DrivenSettings { prices, ..settings.cloned().unwrap_or_default() };
    DrivenAgent::new(name, settings, program.driver())
}

/// Creates an agent that our child drives, with its settings; `None` if the name is that of another one.
pub(crate) fn create_driven(
    name: &str,
    program: &Program,
    config: &Config,
) -> Option<(DrivenAgent, DrivenSettings)> {
    let Ok(AgentSettings::Driven(settings)) = find_settings(name, config) else { return None };
    Some((driven_agent(name, settings, program, config), settings.cloned().unwrap_or_default()))
}

/// Checks that an agent of this name is known.
///
/// # Errors
/// When it is unknown.
pub fn check_name(name: &str, config: &Config) -> Result<(), Failure> {
    find_settings(name, config).map(|_| ())
}

/// The configured model of an agent for asks that name none.
pub fn own_model<'c>(name: &str, config: &'c Config) -> Option<&'c str> {
    match find_settings(name, config).ok()? {
        AgentSettings::Claude(settings) => settings.model.as_deref(),
        AgentSettings::Codex(settings) => settings.model.as_deref(),
        AgentSettings::OpenAi(settings) => settings?.model.as_deref(),
        AgentSettings::Driven(settings) => settings?.model.as_deref(),
        AgentSettings::Exec(settings) => settings.model.as_deref(),
        AgentSettings::Scripted => None,
    }
}

/// The configured prices: those for all agents, overridden by those for this one.
pub fn prices_of(name: Option<&str>, config: &Config) -> Prices {
    let own = name.and_then(|name| match find_settings(name, config).ok()? {
        AgentSettings::Claude(settings) => Some(&settings.prices),
        AgentSettings::Codex(settings) => Some(&settings.prices),
        AgentSettings::OpenAi(settings) => Some(&settings?.prices),
        AgentSettings::Driven(settings) => Some(&settings?.prices),
        AgentSettings::Exec(settings) => Some(&settings.prices),
        AgentSettings::Scripted => None,
    });
    let mut prices = config.prices.clone();
    prices.0.extend(own.cloned().unwrap_or_default().0);
    prices
}

/// The configured map from model names in definitions to the agent's model names.
pub fn model_map_of_provider<'c>(name: &str, config: &'c Config) -> &'c BTreeMap<String, String> {
    static NONE: BTreeMap<String, String> = BTreeMap::new();
    match find_settings(name, config) {
        Ok(AgentSettings::Claude(_)) => &config.models.claude,
        Ok(AgentSettings::Codex(_)) => &config.models.codex,
        Ok(AgentSettings::OpenAi(_)) => &config.models.openai,
        Ok(AgentSettings::Driven(Some(settings))) => &settings.models,
        Ok(AgentSettings::Exec(settings)) => &settings.models,
        Ok(AgentSettings::Driven(None) | AgentSettings::Scripted) | Err(_) => &NONE,
    }
}

/// Whether asks of an agent can cost money; `true` for an unknown one.
pub fn may_cost_money(name: &str, config: &Config) -> bool {
    match find_settings(name, config) {
        // A service on this machine or in its network is free.
        Ok(AgentSettings::OpenAi(settings)) => !settings.is_some_and(OpenAiSettings::is_near),
        Ok(AgentSettings::Scripted) => false,
        _ => true,
    }
}
