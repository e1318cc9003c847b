//! Checks whether Codex works on this machine.

use std::{
    env,
    path::{Path, PathBuf},
};

use super::CodexSettings;
use crate::{
    FaultClass, Inspection, Login, LoginRequest, Problem,
    program::{probe, probe::Version},
};

/// The oldest version that passes `tests/agents`. Much older versions cannot fork a session (`codex exec fork`).
const OLDEST: Version = Version(0, 160, 0);

const INSTALL: &str = "install or update it with `npm install -g @openai/codex`";

pub(super) fn inspect_codex(settings: &CodexSettings) -> Inspection {
    let hint = || INSTALL.to_owned();
    let mut inspection = probe::probe_program(&settings.program, &settings.env, OLDEST, hint);
    // A program without a version is not started again.
    let program = inspection.at.as_deref().filter(|_| inspection.version.is_some());
    let login = detect_login(settings, program);
    if login == Login::Missing {
        inspection.problems.push(Problem {
            what: "codex is not logged in".to_owned(),
            hint: "run `codex login`, or set CODEX_API_KEY (codex ignores OPENAI_API_KEY)".to_owned(),
            class: FaultClass::Auth,
        });
    }
    let home = find_codex_home(settings);
    let temporary = settings.var("TMPDIR").map_or_else(env::temp_dir, PathBuf::from);
    if home.starts_with(&temporary) {
        inspection.problems.push(Problem {
            what: format!("CODEX_HOME is inside the temporary folder: `{}`", home.display()),
            hint: "set it to another folder: codex cannot start its sandbox from a temporary one".to_owned(),
            class: FaultClass::Crashed,
        });
    }
    Inspection { login, model: settings.model.clone(), ..inspection }
}

/// Lists models, which costs nothing. Only a key of OpenAI's own service can be tried so.
pub(super) fn login_request(settings: &CodexSettings) -> Option<LoginRequest> {
    let key = settings.var("CODEX_API_KEY").filter(|_| settings.service.is_none())?;
    let base = settings.var("OPENAI_BASE_URL").unwrap_or_else(|| "https://api.openai.com/v1".to_owned());
    let url = format!("{}/models", base.trim_end_matches('/'));
    Some(LoginRequest { url, headers: vec![("authorization".to_owned(), format!("Bearer {key}"))] })
}

pub(super) fn find_codex_home(settings: &CodexSettings) -> PathBuf {
    let user = || settings.var("HOME").map(PathBuf::from).or_else(env::home_dir).unwrap_or_default();
    settings.var("CODEX_HOME").map_or_else(|| user().join(".codex"), PathBuf::from)
}

/// The login it would use. `codex login status` reads only local files; its output contains part of a key, which is
/// not passed on.
fn detect_login(settings: &CodexSettings, program: Option<&str>) -> Login {
    if settings.service.is_some() {
        // The configuration of the service names its key.
        return Login::Unknown;
    }
    if settings.var("CODEX_API_KEY").is_some() {
        return Login::Key("CODEX_API_KEY".to_owned());
    }
    let Some(program) = program else { return Login::Unknown };
    match probe::capture_program_output(
        Path::new(program),
        &["login", "status"],
        &settings.env,
        probe::LOOK_MAX,
    ) {
        Ok(said) if said.contains("ChatGPT") => Login::Subscription,
        Ok(said) if said.contains("API key") => Login::Key("its own login".to_owned()),
        Ok(_) => Login::Unknown,
        Err(_) => Login::Missing,
    }
}

#[cfg(test)]
mod tests;
