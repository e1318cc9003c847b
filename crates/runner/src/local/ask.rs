//! Runs asks: builds the request for the provider, starts the agent's program and reads its answer.

#![expect(clippy::disallowed_methods, reason = "state of ours, where no agent writes")]

use std::{
    path::{Path, PathBuf},
    time::{Duration, Instant, SystemTime},
};

use cuegate_engine::{
    AskCommand, AskDelivery, Completion, SchemaEnforcement, SessionContinuation, convert_usd_to_micro,
};
use cuegate_flow::model::{BlobRef, Flow};
use cuegate_provider::{
    self as provider, Activity, AnswerReader, CutUsage, Fault, FaultClass, PreparedAsk, calling_session,
};
use tokio::sync::watch;

use super::{
    CalledAgent, ExecutorSettings, LocalExecutor, end_of, former_start, is_cut, run_blocking,
    tool_log::ToolLog, wait_until,
};
use crate::{
    activity::ActivityLog,
    drive::{AgentActivity, ExecutorMessage},
    error::Error,
    executor::CommandResult,
    github::TOKEN_VARS,
    process,
    process::{FinishedCommand, FormerStart, Launch},
    prompt_text::join_prompt_parts,
    sandbox::{ProcessKind, TreeAccess},
    translate,
    translate::RequestDetails,
};

/// The folder of files that a program reads, in the folder of its command.
const FILES: &str = "files";
/// The variable that tells what an agent starts for which run it works.
pub const WITHIN_VARIABLE: &str = "CUEGATE_WITHIN";
/// The variable that names the run to agents, validators and the commands that prepare a worktree: for databases, ports and
/// folders that have to be its own.
pub const RUN_VARIABLE: &str = "CUEGATE_RUN";
/// The file in there that holds the name of the asked provider, for resume.
const ASKED: &str = "asked-provider";

/// The output limit of one ask, in bytes.
const ASK_OUTPUT_MAX: u64 = 256 << 20;

enum AskOutcome {
    /// An answer or a fault, and the name of its provider if that is not the current one.
    Done(Box<Result<provider::Answer, Fault>>, Option<String>),
    /// The ask did not run in a program of its own and was dropped. It is repeated on resume.
    Dropped,
    /// The ask was cut off, now or in a former start.
    Cut(CutUsage),
}

impl AskOutcome {
    fn back(result: Result<provider::Answer, Fault>) -> AskOutcome {
        AskOutcome::Done(Box::new(result), None)
    }
}

