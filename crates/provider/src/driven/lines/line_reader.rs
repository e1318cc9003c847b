//! What agents that print lines have in common: the process, the answer server, the reminder.

use std::{
    collections::BTreeSet,
    fs,
    time::{Duration, Instant},
};

use cuegate_ask::{FaultClass, Permission, Usage};
use serde_json::Value;

use super::{copilot::CopilotLines, qwen::QwenLines};
use crate::{
    answer_server::{AnswerRecord, AnswerRecords, TOOL_NAME},
    driven::{
        child::{AFTER_ANSWER_MAX, AnswerFolder, SILENCE_MAX, prose_prompt, reminder_prompt},
        classify::classify_failure,
        events::{DriverError, EventWriter, Trouble},
        job::DriverJob,
        program_process::{ProgramLine, ProgramProcess},
        rows::DriverProtocol,
    },
    exec::AnswerLine,
    program::{estimate_tokens, wording::ARGUMENT_MAX},
};

/// How often records of the answer server are looked for.
const TICK: Duration = Duration::from_millis(50);

/// The lines of one agent.
pub(super) trait LineAgent {
    /// The arguments of a turn.
    fn arguments(&self, turn: &TurnRequest<'_>) -> Vec<String>;

    /// Whether the prompt goes to standard input, instead of into the arguments.
    fn reads_prompt(&self) -> bool;

    /// The turn is over.
    fn end(&mut self, _turn: &TurnRequest<'_>, _said: &mut TurnLog<'_, '_>) {}

    /// Reads a line.
    fn read(&mut self, line: &Value, said: &mut TurnLog<'_, '_>) -> Result<(), DriverError>;
}

/// What a turn is asked for.
pub(super) struct TurnRequest<'t> {
    pub(super) job: &'t DriverJob,
    pub(super) prompt: &'t str,
    pub(super) session: Option<&'t str>,
    pub(super) answers: Option<&'t AnswerFolder>,
}

impl TurnRequest<'_> {
    /// The program and the arguments of the answer server.
    pub(super) fn server(&self) -> Option<(&String, Vec<String>)> {
        let answers = self.answers?;
        let (program, args) = self.job.answer_server.split_first()?;
        Some((program, args.iter().cloned().chain([answers.path().display().to_string()]).collect()))
    }

    /// Whether commands are granted: where the step may write, or something else holds them.
    pub(super) fn grants_shell(&self) -> bool {
        let job = self.job;
        let is_listed = |tool: &String| matches!(tool.split('(').next(), Some("Bash" | "bash" | "shell"));
        job.permission.may_write()
            || job.is_sandboxed
            || job.tools.as_ref().is_some_and(|tools| tools.iter().any(is_listed))
    }

    pub(super) fn grants_everything(&self) -> bool {
        self.job.permission == Permission::BypassPermissions
    }
}

/// What an agent said in a turn.
pub(super) struct TurnLog<'t, 'w> {
    pub(super) events: &'t mut EventWriter<'w>,
    pub(super) session: Option<String>,
    /// The last text.
    pub(super) text: String,
    /// What the conversation had used before this call.
    pub(super) before: Option<Usage>,
    /// What the conversation has used, with all its earlier calls.
    pub(super) totals: Option<Usage>,
    pub(super) model: Option<String>,
    pub(super) handshake: Option<String>,
    /// The tools in use.
    pub(super) open_tools: BTreeSet<String>,
    /// The failure that the agent reports.
    pub(super) failure: Option<Trouble>,
    /// Whether it said that the turn is over.
    pub(super) is_over: bool,
}

impl TurnLog<'_, '_> {
    /// What this call has used.
    fn usage_of_call(&self) -> Usage {
        let totals = self.totals.unwrap_or_default();
        self.before.map_or(totals, |before| totals.beyond(&before))
    }
}

/// Calls an agent that prints lines.
pub(in crate::driven) fn run_lines(
    job: &DriverJob,
    protocol: DriverProtocol,
    answers: Option<&AnswerFolder>,
    events: &mut EventWriter<'_>,
) -> Result<(), DriverError> {
    let mut agent: Box<dyn LineAgent> = match protocol {
        DriverProtocol::QwenLines => Box::new(QwenLines),
        _ => Box::new(CopilotLines::default()),
    };
    let mut log = TurnLog {
        events,
        session: job.session.clone(),
        text: String::new(),
        before: job.totals,
        totals: None,
        model: job.model.clone(),
        handshake: None,
        open_tools: BTreeSet::new(),
        failure: None,
        is_over: false,
    };
    let mut server = ServerState {
        records: answers.map(AnswerFolder::records),
        is_listed: false,
        answer: None,
        answered_at: None,
    };
    // Whether it sees the tool is known only when it runs, so the prompt has both ways.
    let prompt = match (&job.schema, answers) {
        (Some(schema), None) => prose_prompt(&job.prompt, schema),
        (Some(_), Some(_)) => format!(
            "{}\n\nWhen all the work is done, give your final answer by calling the tool `{TOOL_NAME}` of the server \
             `cuegate`.",
            job.prompt
        ),
        (None, _) => job.prompt.clone(),
    };
    let first = TurnRequest { job, prompt: &prompt, session: job.session.as_deref(), answers };
    if let Err(error) = run_turn(&mut *agent, &first, &mut log, &mut server) {
        log.events.usage(log.usage_of_call())?;
        return Err(error);
    }
    if let (Some(schema), None, Some(session)) = (&job.schema, &server.answer, log.session.clone())
        && answers.is_some()
    {
        let reminder = match server.is_listed {
            true => reminder_prompt(),
            false => prose_prompt("Give your answer now, and do nothing else.", schema),
        };
        let again = TurnRequest { job, prompt: &reminder, session: Some(&session), answers };
        run_turn(&mut *agent, &again, &mut log, &mut server)?;
    }
    let mut usage = log.usage_of_call();
    if usage == Usage::default() {
        usage.input_tokens = estimate_tokens(job.prompt.len() as u64);
        usage.output_tokens = estimate_tokens(log.text.len() as u64);
        usage.is_estimated = true;
    }
    log.events.usage(usage)?;
    log.events.answer(AnswerLine {
        text: log.text.trim().to_owned(),
        output: server.answer,
        session: log.session,
        model: log.model,
        handshake: log.handshake,
        totals: log.totals,
        ..AnswerLine::default()
    })
}

