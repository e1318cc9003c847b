//! The child of a call: drives the agent's program and prints the events of an `exec` agent.

use std::{
    fs,
    io::{self, Read, Write},
    path::{Path, PathBuf},
    process::ExitCode,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use cuegate_ask::FaultClass;
use serde_json::Value;

use super::{
    acp::run_acp,
    events::{DriverError, EventWriter, Trouble},
    job::{AnswerRoute, DriverJob},
    lines::run_lines,
    rows::{DriverProtocol, find_row},
};
use crate::answer_server::{AnswerRecords, HttpAnswerServer, RECORDS_FILE, SCHEMA_FILE, TOOL_NAME};

/// The body of the hidden subcommand that [`super::DriverProgram`] names.
///
/// Reads a job from standard input, calls the agent and prints events, one JSON value per line. Exits with 2 if it cannot
/// read the job and with 1 if it cannot write, after one line on standard error. A call that fails exits with 0; its last
/// line is the error.
pub fn driver_main() -> ExitCode {
    let mut text = Vec::new();
    let read = io::stdin().lock().read_to_end(&mut text);
    let job = match read.and_then(|_| Ok(serde_json::from_slice::<DriverJob>(&text)?)) {
        Ok(job) => job,
        Err(error) => {
            writeln!(io::stderr(), "failed to read the job: {error}").ok();
            return ExitCode::from(2);
        }
    };
    let mut out = io::stdout();
    let mut events = EventWriter::new(&mut out);
    let reported = match call_agent(job, &mut events) {
        Ok(()) => Ok(()),
        Err(DriverError::Trouble(trouble)) => events.error(trouble),
        Err(deaf) => Err(deaf),
    };
    match reported {
        Ok(()) => ExitCode::SUCCESS,
        Err(DriverError::Deaf(error)) => {
            writeln!(io::stderr(), "failed to report the answer: {error}").ok();
            ExitCode::FAILURE
        }
        Err(DriverError::Trouble(_)) => ExitCode::FAILURE,
    }
}

fn call_agent(mut job: DriverJob, events: &mut EventWriter<'_>) -> Result<(), DriverError> {
    let row = job.row.as_deref().and_then(find_row);
    let failed =
        |error: io::Error| Trouble::new(FaultClass::Crashed, format!("failed to prepare the call: {error}"));
    let folder = CallFolder::create(&job.scratch).map_err(failed)?;
    job.scratch.clone_from(&folder.path);
    job.write_row_settings(row).map_err(failed)?;
    let answers = match (&job.schema, job.answer) {
        (Some(schema), AnswerRoute::Stdio | AnswerRoute::Http) => {
            Some(AnswerFolder::create(&folder.path, schema, job.answer).map_err(failed)?)
        }
        _ => None,
    };
    match row.map_or(DriverProtocol::Acp, |row| row.protocol) {
        DriverProtocol::Acp => run_acp(&job, row, answers.as_ref(), events),
        protocol => run_lines(&job, protocol, answers.as_ref(), events),
    }
}

/// A folder for the files of a call. Removed when dropped.
struct CallFolder {
    path: PathBuf,
}

impl CallFolder {
    /// Creates it among the files of the call, which are removed with it; in a sandbox these are read-only, and its folder for
    /// temporary files ends with it.
    fn create(scratch: &Path) -> io::Result<CallFolder> {
        let made = CallFolder { path: scratch.join("driver") };
        if fs::create_dir_all(&made.path).is_ok() && fs::write(made.path.join("probe"), "").is_ok() {
            return Ok(made);
        }
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let name = format!("cuegate-call-{}-{}", std::process::id(), since.as_nanos());
        let made = CallFolder { path: std::env::temp_dir().join(name) };
        fs::create_dir_all(&made.path)?;
        Ok(made)
    }
}

impl Drop for CallFolder {
    fn drop(&mut self) {
        fs::remove_dir_all(&self.path).ok();
    }
}

/// The folder of an answer server, and the server if it is ours.
pub(super) struct AnswerFolder {
    path: PathBuf,
    http: Option<HttpAnswerServer>,
}

impl AnswerFolder {
    pub(super) fn create(folder: &Path, schema: &Value, route: AnswerRoute) -> io::Result<AnswerFolder> {
        let path = folder.join("answer");
        fs::create_dir_all(&path)?;
        fs::write(path.join(SCHEMA_FILE), schema.to_string())?;
        let http = match route {
            AnswerRoute::Http => {
                let mut token = [0u8; 16];
                fs::File::open("/dev/urandom")?.read_exact(&mut token)?;
                let token = token.iter().map(|byte| format!("{byte:02x}")).collect();
                Some(HttpAnswerServer::start(&path, token)?)
            }
            AnswerRoute::Stdio | AnswerRoute::None => None,
        };
        Ok(AnswerFolder { path, http })
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    pub(super) fn http(&self) -> Option<&HttpAnswerServer> {
        self.http.as_ref()
    }

    pub(super) fn records(&self) -> AnswerRecords {
        AnswerRecords::new(self.path.join(RECORDS_FILE))
    }
}

/// How long an agent may say nothing while it uses no tool. The retries inside agents take up to 75 s.
pub(super) const SILENCE_MAX: Duration = Duration::from_secs(600);
/// How long a turn may go on after the answer was given.
pub(super) const AFTER_ANSWER_MAX: Duration = Duration::from_secs(30);

/// The prompt for an agent that ended its turn without an answer.
pub(super) fn reminder_prompt() -> String {
    format!(
        "You have not given your answer yet. Call the tool `{TOOL_NAME}` with it now, and do nothing else."
    )
}

/// A prompt with the schema in it, for an agent that does not see the answer server.
pub(super) fn prose_prompt(prompt: &str, schema: &Value) -> String {
    format!(
        "{prompt}\n\nEnd with your answer as one JSON object, in a block that begins with ```json and ends with ```. It has \
         to be valid by this JSON Schema:\n\n```json\n{schema}\n```\n"
    )
}
