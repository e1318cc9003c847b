//! The command line of an ask.

use std::{collections::BTreeMap, ffi::OsString};

use cuegate_ask::{McpServer, McpTransport, list_variables};
use serde_json::Value;

use super::{CodexSettings, strict};
use crate::{
    Launch, Permission, Request,
    program::{git::git_folders, tool_servers::expand_server, wording::ARGUMENT_MAX},
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
    if let Some(effort) = &request.effort {
        args.config(&format!("model_reasoning_effort={}", quote_toml_string(effort)));
    }
    let variables: Vec<(OsString, OsString)> = request
        .tool_servers
        .iter()
        .enumerate()
        .flat_map(|(at, server)| add_tool_server(&mut args, at, server))
        .collect();
    let files = add_schema_file(&mut args, request);
    let prompt = build_prompt_with_instructions(&mut args, request);
    if let Some(session) = &request.session {
        args.flag(&session.id);
    }
    args.flag("-");
    Launch {
        program: settings.program.clone(),
        args: args.0,
        env: settings.env.iter().map(|(name, value)| (name.into(), value.into())).chain(variables).collect(),
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

/// Names a server whose tools the program gets. Texts with keys get there by variables, which are returned, because
/// arguments are visible to other processes.
fn add_tool_server(args: &mut CodexArgs, number: usize, server: &McpServer) -> Vec<(OsString, OsString)> {
    let McpServer { name, transport } = expand_server(server);
    let at = format!("mcp_servers.{name}");
    let table = |texts: Vec<(&String, &str)>| {
        let entries: Vec<String> = texts
            .into_iter()
            .map(|(key, value)| format!("{}={}", quote_toml_string(key), quote_toml_string(value)))
            .collect();
        format!("{{{}}}", entries.join(","))
    };
    // Each text with the value that it has, and whether a variable stands in it.
    let split = |written: &BTreeMap<String, String>, texts: &BTreeMap<String, String>| {
        let is_secret = |key: &String| written.get(key).is_some_and(|text| !list_variables(text).is_empty());
        let (secret, plain): (Vec<_>, Vec<_>) =
            texts.iter().map(|(key, text)| (key.clone(), text.clone())).partition(|(key, _)| is_secret(key));
        (secret, plain)
    };
    let as_table =
        |plain: &[(String, String)]| table(plain.iter().map(|(key, text)| (key, text.as_str())).collect());
    // Of a name of ours: servers may name the same variable, and the program may need one of that name.
    let own_name = |index: usize| format!("CUEGATE_MCP_{number}_{index}");
    let mut variables = Vec::new();
    match (&server.transport, &transport) {
        (McpTransport::Stdio { env: written, .. }, McpTransport::Stdio { command, args: words, env }) => {
            let (secret, plain) = split(written, env);
            let mut words: Vec<String> =
                std::iter::once(command).chain(words).map(|word| quote_toml_string(word)).collect();
            if !secret.is_empty() {
                let exports = secret.iter().enumerate().map(|(index, (key, _))| {
                    let own = own_name(index);
                    format!("export {key}=\"${own}\"; unset {own}; ")
                });
                let script = exports.collect::<String>() + "exec \"$0\" \"$@\"";
                words.splice(0..0, ["sh", "-c", &script].map(quote_toml_string));
                let names: Vec<String> =
                    (0..secret.len()).map(|index| quote_toml_string(&own_name(index))).collect();
                args.config(&format!("{at}.env_vars=[{}]", names.join(",")));
                let values = secret.into_iter().enumerate();
                variables.extend(values.map(|(index, (_, text))| (own_name(index).into(), text.into())));
            }
            args.config(&format!("{at}.command={}", words[0]));
            args.config(&format!("{at}.args=[{}]", words[1..].join(",")));
            if !plain.is_empty() {
                args.config(&format!("{at}.env={}", as_table(&plain)));
            }
        }
        (
            McpTransport::Http { headers: written, .. } | McpTransport::Sse { headers: written, .. },
            McpTransport::Http { url, headers } | McpTransport::Sse { url, headers },
        ) => {
            args.config(&format!("{at}.url={}", quote_toml_string(url)));
            let (secret, plain) = split(written, headers);
            if !plain.is_empty() {
                args.config(&format!("{at}.http_headers={}", as_table(&plain)));
            }
            let named: Vec<(String, String)> =
                secret.iter().enumerate().map(|(index, (key, _))| (key.clone(), own_name(index))).collect();
            if !named.is_empty() {
                args.config(&format!("{at}.env_http_headers={}", as_table(&named)));
            }
            let texts = secret.into_iter().map(|(_, text)| text);
            variables
                .extend(named.into_iter().zip(texts).map(|((_, name), text)| (name.into(), text.into())));
        }
        _ => {}
    }
    // `codex exec` asks nobody, and refuses a call of a tool that needs an approval.
    args.config(&format!("{at}.default_tools_approval_mode=\"approve\""));
    variables
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
