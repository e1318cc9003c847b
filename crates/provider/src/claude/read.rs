//! Parses its output: one JSON object per line, the result last.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::PathBuf,
};

use jiff::Zoned;
use serde_json::Value;

use super::{ClaudeSettings, fault, list_price::list_price, wire, wire::text_at_pointer};
use crate::{
    Activity, Answer, AnswerReader, CutUsage, Fault, FaultClass, Prices, ProgramEnd, Request, Session, Usage,
    program::{
        estimate_tokens,
        wording::{quote_output, without_result},
    },
};

/// The tool that returns a structured answer.
const STRUCTURED: &str = "StructuredOutput";
/// The model name of messages that the program itself wrote.
const SYNTHETIC: &str = "<synthetic>";

/// The number of bytes that are kept of output that is not JSON.
const PLAIN_MAX: usize = 2_000;

/// A message of the service.
#[derive(Default)]
struct Message {
    model: String,
    /// As reported so far.
    usage: Usage,
    /// The bytes that were written and are not in the reported usage yet.
    unreported: u64,
}

impl Message {
    /// The reported usage, and an estimate of what was written since.
    fn used(&self) -> Usage {
        let estimated = estimate_tokens(self.unreported);
        let is_estimated = estimated > self.usage.output_tokens;
        Usage { output_tokens: self.usage.output_tokens.max(estimated), is_estimated, ..self.usage }
    }
}

/// Parses the output of one ask.
pub(super) struct ClaudeReader {
    program: PathBuf,
    prices: Prices,
    /// The requested model, whose name may have a price too.
    asked: Option<String>,
    /// The session that the ask continued.
    continued: Option<Session>,
    now: fn() -> Zoned,
    session: Option<String>,
    model: Option<String>,
    /// Each message by its id. The stream reports a message several times.
    messages: BTreeMap<String, Message>,
    /// The id of the message being streamed, for the agent (`""`) and each of its subagents.
    streaming: BTreeMap<String, String>,
    /// The ids of denied tool uses.
    denied: BTreeSet<String>,
    /// The agent's last text or structured answer.
    last_text: String,
    /// The service has started to answer.
    began: bool,
    error: fault::ErrorReport,
    /// The usage of this ask as reported, summed over all results: the program can continue after a result.
    own: Option<Usage>,
    result: Option<Value>,
    /// The beginning of the output that is not JSON.
    plain: String,
    /// Whether the last message is that of an error of the service.
    ended_in_error: bool,
}

impl ClaudeReader {
    pub fn new(settings: &ClaudeSettings, request: &Request, now: fn() -> Zoned) -> ClaudeReader {
        ClaudeReader {
            program: settings.program.clone(),
            prices: settings.prices.clone(),
            asked: request.model.clone().or_else(|| settings.model.clone()),
            continued: request.session.clone(),
            now,
            session: None,
            model: None,
            messages: BTreeMap::new(),
            streaming: BTreeMap::new(),
            denied: BTreeSet::new(),
            last_text: String::new(),
            began: false,
            error: fault::ErrorReport::default(),
            ended_in_error: false,
            own: None,
            result: None,
            plain: String::new(),
        }
    }

    fn system(&mut self, event: &Value) -> Vec<Activity> {
        match text_at_pointer(event, "/subtype") {
            "init" => {
                self.session = Some(text_at_pointer(event, "/session_id").to_owned());
                self.model = Some(text_at_pointer(event, "/model").to_owned());
                Vec::new()
            }
            "api_retry" => {
                let reason = format!("{} ({})", text_at_pointer(event, "/error"), event["error_status"]);
                vec![Activity::Retry { reason }]
            }
            "permission_denied" => self.deny(event).into_iter().collect(),
            "model_refusal_no_fallback" => {
                self.error.refused = true;
                Vec::new()
            }
            _ => Vec::new(),
        }
    }

    /// The stream reports a denial when it happens and again in the result.
    fn deny(&mut self, event: &Value) -> Option<Activity> {
        let name = text_at_pointer(event, "/tool_name").to_owned();
        let target = match event.get("tool_input") {
            Some(input) => wire::tool_target(input),
            None => text_at_pointer(event, "/message").to_owned(),
        };
        let id = text_at_pointer(event, "/tool_use_id").to_owned();
        self.denied.insert(id.clone()).then_some(Activity::Denied { id, name, target })
    }

