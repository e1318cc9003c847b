//! Starts `cuegate`.

use std::{path::Path, process::Stdio};

use serde_json::Value;
use tokio::process::Command;

use crate::Failure;
use crate::settings::Settings;

/// The variable by which `cuegate` finds the journal: an argument would be seen by everybody on the machine.
const VARIABLE: &str = "CUEGATE_FLEET_JOURNAL";

/// `cuegate` with the journal of the fleet, in a folder.
pub(crate) fn command_in(settings: &Settings, folder: &Path) -> Command {
    let mut command = Command::new(&settings.cuegate);
    command.arg(format!("--journal=${VARIABLE}")).env(VARIABLE, &settings.journal).current_dir(folder);
    command.stdin(Stdio::null());
    command
}

/// Runs `cuegate` with these arguments, and returns its exit code and what it printed.
///
/// # Errors
/// When it cannot be started.
pub(crate) async fn run_to_end(
    settings: &Settings,
    folder: &Path,
    args: &[&str],
) -> Result<(i32, String, String), Failure> {
    let ran = command_in(settings, folder).args(args).output().await.map_err(|error| {
        Failure::new(format!("failed to start `{}`: {error}", settings.cuegate))
            .hint("install it, or name it with `cuegate = \"…\"` in the settings")
    })?;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    Ok((ran.status.code().unwrap_or(-1), text(&ran.stdout), text(&ran.stderr)))
}

/// The version of `cuegate`.
///
/// # Errors
/// When it cannot be started.
pub(crate) async fn read_version(settings: &Settings) -> Result<String, Failure> {
    let (_, said, _) = run_to_end(settings, Path::new("."), &["--version"]).await?;
    Ok(said.trim().to_owned())
}

/// The state of a run as `cuegate status --json` prints it; `None` if it has not begun.
///
/// # Errors
/// When it cannot be read.
pub(crate) async fn read_status(
    settings: &Settings,
    folder: &Path,
    run: &str,
) -> Result<Option<Value>, Failure> {
    let (_, said, errors) = run_to_end(settings, folder, &["status", run, "--json"]).await?;
    match serde_json::from_str(&said) {
        Ok(status) => Ok(Some(status)),
        Err(_) if errors.contains("no run") => Ok(None),
        Err(_) => Err(Failure::new(format!("the state of run {run} cannot be read: {}", errors.trim()))),
    }
}
