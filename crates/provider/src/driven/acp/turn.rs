//! One call of an agent over the Agent Client Protocol.

use std::{
    collections::BTreeMap,
    time::{Duration, Instant},
};

use agent_client_protocol_schema::v1::{
    ContentBlock, RequestPermissionRequest, RequestPermissionResponse, SessionNotification, SessionUpdate,
    ToolCallContent, ToolCallStatus, ToolKind,
};
use cuegate_ask::{FaultClass, Usage};
use serde_json::{Value, json};

use super::{
    connection::{AcpConnection, AcpHandler, WaitVerdict},
    permission::{is_granted, select_option, target_of_call},
    session::open_session,
};
use crate::{
    answer_server::{AnswerRecord, TOOL_NAME},
    driven::{
        child::{AFTER_ANSWER_MAX, AnswerFolder, SILENCE_MAX, prose_prompt, reminder_prompt},
        classify::{class_of_text, classify_failure},
        events::{DriverError, EventWriter, Trouble},
        job::DriverJob,
        program_process::ProgramProcess,
        rows::{AgentRow, ModelChoice, UsageMeaning},
    },
    exec::AnswerLine,
    program::{estimate_tokens, read_token_count},
};

/// How long an agent may take to ask for the tools of the answer server.
const LISTED_MAX: Duration = Duration::from_secs(60);
/// How long an agent may take to end a turn that it was told to end.
const CANCEL_MAX: Duration = Duration::from_secs(5);
/// How often an agent may ask for permission in a call.
const PERMISSIONS_MAX: u32 = 5_000;
/// The longest output of a tool that is passed on, in bytes.
const TOOL_OUTPUT_MAX: usize = 64 << 10;

/// Calls an agent and prints what happens.
pub(in crate::driven) fn run_acp(
    job: &DriverJob,
    row: Option<&AgentRow>,
    answers: Option<&AnswerFolder>,
    events: &mut EventWriter<'_>,
) -> Result<(), DriverError> {
    let mut args = Vec::new();
    if let (Some(model), Some(ModelChoice::Flag(flag))) = (&job.model, row.map(|row| row.model)) {
        args.extend([flag.to_owned(), model.clone()]);
    }
    let mut connection = AcpConnection::new(ProgramProcess::start(job, &args)?);
    let mut turn = AcpTurn::new(job, row, answers, events);
    let called = turn.call(&mut connection, answers);
    connection.close();
    turn.report_usage(called.is_ok())?;
    events.answer(called?)
}

/// What an agent said and did in a call.
struct AcpTurn<'t, 'w> {
    job: &'t DriverJob,
    row: Option<&'t AgentRow>,
    records: Option<crate::answer_server::AnswerRecords>,
    events: &'t mut EventWriter<'w>,
    /// The id of the session, once it is known; until then, and in a session of another id, updates are no part of the turn.
    session: Option<String>,
    /// What the agent said since it last used a tool.
    text: String,
    /// What it said before that: its answer, if it says nothing afterwards.
    text_before: String,
    /// Whether real text carries an id of its message, so that text without one is a notice.
    has_message_ids: bool,
    notices: String,
    tools: BTreeMap<String, ToolState>,
    /// How many times tools were used: each time the model was asked once more.
    tool_uses: u64,
    permissions: u32,
    is_listed: bool,
    answer: Option<Value>,
    answered_at: Option<Instant>,
    /// When the agent last did something.
    active_at: Instant,
    cost: Option<f64>,
    /// The usage in notices of the agent, request by request.
    noticed: Usage,
    /// The usage so far, without its cost.
    used: Usage,
    waits_for: Waiting,
}

/// What the turn waits for beside a reply.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Waiting {
    Nothing,
    /// That the agent asks for the tools.
    Listing,
    /// The end of the turn.
    Turn,
}

struct ToolState {
    title: String,
    kind: Option<ToolKind>,
    is_told: bool,
    is_open: bool,
}

