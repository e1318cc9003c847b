//! `resume`.

use std::sync::Arc;

use cuegate_engine::{EndState, State, WaitKind};
use cuegate_journal::{Journal, RunId};

use super::{Place, drive, run, tell_end, view_of};
use crate::{
    Failure,
    begin::{self, Again, Host, Program, Ready},
    cli::{args::Resume, print},
    exit, project,
};

pub(super) fn resume(place: &Place, args: Resume) -> Result<u8, Failure> {
    if !place.home.journal().exists() {
        return Err(project::no_runs());
    }
    let journal = project::open(&place.home, run::durability(args.durability))?;
    let id = project::find(&*journal, &args.run)?;
    if let Some(code) = nothing_to_do(&*journal, &id, &args)? {
        return Ok(code);
    }
    let script = args.script.as_deref().map(run::read_script).transpose()?;
    let again = Again {
        iterations_max: args.max_iterations,
        repairs_max: args.repairs,
        provider: args.provider.clone().or_else(|| script.as_ref().map(|_| "scripted".to_owned())),
        script,
    };
    let host = Host { home: place.home.clone(), journal: journal.clone(), program: Program::current()? };
    let ready = begin::resume(&host, &id, &again)?;
    print::line(&format!("run {id}: goes on at record {}", ready.run().seq));
    go_on(place, &journal, &id, ready, args.json)
}

/// Drives a run that was made ready, and tells how it stands then.
pub(super) fn go_on(
    place: &Place,
    journal: &Arc<dyn Journal>,
    id: &RunId,
    ready: Ready,
    json: bool,
) -> Result<u8, Failure> {
    drive(ready)?;
    tell_end(place, &**journal, id, json)
}

/// A run that cannot go on says so, and ends as it did.
fn nothing_to_do(journal: &dyn Journal, id: &RunId, args: &Resume) -> Result<Option<u8>, Failure> {
    let entries = cuegate_runner::records(journal, id)?;
    let run = cuegate_engine::Run::fold(entries.iter().map(|entry| entry.events.as_slice()));
    let why = match &run.state {
        State::Ended { state: EndState::Exhausted, .. }
            if args.max_iterations.unwrap_or(run.iterations_max) <= run.iterations =>
        {
            format!(
                "its limit of {} iterations is used up; give a higher one: `cuegate resume {id} --max-iterations {}`",
                run.iterations_max,
                run.iterations_max + 10
            )
        }
        State::Ended { state: EndState::Exhausted, .. } => return Ok(None),
        State::Ended { reason, .. } => format!("it has ended: {reason}"),
        State::Suspended(waiting)
            if waiting.kind == WaitKind::Person && !cuegate_runner::answered(journal, id)? =>
        {
            format!("it waits for an answer ({}): `cuegate answer {id} \"…\"`", waiting.detail)
        }
        State::New | State::Running | State::Suspended(_) => return Ok(None),
    };
    print::line(&format!("run {id} does not go on: {why}"));
    if args.json {
        print::json(&view_of(journal, id)?.0.to_json());
    }
    Ok(Some(exit::of(&run.state)))
}