impl LocalExecutor {
    pub(super) async fn ask(
        &self,
        flow: &Flow,
        command: AskCommand,
        mut cut: watch::Receiver<bool>,
    ) -> Result<Option<CommandResult>, Error> {
        if !wait_until(command.not_before_ms, &*self.setting.clock, &mut cut).await {
            return Ok(None);
        }
        let dir = self.setting.home.command(&self.setting.run, command.id);
        let Some(agent) = self.setting.agents.agent_of_call(command.agent.as_ref()) else {
            let name = command.agent.as_ref().map_or("", |choice| &choice.agent);
            let fault = Fault::new(FaultClass::MissingProgram, format!("the run has no agent `{name}`"));
            let completion =
                Completion::Faulted { ask: command.id, fault: translate::convert_fault(fault), seen: None };
            return Ok(Some(CommandResult { completion, texts: Vec::new() }));
        };
        let provider = &*agent.provider;
        let can = provider.capabilities();
        let (request, put) = self.request(flow, &command, &dir, agent)?;
        let mut log = ToolLog::default();
        let main_before = if can.edits { self.main_checkout().await? } else { None };
        let (began, started) = (SystemTime::now(), Instant::now());
        let prepared = {
            let _named = self.name_git()?;
            provider.prepare(&request)
        };
        let outcome = match prepared {
            Err(fault) => AskOutcome::back(Err(fault)),
            Ok(PreparedAsk::Local(answer)) => {
                self.restore(command.tree.as_ref()).await?;
                await_local_answer(answer, self.setting.ask_timeout, &mut cut).await
            }
            Ok(PreparedAsk::Process { launch, reader }) => {
                let reader = provider::wrap_redacting_reader(reader);
                self.process(&command, &dir, (provider, &request), (launch, reader), &mut log, &mut cut)
                    .await?
            }
        };
        let (result, other_provider) = match outcome {
            AskOutcome::Done(result, other_provider) => (*result, other_provider),
            AskOutcome::Dropped => return Ok(None),
            AskOutcome::Cut(cut) => {
                let spoilt = put.session == SessionContinuation::Continued;
                let (tools, texts) = log.finish();
                let (usage, usage_unknown) = (translate::normalize_cost(cut.usage), cut.unknown);
                let completion = Completion::Cut { ask: command.id, usage, usage_unknown, spoilt, tools };
                return Ok(Some(CommandResult { completion, texts }));
            }
        };
        let edited = match &result {
            Ok(answer) => answer.edited,
            // The capabilities of this provider do not tell what another provider's agent did.
            Err(_) => can.edits || other_provider.is_some(),
        };
        let mut seen = if edited { self.seen_until(command.tree.as_ref(), &mut cut).await? } else { None };
        if let Some(seen) = &mut seen {
            // All that git does not ignore is read-only in the sandbox of an agent that may not write.
            seen.by_others = self.setting.sandbox.is_some()
                && !self.setting.spares_new_files
                && other_provider.is_none()
                && !command.boundary.permission.may_write()
                && !provider.writes(&request);
        }
        let (tools, mut texts) = log.finish();
        if let Some(seen) = &seen
            && !seen.by_others
            && !command.boundary.permission.may_write()
            && (seen.changed.iter().any(|path| !seen.spared.contains(path))
                || Some(&seen.tree.head) != command.tree.as_ref().map(|tree| &tree.head))
        {
            // The engine will reject the answer. A worktree that the run owns is restored before the next ask.
            *self.suspect.lock().await = Some(began);
        }
        if let Some(seen) = &mut seen {
            seen.outside = self.outside(main_before, &tools).await?;
        }
        Ok(Some(match result {
            Err(fault) => {
                let continued =
                    matches!(put.session, SessionContinuation::Continued | SessionContinuation::Forked);
                let fault = cuegate_engine::Fault { tools, continued, ..translate::convert_fault(fault) };
                let completion = Completion::Faulted { ask: command.id, fault, seen };
                CommandResult { completion, texts }
            }
            Ok(answer) => {
                let provider::Request { prompt, system: system_prompt, .. } = request;
                let mut answer =
                    translate::convert_answer(answer, other_provider.as_deref().unwrap_or(provider.name()));
                if other_provider.is_some() {
                    // The session of another provider cannot be continued, and how that ask was put is unknown.
                    (answer.session, answer.totals) = (None, None);
                } else {
                    answer.put = Some(put);
                    answer.prompt = Some(BlobRef::for_bytes(prompt.as_bytes()));
                    answer.system_prompt =
                        system_prompt.as_ref().map(|text| BlobRef::for_bytes(text.as_bytes()));
                }
                answer.duration_ms = u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX);
                answer.tools = tools;
                texts.extend(std::iter::once(prompt).chain(system_prompt).map(String::into_bytes));
                let completion = Completion::Answered { ask: command.id, answer: Box::new(answer), seen };
                CommandResult { completion, texts }
            }
        }))
    }

    /// Builds the request. What the provider does not support natively is written into the prompt.
    fn request(
        &self,
        flow: &Flow,
        command: &AskCommand,
        dir: &Path,
        agent: &CalledAgent,
    ) -> Result<(provider::Request, AskDelivery), Error> {
        let ExecutorSettings { journal, run, fence_key, .. } = &self.setting;
        let can = agent.provider.capabilities();
        let join = |parts| join_prompt_parts(&**journal, run, fence_key, parts);
        // A session that must not change can only be forked.
        let session =
            command.session.as_ref().filter(|session| can.sessions && (can.fork || !session.branch));
        let mut prompt = String::new();
        if session.is_none() {
            prompt.push_str(&join(&command.without_session)?);
        }
        prompt.push_str(&join(&command.prompt)?);
        let mut system = join(&command.system)?;
        let response = flow.conduct.auto_response.as_deref();
        if let Some(response) = response {
            system.push_str(&auto_response_text(response, system.is_empty()));
        }
        if !can.system_prompt && !system.is_empty() {
            prompt = format!("{system}\n\n{prompt}");
            system.clear();
        }
        let schema = command.schema.map(|schema| flow.schema(schema).value().clone());
        let held = schema.as_ref().map(|schema| agent.provider.holds(schema));
        if let (Some(schema), Some(false)) = (&schema, held) {
            prompt.push_str(&schema_text(schema));
        }
        let put = AskDelivery {
            schema: held
                .map(|held| if held { SchemaEnforcement::Provider } else { SchemaEnforcement::Prompt }),
            session: match (session, can.fork) {
                (Some(_), true) => SessionContinuation::Forked,
                (Some(_), false) => SessionContinuation::Continued,
                (None, _) if command.without_session.is_empty() => SessionContinuation::New,
                (None, _) => SessionContinuation::Retold,
            },
        };
        let details = RequestDetails {
            prompt,
            system: Some(system).filter(|system| !system.is_empty()),
            schema: schema.filter(|_| held == Some(true)),
            session: session.map(|session| provider::Session {
                id: session.id.clone(),
                fork: can.fork,
                totals: session.totals,
            }),
            model: agent.model_of_call(command),
            effort: agent.effort_of_call(command),
            tool_servers: self.setting.agents.tool_servers.get(&command.step).cloned().unwrap_or_default(),
            work: self.setting.cwd.clone(),
            readable: self.readable(),
            scratch: dir.join(FILES),
            unattended: response.is_some(),
            timeout: self.setting.ask_timeout,
        };
        Ok((translate::build_provider_request(&self.setting.run, command, details), put))
    }

    /// The folder of reports, if it is outside of the working tree.
    fn readable(&self) -> Vec<PathBuf> {
        let reports = self.setting.home.reports(&self.setting.run);
        let outside = !reports.starts_with(&self.setting.work) && reports.is_dir();
        outside.then_some(reports).into_iter().collect()
    }

    /// The reader for the output of a former start, and the name of its provider if that is not the current one. `None`
    /// when no provider can read it any more.
    fn former_reader(
        &self,
        dir: &Path,
        asked: &str,
        request: &provider::Request,
        own: Box<dyn AnswerReader>,
    ) -> Option<(Option<String>, Box<dyn AnswerReader>)> {
        let name = std::fs::read_to_string(dir.join(FILES).join(ASKED)).unwrap_or_default();
        if name.is_empty() || name == asked {
            return Some((None, own));
        }
        match (self.setting.former)(&name)?.prepare(request) {
            Ok(PreparedAsk::Process { reader, .. }) => {
                Some((Some(name), provider::wrap_redacting_reader(reader)))
            }
            _ => None,
        }
    }

    /// Asks by running a program, or adopts the complete result of a former start.
    async fn process(
        &self,
        command: &AskCommand,
        dir: &Path,
        (agent, request): (&dyn provider::Provider, &provider::Request),
        (launch, mut reader): (provider::Launch, Box<dyn AnswerReader>),
        log: &mut ToolLog,
        cut: &mut watch::Receiver<bool>,
    ) -> Result<AskOutcome, Error> {
        let id = command.id;
        match process::end_former_start(dir).await? {
            FormerStart::None => {}
            FormerStart::Whole(finished) => match self.former_reader(dir, agent.name(), request, reader) {
                Some((name, reader)) => return Ok(with_provider(name, read_rest(reader, &finished, 0, log))),
                None => return Ok(AskOutcome::Cut(CutUsage { unknown: true, ..CutUsage::default() })),
            },
            FormerStart::Cut { stdout } => {
                self.clear_locks(former_start(dir)).await?;
                let Some((_, reader)) = self.former_reader(dir, agent.name(), request, reader) else {
                    return Ok(AskOutcome::Cut(CutUsage { unknown: true, ..CutUsage::default() }));
                };
                return Ok(AskOutcome::Cut(read_cut(reader, &stdout, 0, request.cap, log)));
            }
        }
        // Another agent may step in for one whose program is gone; a sandbox would only report that something exited.
        if cuegate_provider::locate_program(&launch.program).is_none() {
            let message =
                format!("`{}`, the program of {}, was not found", launch.program.display(), agent.name());
            return Ok(AskOutcome::back(Err(Fault::new(FaultClass::MissingProgram, message))));
        }
        self.restore(command.tree.as_ref()).await?;
        let mut files = launch.files;
        files.push((ASKED.to_owned(), agent.name().into()));
        write_files(&request.scratch, &files).await?;
        let started = SystemTime::now();
        let mut env = launch.env;
        for name in [WITHIN_VARIABLE, RUN_VARIABLE] {
            env.push((name.into(), self.setting.run.as_str().into()));
        }
        env.extend(self.setting.trace.as_ref().map(|trace| ("TRACEPARENT".into(), trace.parent(id).into())));
        let launch = Launch {
            args: launch.args,
            env,
            env_remove: {
                let mut removed = calling_session(std::env::vars_os().map(|(name, _)| name));
                if self.setting.hides_tokens {
                    removed.extend(TOKEN_VARS.map(Into::into));
                }
                removed
            },
            stdin: launch.stdin,
            timeout: Some(self.setting.ask_timeout),
            output_max: ASK_OUTPUT_MAX,
            ..Launch::new(cuegate_provider::locate_or_missing(launch.program), self.setting.cwd.clone())
        };
        let writes = match agent.writes(request) {
            true => TreeAccess::All,
            false if self.setting.spares_new_files => TreeAccess::Files,
            false => TreeAccess::Ignored,
        };
        let kind =
            ProcessKind::Agent { writes, needs: agent.needs().with_tool_servers(&request.tool_servers) };
        // Dropped when this returns: no process is left in the sandbox then, and the working tree can be inspected.
        let (launch, _used) = self.sandboxed(id, dir, Some(FILES), launch, kind)?;
        let mut child = process::start_command(&self.setting.shim, dir, &launch).await?;
        let mut meter = UsageMeter::new(request.cap);
        *log = ToolLog::starting_now();
        let mut activities = ActivityLog::begin(dir);
        let mut read = 0;
        let mut idle = IdleTimer::new(self.setting.idle_warning);
        loop {
            tokio::select! {
                line = child.line() => {
                    let Some(line) = line else { break };
                    read += 1;
                    idle.restart();
                    for activity in reader.line(&line) {
                        meter.add(&activity);
                        log.add(&activity);
                        activities.add(&activity);
                        // The agent does not wait for a slow display, which misses activities instead.
                        let _ = self.setting.heard.try_send(ExecutorMessage::Doing(AgentActivity { ask: id, activity }));
                    }
                    if reader.is_stuck() {
                        let finished = child.cancel().await?;
                        self.clear_locks(Some(started)).await?;
                        return Ok(read_rest(reader, &finished, read, log));
                    }
                    if let Some(excess) = meter.excess() {
                        let finished = child.cancel().await?;
                        if !finished.cut {
                            return Ok(read_rest(reader, &finished, read, log));
                        }
                        self.clear_locks(Some(started)).await?;
                        let (limit, excess) = excess;
                        let CutUsage { usage, unknown } = read_cut(reader, &finished.stdout, read, provider::Cap::default(), log);
                        // The program prices what it reports only at its end; the reader knows prices.
                        let cost_usd = usage.cost_usd.or(meter.used.cost_usd);
                        let usage = provider::Usage { cost_usd, ..usage.max(&meter.used) };
                        let fault = Fault {
                            usage,
                            usage_unknown: unknown,
                            limit: Some(limit),
                            ..Fault::new(FaultClass::OverCap, excess)
                        };
                        return Ok(AskOutcome::back(Err(fault)));
                    }
                }
                () = idle.elapsed() => {
                    let warning = format!(
                        "`{}`: no activity of {} for {}; the call is stopped after {}",
                        command.step,
                        agent.name(),
                        format_duration(idle.since.elapsed()),
                        format_duration(self.setting.ask_timeout)
                    );
                    let _ = self.setting.heard.try_send(ExecutorMessage::Warning(warning));
                }
                () = is_cut(cut) => {
                    // If it finished at this very moment, its answer counts.
                    let finished = child.cancel().await?;
                    self.clear_locks(Some(started)).await?;
                    return Ok(match finished.cut {
                        true => AskOutcome::Cut(read_cut(reader, &finished.stdout, read, request.cap, log)),
                        false => read_rest(reader, &finished, read, log),
                    });
                }
            }
        }
        let ended = child.wait().await;
        self.clear_locks(Some(started)).await?;
        let finished = match ended {
            // Its end is unknown: the agent was killed together with the shim.
            Err(process::ProcessError::Lost { status, .. }) => {
                let message = format!("the agent was killed together with its shim, which {status}");
                let CutUsage { usage, unknown } = reader.cut_usage();
                let fault = Fault::new(FaultClass::Crashed, message);
                return Ok(AskOutcome::back(Err(Fault { usage, usage_unknown: unknown, ..fault })));
            }
            finished => finished?,
        };
        Ok(AskOutcome::back(reader.end(end_of(&finished), &finished.stderr)))
    }
}

