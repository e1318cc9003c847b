//! What a user decides about it.

use std::{env, path::PathBuf};

use serde::{Deserialize, Deserializer, de::Error as _};

use crate::{Prices, redact::Redactor};

/// Environment variables whose values are secret: they are taken out of everything that the program says.
pub const SECRETS: [&str; 3] = ["CODEX_API_KEY", "OPENAI_API_KEY", "CODEX_ACCESS_TOKEN"];

/// How Codex is asked.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Settings {
    /// The program: a name that is looked up in `PATH`, or a path.
    #[serde(deserialize_with = "crate::program::program")]
    pub program: PathBuf,
    /// The model when an ask names none; `None` leaves it to the program, and then nobody knows what an ask costs.
    pub model: Option<String>,
    /// The service that it asks: a name out of `model_providers` of its configuration. Its own retries are turned off
    /// there. `None` = OpenAI's, whose retries cannot be turned off: it tries about half a minute by itself.
    #[serde(deserialize_with = "service")]
    pub service: Option<String>,
    /// Whether it loads the user's `config.toml` and rules. Not by default, because a run has to go the same way for
    /// everyone; needed when [`Settings::service`] stands there, or where the login is kept. It loads the user's
    /// `AGENTS.md` in any case.
    pub user_config: bool,
    /// Whether an agent that may edit may commit as well: its sandbox then lets it write into the repository's `.git`,
    /// hooks included, which it otherwise keeps from it. On by default, because work that is committed is what steps
    /// and validators ask for.
    pub commits: bool,
    /// More of its configuration, as `key=value` with a value in TOML, as `-c` takes it.
    #[serde(deserialize_with = "config")]
    pub config: Vec<String>,
    /// What tokens cost, by model: the program does not say.
    pub prices: Prices,
    /// Environment on top of the caller's. It stands on disk while an ask is at work: no secrets.
    #[serde(deserialize_with = "crate::program::pairs")]
    pub env: Vec<(String, String)>,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            program: PathBuf::from("codex"),
            model: None,
            service: None,
            user_config: false,
            commits: true,
            config: Vec::new(),
            prices: Prices::default(),
            env: Vec::new(),
        }
    }
}

impl Settings {
    /// A variable of the environment in which the program will run; empty ones count as absent.
    pub(super) fn var(&self, name: &str) -> Option<String> {
        let own = self.env.iter().rev().find(|(key, _)| key == name).map(|(_, value)| value.clone());
        own.or_else(|| env::var(name).ok()).filter(|value| !value.is_empty())
    }

    /// What keeps the values of [`SECRETS`] out of what the program says.
    pub(super) fn redactor(&self) -> Redactor {
        Redactor::of_values(SECRETS.iter().filter_map(|name| self.var(name)))
    }
}

fn service<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<String>, D::Error> {
    let service = Option::<String>::deserialize(deserializer)?;
    if service.as_ref().is_some_and(|service| service.trim().is_empty()) {
        return Err(D::Error::custom("no service is named: leave `service` out for OpenAI's"));
    }
    Ok(service)
}

fn config<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<String>, D::Error> {
    let config = Vec::<String>::deserialize(deserializer)?;
    let sets = |line: &String| line.split_once('=').is_some_and(|(key, _)| !key.trim().is_empty());
    match config.iter().find(|line| !sets(line)) {
        None => Ok(config),
        Some(other) => Err(D::Error::custom(format!("`{other}` sets nothing: write `key=value`"))),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn what_makes_no_sense_is_refused() {
        let read = |settings: Value| serde_json::from_value::<Settings>(settings).map_err(|e| e.to_string());
        assert!(read(json!({ "config": ["a=1"], "service": "own" })).is_ok());
        assert!(read(json!({ "config": ["a"] })).unwrap_err().contains("`a` sets nothing"));
        assert!(read(json!({ "config": ["=1"] })).is_err());
        assert!(read(json!({ "service": " " })).unwrap_err().contains("no service"));
        assert!(read(json!({ "program": "" })).unwrap_err().contains("no program"));
    }
}
