//! Reads what it prints: one JSON object a line, `turn.completed` or `turn.failed` at the end.

use std::{collections::BTreeSet, path::PathBuf};

use jiff::Zoned;
use serde_json::Value;

use super::{Settings, fault, strict};
use crate::{
    Activity, Answer, AnswerReader, Ended, Fault, Prices, Request, Session, Usage,
    program::{
        tokens,
        wording::{quote, target, without_result},
    },
};

/// Reads the output of one ask.
pub(super) struct CodexReader {
    program: PathBuf,
    prices: Prices,
    /// The model that was asked, where it was said: the program does not say it.
    model: Option<String>,
    /// The conversation that the ask continued.
    continued: Option<Session>,
    /// The schema that the answer has to fit, when the service holds it to that.
    schema: Option<Value>,
    now: fn() -> Zoned,
    session: Option<String>,
    /// The items that were told of.
    told: BTreeSet<String>,
    /// What the agent said last: its answer.
    text: String,
    /// What the whole conversation used up.
    totals: Option<Usage>,
    /// The agent has done something that is in no totals yet.
    working: bool,
    failed: Option<String>,
    /// The last error that was not followed by another try.
    error: Option<String>,
    /// The first line that could not be read.
    broken: Option<String>,
}

impl CodexReader {
    pub fn new(settings: &Settings, request: &Request, now: fn() -> Zoned) -> CodexReader {
        let schema = request.schema.as_ref().filter(|schema| strict::strict(schema).is_some());
        CodexReader {
            program: settings.program.clone(),
            prices: settings.prices.clone(),
            model: request.model.clone().or_else(|| settings.model.clone()),
            continued: request.session.clone(),
            schema: schema.cloned(),
            now,
            session: None,
            told: BTreeSet::new(),
            text: String::new(),
            totals: None,
            working: false,
            failed: None,
            error: None,
            broken: None,
        }
    }

    fn item(&mut self, item: &Value, completed: bool) -> Option<Activity> {
        let said = |key: &str| item.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
        // Its own warnings come before the service has done anything.
        self.working |= !matches!(said("type").as_str(), "error" | "");
        match said("type").as_str() {
            "agent_message" if completed => {
                self.text = said("text");
                Some(Activity::Text { text: self.text.clone() })
            }
            "error" if said("message").starts_with("Falling back") => {
                Some(Activity::Retry { reason: said("message") })
            }
            // The others are warnings: a model that it has no description of, for one.
            "error" | "agent_message" | "reasoning" | "todo_list" | "" => None,
            _ if said("status") == "declined" => {
                Some(Activity::Denied { name: said("type"), target: tool_target(item) })
            }
            _ if self.told.insert(said("id")) => {
                let name = match said("type").as_str() {
                    "mcp_tool_call" => format!("{}.{}", said("server"), said("tool")),
                    kind => kind.to_owned(),
                };
                Some(Activity::Tool { name, target: tool_target(item) })
            }
            _ => None,
        }
    }

    /// `Reconnecting... 1/5 (why)` is no end. Any other error is followed by the failure of the turn.
    fn error(&mut self, message: &str) -> Option<Activity> {
        if message.starts_with("Reconnecting...") {
            return Some(Activity::Retry { reason: message.to_owned() });
        }
        self.error = Some(message.to_owned());
        None
    }

    /// The program reports the sum over the conversation.
    fn own(&self, totals: Usage) -> Usage {
        let before = self.continued.as_ref().and_then(|session| session.totals);
        let mut own = before.map_or(totals, |before| totals.beyond(&before));
        own.cost_usd = self.prices.cost(self.model.as_deref(), &own);
        own
    }

    /// Why there is no answer.
    fn fault(&self, ended: &Ended, stderr: &[u8]) -> Fault {
        let exited = matches!(ended, Ended::Exit(_));
        if let Some(message) = self.failed.as_ref().or(self.error.as_ref()).filter(|_| exited) {
            return fault::of_turn(message, &(self.now)());
        }
        let mut fault = fault::of_stderr(stderr)
            .filter(|_| exited)
            .unwrap_or_else(|| without_result("codex", &self.program, ended, stderr));
        if let Some(broken) = &self.broken {
            fault.message = format!("{}; its output cannot be read: {broken}", fault.message);
        }
        fault
    }

    /// The service kept to the schema or it did not: the caller validates it anyway.
    fn output(&self) -> Option<Value> {
        let schema = self.schema.as_ref()?;
        let mut output = serde_json::from_str(&self.text).ok()?;
        strict::prune(&mut output, schema);
        Some(output)
    }
}

impl AnswerReader for CodexReader {
    fn line(&mut self, line: &[u8]) -> Vec<Activity> {
        let event: Value = match serde_json::from_slice(line) {
            Ok(event) => event,
            Err(_) => {
                if !line.trim_ascii().is_empty() {
                    self.broken.get_or_insert_with(|| quote(line));
                }
                return Vec::new();
            }
        };
        let text = |path: &str| event.pointer(path).and_then(Value::as_str).unwrap_or_default().to_owned();
        let activity = match text("/type").as_str() {
            "thread.started" => {
                self.session = Some(text("/thread_id"));
                None
            }
            "item.started" | "item.updated" => self.item(&event["item"], false),
            "item.completed" => self.item(&event["item"], true),
            "turn.completed" => {
                self.totals = Some(usage(&event["usage"]));
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

    /// A turn that is complete counts however the program ended after it: by then the ask is done and paid for.
    fn end(self: Box<Self>, ended: Ended, stderr: &[u8]) -> Result<Answer, Fault> {
        let started = !matches!(ended, Ended::NotStarted(_));
        if let Some(totals) = self.totals.filter(|_| started && self.failed.is_none()) {
            return Ok(Answer {
                output: self.output(),
                usage: self.own(totals),
                text: self.text,
                session: self.session.filter(|id| !id.is_empty()),
                totals: Some(totals),
                model: self.model,
                // It runs commands, and not every one of them is told.
                edited: true,
                ..Answer::default()
            });
        }
        let mut fault = self.fault(&ended, stderr);
        if started {
            fault.usage = self.totals.map(|totals| self.own(totals)).unwrap_or_default();
            fault.usage_unknown |= self.working;
        }
        Err(fault)
    }
}

fn usage(usage: &Value) -> Usage {
    let number = |key: &str| usage.get(key).map(tokens).unwrap_or_default();
    Usage {
        input_tokens: number("input_tokens"),
        cached_input_tokens: number("cached_input_tokens"),
        output_tokens: number("output_tokens"),
        cost_usd: None,
    }
}

fn tool_target(item: &Value) -> String {
    let changes = item.get("changes").and_then(Value::as_array).into_iter().flatten();
    let paths: Vec<&str> = changes.filter_map(|change| change.get("path")?.as_str()).collect();
    if !paths.is_empty() {
        return target(&paths.join(", "));
    }
    let said = ["command", "query", "tool"].iter().find_map(|key| item.get(key).and_then(Value::as_str));
    target(said.unwrap_or_default())
}

#[cfg(test)]
mod tests;
