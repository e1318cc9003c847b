//! What is started for an ask.

use std::{ffi::OsString, path::Path};

use serde_json::Value;

use super::Settings;
use crate::{Launch, Permission, Request, program::wording::ARGUMENT_MAX};

/// The file with the system prompt.
const SYSTEM: &str = "system.md";

/// What holds for every ask.
///
/// - The engine decides about retries, so its own are off.
/// - A prompt is text: `@/some/file` in it would be replaced by that file, wherever it is and without a question.
/// - A run keeps its own state: no memory of other conversations, nothing that goes on after the answer.
const ENVIRONMENT: [(&str, &str); 7] = [
    ("CLAUDE_CODE_MAX_RETRIES", "0"),
    ("DISABLE_AUTOUPDATER", "1"),
    ("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1"),
    ("CLAUDE_CODE_DISABLE_FILE_MENTIONS", "1"),
    ("CLAUDE_CODE_DISABLE_AUTO_MEMORY", "1"),
    ("CLAUDE_CODE_DISABLE_BACKGROUND_TASKS", "1"),
    ("CLAUDE_CODE_DISABLE_CRON", "1"),
];

/// The tool by which it asks a person.
const QUESTIONS: &str = "AskUserQuestion";

/// The tools that edit files. Bash is none of them: whoever lists it wants its commands to run.
const EDITORS: [&str; 4] = ["Edit", "MultiEdit", "NotebookEdit", "Write"];

pub(super) fn launch(settings: &Settings, request: &Request) -> Launch {
    let mut args = Args::default();
    args.flag("-p").pair("--output-format", "stream-json").flag("--verbose");
    // Without the partial messages, nothing says how many tokens an answer has until the ask has ended.
    args.flag("--include-partial-messages");
    // Always said: the project's settings may name another one.
    args.pair("--permission-mode", mode(request.permission));
    args.pair("--setting-sources", &settings.setting_sources.join(","));
    if settings.setting_sources.is_empty() {
        args.flag("--strict-mcp-config");
    }
    if let Some(model) = request.model.as_ref().or(settings.model.as_ref()) {
        args.pair("--model", model);
    }
    if let Some(schema) = request.schema.as_ref().and_then(native) {
        args.pair("--json-schema", &schema);
    }
    if let Some(tools) = &request.tools {
        only(&mut args, tools, request.permission);
    }
    if request.unattended {
        // Without anybody there it would be denied each time: it is better not to know of it.
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
    let files = system(&mut args, request);
    args.0.extend(settings.args.iter().map(OsString::from));
    let own = settings.env.iter().map(|(name, value)| (name.as_str(), value.as_str()));
    Launch {
        program: settings.program.clone(),
        args: args.0,
        env: ENVIRONMENT.into_iter().chain(own).map(|(name, value)| (name.into(), value.into())).collect(),
        stdin: text(&request.prompt).into_bytes(),
        files,
    }
}

/// The prompt of a step is appended: Claude Code's own prompt is how it knows its tools and its surroundings, and a
/// persona is written as something on top of it. It goes by a file, because arguments are seen by everyone and short.
fn system(args: &mut Args, request: &Request) -> Vec<(String, Vec<u8>)> {
    // Otherwise the prompt of a conversation's first ask is sent for ever, whatever a later one says.
    args.pair("--system-prompt-snapshot", "off");
    let Some(system) = &request.system else { return Vec::new() };
    let file = request.scratch.join(SYSTEM);
    let file = std::path::absolute(&file).unwrap_or(file);
    args.path("--append-system-prompt-file", &file);
    vec![(SYSTEM.to_owned(), system.clone().into_bytes())]
}

/// `--tools` says which of its own tools exist, `--allowedTools` which need no approval; neither does the other's
/// work. The first knows no patterns and no tools of MCP servers.
///
/// Where an ask may not write, a tool that edits files is not approved although it is listed: the program denies it,
/// and the agent learns that at once, not the run by a change that it must reject.
fn only(args: &mut Args, tools: &[String], permission: Permission) {
    let name = |tool: &str| tool.split('(').next().unwrap_or_default().trim().to_owned();
    let mut names: Vec<String> = Vec::new();
    for name in tools.iter().map(|tool| name(tool)) {
        if !name.starts_with("mcp__") && !names.contains(&name) {
            names.push(name);
        }
    }
    args.pair("--tools", &names.join(","));
    let may_write = permission >= Permission::AcceptEdits;
    let allowed: Vec<&str> = tools
        .iter()
        .filter(|tool| may_write || !EDITORS.contains(&name(tool).as_str()))
        .map(String::as_str)
        .collect();
    if !allowed.is_empty() {
        args.pair("--allowedTools", &allowed.join(","));
    }
}

fn mode(permission: Permission) -> &'static str {
    match permission {
        Permission::Plan => "plan",
        Permission::Default => "default",
        Permission::AcceptEdits => "acceptEdits",
        Permission::BypassPermissions => "bypassPermissions",
    }
}

/// The schema as the program takes it; `None` when it does not: its root has to be an object. Names of the schema
/// language are left out, because it refuses those that it does not know and reads all in the same way.
pub(super) fn native(schema: &Value) -> Option<String> {
    let mut schema = schema.as_object()?.clone();
    if schema.get("type") != Some(&Value::from("object")) {
        return None;
    }
    schema.shift_remove("$schema");
    schema.shift_remove("$id");
    let schema = Value::Object(schema).to_string();
    (schema.len() <= ARGUMENT_MAX).then_some(schema)
}

/// A prompt that begins with a slash would be a command of the program. After a line end it is text.
fn text(prompt: &str) -> String {
    let guard = if prompt.starts_with('/') { "\n" } else { "" };
    format!("{guard}{prompt}")
}

/// Arguments as `--name=value`: a value that begins with a dash is no option.
#[derive(Default)]
struct Args(Vec<OsString>);

impl Args {
    fn flag(&mut self, name: &str) -> &mut Args {
        self.0.push(name.into());
        self
    }

    fn pair(&mut self, name: &str, value: &str) -> &mut Args {
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