impl<'t, 'w> AcpTurn<'t, 'w> {
    fn new(
        job: &'t DriverJob,
        row: Option<&'t AgentRow>,
        answers: Option<&AnswerFolder>,
        events: &'t mut EventWriter<'w>,
    ) -> AcpTurn<'t, 'w> {
        AcpTurn {
            job,
            row,
            records: answers.map(AnswerFolder::records),
            events,
            session: None,
            text: String::new(),
            text_before: String::new(),
            has_message_ids: false,
            notices: String::new(),
            tools: BTreeMap::new(),
            tool_uses: 0,
            permissions: 0,
            is_listed: false,
            answer: None,
            answered_at: None,
            active_at: Instant::now(),
            cost: None,
            noticed: Usage::default(),
            used: Usage::default(),
            waits_for: Waiting::Nothing,
        }
    }

    fn call(
        &mut self,
        connection: &mut AcpConnection,
        answers: Option<&AnswerFolder>,
    ) -> Result<AnswerLine, DriverError> {
        let job = self.job;
        let session = open_session(connection, job, self.row, answers, self)?;
        self.session = Some(session.id.clone());
        if self.records.is_some() && !self.is_listed {
            self.waits_for = Waiting::Listing;
            connection.listen(LISTED_MAX, self)?;
        }
        // An agent that does not see the tool is asked for the answer in words.
        let prompt = match &job.schema {
            Some(schema) if !self.is_listed => prose_prompt(&job.prompt, schema),
            Some(_) => format!(
                "{}\n\nWhen all the work is done, give your final answer by calling the tool `{TOOL_NAME}`.",
                job.prompt
            ),
            None => job.prompt.clone(),
        };
        self.prompt(connection, &session.id, &prompt)?;
        if self.answer.is_none() && self.is_listed && job.schema.is_some() {
            self.prompt(connection, &session.id, &reminder_prompt())?;
        }
        if session.can_close {
            self.waits_for = Waiting::Nothing;
            let params = json!({ "sessionId": session.id });
            // The answer is there; how the session is closed does not matter any more.
            connection.request("session/close", params, Some(CANCEL_MAX), self).ok();
        }
        let text = if self.text.trim().is_empty() { &self.text_before } else { &self.text };
        let text = if text.trim().is_empty() { &self.notices } else { text };
        Ok(AnswerLine {
            text: text.trim().to_owned(),
            output: self.answer.clone(),
            session: Some(session.id),
            model: job.model.clone(),
            totals: self
                .cost
                .map(|cost| Usage { cost_usd: Some(cost.max(self.cost_before())), ..Usage::default() }),
            handshake: Some(session.handshake),
            ..AnswerLine::default()
        })
    }

    /// Sends a prompt and waits for the end of the turn.
    fn prompt(
        &mut self,
        connection: &mut AcpConnection,
        session: &str,
        text: &str,
    ) -> Result<(), DriverError> {
        let name = &self.job.name;
        let params = json!({ "sessionId": session, "prompt": [{ "type": "text", "text": text }] });
        self.active_at = Instant::now();
        self.waits_for = Waiting::Turn;
        let tools_before = self.tool_uses;
        self.noticed = Usage::default();
        let reply = connection.request("session/prompt", params, None, self)?;
        // What was recorded before the reply belongs to this turn.
        self.tick()?;
        let Some(reply) = reply else { return self.cancel(connection, session) };
        let used = self.usage_of_reply(reply.as_ref().unwrap_or(&Value::Null), self.tool_uses - tools_before);
        self.used.input_tokens = self.used.input_tokens.saturating_add(used.input_tokens);
        self.used.cached_input_tokens =
            self.used.cached_input_tokens.saturating_add(used.cached_input_tokens);
        self.used.is_estimated |= used.is_estimated;
        self.used.output_tokens = self.used.output_tokens.saturating_add(used.output_tokens);
        let reply = match reply {
            Ok(reply) => reply,
            // What was answered before the service failed is an answer.
            Err(_) if self.answer.is_some() => return Ok(()),
            Err(error) => return Err(error.into_trouble(name).into()),
        };
        let stop = reply["stopReason"].as_str().unwrap_or_default().to_owned();
        if self.answer.is_some() {
            return Ok(());
        }
        let said = self.last_words();
        match stop.as_str() {
            "refusal" => Err(Trouble::new(FaultClass::Refused, format!("{name} refused: {said}")).into()),
            "cancelled" => {
                Err(Trouble::new(FaultClass::Crashed, format!("{name} cancelled the turn")).into())
            }
            // The turn of an agent that tells of a failed service ends like any other.
            _ if self.is_service_error(&said) => {
                Err(classify_failure(None, &said, FaultClass::Crashed).into())
            }
            _ => Ok(()),
        }
    }

