//! `[agents.NAME]`: programs that are agents.

use std::collections::BTreeMap;

use cuegate_provider::exec::ExecSettings;
use serde::{Deserialize, Deserializer, de::Error};

/// The names of agents that Cuegate knows itself.
const KNOWN: [&str; 4] = ["claude", "codex", "openai", "scripted"];

/// Deserializes the programs by name.
pub(super) fn deserialize_agents<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<BTreeMap<String, ExecSettings>, D::Error> {
    let agents = BTreeMap::<String, ExecSettings>::deserialize(deserializer)?;
    for (name, settings) in &agents {
        let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
        if KNOWN.contains(&name.as_str()) {
            return Err(D::Error::custom(format!(
                "`{name}` is an agent that Cuegate knows: its settings are `[providers.{name}]`, and a program of yours needs \
                 another name"
            )));
        }
        if name.is_empty() || !name.chars().all(is_plain) {
            return Err(D::Error::custom(format!(
                "`{name}` is no name of an agent: write letters, digits, `-` and `_`"
            )));
        }
        if settings.exec.first().is_none_or(|program| program.trim().is_empty()) {
            return Err(D::Error::custom(format!(
                "the agent `{name}` has no program: write `exec = [\"PROGRAM\", \"ARGUMENT\"]`"
            )));
        }
    }
    Ok(agents)
}