    fn assistant(&mut self, event: &Value) -> Vec<Activity> {
        let message = &event["message"];
        self.ended_in_error = event.get("is_api_error_message").is_some_and(|is| is == true);
        if self.ended_in_error {
            self.error.code = text_at_pointer(event, "/error").to_owned();
            self.error.cut = text_at_pointer(event, "/api_error_params/cut").to_owned();
            let resets_at = event.pointer("/api_error_params/rate_limit_info/resetsAt");
            self.error.resets_at = resets_at.and_then(Value::as_i64).or(self.error.resets_at);
        }
        let model = text_at_pointer(message, "/model");
        if model == SYNTHETIC {
            return Vec::new();
        }
        self.began = true;
        if event["parent_tool_use_id"].is_null() {
            self.model = Some(model.to_owned());
        }
        let mut activities =
            self.used(text_at_pointer(message, "/id"), model, wire::usage_of_message(&message["usage"]));
        for part in message["content"].as_array().into_iter().flatten() {
            match text_at_pointer(part, "/type") {
                "text" if !text_at_pointer(part, "/text").is_empty() => {
                    self.last_text = text_at_pointer(part, "/text").to_owned();
                    activities.push(Activity::Text { text: self.last_text.clone() });
                }
                "tool_use" if text_at_pointer(part, "/name") == STRUCTURED => {
                    self.last_text = part["input"].to_string();
                }
                "tool_use" => activities.push(Activity::Tool {
                    id: text_at_pointer(part, "/id").to_owned(),
                    name: text_at_pointer(part, "/name").to_owned(),
                    target: wire::tool_target(&part["input"]),
                }),
                _ => {}
            }
        }
        activities
    }

    /// Part of a message. Its start reports the input tokens, its end the output tokens.
    fn part(&mut self, event: &Value) -> Vec<Activity> {
        let parent = text_at_pointer(event, "/parent_tool_use_id").to_owned();
        let part = &event["event"];
        self.began = true;
        match text_at_pointer(part, "/type") {
            "message_start" => {
                let id = text_at_pointer(part, "/message/id").to_owned();
                self.streaming.insert(parent, id.clone());
                self.used(
                    &id,
                    text_at_pointer(part, "/message/model"),
                    wire::usage_of_message(&part["message"]["usage"]),
                )
            }
            "content_block_delta" => {
                let id = self.streamed_message(event, &parent);
                let written = ["text", "thinking", "partial_json"].map(|key| part["delta"][key].as_str());
                let written = written.into_iter().flatten().map(str::len).sum::<usize>();
                let message = self.messages.entry(id).or_default();
                message.unreported = message.unreported.saturating_add(written as u64);
                Vec::new()
            }
            "message_delta" => {
                let id = self.streamed_message(event, &parent);
                let activities = self.used(&id, "", wire::usage_of_message(&part["usage"]));
                self.messages.entry(id).or_default().unreported = 0;
                activities
            }
            _ => Vec::new(),
        }
    }

    /// The id of the message that an event is about.
    fn streamed_message(&self, event: &Value, parent: &str) -> String {
        match text_at_pointer(event, "/api_message_id") {
            "" => self.streaming.get(parent).cloned().unwrap_or_default(),
            id => id.to_owned(),
        }
    }

    /// The increase of a message's usage.
    fn used(&mut self, id: &str, model: &str, usage: Usage) -> Vec<Activity> {
        let message = self.messages.entry(id.to_owned()).or_default();
        if !model.is_empty() {
            model.clone_into(&mut message.model);
        }
        let grown = message.usage.max(&usage);
        let mut new = grown.minus(&message.usage);
        message.usage = grown;
        if new == Usage::default() {
            return Vec::new();
        }
        new.cost_usd = self.cost(&new);
        vec![Activity::Usage(new)]
    }

    fn result(&mut self, event: Value) -> Vec<Activity> {
        if let Some(own) = wire::sum_model_usage(&event["model_usage_since_last_result"]) {
            self.own = Some(self.own.unwrap_or(Usage { cost_usd: Some(0.0), ..Usage::default() }).plus(&own));
        }
        let denials = event["permission_denials"].as_array().cloned().unwrap_or_default();
        self.result = Some(event);
        denials.iter().filter_map(|denial| self.deny(denial)).collect()
    }

