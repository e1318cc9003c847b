//! The scripted provider: chooses an entry and performs it in this process or in a child process.

use std::{ffi::OsString, fmt, future, path::PathBuf, sync::Arc, time::Duration};

use tokio::time::{Instant, sleep, timeout_at};

use super::{
    pick::{Pool, Reservation},
    process::{ScriptedEnd, ScriptedJob, ScriptedReader},
    script::{Entry, Script, ScriptedFault, hash_parts},
};
use crate::{
    Answer, Capabilities, Fault, FaultClass, Inspection, Launch, Local, PreparedAsk, Provider, Request,
};

/// The command that runs [`super::scripted_main`].
#[derive(Debug, Clone)]
pub struct ScriptedProgram {
    /// The program, usually this one.
    pub exe: PathBuf,
    /// Its arguments, usually the hidden subcommand.
    pub args: Vec<OsString>,
}

/// A provider that answers from a script.
///
/// An entry that only answers is performed in this process. One that writes files, hangs or crashes is performed by a
/// child process, so that it can really be killed.
pub struct ScriptedProvider {
    pool: Arc<Pool>,
    program: Option<ScriptedProgram>,
}

impl ScriptedProvider {
    /// Creates a provider at the start of a script.
    ///
    /// Without a program, entries that write files or run commands fail, and all others are performed in this process.
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
    fn name(&self) -> &str {
        "scripted"
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities {
            schema: true,
            sessions: true,
            fork: true,
            system_prompt: true,
            // The agent uses no tools except those of its script, so any restriction holds.
            tools: true,
            cost: true,
            edits: true,
            progress: false,
        }
    }

    /// Accepts any model name.
    fn map_model_name(&self, name: &str) -> Option<String> {
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

    /// Ignores [`Request::permission`]: a script may make the agent write where it must not, which the run must detect.
    fn prepare(&self, request: &Request) -> Result<PreparedAsk, Fault> {
        let reservation = self.pool.reserve(request)?;
        let end = end_of(&reservation, request);
        match &self.program {
            Some(program) if reservation.entry().needs_program() => Ok(by_program(program, reservation, end)),
            None if reservation.entry().acts() => Err(Fault::new(
                FaultClass::MissingProgram,
                format!(
                    "the scripted answer {} for step `{}` needs a child process, and none is configured",
                    reservation.number(),
                    request.step
                ),
            )),
            _ => Ok(PreparedAsk::Local(perform_locally(reservation, end, request.timeout_ms))),
        }
    }
}

fn by_program(program: &ScriptedProgram, reservation: Reservation, end: ScriptedEnd) -> PreparedAsk {
    let Entry { mut writes, mut runs, delay_ms, .. } = reservation.entry().clone();
    if reservation.asks_person() && reservation.entry().asks_first() {
        // The entry acts when it answers.
        (writes, runs) = Default::default();
    }
    let job = ScriptedJob { writes, runs, delay_ms, end };
    let stdin = serde_json::to_vec(&job).expect("a job has string keys only");
    let launch =
        Launch { program: program.exe.clone(), args: program.args.clone(), stdin, ..Launch::default() };
    let reader = Box::new(ScriptedReader::new(reservation, program.exe.clone()));
    PreparedAsk::Process { launch, reader }
}

/// Performs an entry without effects in this process.
///
/// The future enforces the timeout itself. If only the caller did, the future would be dropped and its entry freed, and
/// each retry would get the same hanging entry. Asks that answer at once use no timer, so that they need no runtime.
fn perform_locally(reservation: Reservation, end: ScriptedEnd, timeout_ms: u64) -> Local {
    let delay_ms = reservation.entry().delay_ms;
    let deadline = Instant::now().checked_add(Duration::from_millis(timeout_ms));
    let result = result_of_end(end, &reservation);
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
                Err(fault_of_entry(&reservation, FaultClass::Timeout, "the scripted agent timed out"))
            }),
            None => performing.await,
        };
        let receipt = reservation.receipt();
        reservation.settle(&receipt);
        outcome
    })
}

