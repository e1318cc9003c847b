//! `mcp`: the tools with which an agent of the user checks, prices, starts and follows runs.

mod limits;
mod news;
mod tools;

use std::{
    io::{self, BufRead as _, Write as _},
    sync::{Arc, Mutex},
    thread,
};

use clap::Args;
use cuegate_provider::answer_message;
use serde_json::Value;

use super::{ProjectPlace, local_project::LocalProject};
use crate::{Failure, exit};
use tools::RunTools;

#[derive(Debug, Args)]
pub(crate) struct McpArgs {}

/// Serves the tools on standard input and output, a message per line, until standard input ends. Runs that were started go
/// on.
pub(in crate::cli::commands) fn serve_tools(place: &ProjectPlace) -> Result<u8, Failure> {
    let project = Arc::new(LocalProject::new(place)?);
    let output = Arc::new(Mutex::new(io::stdout()));
    let mut calls: Vec<thread::JoinHandle<()>> = Vec::new();
    for line in io::stdin().lock().split(b'\n') {
        let line =
            line.map_err(|error| Failure::environment(format!("failed to read a message: {error}")))?;
        if line.trim_ascii().is_empty() {
            continue;
        }
        let mut tools = RunTools::new(project.clone());
        let output = output.clone();
        // A call may wait for a run for most of a minute; others are answered meanwhile.
        calls.retain(|call| !call.is_finished());
        let message: Value = serde_json::from_slice(&line).unwrap_or_default();
        let tool = message["params"]["name"].as_str().unwrap_or_default();
        let only_waits = message["method"] == "tools/call" && tool == "wait";
        let call = thread::spawn(move || {
            if let Some(reply) = answer_message(&mut tools, &line) {
                send_message(&output, &reply);
            }
        });
        if !only_waits {
            calls.push(call);
        }
    }
    // Every call but `wait` is answered before the server ends.
    for call in calls {
        call.join().ok();
    }
    Ok(exit::DONE)
}

fn send_message(output: &Mutex<io::Stdout>, reply: &Value) {
    let Ok(mut output) = output.lock() else { return };
    // A client that is gone is noticed at the end of standard input.
    writeln!(output, "{reply}").and_then(|()| output.flush()).ok();
}