    /// The usage of this ask and of the whole session.
    ///
    /// `modelUsage` and `total_cost_usd` are session totals. Only `modelUsage` includes subagents and helpers. Newer
    /// versions report the usage of the ask itself.
    fn usages(&self, result: &Value) -> (Usage, Option<Usage>) {
        let totals = wire::sum_model_usage(&result["modelUsage"]).map(|totals| Usage {
            cost_usd: result["total_cost_usd"].as_f64().or(totals.cost_usd),
            ..totals
        });
        let by_difference = || match (&self.continued, totals) {
            (None, Some(totals)) => totals,
            (Some(Session { totals: Some(before), .. }), Some(totals)) => totals.beyond(before),
            // The earlier cost of the session is unknown, so the cost of this ask is too.
            _ => wire::usage_of_message(&result["usage"]),
        };
        (self.own.unwrap_or_else(by_difference), totals)
    }

    /// The usage of a failed ask: the result may omit an interrupted message that the stream has reported.
    fn failed_usage(&self, usage: Usage) -> Usage {
        let seen = self.used_so_far();
        let is_more = seen.input_tokens > usage.input_tokens || seen.output_tokens > usage.output_tokens;
        let cost_usd = match (usage.cost_usd, seen.cost_usd) {
            (Some(cost), Some(seen)) if is_more => Some(cost.max(seen)),
            (cost, seen) => cost.or(seen),
        };
        Usage { cost_usd, ..usage.max(&seen) }
    }

    /// The usage without a result: what the messages report, and an estimate of those that are still open. Costs are those
    /// of the configuration, or else of the list.
    fn used_so_far(&self) -> Usage {
        let mut sum = Usage { cost_usd: Some(0.0), ..Usage::default() };
        for message in self.messages.values() {
            let usage = message.used();
            let of_list = || Some(list_price(&message.model).cost(&usage));
            let cost_usd =
                self.prices.cost(Some(&message.model), &usage).or_else(|| self.cost(&usage)).or_else(of_list);
            sum = sum.plus(&Usage { cost_usd, ..usage });
        }
        sum
    }

    /// What the program printed that is no JSON, if that alone explains the failure: it then prints its messages as text.
    fn plain_fault(&self, stderr: &[u8]) -> Option<Fault> {
        if self.began {
            return None;
        }
        let said = [self.plain.as_bytes(), stderr];
        fault::of_stderr(stderr)
            .or_else(|| said.into_iter().find_map(|said| fault::of_plain_text(said, &(self.now)())))
    }

    fn cost(&self, usage: &Usage) -> Option<f64> {
        let by = |model: &Option<String>| self.prices.cost(model.as_deref(), usage);
        by(&self.model).or_else(|| by(&self.asked))
    }

    /// What of a result cannot be: amounts that nobody charges, or nothing at all beside messages that were streamed. A
    /// program that the agent started may have written it.
    fn forged_amount(&self, result: &Value, usage: &Usage) -> Option<String> {
        let streamed = self.used_so_far();
        let reports = result["usage"].is_object() || result["modelUsage"].is_object();
        let is_nothing = usage.input_tokens == 0 && usage.output_tokens == 0;
        let was_used = streamed.output_tokens > 0;
        wire::impossible_amount(result).or_else(|| {
            (result["is_error"] == false && reports && is_nothing && was_used)
                .then(|| format!("no tokens, after {} of its messages", streamed.output_tokens))
        })
    }

    /// Whether a result that reports success holds no answer: the text was cut off at its length, or it is the message of an
    /// error of the service.
    fn is_no_answer(&self, result: &Value) -> bool {
        if !result["structured_output"].is_null() {
            return false;
        }
        let said = text_at_pointer(result, "/result").trim_start();
        text_at_pointer(result, "/stop_reason") == "max_tokens"
            || self.ended_in_error
            || said.starts_with("API Error")
            || !self.began && fault::is_limit(said)
    }

    fn answer(self, result: &Value, usage: Usage, totals: Option<Usage>) -> Answer {
        let said = text_at_pointer(result, "/result");
        Answer {
            output: result.get("structured_output").filter(|output| !output.is_null()).cloned(),
            text: if said.is_empty() { self.last_text } else { said.to_owned() },
            usage,
            session: Some(text_at_pointer(result, "/session_id").to_owned())
                .filter(|id| !id.is_empty())
                .or(self.session),
            totals,
            model: self.model.filter(|model| !model.is_empty()),
            // Hooks of the project can write files even when the agent used no tool.
            edited: true,
            ..Answer::default()
        }
    }
}