/// The result of an end in this process; `None` if it hangs.
fn result_of_end(end: ScriptedEnd, reservation: &Reservation) -> Option<Result<Answer, Fault>> {
    match end {
        ScriptedEnd::Answer(answer) => Some(Ok(*answer)),
        ScriptedEnd::Fault(fault) => Some(Err(*fault)),
        ScriptedEnd::Broken => Some(Err(fault_of_entry(
            reservation,
            FaultClass::Malformed,
            "the scripted agent sent an incomplete answer",
        ))),
        ScriptedEnd::Crash => {
            Some(Err(fault_of_entry(reservation, FaultClass::Crashed, "the scripted agent crashed")))
        }
        ScriptedEnd::Never => None,
    }
}

/// The end of an entry.
fn end_of(reservation: &Reservation, request: &Request) -> ScriptedEnd {
    let entry = reservation.entry();
    let fault_of = |class, message| {
        let mut fault = fault_of_entry(reservation, class, message);
        fault.resets_in_ms = entry.resets_in_ms;
        ScriptedEnd::Fault(Box::new(fault))
    };
    match entry.error {
        None => ScriptedEnd::Answer(Box::new(answer_of_entry(reservation, request))),
        Some(ScriptedFault::Crashed) => ScriptedEnd::Crash,
        Some(ScriptedFault::Timeout | ScriptedFault::Hang) => ScriptedEnd::Never,
        Some(ScriptedFault::Malformed) => ScriptedEnd::Broken,
        Some(ScriptedFault::RateLimited) => {
            fault_of(FaultClass::RateLimited, "rate limit reached (scripted)")
        }
        Some(ScriptedFault::Overloaded) => {
            fault_of(FaultClass::Overloaded, "the service is overloaded (scripted)")
        }
        Some(ScriptedFault::Network) => {
            fault_of(FaultClass::Network, "the service cannot be reached (scripted)")
        }
        Some(ScriptedFault::Auth) => fault_of(FaultClass::Auth, "the login was rejected (scripted)"),
        Some(ScriptedFault::Refused) => {
            fault_of(FaultClass::Refused, "the service refused the request (scripted)")
        }
        Some(ScriptedFault::ContextOverflow) => {
            fault_of(FaultClass::ContextOverflow, "the request exceeds the context window (scripted)")
        }
        Some(ScriptedFault::SessionLost) => {
            fault_of(FaultClass::SessionLost, "there is no such conversation (scripted)")
        }
    }
}

fn answer_of_entry(reservation: &Reservation, request: &Request) -> Answer {
    let entry = reservation.entry();
    let asks_person = reservation.asks_person();
    let (output, text) = match asks_person && entry.asks_first() {
        true => (None, ""),
        false => entry.last_answer(&request.step),
    };
    Answer {
        handshake: None,
        output: output.cloned(),
        text: text.to_owned(),
        usage: entry.usage.into(),
        session: Some(choose_session_id(entry, request)),
        totals: None,
        model: Some("scripted".to_owned()),
        edited: entry.acts(),
        blocked: entry.blocked.clone().filter(|_| !(asks_person && entry.asks_first())),
        asks_person: entry.asks_user.clone().filter(|_| asks_person),
        receipt: Some(reservation.receipt()),
    }
}

/// The session id. A new or forked session gets an id derived from the ask, so that a repeated run has the same ids.
fn choose_session_id(entry: &Entry, request: &Request) -> String {
    let continued = request.session.as_ref().filter(|session| !session.fork).map(|session| &session.id);
    match entry.session.as_ref().or(continued) {
        Some(id) => id.clone(),
        None => format!("scripted-{:016x}", hash_parts(&[&request.id])),
    }
}

fn fault_of_entry(reservation: &Reservation, class: FaultClass, message: &str) -> Fault {
    let mut fault = Fault::new(class, message);
    fault.usage = reservation.entry().usage.into();
    fault.receipt = Some(reservation.receipt());
    fault
}

#[cfg(test)]
mod tests;
