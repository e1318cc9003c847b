//! `qwen -o stream-json`, with the prompt on standard input.

use cuegate_ask::{FaultClass, Usage};
use serde_json::{Value, json};

use super::line_reader::{LineAgent, TurnLog, TurnRequest};
use crate::{
    answer_server::{SERVER_NAME, TOOL_NAME},
    driven::{classify::classify_failure, events::DriverError},
    program::{read_token_count, wording::shorten_target},
};

/// The tools that change files.
const WRITERS: [&str; 3] = ["edit", "write_file", "notebook_edit"];
/// The tool that runs commands.
const SHELL: &str = "run_shell_command";

/// Reads a turn; each line says all that it means.
#[derive(Debug, Default)]
pub(super) struct QwenLines;

impl LineAgent for QwenLines {
    fn arguments(&self, turn: &TurnRequest<'_>) -> Vec<String> {
        let mut args: Vec<String> = Vec::new();
        let mut allowed = Vec::new();
        if let Some((program, server)) = turn.server() {
            let config = json!({ "mcpServers": { SERVER_NAME: { "command": program, "args": server } } });
            args.extend(["--mcp-config".to_owned(), config.to_string()]);
            allowed.push(format!("mcp__{SERVER_NAME}__{TOOL_NAME}"));
        }
        allowed.extend(turn.job.tool_servers.iter().map(|server| format!("mcp__{}", server.name)));
        let may_write = turn.job.permission.may_write();
        let mode = match (turn.grants_everything(), may_write) {
            (true, _) => "yolo",
            (false, true) => "auto-edit",
            // Its plan mode refuses the answer server as well: what may not be used is taken away instead.
            (false, false) => "default",
        };
        args.extend(["--approval-mode".to_owned(), mode.to_owned()]);
        if !may_write {
            args.extend(["--exclude-tools".to_owned(), WRITERS.join(",")]);
        }
        match turn.grants_shell() {
            true => allowed.push(SHELL.to_owned()),
            false => args.extend(["--exclude-tools".to_owned(), SHELL.to_owned()]),
        }
        if !allowed.is_empty() {
            args.extend(["--allowed-tools".to_owned(), allowed.join(",")]);
        }
        if let Some(model) = &turn.job.model {
            args.extend(["-m".to_owned(), model.clone()]);
        }
        if let Some(session) = turn.session {
            args.extend(["--resume".to_owned(), session.to_owned()]);
        }
        args
    }

    fn reads_prompt(&self) -> bool {
        true
    }

    fn read(&mut self, line: &Value, said: &mut TurnLog<'_, '_>) -> Result<(), DriverError> {
        let message = &line["message"];
        match line["type"].as_str().unwrap_or_default() {
            "system" if line["subtype"] == "init" => {
                said.session = line["session_id"].as_str().map(str::to_owned).or(said.session.take());
                said.model = line["model"].as_str().map(str::to_owned).or(said.model.take());
                let version = line["qwen_code_version"].as_str().or(line["version"].as_str());
                said.handshake = version.map(|version| format!("Qwen Code {version}"));
            }
            "assistant" => {
                for part in message["content"].as_array().into_iter().flatten() {
                    match part["type"].as_str() {
                        Some("text") => {
                            let text = part["text"].as_str().unwrap_or_default();
                            if !text.trim().is_empty() {
                                text.clone_into(&mut said.text);
                                said.events.text(text)?;
                            }
                        }
                        Some("tool_use") => {
                            let id = part["id"].as_str().unwrap_or_default();
                            let name = part["name"].as_str().unwrap_or_default();
                            said.events.tool(id, name_of_tool(name), &target_of(&part["input"]))?;
                            said.open_tools.insert(id.to_owned());
                        }
                        _ => {}
                    }
                }
            }
            "user" => {
                for part in message["content"].as_array().into_iter().flatten() {
                    let id = part["tool_use_id"].as_str().unwrap_or_default();
                    said.open_tools.remove(id);
                    let output = part["content"].as_str().unwrap_or_default();
                    said.events.tool_ended(id, part["is_error"] == true, output)?;
                }
            }
            "result" => {
                said.is_over = true;
                let usage = &line["usage"];
                said.totals = Some(Usage {
                    input_tokens: read_token_count(&usage["input_tokens"]),
                    cached_input_tokens: read_token_count(&usage["cache_read_input_tokens"]),
                    output_tokens: read_token_count(&usage["output_tokens"]),
                    ..Usage::default()
                });
                for denial in line["permission_denials"].as_array().into_iter().flatten() {
                    let id = denial["tool_use_id"].as_str().unwrap_or_default();
                    let name = denial["tool_name"].as_str().unwrap_or_default();
                    said.events.denied(id, name_of_tool(name), &target_of(&denial["tool_input"]))?;
                }
                if line["is_error"] == true {
                    let text = line["error"]["message"].as_str().or(line["result"].as_str());
                    let text = text.unwrap_or("qwen ended with an error");
                    said.failure = Some(classify_failure(None, text, FaultClass::Crashed));
                } else if let Some(text) = line["result"].as_str().filter(|text| !text.trim().is_empty()) {
                    // A failed service may end the turn like any other.
                    match text.starts_with("[API Error") {
                        true => said.failure = Some(classify_failure(None, text, FaultClass::Crashed)),
                        false => text.clone_into(&mut said.text),
                    }
                }
            }
            _ => {}
        }
        Ok(())
    }
}

fn name_of_tool(name: &str) -> &str {
    match name {
        "write_file" | "edit" | "notebook_edit" => "edit",
        SHELL => "shell",
        "read_file" => "read",
        name if name.ends_with(TOOL_NAME) => TOOL_NAME,
        name => name,
    }
}

fn target_of(input: &Value) -> String {
    let keys = ["command", "file_path", "path", "pattern", "query", "url"];
    let target = keys.iter().find_map(|key| input.get(*key)?.as_str()).unwrap_or_default();
    shorten_target(target)
}