    fn last_words(&self) -> String {
        [&self.text, &self.notices, &self.text_before]
            .into_iter()
            .find(|text| !text.trim().is_empty())
            .map_or(String::new(), |text| text.trim().to_owned())
    }

    /// Whether a turn that ended well is the report of an error: nothing was used, or the text says that it is one.
    fn is_service_error(&self, said: &str) -> bool {
        let has_usage = self.used != Usage::default() || self.cost.is_some();
        let calls_itself_error = said.starts_with("Error: ") || said.starts_with("[API Error");
        let is_known = class_of_text(said).is_some();
        self.tool_uses == 0 && is_known && (calls_itself_error || !has_usage)
    }

    fn cancel(&mut self, connection: &mut AcpConnection, session: &str) -> Result<(), DriverError> {
        self.waits_for = Waiting::Nothing;
        connection.notify("session/cancel", json!({ "sessionId": session }));
        connection.listen(CANCEL_MAX, self)?;
        match self.answer.is_some() {
            true => Ok(()),
            false => {
                let why = format!("{} said nothing for {} s", self.job.name, SILENCE_MAX.as_secs());
                Err(Trouble::new(FaultClass::Timeout, why).into())
            }
        }
    }

    /// What the reply to a prompt says was used, with what the agent said meanwhile.
    fn usage_of_reply(&self, reply: &Value, tool_uses: u64) -> Usage {
        let (usage, quota) = (&reply["usage"], &reply["_meta"]["quota"]["token_count"]);
        let cached = read_token_count(&usage["cachedReadTokens"]);
        let mut used = Usage {
            // Our input tokens include those from a cache.
            input_tokens: read_token_count(&usage["inputTokens"]).saturating_add(cached),
            cached_input_tokens: cached,
            output_tokens: read_token_count(&usage["outputTokens"]),
            cost_usd: None,
            is_estimated: false,
        };
        if quota.is_object() {
            used.input_tokens = read_token_count(&quota["input_tokens"]);
            used.output_tokens = read_token_count(&quota["output_tokens"]);
        }
        if self.noticed != Usage::default() {
            used = self.noticed;
        }
        if self.row.is_some_and(|row| row.usage == UsageMeaning::LastRequest) {
            // The model was asked once for each use of a tool, each time with a prompt that was not longer than the last.
            let requests = tool_uses + 1;
            used.input_tokens = used.input_tokens.saturating_mul(requests);
            used.cached_input_tokens = used.cached_input_tokens.saturating_mul(requests);
            used.output_tokens = used.output_tokens.saturating_mul(requests);
            used.is_estimated = tool_uses > 0;
        }
        used
    }

    /// Reports what the call used. A call that was answered and of which the agent reports nothing is estimated; what a failed
    /// one used is unknown then.
    fn report_usage(&mut self, is_answered: bool) -> Result<(), DriverError> {
        let mut used = self.used;
        used.cost_usd = self.cost.map(|cost| (cost - self.cost_before()).max(0.0));
        if used == Usage::default() && is_answered {
            let said = self.text.len() + self.text_before.len();
            used.input_tokens = estimate_tokens(self.job.prompt.len() as u64);
            used.output_tokens = estimate_tokens(said as u64);
            used.is_estimated = true;
        }
        self.events.usage(used)
    }

