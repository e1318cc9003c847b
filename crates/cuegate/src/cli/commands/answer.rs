//! `answer` and `cancel`: messages to a run from another process.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use cuegate_engine::{Completion, EndState, Event, Run, State, WaitKind};
use cuegate_flow::model::BlobRef;
use cuegate_journal::{Error, Journal, RunId, sqlite::Durability};
use cuegate_runner::{Letter, RunWriter, is_over, now_ms};

use super::{Place, resume::go_on};
use crate::{
    Failure,
    cli::{
        args::{Answer, Cancel},
        print,
    },
    config, exit, project, start_run,
    start_run::{Again, Host, Program},
};

/// How long `cancel` waits for the owner of a run to react.
const PATIENCE: Duration = Duration::from_secs(20);

fn no_answer() -> Failure {
    Failure::usage(
        "no answer was given",
        "give it as text, `cuegate answer RUN \"…\"`, or as a file, `--input FILE`",
    )
}

/// The run and the text of an answer.
fn run_and_text(args: &Answer) -> Result<(String, String), Failure> {
    let last = || "last".to_owned();
    if let Some(path) = &args.input {
        let read = match path.as_str() {
            "-" => std::io::read_to_string(std::io::stdin()),
            path => std::fs::read_to_string(path),
        };
        let text = read.map_err(|error| {
            Failure::usage(format!("failed to read `{path}`: {error}"), "check the path given with `--input`")
        })?;
        return Ok((args.run.clone().unwrap_or_else(last), text));
    }
    match (&args.run, &args.text) {
        (Some(run), Some(text)) => Ok((run.clone(), text.clone())),
        // A single text is the answer, unless it names a run.
        (Some(text), None) => Ok((last(), text.clone())),
        (None, _) => Err(no_answer()),
    }
}

pub(super) fn answer(place: &Place, args: Answer) -> Result<u8, Failure> {
    let (run, text) = run_and_text(&args)?;
    if text.trim().is_empty() {
        return Err(Failure::usage("the answer is empty", "give the text that the run continues with"));
    }
    let (journal, id) = open(place, &run)?;
    if args.text.is_none() && args.input.is_none() && project::find(&*journal, &text).is_ok() {
        return Err(no_answer());
    }
    match &state(&*journal, &id)?.state {
        State::Suspended(waiting) if waiting.kind == WaitKind::Person => {}
        State::Ended { reason, .. } => {
            return Err(Failure::usage(
                format!("run {id} has ended: {reason}"),
                "an ended run takes no answer",
            ));
        }
        _ if already_answered(&*journal, &id, &text)? => {
            return Err(Failure::usage(
                format!("run {id} already has this answer"),
                format!("`cuegate resume {id}` continues with it, unless another process does"),
            ));
        }
        _ => {
            return Err(Failure::usage(
                format!("run {id} is not waiting for an answer"),
                format!("`cuegate status {id}` prints its state"),
            ));
        }
    }
    if cuegate_runner::answered(&*journal, &id)? {
        return Err(Failure::usage(
            format!("run {id} already has an answer"),
            format!("`cuegate resume {id}` continues with it"),
        ));
    }
    // The next process that drives the run reads its letters first.
    let letter = Letter::Answer { text };
    journal.post(&id, now_ms(), &serde_json::to_vec(&letter).unwrap_or_default())?;
    if args.no_continue {
        print::line(&format!("run {id}: the answer is recorded; `cuegate resume {id}` continues the run"));
        return Ok(exit::DONE);
    }
    let config = config::load(place.home.root())?;
    let host =
        Host { home: place.home.clone(), journal: journal.clone(), program: Program::current()?, config };
    let ready = start_run::resume(&host, &id, &Again::default()).inspect_err(|_| {
        print::line(&format!("run {id}: the answer is recorded; `cuegate resume {id}` continues the run"));
    })?;
    go_on(place, &host, &id, ready, args.json)
}

pub(super) fn cancel(place: &Place, args: &Cancel) -> Result<u8, Failure> {
    let (journal, id) = open(place, &args.run)?;
    let run = state(&*journal, &id)?;
    if is_over(&run.state) {
        print::line(&format!("run {id} has already ended"));
        return Ok(exit::DONE);
    }
    // Cancelling needs no flow, so a definition that this version rejects does not matter.
    let flow = start_run::reload(&*journal, &run).unwrap_or_else(|_| start_run::no_flow());
    match RunWriter::reopen(journal.clone(), &id, flow) {
        Ok(mut book) => {
            // The run ends whether its tree can be inspected or not.
            let seen = start_run::seen(&place.home, book.run()).unwrap_or_else(|failure| {
                print::line(&format!("note: the changes since the last record are unknown: {failure}"));
                None
            });
            book.commit(Completion::Cancelled { seen }, Vec::new(), &[])?;
        }
        Err(cuegate_runner::Error::Journal(Error::Held { lease })) => {
            let letter = serde_json::to_vec(&Letter::Cancel).unwrap_or_default();
            journal.post(&id, now_ms(), &letter)?;
            let since = Instant::now();
            while !is_over(&state(&*journal, &id)?.state) {
                // The owner may have released the run before it read the letter.
                if journal.holder(&id)?.is_none() {
                    return cancel(place, args);
                }
                if since.elapsed() > PATIENCE {
                    return Err(Failure::environment(format!(
                        "run {id} is driven by {}, which does not respond",
                        lease.owner
                    )));
                }
                std::thread::sleep(Duration::from_millis(50));
            }
        }
        Err(error) => return Err(error.into()),
    }
    if let State::Ended { state, reason, .. } = state(&*journal, &id)?.state
        && state != EndState::Cancelled
    {
        print::line(&format!("run {id} ended before it was cancelled: {reason}"));
        return Ok(exit::DONE);
    }
    print::line(&format!("run {id} is cancelled; `cuegate diff {id}` shows what it changed"));
    Ok(exit::DONE)
}

/// Whether this text is the newest answer that the run has taken.
fn already_answered(journal: &dyn Journal, id: &RunId, text: &str) -> Result<bool, Failure> {
    let entries = cuegate_runner::records(journal, id)?;
    let mut answers = entries.iter().rev().flat_map(|entry| &entry.events).filter_map(|event| match event {
        Event::PersonAnswered { text, .. } => Some(text),
        _ => None,
    });
    Ok(answers.next().is_some_and(|taken| *taken == BlobRef::for_bytes(text.as_bytes())))
}

fn open(place: &Place, typed: &str) -> Result<(Arc<dyn Journal>, RunId), Failure> {
    let journal = project::open_existing(&place.home, Durability::Synced)?;
    let id = project::find(&*journal, typed)?;
    Ok((journal, id))
}

fn state(journal: &dyn Journal, id: &RunId) -> Result<Run, Failure> {
    let entries = cuegate_runner::records(journal, id)?;
    Ok(Run::fold(entries.iter().map(|entry| entry.events.as_slice())))
}
