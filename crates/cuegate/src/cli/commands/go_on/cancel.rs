//! `cancel`: ends a run.

use super::answer::{PATIENCE, open_run, read_run};
use crate::cli::commands::shared_args::RunRef;
use std::time::{Duration, Instant};

use cuegate_engine::{Completion, EndState, State};
use cuegate_journal::Error;
use cuegate_runner::{InboxMessage, RunWriter, is_over, now_ms};

use super::resume;
use crate::cli::commands::{ProjectPlace, texts_of_run, view_of};
use crate::cli::print;
use crate::run::start_run::{Host, Program};
use crate::run::{leftovers, start_run};
use crate::{Failure, exit};
use clap::Args;

#[derive(Debug, Args)]
pub(crate) struct CancelArgs {
    #[command(flatten)]
    pub(crate) run: RunRef,
    /// Print the run as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

pub(in crate::cli::commands) fn cancel_run(place: &ProjectPlace, args: &CancelArgs) -> Result<u8, Failure> {
    let code = end_run(place, args)?;
    if args.json {
        let (journal, id) = open_run(place, &args.run.id)?;
        print::print_json(&view_of(&*journal, &id)?.to_json(&texts_of_run(&*journal, &id)));
    }
    Ok(code)
}

fn end_run(place: &ProjectPlace, args: &CancelArgs) -> Result<u8, Failure> {
    let (journal, id) = open_run(place, &args.run.id)?;
    let run = read_run(&*journal, &id)?;
    if is_over(&run.state) {
        print::print_line(&format!("run {id} has already ended, so there is nothing to cancel"));
        return Ok(exit::DONE);
    }
    // Cancelling needs no flow, so a definition that this version rejects does not matter.
    let flow = start_run::reload_flow(&*journal, &id, &run).unwrap_or_else(|_| start_run::no_flow());
    match RunWriter::reopen(journal.clone(), &id, flow) {
        Ok(book) => {
            // The run ends whether its tree can be inspected or not.
            let seen =
                start_run::tree_change_of_run(&place.home, &id, book.run()).unwrap_or_else(|failure| {
                    print::print_line(&format!(
                        "note: the changes since the last record are unknown: {failure}"
                    ));
                    None
                });
            let config = resume::settings_of_run(place, &*journal, &id, false)?.config;
            let host = Host {
                home: place.home.clone(),
                journal: journal.clone(),
                program: Program::current()?,
                config,
            };
            let before = cuegate_runner::read_records(&*journal, &id)?;
            // Takes the labels of its issue back.
            crate::cli::commands::drive_run(start_run::for_effects(
                &host,
                book,
                before,
                Completion::Cancelled { seen },
            )?)?;
            // A call that was killed left what it was told, with keys of its agent.
            leftovers::remove_commands(&place.home, &id, &[]);
        }
        Err(cuegate_runner::Error::Journal(Error::Held { lease })) => {
            let letter = serde_json::to_vec(&InboxMessage::Cancel).unwrap_or_default();
            journal.post(&id, now_ms(), &letter)?;
            let since = Instant::now();
            while !is_over(&read_run(&*journal, &id)?.state) {
                // The owner may have released the run before it read the letter.
                if journal.holder(&id)?.is_none() {
                    return end_run(place, args);
                }
                if since.elapsed() > PATIENCE {
                    let message = format!("run {id} is driven by {}, which does not respond", lease.owner);
                    let hint = format!(
                        "it is cancelled as soon as it does; or end that process, then `cuegate cancel {id}`"
                    );
                    return Err(Failure { hint: Some(hint), ..Failure::environment(message) });
                }
                std::thread::sleep(Duration::from_millis(50));
            }
        }
        Err(error) => return Err(error.into()),
    }
    if let State::Ended { state, reason, .. } = read_run(&*journal, &id)?.state
        && state != EndState::Cancelled
    {
        print::print_line(&format!("run {id} ended before it was cancelled: {reason}"));
        return Ok(exit::DONE);
    }
    print::print_line(&format!("run {id} is cancelled; `cuegate diff {id}` shows what it changed"));
    Ok(exit::DONE)
}