/// Sets the provider of an outcome.
fn with_provider(name: Option<String>, outcome: AskOutcome) -> AskOutcome {
    match outcome {
        AskOutcome::Done(result, _) => AskOutcome::Done(result, name),
        other => other,
    }
}

/// Reads the rest of the output of a finished ask, of which the reader has seen `read` lines.
fn read_rest(
    mut reader: Box<dyn AnswerReader>,
    finished: &FinishedCommand,
    read: usize,
    log: &mut ToolLog,
) -> AskOutcome {
    for line in finished.stdout.split(|byte| *byte == b'\n').skip(read) {
        reader.line(line).iter().for_each(|activity| log.add(activity));
    }
    AskOutcome::back(reader.end(end_of(finished), &finished.stderr))
}

/// Reads the output of a cut-off ask after its first `read` lines, which the reader has already seen, and returns the
/// usage of the ask. The usage of the message that was being written is an estimate, limited to the cap of the ask.
fn read_cut(
    mut reader: Box<dyn AnswerReader>,
    stdout: &[u8],
    read: usize,
    cap: provider::Cap,
    log: &mut ToolLog,
) -> CutUsage {
    for line in stdout.split(|byte| *byte == b'\n').skip(read) {
        reader.line(line).iter().for_each(|activity| log.add(activity));
    }
    let CutUsage { mut usage, unknown } = reader.cut_usage();
    if let Some((cost, most)) = usage.cost_usd.zip(cap.usd) {
        usage.cost_usd = Some(cost.min(most));
    }
    if let Some(most) = cap.tokens {
        usage.output_tokens = usage.output_tokens.min(most.saturating_sub(usage.input_tokens));
    }
    CutUsage { usage, unknown }
}

