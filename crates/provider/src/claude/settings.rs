//! What a user decides about it.

use std::{env, num::NonZeroU32, path::PathBuf};

use serde::{Deserialize, Deserializer, de::Error as _};

use crate::{Prices, redact::Redactor};

/// Environment variables whose values are secret: they are taken out of everything that the program says.
pub const SECRETS: [&str; 3] = ["ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "CLAUDE_CODE_OAUTH_TOKEN"];

/// How Claude Code is asked.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Settings {
    /// The program: a name that is looked up in `PATH`, or a path.
    #[serde(deserialize_with = "crate::program::program")]
    pub program: PathBuf,
    /// The model when an ask names none; `None` leaves it to the program.
    pub model: Option<String>,
    /// The most turns of one ask; `None` = no bound.
    pub max_turns: Option<NonZeroU32>,
    /// Whose settings it loads: `user`, `project`, `local`. They hold instructions (`CLAUDE.md`), hooks, permissions,
    /// MCP servers. Only the project's by default, because a run has to go the same way for everyone. None = neither
    /// settings nor MCP servers. Who logs in by a helper that stands in the user's settings needs `user`.
    ///
    /// Servers and hooks that the project names are started without a question, as `claude -p` does it.
    #[serde(deserialize_with = "sources")]
    pub setting_sources: Vec<String>,
    /// What tokens cost, for telling how much of its cap an ask has used up while it works. At its end the program
    /// says itself what it cost.
    pub prices: Prices,
    /// Environment on top of the caller's. It stands on disk while an ask is at work: no secrets.
    #[serde(deserialize_with = "crate::program::pairs")]
    pub env: Vec<(String, String)>,
    /// More arguments, as the program takes them (`--effort=high`). One that changes what it prints makes each ask
    /// end without a result.
    pub args: Vec<String>,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings {
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

fn sources<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<String>, D::Error> {
    let sources = Vec::<String>::deserialize(deserializer)?;
    match sources.iter().find(|source| !matches!(source.as_str(), "user" | "project" | "local")) {
        None => Ok(sources),
        Some(other) => Err(D::Error::custom(format!(
            "there is no source of settings `{other}`: there are `user`, `project` and `local`"
        ))),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn what_makes_no_sense_is_refused() {
        let read = |settings: Value| serde_json::from_value::<Settings>(settings).map_err(|e| e.to_string());
        assert!(read(json!({ "setting_sources": ["user", "project", "local"], "max_turns": 1 })).is_ok());
        assert!(read(json!({ "setting_sources": ["users"] })).unwrap_err().contains("`users`"));
        assert!(read(json!({ "program": "" })).unwrap_err().contains("no program"));
        assert!(read(json!({ "max_turns": 0 })).is_err());
    }
}
