//! The user's settings for Codex.

use std::{env, path::PathBuf};

use serde::{Deserialize, Deserializer, de::Error as _};

use crate::{Prices, redact::Redactor};

/// Environment variables with secret values, which are redacted from the program's output.
pub const SECRETS: [&str; 3] = ["CODEX_API_KEY", "OPENAI_API_KEY", "CODEX_ACCESS_TOKEN"];

/// The settings for Codex.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct CodexSettings {
    /// The program: a name in `PATH`, or a path.
    #[serde(deserialize_with = "crate::program::deserialize_program")]
    pub program: PathBuf,
    /// The model if an ask names none. `None` leaves the choice to the program; costs are then unknown.
    pub model: Option<String>,
    /// The service: a name of `model_providers` in its configuration, whose retries are turned off. `None` is OpenAI's
    /// service, whose retries cannot be turned off: the program retries for about half a minute.
    #[serde(deserialize_with = "deserialize_service")]
    pub service: Option<String>,
    /// Whether it loads the user's `config.toml` and rules. Off by default, because runs must not depend on the user.
    /// Required if the file defines [`CodexSettings::service`] or where the login is stored. The program loads the user's
    /// `AGENTS.md` in any case.
    pub user_config: bool,
    /// Whether an agent that may edit may also commit. Its sandbox then allows writes to the repository's `.git`, hooks
    /// included, which it denies otherwise. On by default, because steps and validators ask for committed work.
    pub commits: bool,
    /// Further configuration as `key=value` with the value in TOML, as for `-c`.
    #[serde(deserialize_with = "deserialize_config")]
    pub config: Vec<String>,
    /// Token prices by model. The program does not report costs.
    pub prices: Prices,
    /// Environment variables in addition to the caller's. They are stored on disk during an ask: no secrets.
    #[serde(deserialize_with = "crate::program::deserialize_pairs")]
    pub env: Vec<(String, String)>,
}

impl Default for CodexSettings {
    fn default() -> CodexSettings {
        CodexSettings {
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

impl CodexSettings {
    /// A variable of the program's environment; an empty one counts as absent.
    pub(super) fn var(&self, name: &str) -> Option<String> {
        let own = self.env.iter().rev().find(|(key, _)| key == name).map(|(_, value)| value.clone());
        own.or_else(|| env::var(name).ok()).filter(|value| !value.is_empty())
    }

    /// A redactor of the values of [`SECRETS`].
    pub(super) fn redactor(&self) -> Redactor {
        Redactor::of_values(SECRETS.iter().filter_map(|name| self.var(name)))
    }
}

fn deserialize_service<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<String>, D::Error> {
    let service = Option::<String>::deserialize(deserializer)?;
    if service.as_ref().is_some_and(|service| service.trim().is_empty()) {
        return Err(D::Error::custom("`service` is empty: omit it for OpenAI's service"));
    }
    Ok(service)
}

fn deserialize_config<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<String>, D::Error> {
    let config = Vec::<String>::deserialize(deserializer)?;
    let sets = |line: &String| line.split_once('=').is_some_and(|(key, _)| !key.trim().is_empty());
    match config.iter().find(|line| !sets(line)) {
        None => Ok(config),
        Some(other) => Err(D::Error::custom(format!("`{other}` is not a setting: write `key=value`"))),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn invalid_settings_are_rejected() {
        let read =
            |settings: Value| serde_json::from_value::<CodexSettings>(settings).map_err(|e| e.to_string());
        assert!(read(json!({ "config": ["a=1"], "service": "own" })).is_ok());
        assert!(read(json!({ "config": ["a"] })).unwrap_err().contains("`a` is not a setting"));
        assert!(read(json!({ "config": ["=1"] })).is_err());
        assert!(read(json!({ "service": " " })).unwrap_err().contains("`service` is empty"));
        assert!(read(json!({ "program": "" })).unwrap_err().contains("`program` is empty"));
    }
}