/// The prompt text of an automatic response.
fn auto_response_text(response: &str, first: bool) -> String {
    let gap = if first { "" } else { "\n\n" };
    format!(
        "{gap}Nobody is there to answer questions. Whatever you would ask a person, the answer is:\n\n{response}\n"
    )
}

/// The prompt text of a schema that the provider cannot enforce.
fn schema_text(schema: &serde_json::Value) -> String {
    format!(
        "\n\nEnd with your answer as one JSON object, in a block that begins with ```json and ends with ```. It has to be \
         valid by this JSON Schema:\n\n```json\n{schema}\n```\n"
    )
}

/// Writes the files that a program reads.
async fn write_files(scratch: &Path, files: &[(String, Vec<u8>)]) -> Result<(), Error> {
    if files.is_empty() {
        return Ok(());
    }
    let (scratch, files) = (scratch.to_owned(), files.to_vec());
    run_blocking(move || {
        let failed = |source| Error::Io { doing: "write into", path: scratch.clone(), source };
        std::fs::create_dir_all(&scratch).map_err(failed)?;
        for (name, bytes) in files {
            std::fs::write(scratch.join(name), bytes).map_err(failed)?;
        }
        Ok(())
    })
    .await
}

/// Measures how long an agent shows no activity.
struct IdleTimer {
    limit: Duration,
    since: tokio::time::Instant,
    /// The number of limits that passed without activity.
    passed: u32,
}

