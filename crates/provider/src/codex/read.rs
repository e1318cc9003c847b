//! Parses its output: one JSON object per line, `turn.completed` or `turn.failed` last.

use std::{collections::BTreeSet, path::PathBuf};

use jiff::Zoned;
use serde_json::Value;

use super::{
    CodexSettings, fault, inspect, rollout,
    rollout::{SessionUsage, tokens_of},
    strict,
};
use crate::{
    Activity, Answer, AnswerReader, CutUsage, Fault, FaultClass, Prices, ProgramEnd, Request, Session, Usage,
    program::{
        estimate_tokens,
        wording::{quote_output, shorten_target, without_result},
    },
};

/// How often in a row it may report that it waits for the network.
const OFFLINE_MAX: u32 = 3;

/// Parses the output of one ask.
pub(super) struct CodexReader {
    program: PathBuf,
    /// The folder in which the program keeps its sessions.
    home: PathBuf,
    /// The bytes of the prompt.
    prompt: u64,
    prices: Prices,
    /// The requested model, if one was named. The program does not report its model.
    model: Option<String>,
    /// The session that the ask continued.
    continued: Option<Session>,
    /// The schema of the answer, if the service enforces it.
    schema: Option<Value>,
    now: fn() -> Zoned,
    session: Option<String>,
    /// The ids of items already reported.
    reported: BTreeSet<String>,
    /// The agent's last message, which is its answer.
    text: String,
    /// The usage of the whole session.
    totals: Option<Usage>,
    /// The agent has worked since the last usage report.
    working: bool,
    failed: Option<String>,
    /// The last error that was not a retry.
    error: Option<String>,
    /// How often in a row it reported that it waits for the network, and the last report.
    offline: (u32, String),
    /// The first line that is not JSON.
    broken: Option<String>,
}

impl CodexReader {
    pub fn new(settings: &CodexSettings, request: &Request, now: fn() -> Zoned) -> CodexReader {
        let schema = request.schema.as_ref().filter(|schema| strict::convert_to_strict(schema).is_some());
        CodexReader {
            program: settings.program.clone(),
            home: inspect::find_codex_home(settings),
            prompt: (request.prompt.len() + request.system.as_ref().map_or(0, String::len)) as u64,
            prices: settings.prices.clone(),
            model: request.model.clone().or_else(|| settings.model.clone()),
            continued: request.session.clone(),
            schema: schema.cloned(),
            now,
            session: None,
            reported: BTreeSet::new(),
            text: String::new(),
            totals: None,
            working: false,
            failed: None,
            error: None,
            offline: (0, String::new()),
            broken: None,
        }
    }

    fn item(&mut self, item: &Value, completed: bool) -> Vec<Activity> {
        let text = |key: &str| item.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
        // The program's own warnings are printed before the service works.
        self.working |= !matches!(text("type").as_str(), "error" | "");
        match text("type").as_str() {
            "agent_message" if completed => {
                self.text = text("text");
                vec![Activity::Text { text: self.text.clone() }]
            }
            "error" if text("message").starts_with("Falling back") => {
                vec![Activity::Retry { reason: text("message") }]
            }
            // Other errors are warnings, such as missing metadata of a model.
            "error" | "agent_message" | "reasoning" | "todo_list" | "" => Vec::new(),
            _ if text("status") == "declined" => {
                vec![Activity::Denied { id: text("id"), name: text("type"), target: tool_target(item) }]
            }
            _ => {
                let mut activities = Vec::new();
                if self.reported.insert(text("id")) {
                    let name = match text("type").as_str() {
                        "mcp_tool_call" => format!("{}.{}", text("server"), text("tool")),
                        kind => kind.to_owned(),
                    };
                    activities.push(Activity::Tool { id: text("id"), name, target: tool_target(item) });
                }
                if completed {
                    let exit = item.get("exit_code").and_then(Value::as_i64);
                    activities.push(Activity::ToolEnded {
                        id: text("id"),
                        failed: text("status") == "failed" || exit.is_some_and(|code| code != 0),
                        output: tool_output(item),
                    });
                }
                activities
            }
        }
    }

    /// `Reconnecting... 1/5 (reason)` is a retry. Any other error is followed by the failure of the turn.
    fn error(&mut self, message: &str) -> Option<Activity> {
        if message.starts_with("Reconnecting... waiting for network") {
            self.offline = (self.offline.0 + 1, message.trim_start_matches("Reconnecting... ").to_owned());
        }
        if message.starts_with("Reconnecting...") {
            return Some(Activity::Retry { reason: message.to_owned() });
        }
        self.error = Some(message.to_owned());
        None
    }

    /// This ask's share of the session totals.
    fn own(&self, totals: Usage) -> Usage {
        let before = self.continued.as_ref().and_then(|session| session.totals);
        let mut own = before.map_or(totals, |before| totals.beyond(&before));
        own.cost_usd = self.prices.cost(self.model.as_deref(), &own);
        own
    }

    /// What its session's file says of this ask, as long as no turn is completed, with an estimate of the response that
    /// was being written. It sends the whole conversation again.
    fn usage_of_session(&self) -> Option<Usage> {
        // Without the usage before this ask, that of the session says nothing.
        self.continued.as_ref().is_none_or(|session| session.totals.is_some()).then_some(())?;
        let SessionUsage { totals, context, unreported } =
            rollout::read_session_usage(&self.home, self.session.as_ref()?)?;
        let mut usage = self.own(totals);
        if unreported > 0 {
            let input = context.max(estimate_tokens(self.prompt));
            usage.input_tokens = usage.input_tokens.saturating_add(input);
            usage.cached_input_tokens = usage.cached_input_tokens.saturating_add(context.min(input));
            usage.output_tokens = usage.output_tokens.saturating_add(estimate_tokens(unreported));
            usage.is_estimated = true;
        }
        usage.cost_usd = self.prices.cost(self.model.as_deref(), &usage);
        Some(usage)
    }

