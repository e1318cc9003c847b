//! Checks whether a run is done: polls resources and runs handlers of the definition.

use std::time::{Duration, Instant};

use cuegate_engine::{
    Completion, HandlerInput, HandoffEntry, Probe, ProbeCommand, ProbeResult, json_in_text,
};
use cuegate_flow::model::{BlobRef, Handler, Poll};
use serde_json::{Map, Value, json};
use tokio::sync::{oneshot, watch};

use super::{LocalExecutor, is_cut, kept_programs::ProgramInput};
use crate::{
    error::Error, executor::CommandResult, poll, poll::create_poller, process::FinishedCommand,
    prompt_text::read_stored_text,
};

/// The time limit of a handler.
const HANDLER_TIMEOUT: Duration = Duration::from_secs(60);
/// The longest kept reason, in characters.
const REASON_CHARS_MAX: usize = 400;

impl LocalExecutor {
    pub(super) async fn probe(
        &self,
        command: ProbeCommand,
        cut: watch::Receiver<bool>,
    ) -> Result<Option<CommandResult>, Error> {
        let look = match &command.probe {
            Probe::Poll { poll, which } => self.poll(poll, which, cut).await?,
            Probe::Handler { handler, about } => self.handler(&command, handler, about, cut).await?,
        };
        Ok(look.map(|look| {
            let completion = Completion::Probed { id: command.id, look };
            CommandResult { completion, texts: Vec::new() }
        }))
    }

    async fn poll(
        &self,
        poll: &Poll,
        which: &BlobRef,
        mut cut: watch::Receiver<bool>,
    ) -> Result<Option<ProbeResult>, Error> {
        let which = read_stored_text(&*self.setting.journal, &self.setting.run, which)?;
        let (poll, work) = (poll.clone(), self.setting.work.clone());
        let poller = create_poller(poll.resource, &self.setting.effects);
        let begun = Instant::now();
        let (sender, receiver) = oneshot::channel();
        // A thread of its own, so that stopping a run does not wait for the answer of a service.
        std::thread::spawn(move || {
            let _ = sender.send(poller.look(&which, &poll.state, &work));
        });
        let seen: poll::PollResult = tokio::select! {
            seen = receiver => seen.map_err(|error| Error::Task(error.to_string()))?,
            () = is_cut(&mut cut) => return Ok(None),
        };
        Ok(Some(ProbeResult {
            holds: seen.holds == Ok(true),
            failed: seen.holds.is_err(),
            said: seen.description,
            duration_ms: u64::try_from(begun.elapsed().as_millis()).unwrap_or(u64::MAX),
            seen: None,
        }))
    }

    async fn handler(
        &self,
        command: &ProbeCommand,
        handler: &Handler,
        about: &HandlerInput,
        cut: watch::Receiver<bool>,
    ) -> Result<Option<ProbeResult>, Error> {
        let stdin = self.handler_input(handler, about)?.to_string();
        let input = ProgramInput { stdin, env: Vec::new(), timeout: HANDLER_TIMEOUT };
        let Some(finished) = self.run_program(command.id, &handler.program, input, cut).await? else {
            return Ok(None);
        };
        let (holds, failed, said) = match parse_handler_answer(&finished) {
            Ok((holds, reason)) => {
                let reason = reason.unwrap_or_else(|| {
                    let state = if holds { "finished" } else { "not finished" };
                    format!("`{}` reports: {state}", handler.program.path)
                });
                (holds, false, reason)
            }
            Err(why) => (false, true, why),
        };
        let said = said.chars().take(REASON_CHARS_MAX).collect();
        let seen = self.seen(None).await?;
        Ok(Some(ProbeResult { holds, failed, said, duration_ms: finished.elapsed_ms, seen }))
    }

    /// Builds the standard input of a handler.
    fn handler_input(&self, handler: &Handler, about: &HandlerInput) -> Result<Value, Error> {
        let (journal, run) = (&*self.setting.journal, &self.setting.run);
        let mut answer = Value::Null;
        if let Some(said) = &about.answer {
            let text = said
                .text
                .as_ref()
                .map(|text| read_stored_text(journal, run, text))
                .transpose()?
                .unwrap_or_default();
            let output =
                said.output.as_ref().map(|output| read_stored_text(journal, run, output)).transpose()?;
            let output = output.and_then(|output| serde_json::from_str(&output).ok());
            answer = output.or_else(|| json_in_text(&text)).unwrap_or(Value::String(text));
        }
        let mut handoff = Map::new();
        for HandoffEntry { step, key, value } in &about.handoffs {
            let text = read_stored_text(journal, run, value)?;
            // Values other than texts are stored as JSON.
            let value = serde_json::from_str::<Value>(&text).ok().filter(|value| !value.is_string());
            let of = handoff.entry(step.to_string()).or_insert_with(|| json!({}));
            of[&**key] = value.unwrap_or(Value::String(text));
        }
        Ok(json!({
            "run": self.setting.run.as_str(), "step": about.step, "visit": about.visit,
            "iteration": about.iteration, "answer": answer, "handoff": handoff, "config": handler.config,
        }))
    }
}

/// Parses the answer of a handler: whether the run is done, and the reason. `Err` describes an invalid answer.
fn parse_handler_answer(finished: &FinishedCommand) -> Result<(bool, Option<String>), String> {
    let exit = super::exit_of_finished(finished);
    let stderr = super::text_of(&finished.stderr);
    let last = stderr.trim().lines().last().map(|line| format!(": {line}")).unwrap_or_default();
    if exit.code() != Some(0) {
        return Err(format!("{}{last}", exit.describe(HANDLER_TIMEOUT.as_millis() as u64)));
    }
    let stdout = super::text_of(&finished.stdout);
    let wanted = "expected `{\"finished\": true or false, \"reason\": text}`";
    let answer: Value = serde_json::from_str(stdout.trim())
        .map_err(|error| format!("its output is not JSON ({error}); {wanted}{last}"))?;
    let holds = answer.get("finished").and_then(Value::as_bool);
    let reason = answer.get("reason").and_then(Value::as_str).filter(|reason| !reason.trim().is_empty());
    match holds {
        Some(holds) => Ok((holds, reason.map(str::to_owned))),
        None => Err(format!("its answer has no `finished`; {wanted}{last}")),
    }
}
