//! `copilot -p PROMPT --output-format json`. Its error classes are here, and not in what it says over the Agent Client
//! Protocol.

use std::fs;

use cuegate_ask::{FaultClass, Usage};
use serde_json::{Value, json};

use super::line_reader::{LineAgent, TurnLog, TurnRequest};
use crate::{
    answer_server::{SERVER_NAME, TOOL_NAME},
    driven::{
        classify::{class_of_status, classify_failure},
        events::{DriverError, Trouble},
    },
    program::{read_token_count, wording::shorten_target},
};

/// The file with the usage of a conversation. The lines have none.
const USAGE: &str = "usage.json";

/// What the lines of a turn told so far.
#[derive(Debug, Default)]
pub(super) struct CopilotLines {
    /// The status of the last request that failed.
    status: Option<u64>,
}

impl LineAgent for CopilotLines {
    fn arguments(&self, turn: &TurnRequest<'_>) -> Vec<String> {
        let mut args: Vec<String> = Vec::new();
        if let Some((program, server)) = turn.server() {
            let config = json!({ "mcpServers": {
                SERVER_NAME: { "type": "local", "command": program, "args": server, "tools": ["*"] }
            } });
            args.extend(["--additional-mcp-config".to_owned(), config.to_string()]);
            args.push(format!("--allow-tool={SERVER_NAME}"));
        }
        if let Some(file) = turn.job.server_file() {
            args.extend(["--additional-mcp-config".to_owned(), format!("@{}", file.display())]);
            args.extend(turn.job.tool_servers.iter().map(|server| format!("--allow-tool={}", server.name)));
        }
        if turn.grants_everything() {
            args.extend(["--allow-all-tools", "--allow-all-paths"].map(str::to_owned));
        } else {
            let rule = |granted: bool, tool: &str| match granted {
                true => format!("--allow-tool={tool}"),
                false => format!("--deny-tool={tool}"),
            };
            args.push(rule(turn.job.permission.may_write(), "write"));
            args.push(rule(turn.grants_shell(), "shell"));
        }
        if let Some(model) = &turn.job.model {
            args.extend(["--model".to_owned(), model.clone()]);
        }
        if let Some(session) = turn.session {
            args.push(format!("--resume={session}"));
        }
        args.extend(["--usage-output-file".to_owned(), turn.job.scratch.join(USAGE).display().to_string()]);
        args.extend(["-p".to_owned(), turn.prompt.to_owned()]);
        args
    }

    fn reads_prompt(&self) -> bool {
        false
    }

    fn end(&mut self, turn: &TurnRequest<'_>, said: &mut TurnLog<'_, '_>) {
        let path = turn.job.scratch.join(USAGE);
        let usage = fs::read(&path).ok().and_then(|text| serde_json::from_slice::<Value>(&text).ok());
        if let Some(models) = usage.as_ref().and_then(|usage| usage["modelMetrics"].as_object()) {
            let mut totals = Usage::default();
            for usage in models.values().map(|model| &model["usage"]) {
                totals.input_tokens += read_token_count(&usage["inputTokens"]);
                totals.cached_input_tokens += read_token_count(&usage["cacheReadTokens"]);
                totals.output_tokens += read_token_count(&usage["outputTokens"]);
            }
            said.totals = Some(totals);
        }
        // The next turn writes its own.
        fs::remove_file(&path).ok();
    }

    fn read(&mut self, line: &Value, said: &mut TurnLog<'_, '_>) -> Result<(), DriverError> {
        let data = &line["data"];
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        match line["type"].as_str().unwrap_or_default() {
            "assistant.message" => {
                said.model = data["model"].as_str().map(str::to_owned).or(said.model.take());
                let message = text(&data["content"]);
                if !message.trim().is_empty() {
                    said.text.clone_from(&message);
                    said.events.text(&message)?;
                }
            }
            "tool.execution_start" => {
                let id = text(&data["toolCallId"]);
                let name =
                    data["mcpToolName"].as_str().unwrap_or(data["toolName"].as_str().unwrap_or_default());
                said.events.tool(&id, name_of_tool(name), &target_of(&data["arguments"]))?;
                said.open_tools.insert(id);
            }
            "tool.execution_complete" => {
                let id = text(&data["toolCallId"]);
                said.open_tools.remove(&id);
                let error = &data["error"];
                if error["code"] == "denied" {
                    let name = text(&data["toolTelemetry"]["properties"]["command"]);
                    said.events.denied(
                        &id,
                        name_of_tool(&name),
                        error["message"].as_str().unwrap_or_default(),
                    )?;
                } else {
                    let failed = data["success"] == false;
                    let output =
                        if failed { text(&error["message"]) } else { text(&data["result"]["content"]) };
                    said.events.tool_ended(&id, failed, &output)?;
                }
            }
            "model.call_failure" => self.status = data["statusCode"].as_u64(),
            "assistant.turn_retry" => {
                said.events.retry(data["reason"].as_str().unwrap_or("the service failed"))?
            }
            "session.error" => {
                let message = text(&data["message"]);
                let status = data["statusCode"].as_u64().or(self.status);
                said.failure = Some(match data["errorType"].as_str() {
                    Some("authentication" | "authorization") => Trouble::new(FaultClass::Auth, message),
                    Some("rate_limit" | "quota") => Trouble {
                        class: FaultClass::RateLimited,
                        ..classify_failure(status, &message, FaultClass::RateLimited)
                    },
                    _ => classify_failure(status, &message, FaultClass::Crashed),
                });
            }
            "result" => {
                said.is_over = true;
                said.session = line["sessionId"].as_str().map(str::to_owned).or(said.session.take());
                let failed = line["exitCode"].as_i64().is_some_and(|code| code != 0);
                if failed && said.failure.is_none() {
                    let class = self.status.and_then(class_of_status).unwrap_or(FaultClass::Crashed);
                    said.failure = Some(Trouble::new(class, "copilot ended with an error"));
                }
            }
            _ => {}
        }
        Ok(())
    }
}

fn name_of_tool(name: &str) -> &str {
    match name {
        "create" | "edit" | "str_replace" => "edit",
        "bash" => "shell",
        "view" => "read",
        name if name.ends_with(TOOL_NAME) => TOOL_NAME,
        name => name,
    }
}

fn target_of(arguments: &Value) -> String {
    let keys = ["command", "path", "pattern", "query", "url"];
    let target = keys.iter().find_map(|key| arguments.get(*key)?.as_str()).unwrap_or_default();
    shorten_target(target)
}