    /// The fault of an ask without an answer.
    fn fault(&self, ended: &ProgramEnd, stderr: &[u8]) -> Fault {
        if self.is_stuck() {
            return Fault::new(
                FaultClass::Network,
                format!("codex: {}", quote_output(self.offline.1.as_bytes())),
            );
        }
        let exited = matches!(ended, ProgramEnd::Exit(_));
        if let Some(message) = self.failed.as_ref().or(self.error.as_ref()).filter(|_| exited) {
            return fault::of_turn(message, &(self.now)());
        }
        let mut fault = fault::of_stderr(stderr, &(self.now)())
            .filter(|_| exited)
            .unwrap_or_else(|| without_result("codex", &self.program, ended, stderr));
        if let Some(broken) = &self.broken {
            fault.message = format!("{}; invalid output: {broken}", fault.message);
        }
        fault
    }

    /// The structured answer. It may still violate the schema; the caller validates it.
    fn output(&self) -> Option<Value> {
        let schema = self.schema.as_ref()?;
        let mut output = serde_json::from_str(&self.text).ok()?;
        strict::prune_absent_nulls(&mut output, schema);
        Some(output)
    }
}

impl AnswerReader for CodexReader {
    fn line(&mut self, line: &[u8]) -> Vec<Activity> {
        let event: Value = match serde_json::from_slice(line) {
            Ok(event) => event,
            Err(_) => {
                if !line.trim_ascii().is_empty() {
                    self.broken.get_or_insert_with(|| quote_output(line));
                }
                return Vec::new();
            }
        };
        if text_of(&event, "type") != "error" && !self.is_stuck() {
            self.offline.0 = 0;
        }
        let text = |path: &str| event.pointer(path).and_then(Value::as_str).unwrap_or_default().to_owned();
        let activity = match text("/type").as_str() {
            "thread.started" => {
                self.session = Some(text("/thread_id"));
                None
            }
            "item.started" | "item.updated" => return self.item(&event["item"], false),
            "item.completed" => return self.item(&event["item"], true),
            "turn.completed" => {
                self.totals = Some(tokens_of(&event["usage"]));
                self.working = false;
                None
            }
            "turn.failed" => {
                self.failed = Some(text("/error/message"));
                None
            }
            "error" => self.error(&text("/message")),
            _ => None,
        };
        activity.into_iter().collect()
    }

    fn cut_usage(&self) -> CutUsage {
        if let Some(totals) = self.totals.filter(|_| !self.working) {
            return CutUsage { usage: self.own(totals), unknown: false };
        }
        match self.usage_of_session() {
            Some(usage) => CutUsage { usage, unknown: false },
            None => CutUsage {
                usage: self.totals.map(|totals| self.own(totals)).unwrap_or_default(),
                unknown: self.working,
            },
        }
    }

    /// It waits for the network without end, whatever retries are configured, and reports that after 0, 5, 15 and 36
    /// seconds. Shorter interruptions are left to it, because its session goes on.
    fn is_stuck(&self) -> bool {
        self.offline.0 >= OFFLINE_MAX
    }

    /// A completed turn counts however the program exited afterwards, because the ask is done and paid for.
    fn end(mut self: Box<Self>, ended: ProgramEnd, stderr: &[u8]) -> Result<Answer, Fault> {
        let started = !matches!(ended, ProgramEnd::NotStarted(_));
        if let Some(totals) = self.totals.filter(|_| started && self.failed.is_none()) {
            return Ok(Answer {
                output: self.output(),
                usage: self.own(totals),
                text: self.text,
                session: self.session.filter(|id| !id.is_empty()),
                totals: Some(totals),
                model: self.model,
                // The program does not report every command it runs.
                edited: true,
                ..Answer::default()
            });
        }
        let mut fault = self.fault(&ended, stderr);
        if started {
            self.working |= fault.usage_unknown;
            let CutUsage { usage, unknown } = self.cut_usage();
            (fault.usage, fault.usage_unknown) = (usage, unknown);
        }
        Err(fault)
    }
}

fn text_of<'v>(event: &'v Value, key: &str) -> &'v str {
    event.get(key).and_then(Value::as_str).unwrap_or_default()
}

/// The output of a command, or the result or error of a tool.
fn tool_output(item: &Value) -> String {
    let error = item.pointer("/error/message").and_then(Value::as_str);
    if let Some(output) = item.get("aggregated_output").and_then(Value::as_str).or(error) {
        return output.to_owned();
    }
    let parts = item.pointer("/result/content").and_then(Value::as_array).into_iter().flatten();
    parts.filter_map(|part| part.get("text")?.as_str()).collect::<Vec<_>>().join("\n")
}

fn tool_target(item: &Value) -> String {
    let changes = item.get("changes").and_then(Value::as_array).into_iter().flatten();
    let paths: Vec<&str> = changes.filter_map(|change| change.get("path")?.as_str()).collect();
    if !paths.is_empty() {
        return shorten_target(&paths.join(", "));
    }
    let target_text =
        ["command", "query", "tool"].iter().find_map(|key| item.get(key).and_then(Value::as_str));
    shorten_target(target_text.unwrap_or_default())
}

#[cfg(test)]
mod tests;