/// The results of tools. The use of an unlisted tool is reported as an unknown tool, not as a denial.
fn tool_results(event: &Value) -> Vec<Activity> {
    let parts = event.pointer("/message/content").and_then(Value::as_array).into_iter().flatten();
    let results = parts.filter(|part| text_at_pointer(part, "/type") == "tool_result").map(|part| {
        let id = text_at_pointer(part, "/tool_use_id").to_owned();
        let output = match &part["content"] {
            Value::String(output) => output.clone(),
            parts => {
                let parts = parts.as_array().into_iter().flatten();
                parts.map(|part| text_at_pointer(part, "/text")).collect::<Vec<_>>().join("\n")
            }
        };
        let failed = part["is_error"] == true;
        let said = output.trim_start_matches("<tool_use_error>").trim_start_matches("Error: ");
        let absent = said.strip_prefix("No such tool available: ").filter(|_| failed);
        match absent.and_then(|rest| rest.split(['.', ' ', '<']).next()) {
            Some(name) => {
                let target = "not in the list of tools".to_owned();
                Activity::Denied { id, name: name.to_owned(), target }
            }
            None => Activity::ToolEnded { id, failed, output },
        }
    });
    results.collect()
}

impl AnswerReader for ClaudeReader {
    fn line(&mut self, line: &[u8]) -> Vec<Activity> {
        let event: Value = match serde_json::from_slice(line) {
            Ok(event) => event,
            Err(_) => {
                let room = PLAIN_MAX.saturating_sub(self.plain.len());
                self.plain.push_str(&String::from_utf8_lossy(&line[..line.len().min(room)]));
                if !self.plain.is_empty() {
                    self.plain.push('\n');
                }
                return Vec::new();
            }
        };
        match text_at_pointer(&event, "/type") {
            "system" => self.system(&event),
            "assistant" => self.assistant(&event),
            "stream_event" => self.part(&event),
            "user" => tool_results(&event),
            "rate_limit_event" if text_at_pointer(&event, "/rate_limit_info/status") == "rejected" => {
                self.error.resets_at = event["rate_limit_info"]["resetsAt"].as_i64();
                Vec::new()
            }
            "result" => self.result(event),
            _ => Vec::new(),
        }
    }

    fn cut_usage(&self) -> CutUsage {
        let usage = match &self.result {
            Some(result) => self.failed_usage(self.usages(result).0),
            None => self.used_so_far(),
        };
        CutUsage { usage, unknown: false }
    }

    /// A result counts however the program exited afterwards, because the ask is done and paid for.
    fn end(mut self: Box<Self>, ended: ProgramEnd, stderr: &[u8]) -> Result<Answer, Fault> {
        let started = !matches!(ended, ProgramEnd::NotStarted(_));
        let Some(result) = self.result.take().filter(|_| started) else {
            let exited = matches!(ended, ProgramEnd::Exit(_));
            let mut fault = self.plain_fault(stderr).filter(|_| exited).unwrap_or_else(|| {
                let mut fault = without_result("claude", &self.program, &ended, stderr);
                if let Some(line) = self.plain.lines().find(|line| !line.trim().is_empty()) {
                    fault.message =
                        format!("{}; invalid output: {}", fault.message, quote_output(line.as_bytes()));
                }
                fault
            });
            fault.usage = self.used_so_far();
            return Err(fault);
        };
        let (usage, totals) = self.usages(&result);
        if let Some(amount) = self.forged_amount(&result, &usage) {
            let message = format!("claude: impossible amounts in its result: {amount}");
            let mut fault = Fault::new(FaultClass::Malformed, message);
            fault.usage = self.used_so_far();
            return Err(fault);
        }
        // The program gave up on a structured answer. The last attempt can be repaired like any invalid answer.
        let unstructured = text_at_pointer(&result, "/subtype") == "error_max_structured_output_retries";
        let succeeded = result["is_error"] == false && !self.is_no_answer(&result);
        if succeeded || unstructured {
            return Ok(self.answer(&result, usage, totals));
        }
        let mut fault = fault::of_result(&result, &self.error, &(self.now)());
        fault.usage = self.failed_usage(usage);
        Err(fault)
    }
}

#[cfg(test)]
mod tests;