impl IdleTimer {
    fn new(limit: Duration) -> IdleTimer {
        IdleTimer { limit, since: tokio::time::Instant::now(), passed: 0 }
    }

    fn restart(&mut self) {
        *self = IdleTimer::new(self.limit);
    }

    /// Waits for the end of the next limit without activity. Can be cancelled.
    async fn elapsed(&mut self) {
        tokio::time::sleep_until(self.since + self.limit.saturating_mul(self.passed + 1)).await;
        self.passed += 1;
    }
}

/// A duration in whole seconds or minutes.
fn format_duration(time: Duration) -> String {
    match time.as_secs() {
        seconds @ ..120 => format!("{seconds} s"),
        seconds => format!("{} min", seconds / 60),
    }
}

/// Sums up the reported usage of an ask and compares it with its cap.
struct UsageMeter {
    cap: provider::Cap,
    used: provider::Usage,
}

impl UsageMeter {
    fn new(cap: provider::Cap) -> UsageMeter {
        UsageMeter { cap, used: provider::Usage::default() }
    }

    fn add(&mut self, activity: &Activity) {
        let Activity::Usage(more) = activity else { return };
        self.used.input_tokens = self.used.input_tokens.saturating_add(more.input_tokens);
        self.used.cached_input_tokens =
            self.used.cached_input_tokens.saturating_add(more.cached_input_tokens);
        self.used.output_tokens = self.used.output_tokens.saturating_add(more.output_tokens);
        if let Some(cost) = more.cost_usd {
            self.used.cost_usd = Some(self.used.cost_usd.unwrap_or(0.0) + cost);
        }
    }

