//! Checks whether Claude Code works on this machine.

use std::{env, fs, path::PathBuf};

use super::Settings;
use crate::{
    FaultClass, Inspection, Login, Problem,
    program::{probe, probe::Version},
};

/// The oldest version that passes `tests/agents`. Versions before about 2.1.280 always replace `@/some/file` in a
/// prompt by the file's content.
const OLDEST: Version = Version(2, 1, 300);

const INSTALL: &str =
    "install it with `npm install -g @anthropic-ai/claude-code`, or update it with `claude update`";

pub(super) fn inspect(settings: &Settings) -> Inspection {
    let login = login(settings);
    let mut inspection = probe::program(&settings.program, &settings.env, OLDEST, INSTALL);
    if login == Login::Missing {
        inspection.problems.push(Problem {
            what: "claude is not logged in".to_owned(),
            hint: "start `claude` once and log in, or set ANTHROPIC_API_KEY".to_owned(),
            class: FaultClass::Auth,
        });
    }
    Inspection { login, model: settings.model.clone(), ..inspection }
}

/// The login it would use. `claude auth status` reports it too, but accesses the network.
fn login(settings: &Settings) -> Login {
    let clouds = [
        ("CLAUDE_CODE_USE_BEDROCK", "Amazon Bedrock"),
        ("CLAUDE_CODE_USE_VERTEX", "Google Vertex AI"),
        ("CLAUDE_CODE_USE_FOUNDRY", "Microsoft Foundry"),
    ];
    let on = |name: &str| settings.var(name).is_some_and(|value| !matches!(value.as_str(), "0" | "false"));
    if let Some((_, cloud)) = clouds.iter().find(|(name, _)| on(name)) {
        return Login::Cloud((*cloud).to_owned());
    }
    for key in ["ANTHROPIC_AUTH_TOKEN", "ANTHROPIC_API_KEY"] {
        if settings.var(key).is_some() {
            return Login::Key(key.to_owned());
        }
    }
    let home = settings.var("HOME").map(PathBuf::from).or_else(env::home_dir).unwrap_or_default();
    let own = settings.var("CLAUDE_CONFIG_DIR").map(PathBuf::from);
    let credentials = own.clone().unwrap_or_else(|| home.join(".claude")).join(".credentials.json");
    if settings.var("CLAUDE_CODE_OAUTH_TOKEN").is_some() || credentials.is_file() {
        return Login::Subscription;
    }
    // macOS stores the login in the keychain; a key created for the console is in the state file.
    let state = fs::read_to_string(own.unwrap_or(home).join(".claude.json")).unwrap_or_default();
    if cfg!(target_os = "macos") || state.contains("\"primaryApiKey\"") {
        Login::Unknown
    } else {
        Login::Missing
    }
}

#[cfg(test)]
mod tests;
