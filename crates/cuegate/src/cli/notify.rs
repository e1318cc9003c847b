//! The `notify` command, run when a run ends or suspends.

use std::{
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

use cuegate_provider::{locate_or_missing, search_path};
use cuegate_view::RunView;

use super::print;

/// The timeout of the command.
const PATIENCE: Duration = Duration::from_secs(30);

/// Runs the configured command in a shell; environment variables describe the run. A failure is printed and does not
/// change the result.
pub(super) fn notify(command: &str, view: &RunView) {
    let state = view.state.as_str();
    // No program of the working tree, where agents write, is found by its name.
    let started = Command::new(locate_or_missing("sh"))
        .args(["-c", command])
        .env("PATH", search_path())
        .env("CUEGATE_RUN", &view.run)
        .env("CUEGATE_FLOW", &*view.flow)
        .env("CUEGATE_STATE", state)
        .env("CUEGATE_REASON", view.reason.as_deref().unwrap_or_default())
        .env("CUEGATE_EXIT_CODE", view.exit_code().map_or_else(String::new, |code| code.to_string()))
        .stdin(Stdio::null())
        // The standard output of a run is its result.
        .stdout(Stdio::null())
        .spawn();
    match started.map(wait) {
        Ok(None) => {}
        Ok(Some(why)) => print::line(&format!("note: the `notify` command of cuegate.toml {why}")),
        Err(error) => {
            print::line(&format!("note: the `notify` command of cuegate.toml failed to start: {error}"))
        }
    }
}

/// Waits for the command; returns what went wrong.
fn wait(mut child: Child) -> Option<String> {
    let until = Instant::now() + PATIENCE;
    loop {
        match child.try_wait() {
            Ok(Some(status)) if status.success() => return None,
            Ok(Some(status)) => return Some(format!("failed: {status}")),
            Ok(None) if Instant::now() < until => std::thread::sleep(Duration::from_millis(20)),
            Ok(None) => {
                let _ = child.kill();
                let _ = child.wait();
                return Some(format!("was stopped after {} s", PATIENCE.as_secs()));
            }
            Err(error) => return Some(format!("was lost: {error}")),
        }
    }
}
