//! The command line of an ask.

use std::ffi::OsString;

use serde_json::Value;

use super::{CodexSettings, strict};
use crate::{
    Launch, Permission, Request,
    program::{git::git_folders, wording::ARGUMENT_MAX},
};

/// The file of the answer's schema.
const SCHEMA: &str = "schema.json";

/// The sandbox mode without writes.
const READS: &str = "read-only";

/// Tools that change files or run commands, as definitions name them.
const WRITERS: [&str; 6] = ["Bash", "Edit", "MultiEdit", "NotebookEdit", "Write", "Task"];

/// Settings of every ask: no approvals, no updates, no analytics.
const CONFIG: [&str; 3] =
    ["approval_policy=\"never\"", "analytics.enabled=false", "check_for_update_on_startup=false"];

pub(super) fn build_launch(settings: &CodexSettings, request: &Request, sandboxed: bool) -> Launch {
    let mut args = CodexArgs(vec!["exec".into()]);
    if let Some(session) = &request.session {
        args.flag(if session.fork { "fork" } else { "resume" });
    }
    args.flag("--json").flag("--skip-git-repo-check");
    args.flag("--disable=plugins").flag("--disable=apps");
    if !settings.user_config {
        args.flag("--ignore-user-config").flag("--ignore-rules");
    }
    CONFIG.iter().for_each(|line| args.config(line));
    settings.config.iter().for_each(|line| args.config(line));
    if let Some(service) = &settings.service {
        args.config(&format!("model_provider={}", quote_toml_string(service)));
        for retries in ["request_max_retries", "stream_max_retries"] {
            args.config(&format!("model_providers.{service}.{retries}=0"));
        }
    }
    match sandbox_mode_of_request(request) {
        Some(_) if sandboxed => args.config("sandbox_mode=\"danger-full-access\""),
        // By configuration, because `resume` and `fork` do not take `--sandbox`.
        Some(mode) => {
            args.config(&format!("sandbox_mode=\"{mode}\""));
            if mode == "workspace-write" && settings.commits {
                let folders: Vec<String> = git_folders(&request.work)
                    .iter()
                    .map(|folder| quote_toml_string(&folder.to_string_lossy()))
                    .collect();
                if !folders.is_empty() {
                    args.config(&format!("sandbox_workspace_write.writable_roots=[{}]", folders.join(",")));
                }
            }
        }
        None => {
            args.flag("--dangerously-bypass-approvals-and-sandbox");
        }
    }
    if let Some(model) = request.model.as_ref().or(settings.model.as_ref()) {
        args.pair("--model", model.as_ref());
    }
    let files = add_schema_file(&mut args, request);
    let prompt = build_prompt_with_instructions(&mut args, request);
    if let Some(session) = &request.session {
        args.flag(&session.id);
    }
    args.flag("-");
    Launch {
        program: settings.program.clone(),
        args: args.0,
        env: settings.env.iter().map(|(name, value)| (name.into(), value.into())).collect(),
        stdin: prompt.into_bytes(),
        files,
    }
}

/// Whether the ask may write files.
pub(super) fn may_write_files(request: &Request) -> bool {
    sandbox_mode_of_request(request) != Some(READS)
}

/// The sandbox mode of an ask; `None` = no sandbox.
///
/// The program has no option to restrict tools. A list of tools that only read is enforced by the read-only mode.
fn sandbox_mode_of_request(request: &Request) -> Option<&'static str> {
    let reads_only = request.tools.as_ref().is_some_and(|tools| {
        !tools.iter().any(|tool| WRITERS.contains(&tool.split('(').next().unwrap_or_default().trim()))
    });
    match request.permission {
        _ if reads_only => Some(READS),
        Permission::Plan | Permission::Default => Some(READS),
        Permission::AcceptEdits => Some("workspace-write"),
        Permission::BypassPermissions => None,
    }
}

fn add_schema_file(args: &mut CodexArgs, request: &Request) -> Vec<(String, Vec<u8>)> {
    let Some(schema) = request.schema.as_ref().and_then(strict::convert_to_strict) else { return Vec::new() };
    let file = request.scratch.join(SCHEMA);
    args.pair("--output-schema", std::path::absolute(&file).unwrap_or(file).as_os_str());
    vec![(SCHEMA.to_owned(), schema.to_string().into_bytes())]
}

/// Passes the instructions as an argument and returns the prompt.
///
/// The instructions go into the prompt instead if they are too long for an argument, or if a session is continued, which
/// keeps the instructions of its first ask and ignores later ones.
fn build_prompt_with_instructions(args: &mut CodexArgs, request: &Request) -> String {
    let prompt = &request.prompt;
    match &request.system {
        Some(system) if request.session.is_none() && system.len() <= ARGUMENT_MAX => {
            args.config(&format!("developer_instructions={}", quote_toml_string(system)));
            prompt.clone()
        }
        Some(system) => format!("<instructions>\n{system}\n</instructions>\n\n{prompt}"),
        None => prompt.clone(),
    }
}

/// A TOML string. JSON strings are valid TOML except for one control character.
fn quote_toml_string(text: &str) -> String {
    Value::from(text).to_string().replace('\u{7f}', "\\u007f")
}

struct CodexArgs(Vec<OsString>);

impl CodexArgs {
    fn flag(&mut self, name: &str) -> &mut CodexArgs {
        self.0.push(name.into());
        self
    }

    /// `--name=value`, so that a value with a leading dash is not taken for an option.
    fn pair(&mut self, name: &str, value: &std::ffi::OsStr) {
        let mut argument = OsString::from(format!("{name}="));
        argument.push(value);
        self.0.push(argument);
    }

    fn config(&mut self, line: &str) {
        self.pair("--config", line.as_ref());
    }
}

#[cfg(test)]
mod tests;