    /// The cost of the session before this call, in dollars.
    fn cost_before(&self) -> f64 {
        self.job.totals.and_then(|totals| totals.cost_usd).unwrap_or(0.0)
    }

    fn add_text(&mut self, text: &str, has_id: bool) -> Result<(), DriverError> {
        if has_id && !self.has_message_ids {
            self.has_message_ids = true;
            self.notices.push_str(&std::mem::take(&mut self.text));
        }
        match has_id || !self.has_message_ids {
            true => self.text.push_str(text),
            false => self.notices.push_str(text),
        }
        self.events.text(text)
    }

    /// A tool was used, or its use went on. Some agents tell of a use only when it goes on.
    fn see_tool(
        &mut self,
        id: &str,
        (title, kind): (Option<&str>, Option<ToolKind>),
        input: Option<&Value>,
        status: Option<ToolCallStatus>,
        content: &[ToolCallContent],
    ) -> Result<(), DriverError> {
        let tool = self.tools.entry(id.to_owned()).or_insert_with(|| ToolState {
            title: String::new(),
            kind: None,
            is_told: false,
            is_open: true,
        });
        if let Some(title) = title.filter(|title| tool.title.is_empty() && !title.is_empty()) {
            title.clone_into(&mut tool.title);
        }
        tool.kind = kind.or(tool.kind);
        let has_input = input.is_some_and(|input| input.as_object().is_none_or(|fields| !fields.is_empty()));
        let ended = matches!(status, Some(ToolCallStatus::Completed | ToolCallStatus::Failed));
        if !tool.is_told && (has_input || ended || status == Some(ToolCallStatus::InProgress)) {
            tool.is_told = true;
            let name = name_of_kind(tool.kind, &tool.title);
            let target = target_of_call(input, &tool.title, &self.job.folder);
            self.events.tool(id, &name, &target)?;
            self.tool_uses += 1;
            let said = std::mem::take(&mut self.text);
            if !said.trim().is_empty() {
                self.text_before = said;
            }
        }
        if ended && tool.is_open {
            tool.is_open = false;
            self.events.tool_ended(id, status == Some(ToolCallStatus::Failed), &text_of_content(content))?;
        }
        Ok(())
    }
}

impl AcpHandler for AcpTurn<'_, '_> {
    fn update(&mut self, notification: SessionNotification) -> Result<(), DriverError> {
        // What belongs to another session, or is the replay of an old one, is no part of this turn.
        let is_ours = self.session.as_deref() == Some(&*notification.session_id.0);
        if !is_ours || self.waits_for != Waiting::Turn {
            return Ok(());
        }
        self.active_at = Instant::now();
        match notification.update {
            SessionUpdate::AgentMessageChunk(chunk) => {
                if let Some(usage) = chunk.meta.as_ref().and_then(|meta| meta.get("usage")) {
                    self.noticed.input_tokens += read_token_count(&usage["inputTokens"]);
                    self.noticed.output_tokens += read_token_count(&usage["outputTokens"]);
                }
                match &chunk.content {
                    ContentBlock::Text(text) => self.add_text(&text.text, chunk.message_id.is_some()),
                    _ => Ok(()),
                }
            }
            SessionUpdate::ToolCall(call) => self.see_tool(
                &call.tool_call_id.0,
                (Some(&call.title), Some(call.kind)),
                call.raw_input.as_ref(),
                Some(call.status),
                &call.content,
            ),
            SessionUpdate::ToolCallUpdate(update) => {
                let fields = &update.fields;
                self.see_tool(
                    &update.tool_call_id.0,
                    (fields.title.as_deref(), fields.kind),
                    fields.raw_input.as_ref(),
                    fields.status,
                    fields.content.as_deref().unwrap_or_default(),
                )
            }
            SessionUpdate::UsageUpdate(update) => {
                // What a session costs does not fall: an agent that reports less later made a mistake, or hides some.
                let reported = update.cost.map(|cost| cost.amount).filter(|amount| amount.is_finite());
                self.cost = reported.map(|amount| amount.max(self.cost.unwrap_or(0.0))).or(self.cost);
                Ok(())
            }
            _ => Ok(()),
        }
    }