    /// The limit that the usage exceeds, and a message.
    fn excess(&self) -> Option<(provider::AskLimit, String)> {
        let tokens = self.used.input_tokens.saturating_add(self.used.output_tokens);
        if let Some(most) = self.cap.tokens.filter(|most| tokens > *most) {
            let message = format!("used {tokens} tokens, the limit is {most}");
            return Some((provider::AskLimit::Tokens, message));
        }
        let (most, cost) = (self.cap.usd?, self.used.cost_usd?);
        (convert_usd_to_micro(cost)? > convert_usd_to_micro(most)?)
            .then(|| (provider::AskLimit::Usd, format!("used ${cost:.4}, the limit is ${most:.4}")))
    }
}

/// Waits for an answer that is computed in this process.
async fn await_local_answer(
    answer: provider::Local,
    timeout: Duration,
    cut: &mut watch::Receiver<bool>,
) -> AskOutcome {
    tokio::select! {
        answer = tokio::time::timeout(timeout, answer) => AskOutcome::back(answer.unwrap_or_else(|_| {
            Err(Fault::new(FaultClass::Timeout, format!("no answer within {} s", timeout.as_secs())))
        })),
        () = is_cut(cut) => AskOutcome::Dropped,
    }
}

#[cfg(test)]
mod tests;
