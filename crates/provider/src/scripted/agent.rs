//! The provider: picks an entry and says how it is performed.

use std::{ffi::OsString, fmt, future, path::PathBuf, sync::Arc, time::Duration};

use tokio::time::{Instant, sleep, timeout_at};

use super::{
    pick::{Pool, Reservation},
    process::{End, Job, ScriptedReader},
    script::{Entry, Script, Trouble, fingerprint},
};
use crate::{
    Answer, Capabilities, Fault, FaultClass, Inspection, Launch, Local, Prepared, Provider, Request,
};

/// How to start the program whose body is [`super::scripted_main`].
#[derive(Debug, Clone)]
pub struct ScriptedProgram {
    /// The program, usually this one.
    pub exe: PathBuf,
    /// Its arguments, usually the hidden subcommand.
    pub args: Vec<OsString>,
}

/// Answers from a script.
///
/// An entry that only answers is performed in this process; one that touches files, hangs or crashes by a program,
/// so that killing it is real.
pub struct ScriptedProvider {
    pool: Arc<Pool>,
    program: Option<ScriptedProgram>,
}

impl ScriptedProvider {
    /// A provider at the beginning of a script.
    ///
    /// Without a program, entries that touch files are refused and the others performed in this process.
    pub fn new(script: Script, program: Option<ScriptedProgram>) -> ScriptedProvider {
        ScriptedProvider { pool: Pool::new(script), program }
    }
}

impl fmt::Debug for ScriptedProvider {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ScriptedProvider").field("program", &self.program).finish_non_exhaustive()
    }
}

impl Provider for ScriptedProvider {
    fn name(&self) -> &'static str {
        "scripted"
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities {
            schema: true,
            sessions: true,
            fork: true,
            system_prompt: true,
            // It has none but what its script says.
            tools: true,
            cost: true,
            edits: true,
            progress: false,
        }
    }

    /// A script answers for any model.
    fn model(&self, name: &str) -> Option<String> {
        Some(name.to_owned())
    }

    fn inspect(&self) -> Inspection {
        Inspection::default()
    }

    fn loads(&self) -> String {
        "not read by the scripted agent".to_owned()
    }

    fn restore(&self, receipts: &[String]) {
        self.pool.restore(receipts);
    }

    /// [`Request::permission`] is not looked at: a script may well tell an agent that writes where it must not,
    /// which is what a run has to notice by itself.
    fn prepare(&self, request: &Request) -> Result<Prepared, Fault> {
        let reservation = self.pool.reserve(request)?;
        let end = end_of(&reservation, request);
        match &self.program {
            Some(program) if reservation.entry().needs_program() => Ok(by_program(program, reservation, end)),
            None if reservation.entry().acts() => Err(Fault::new(
                FaultClass::MissingProgram,
                format!(
                    "the scripted answer {} for step `{}` touches files, and no program was given that performs it",
                    reservation.number(),
                    request.step
                ),
            )),
            _ => Ok(Prepared::Local(here(reservation, end, request.timeout_ms))),
        }
    }
}

fn by_program(program: &ScriptedProgram, reservation: Reservation, end: End) -> Prepared {
    let Entry { writes, runs, delay_ms, .. } = reservation.entry().clone();
    let job = Job { writes, runs, delay_ms, end };
    let stdin = serde_json::to_vec(&job).expect("a job has string keys only");
    let launch =
        Launch { program: program.exe.clone(), args: program.args.clone(), stdin, ..Launch::default() };
    let reader = Box::new(ScriptedReader::new(reservation, program.exe.clone()));
    Prepared::Process { launch, reader }
}