    fn unknown_update(&mut self, _update: &Value) -> Result<(), DriverError> {
        Ok(())
    }

    fn permit(
        &mut self,
        request: RequestPermissionRequest,
    ) -> Result<RequestPermissionResponse, DriverError> {
        self.permissions += 1;
        if self.permissions > PERMISSIONS_MAX {
            let why = format!("{} asked for permission more than {PERMISSIONS_MAX} times", self.job.name);
            return Err(Trouble::new(FaultClass::Malformed, why).into());
        }
        self.active_at = Instant::now();
        let id = request.tool_call.tool_call_id.0.to_string();
        let known = self.tools.get(&id);
        let granted = is_granted(self.job, &request, known.and_then(|tool| tool.kind));
        if !granted {
            let fields = &request.tool_call.fields;
            let title = fields.title.as_deref().or(known.map(|tool| tool.title.as_str())).unwrap_or_default();
            let name = name_of_kind(fields.kind.or(known.and_then(|tool| tool.kind)), title);
            let target = target_of_call(fields.raw_input.as_ref(), title, &self.job.folder);
            self.events.denied(&id, &name, &target)?;
        }
        Ok(select_option(&request.options, granted))
    }

    fn tick(&mut self) -> Result<WaitVerdict, DriverError> {
        for record in self.records.iter_mut().flat_map(crate::answer_server::AnswerRecords::read_new) {
            match record {
                AnswerRecord::Listed => self.is_listed = true,
                // An answer before the prompt is none to it.
                AnswerRecord::Answer(answer) if self.waits_for == Waiting::Turn => {
                    self.answer = Some(answer);
                    self.answered_at = Some(Instant::now());
                }
                AnswerRecord::Answer(_) => {}
                AnswerRecord::Refused(why) => {
                    self.events.retry(&format!("the answer does not fit: {why}"))?
                }
            }
        }
        let is_over = match self.waits_for {
            Waiting::Nothing => false,
            Waiting::Listing => self.is_listed,
            Waiting::Turn => {
                let is_busy = self.tools.values().any(|tool| tool.is_told && tool.is_open);
                self.answered_at.is_some_and(|at| at.elapsed() > AFTER_ANSWER_MAX)
                    || !is_busy && self.active_at.elapsed() > SILENCE_MAX
            }
        };
        Ok(if is_over { WaitVerdict::Leave } else { WaitVerdict::GoOn })
    }
}

/// What people call a tool of a kind.
fn name_of_kind(kind: Option<ToolKind>, title: &str) -> String {
    if title.contains(TOOL_NAME) {
        return TOOL_NAME.to_owned();
    }
    match kind {
        Some(ToolKind::Read) => "read",
        Some(ToolKind::Edit) => "edit",
        Some(ToolKind::Delete) => "delete",
        Some(ToolKind::Move) => "move",
        Some(ToolKind::Search) => "search",
        Some(ToolKind::Execute) => "shell",
        Some(ToolKind::Fetch) => "fetch",
        Some(ToolKind::Think) => "think",
        _ => "tool",
    }
    .to_owned()
}

fn text_of_content(content: &[ToolCallContent]) -> String {
    let mut text = String::new();
    for part in content {
        if let ToolCallContent::Content(part) = part
            && let ContentBlock::Text(part) = &part.content
        {
            text.push_str(&part.text);
        }
    }
    let end = text.floor_char_boundary(TOOL_OUTPUT_MAX);
    text.truncate(end);
    text
}
