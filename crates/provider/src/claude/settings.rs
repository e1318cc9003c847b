//! The user's settings for Claude Code.

use std::{env, num::NonZeroU32, path::PathBuf};

use serde::{Deserialize, Deserializer, de::Error as _};

use crate::{Prices, redact::Redactor};

/// Environment variables with secret values, which are redacted from the program's output.
pub const SECRETS: [&str; 3] = ["ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "CLAUDE_CODE_OAUTH_TOKEN"];

/// The settings for Claude Code.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ClaudeSettings {
    /// The program: a name in `PATH`, or a path.
    #[serde(deserialize_with = "crate::program::deserialize_program")]
    pub program: PathBuf,
    /// The model if an ask names none; `None` leaves the choice to the program.
    pub model: Option<String>,
    /// The maximum number of turns of one ask; `None` = unlimited.
    pub max_turns: Option<NonZeroU32>,
    /// The settings it loads: `user`, `project`, `local`. They contain instructions (`CLAUDE.md`), hooks, permissions
    /// and MCP servers. Only the project's by default, because runs must not depend on the user. An empty list loads
    /// neither settings nor MCP servers. A login helper in the user's settings requires `user`.
    ///
    /// Servers and hooks of the project start without confirmation, as with `claude -p`.
    #[serde(deserialize_with = "deserialize_setting_sources")]
    pub setting_sources: Vec<String>,
    /// Token prices, for the cost of an ask while it runs. At the end the program reports the cost itself.
    pub prices: Prices,
    /// Environment variables in addition to the caller's. They are stored on disk during an ask: no secrets.
    #[serde(deserialize_with = "crate::program::deserialize_pairs")]
    pub env: Vec<(String, String)>,
    /// Further arguments of the program (`--effort=high`). Arguments that change the output format make every ask fail
    /// without a result.
    pub args: Vec<String>,
}

impl Default for ClaudeSettings {
    fn default() -> ClaudeSettings {
        ClaudeSettings {
            program: PathBuf::from("claude"),
            model: None,
            max_turns: None,
            setting_sources: vec!["project".to_owned()],
            prices: Prices::default(),
            env: Vec::new(),
            args: Vec::new(),
        }
    }
}

impl ClaudeSettings {
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

fn deserialize_setting_sources<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<String>, D::Error> {
    let sources = Vec::<String>::deserialize(deserializer)?;
    match sources.iter().find(|source| !matches!(source.as_str(), "user" | "project" | "local")) {
        None => Ok(sources),
        Some(other) => Err(D::Error::custom(format!(
            "unknown settings source `{other}`: use `user`, `project` or `local`"
        ))),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn invalid_settings_are_rejected() {
        let read =
            |settings: Value| serde_json::from_value::<ClaudeSettings>(settings).map_err(|e| e.to_string());
        assert!(read(json!({ "setting_sources": ["user", "project", "local"], "max_turns": 1 })).is_ok());
        assert!(read(json!({ "setting_sources": ["users"] })).unwrap_err().contains("`users`"));
        assert!(read(json!({ "program": "" })).unwrap_err().contains("`program` is empty"));
        assert!(read(json!({ "max_turns": 0 })).is_err());
    }
}