/// Performs an entry that touches nothing.
///
/// It ends by itself when its time is over, counted from now: if the caller's clock did that alone, the future
/// would be dropped, its entry free again, and a hanging one given to each further try. No timer is made where
/// none is needed, so that asks which answer at once need no runtime.
fn here(reservation: Reservation, end: End, timeout_ms: u64) -> Local {
    let delay_ms = reservation.entry().delay_ms;
    let deadline = Instant::now().checked_add(Duration::from_millis(timeout_ms));
    let result = result(end, &reservation);
    Box::pin(async move {
        let takes_time = delay_ms > 0 || result.is_none();
        let performing = async {
            if delay_ms > 0 {
                sleep(Duration::from_millis(delay_ms)).await;
            }
            match result {
                Some(result) => result,
                None => future::pending().await,
            }
        };
        let outcome = match deadline.filter(|_| takes_time) {
            Some(deadline) => timeout_at(deadline, performing).await.unwrap_or_else(|_| {
                Err(fault(&reservation, FaultClass::Timeout, "the scripted agent took longer than it may"))
            }),
            None => performing.await,
        };
        let receipt = reservation.receipt();
        reservation.settle(&receipt);
        outcome
    })
}

/// What comes of an end in this process; `None` when nothing ever does.
fn result(end: End, reservation: &Reservation) -> Option<Result<Answer, Fault>> {
    match end {
        End::Answer(answer) => Some(Ok(*answer)),
        End::Fault(fault) => Some(Err(*fault)),
        End::Broken => Some(Err(fault(
            reservation,
            FaultClass::Malformed,
            "the scripted agent answered half a sentence",
        ))),
        End::Crash => Some(Err(fault(reservation, FaultClass::Crashed, "the scripted agent crashed"))),
        End::Never => None,
    }
}

/// How an entry ends.
fn end_of(reservation: &Reservation, request: &Request) -> End {
    let entry = reservation.entry();
    let said = |class, message| {
        let mut fault = fault(reservation, class, message);
        fault.resets_in_ms = entry.resets_in_ms;
        End::Fault(Box::new(fault))
    };
    match entry.error {
        None => End::Answer(Box::new(answer(reservation, request))),
        Some(Trouble::Crashed) => End::Crash,
        Some(Trouble::Timeout | Trouble::Hang) => End::Never,
        Some(Trouble::Malformed) => End::Broken,
        Some(Trouble::RateLimited) => said(FaultClass::RateLimited, "too many requests, the script says"),
        Some(Trouble::Overloaded) => said(FaultClass::Overloaded, "the service is too busy, the script says"),
        Some(Trouble::Auth) => said(FaultClass::Auth, "the login is not accepted, the script says"),
        Some(Trouble::Refused) => {
            said(FaultClass::Refused, "the service refuses this content, the script says")
        }
        Some(Trouble::ContextOverflow) => {
            said(FaultClass::ContextOverflow, "the conversation no longer fits, the script says")
        }
    }
}

fn answer(reservation: &Reservation, request: &Request) -> Answer {
    let entry = reservation.entry();
    let (output, text) = entry.said(&request.step);
    Answer {
        output: output.cloned(),
        text: text.to_owned(),
        usage: entry.usage.into(),
        session: Some(session(entry, request)),
        totals: None,
        model: Some("scripted".to_owned()),
        edited: entry.acts(),
        blocked: entry.blocked.clone(),
        asks_person: entry.asks_user.clone(),
        receipt: Some(reservation.receipt()),
    }
}

/// A fork and a beginning get a name that follows from the ask, so that the same run has the same sessions.
fn session(entry: &Entry, request: &Request) -> String {
    let continued = request.session.as_ref().filter(|session| !session.fork).map(|session| &session.id);
    match entry.session.as_ref().or(continued) {
        Some(id) => id.clone(),
        None => format!("scripted-{:016x}", fingerprint(&[&request.id])),
    }
}

fn fault(reservation: &Reservation, class: FaultClass, message: &str) -> Fault {
    let mut fault = Fault::new(class, message);
    fault.usage = reservation.entry().usage.into();
    fault.receipt = Some(reservation.receipt());
    fault
}

#[cfg(test)]
mod tests;
