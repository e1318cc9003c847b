//! Notifies the user when a run ends or waits: by a command, the desktop, or a webhook.

use std::{
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

use cuegate_provider::{locate_or_missing, locate_program, search_path};
use cuegate_view::{RunView, clean_to_one_line};
use serde_json::json;

use super::print;
use crate::config::NotifyConfig;

/// The time limit of each.
const PATIENCE: Duration = Duration::from_secs(30);
/// The longest reason on the desktop, in columns.
const REASON_COLUMNS: usize = 300;

/// Sends the configured notifications. A failure is printed and does not change the result.
pub(super) fn send_notifications(config: &NotifyConfig, view: &RunView, summary: Option<String>) {
    if let Some(command) = &config.command {
        // No program of the working tree, where agents write, is found by its name.
        let mut shell = Command::new(locate_or_missing("sh"));
        shell
            .args(["-c", command])
            .envs(variables_of_run(view))
            .env("CUEGATE_SUMMARY", summary.as_deref().unwrap_or_default());
        run_notifier("the `notify` command of cuegate.toml", shell);
    }
    if config.desktop {
        match locate_program("notify-send") {
            Some(program) => {
                let mut command = Command::new(program);
                let urgency = if view.exit_code() == Some(0) { "normal" } else { "critical" };
                let reason = cuegate_view::shorten_end(
                    &clean_to_one_line(view.reason.as_deref().unwrap_or_default()),
                    REASON_COLUMNS,
                );
                command.args(["--app-name=Cuegate", &format!("--urgency={urgency}"), "--"]);
                command.args([format!("{}: {}", view.flow, view.standing()), reason]);
                run_notifier("`notify-send`", command);
            }
            None => print::print_line("note: `notify-send` is not in PATH, so the desktop shows nothing"),
        }
    }
    if let Some(address) = &config.webhook {
        let body = json!({
            "schema": "cuegate/notice/v1",
            "text": format!("{} {}: {}", view.flow, view.run, view.standing()),
            "run": view.run,
            "flow": view.flow,
            "state": view.state.as_str(),
            "reason": view.reason,
            "exit_code": view.exit_code(),
            "summary": summary,
        });
        if let Err(why) = cuegate_runner::post_json(address, &[], &body, PATIENCE) {
            print::print_line(&format!("note: the webhook of `notify` failed: {why}"));
        }
    }
}

fn variables_of_run(view: &RunView) -> [(&'static str, String); 5] {
    [
        ("CUEGATE_RUN", view.run.clone()),
        ("CUEGATE_FLOW", view.flow.to_string()),
        ("CUEGATE_STATE", view.state.as_str().to_owned()),
        ("CUEGATE_REASON", view.reason.clone().unwrap_or_default()),
        ("CUEGATE_EXIT_CODE", view.exit_code().map_or_else(String::new, |code| code.to_string())),
    ]
}

/// Runs a command to its end, or its time limit.
fn run_notifier(what: &str, mut command: Command) {
    let started = command
        .env("PATH", search_path())
        .stdin(Stdio::null())
        // The standard output of a run is its result.
        .stdout(Stdio::null())
        .spawn();
    match started.map(wait_for_notifier) {
        Ok(None) => {}
        Ok(Some(why)) => print::print_line(&format!("note: {what} {why}")),
        Err(error) => print::print_line(&format!("note: {what} failed to start: {error}")),
    }
}

/// Waits for the command; returns what went wrong.
fn wait_for_notifier(mut child: Child) -> Option<String> {
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
