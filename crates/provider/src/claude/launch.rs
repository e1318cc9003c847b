//! The command line of an ask.

use std::{ffi::OsString, path::Path};

use serde_json::{Map, Value, json};

use super::ClaudeSettings;
use crate::{
    Launch, Permission, Request,
    program::{tool_servers::list_named_variables, wording::ARGUMENT_MAX},
};

/// The file of the system prompt.
const SYSTEM: &str = "system.md";

/// The file of the servers whose tools it gets.
const SERVERS: &str = "mcp.json";

/// Environment variables of every ask.
///
/// - The program does not retry, because the engine decides about retries.
/// - The program does not replace `@/some/file` in a prompt by that file, which it does for any path without asking.
/// - A run keeps its own state: no memory of other sessions, no background tasks after the answer.
const ENVIRONMENT: [(&str, &str); 7] = [
    ("CLAUDE_CODE_MAX_RETRIES", "0"),
    ("DISABLE_AUTOUPDATER", "1"),
    ("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1"),
    ("CLAUDE_CODE_DISABLE_FILE_MENTIONS", "1"),
    ("CLAUDE_CODE_DISABLE_AUTO_MEMORY", "1"),
    ("CLAUDE_CODE_DISABLE_BACKGROUND_TASKS", "1"),
    ("CLAUDE_CODE_DISABLE_CRON", "1"),
];

/// The tool that asks a person.
const QUESTIONS: &str = "AskUserQuestion";

/// The tools that edit files. Bash is not one of them: a definition that lists it wants its commands to run.
const EDITORS: [&str; 4] = ["Edit", "MultiEdit", "NotebookEdit", "Write"];

pub(super) fn build_launch(settings: &ClaudeSettings, request: &Request) -> Launch {
    let mut args = ClaudeArgs::default();
    args.flag("-p").pair("--output-format", "stream-json").flag("--verbose");
    // Only partial messages report output tokens before the ask ends.
    args.flag("--include-partial-messages");
    // Always set, because the project's settings may name another mode.
    args.pair("--permission-mode", mode_of_permission(request.permission));
    args.pair("--setting-sources", &settings.setting_sources.join(","));
    if settings.setting_sources.is_empty() {
        args.flag("--strict-mcp-config");
    }
    if let Some(model) = request.model.as_ref().or(settings.model.as_ref()) {
        args.pair("--model", model);
    }
    if let Some(schema) = request.schema.as_ref().and_then(encode_native_schema) {
        args.pair("--json-schema", &schema);
    }
    let mut allowed = match &request.tools {
        Some(tools) => restrict_tools(&mut args, tools, request.permission),
        None => Vec::new(),
    };
    // In a mode that asks nobody, a tool that nobody approved is denied.
    allowed.extend(request.tool_servers.iter().map(|server| format!("mcp__{}", server.name)));
    if !allowed.is_empty() {
        args.pair("--allowedTools", &allowed.join(","));
    }
    if request.unattended {
        // In an unattended run every question would be denied, so the tool is removed.
        args.pair("--disallowedTools", QUESTIONS);
    }
    for folder in &request.readable {
        args.path("--add-dir", folder);
    }
    if let Some(usd) = request.cap.usd {
        args.pair("--max-budget-usd", &usd.to_string());
    }
    if let Some(turns) = settings.max_turns {
        args.pair("--max-turns", &turns.to_string());
    }
    if let Some(session) = &request.session {
        args.pair("--resume", &session.id);
        if session.fork {
            args.flag("--fork-session");
        }
    }
    let mut files = add_system_prompt(&mut args, request);
    files.extend(add_tool_servers(&mut args, request));
    args.0.extend(settings.args.iter().map(OsString::from));
    // After the arguments of the user: of two efforts the program takes the last one.
    if let Some(effort) = &request.effort {
        args.pair("--effort", effort);
    }
    let own = settings.env.iter().map(|(name, value)| (name.as_str(), value.as_str()));
    let env = ENVIRONMENT.into_iter().chain(own).map(|(name, value)| (name.into(), value.into()));
    Launch {
        program: settings.program.clone(),
        args: args.0,
        env: env.chain(list_named_variables(&request.tool_servers)).collect(),
        stdin: escape_leading_slash(&request.prompt).into_bytes(),
        files,
    }
}

