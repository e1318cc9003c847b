//! Whether it can work here.

use std::{
    env,
    path::{Path, PathBuf},
};

use super::Settings;
use crate::{
    FaultClass, Inspection, Login, Problem,
    program::{probe, probe::Version},
};

/// The oldest version with which `tests/agents` was seen to pass. Much older ones cannot branch off a conversation
/// (`codex exec fork`).
const OLDEST: Version = Version(0, 160, 0);

const INSTALL: &str = "install or update it with `npm install -g @openai/codex`";

pub(super) fn inspect(settings: &Settings) -> Inspection {
    let mut inspection = probe::program(&settings.program, &settings.env, OLDEST, INSTALL);
    // One that does not even tell its version is not asked more.
    let program = inspection.at.as_deref().filter(|_| inspection.version.is_some());
    let login = login(settings, program);
    if login == Login::Missing {
        inspection.problems.push(Problem {
            what: "codex is not logged in".to_owned(),
            hint: "run `codex login`, or set CODEX_API_KEY (OPENAI_API_KEY alone is not looked at)"
                .to_owned(),
            class: FaultClass::Auth,
        });
    }
    let home = home(settings);
    let temporary = settings.var("TMPDIR").map_or_else(env::temp_dir, PathBuf::from);
    if home.starts_with(&temporary) {
        inspection.problems.push(Problem {
            what: format!("CODEX_HOME is in a folder for temporary files: `{}`", home.display()),
            hint: "set it to a folder elsewhere: from there codex does not start its sandbox".to_owned(),
            class: FaultClass::Crashed,
        });
    }
    Inspection { login, model: settings.model.clone(), ..inspection }
}

pub(super) fn home(settings: &Settings) -> PathBuf {
    let user = || settings.var("HOME").map(PathBuf::from).or_else(env::home_dir).unwrap_or_default();
    settings.var("CODEX_HOME").map_or_else(|| user().join(".codex"), PathBuf::from)
}

/// As whom it would ask. `codex login status` reads its own files only; it shows part of a key, which is not passed on.
fn login(settings: &Settings, program: Option<&str>) -> Login {
    if settings.service.is_some() {
        // Its configuration says which key that service takes.
        return Login::Unknown;
    }
    if settings.var("CODEX_API_KEY").is_some() {
        return Login::Key("CODEX_API_KEY".to_owned());
    }
    let Some(program) = program else { return Login::Unknown };
    match probe::look(Path::new(program), &["login", "status"], &settings.env, probe::LOOK_MAX) {
        Ok(said) if said.contains("ChatGPT") => Login::Subscription,
        Ok(said) if said.contains("API key") => Login::Key("its own login".to_owned()),
        Ok(_) => Login::Unknown,
        Err(_) => Login::Missing,
    }
}

#[cfg(test)]
mod tests;