/// What the answer server recorded.
struct ServerState {
    records: Option<AnswerRecords>,
    is_listed: bool,
    answer: Option<Value>,
    answered_at: Option<Instant>,
}

impl ServerState {
    fn look(&mut self, events: &mut EventWriter<'_>) -> Result<(), DriverError> {
        for record in self.records.iter_mut().flat_map(AnswerRecords::read_new) {
            match record {
                AnswerRecord::Listed => self.is_listed = true,
                AnswerRecord::Answer(answer) => {
                    self.answer = Some(answer);
                    self.answered_at = Some(Instant::now());
                }
                AnswerRecord::Refused(why) => events.retry(&format!("the answer does not fit: {why}"))?,
            }
        }
        Ok(())
    }
}

fn run_turn(
    agent: &mut dyn LineAgent,
    request: &TurnRequest<'_>,
    log: &mut TurnLog<'_, '_>,
    server: &mut ServerState,
) -> Result<(), DriverError> {
    let done = follow_turn(agent, request, log, server);
    agent.end(request, log);
    done
}

fn follow_turn(
    agent: &mut dyn LineAgent,
    request: &TurnRequest<'_>,
    log: &mut TurnLog<'_, '_>,
    server: &mut ServerState,
) -> Result<(), DriverError> {
    let (job, name) = (request.job, &request.job.name);
    (log.failure, log.is_over) = (None, false);
    let mut pointer = String::new();
    let mut short =
        TurnRequest { job, prompt: request.prompt, session: request.session, answers: request.answers };
    if !agent.reads_prompt() && request.prompt.len() > ARGUMENT_MAX {
        // The system limits the length of an argument: a longer prompt goes into a file, which the argument names.
        let path = job.scratch.join("prompt.md");
        fs::write(&path, request.prompt).map_err(|error| {
            Trouble::new(
                FaultClass::Crashed,
                format!("failed to write the prompt to `{}`: {error}", path.display()),
            )
        })?;
        pointer = format!("Read the file `{}` and do what it says.", path.display());
    }
    if !pointer.is_empty() {
        short.prompt = &pointer;
    }
    let mut process = ProgramProcess::start(job, &agent.arguments(&short))?;
    if agent.reads_prompt() {
        // A program that does not read it says so when it ends.
        process.write_line(request.prompt.as_bytes()).ok();
    }
    process.close_stdin();
    let mut active_at = Instant::now();
    let mut garbled = 0u32;
    loop {
        match process.next_line(TICK) {
            Some(ProgramLine::Line(line)) => {
                active_at = Instant::now();
                match serde_json::from_slice::<Value>(&line) {
                    Ok(line) => agent.read(&line, log)?,
                    Err(_) => garbled += 1,
                }
            }
            Some(ProgramLine::End) => break,
            Some(ProgramLine::TooMuch) => {
                return Err(Trouble::new(FaultClass::Malformed, format!("{name} printed without end")).into());
            }
            None => {}
        }
        server.look(log.events)?;
        if server.answered_at.is_some_and(|at| at.elapsed() > AFTER_ANSWER_MAX) {
            return Ok(());
        }
        if log.open_tools.is_empty() && active_at.elapsed() > SILENCE_MAX {
            let why = format!("{name} said nothing for {} s", SILENCE_MAX.as_secs());
            return Err(Trouble::new(FaultClass::Timeout, why).into());
        }
    }
    server.look(log.events)?;
    if server.answer.is_some() {
        drop(process.wait());
        return Ok(());
    }
    if let Some(failure) = log.failure.take() {
        return Err(failure.into());
    }
    if !log.is_over {
        let what = if garbled > 0 {
            "printed lines that are not JSON, and ended without a result"
        } else {
            "ended without a result"
        };
        let mut trouble = process.trouble_of_end(what);
        let text = trouble.message.to_lowercase();
        if request.session.is_some() && text.contains("session") && trouble.class == FaultClass::Crashed {
            trouble.class = FaultClass::SessionLost;
        }
        return Err(trouble.into());
    }
    let (status, stderr) = process.wait();
    match status {
        Some(status) if !status.success() => {
            let text = format!("{name} ended with {status}: {stderr}");
            Err(classify_failure(None, &text, FaultClass::Crashed).into())
        }
        _ => Ok(()),
    }
}