/// The system prompt is appended, because Claude Code's own prompt describes its tools and environment. It is passed as
/// a file, because arguments are visible to other processes and limited in length.
fn add_system_prompt(args: &mut ClaudeArgs, request: &Request) -> Vec<(String, Vec<u8>)> {
    // Otherwise the session keeps the system prompt of its first ask and ignores later ones.
    args.pair("--system-prompt-snapshot", "off");
    let Some(system) = &request.system else { return Vec::new() };
    let file = request.scratch.join(SYSTEM);
    let file = std::path::absolute(&file).unwrap_or(file);
    args.path("--append-system-prompt-file", &file);
    vec![(SYSTEM.to_owned(), system.clone().into_bytes())]
}

/// The program replaces `${NAME}` in this file by itself: no key gets into a file or an argument.
fn add_tool_servers(args: &mut ClaudeArgs, request: &Request) -> Option<(String, Vec<u8>)> {
    if request.tool_servers.is_empty() {
        return None;
    }
    let file = request.scratch.join(SERVERS);
    args.path("--mcp-config", &std::path::absolute(&file).unwrap_or(file));
    let servers = request.tool_servers.iter();
    let servers: Map<String, Value> =
        servers.map(|server| (server.name.clone(), json!(server.transport))).collect();
    Some((SERVERS.to_owned(), json!({ "mcpServers": servers }).to_string().into_bytes()))
}

/// `--tools` restricts the built-in tools, `--allowedTools` lists tools that need no approval; neither implies the
/// other. `--tools` supports neither patterns nor tools of MCP servers.
///
/// An approval by name holds for any path, so tools that edit files are approved only if everything is permitted.
/// `acceptEdits` permits edits in the working folder without an approval; elsewhere, and with less permission, the
/// program denies an edit at once. Returns the tools to approve.
fn restrict_tools(args: &mut ClaudeArgs, tools: &[String], permission: Permission) -> Vec<String> {
    let name = |tool: &str| tool.split('(').next().unwrap_or_default().trim().to_owned();
    let mut names: Vec<String> = Vec::new();
    for name in tools.iter().map(|tool| name(tool)) {
        if !name.starts_with("mcp__") && !names.contains(&name) {
            names.push(name);
        }
    }
    args.pair("--tools", &names.join(","));
    let anything = permission == Permission::BypassPermissions;
    tools.iter().filter(|tool| anything || !EDITORS.contains(&name(tool).as_str())).cloned().collect()
}

/// The program's own `plan` mode denies most commands, listed ones too, and tells the agent to write a plan. An ask that
/// may not write needs neither: tools that are not listed are denied, and the run compares the working tree afterwards.
fn mode_of_permission(permission: Permission) -> &'static str {
    match permission {
        Permission::Plan | Permission::Default => "dontAsk",
        Permission::AcceptEdits => "acceptEdits",
        Permission::BypassPermissions => "bypassPermissions",
    }
}

/// The schema for the program; `None` if its root is not an object or it is too long. `$schema` and `$id` are removed,
/// because the program rejects dialects that it does not know and treats all others alike.
pub(super) fn encode_native_schema(schema: &Value) -> Option<String> {
    let mut schema = schema.as_object()?.clone();
    if schema.get("type") != Some(&Value::from("object")) {
        return None;
    }
    schema.shift_remove("$schema");
    schema.shift_remove("$id");
    let schema = Value::Object(schema).to_string();
    (schema.len() <= ARGUMENT_MAX).then_some(schema)
}

/// A leading slash would make the prompt a command of the program; after a newline it is text.
fn escape_leading_slash(prompt: &str) -> String {
    let guard = if prompt.starts_with('/') { "\n" } else { "" };
    format!("{guard}{prompt}")
}

/// Arguments as `--name=value`, so that a value with a leading dash is not taken for an option.
#[derive(Default)]
struct ClaudeArgs(Vec<OsString>);

impl ClaudeArgs {
    fn flag(&mut self, name: &str) -> &mut ClaudeArgs {
        self.0.push(name.into());
        self
    }

    fn pair(&mut self, name: &str, value: &str) -> &mut ClaudeArgs {
        self.0.push(format!("{name}={value}").into());
        self
    }

    fn path(&mut self, name: &str, value: &Path) {
        let mut argument = OsString::from(format!("{name}="));
        argument.push(value);
        self.0.push(argument);
    }
}

#[cfg(test)]
mod tests;
