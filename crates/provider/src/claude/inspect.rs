//! Checks whether Claude Code works on this machine.

use std::{
    env, fs,
    path::{Path, PathBuf},
};

use super::ClaudeSettings;
use crate::{
    FaultClass, Inspection, Login, LoginRequest, Problem,
    program::{probe, probe::Version},
};

/// The oldest version that passes `tests/agents`. Versions before about 2.1.280 always replace `@/some/file` in a
/// prompt by the file's content.
const OLDEST: Version = Version(2, 1, 300);

/// The oldest Node.js for which its package installs a current version: for an older one npm picks an old version.
const NODE_OLDEST: Version = Version(22, 0, 0);

/// How to install it here.
fn install_hint(settings: &ClaudeSettings) -> String {
    let own =
        "install it with `curl -fsSL https://claude.ai/install.sh | bash`, or update it with `claude update`";
    let node =
        probe::capture_program_output(Path::new("node"), &["--version"], &settings.env, probe::LOOK_MAX).ok();
    match node.as_deref().and_then(Version::find) {
        Some(version) if version >= NODE_OLDEST => {
            "install it with `npm install -g @anthropic-ai/claude-code`, or update it with `claude update`"
                .to_owned()
        }
        Some(version) => {
            format!("{own}; its npm package needs Node.js {NODE_OLDEST}, and here is {version}")
        }
        None => own.to_owned(),
    }
}

/// Lists models, which costs nothing. Only a key can be tried so.
pub(super) fn login_request(settings: &ClaudeSettings) -> Option<LoginRequest> {
    let Login::Key(name) = detect_login(settings) else { return None };
    let base = settings.var("ANTHROPIC_BASE_URL").unwrap_or_else(|| "https://api.anthropic.com".to_owned());
    let key = settings.var(&name)?;
    let header = match &*name {
        "ANTHROPIC_API_KEY" => ("x-api-key".to_owned(), key),
        _ => ("authorization".to_owned(), format!("Bearer {key}")),
    };
    let version = ("anthropic-version".to_owned(), "2023-06-01".to_owned());
    let url = format!("{}/v1/models?limit=1", base.trim_end_matches('/'));
    Some(LoginRequest { url, headers: vec![header, version] })
}

pub(super) fn inspect_claude(settings: &ClaudeSettings) -> Inspection {
    let login = detect_login(settings);
    let hint = || install_hint(settings);
    let mut inspection = probe::probe_program(&settings.program, &settings.env, OLDEST, hint);
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
fn detect_login(settings: &ClaudeSettings) -> Login {
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
