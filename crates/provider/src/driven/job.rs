//! What the child is told.

use std::{collections::BTreeMap, ffi::OsString, fs, io, path::PathBuf};

use cuegate_ask::{McpServer, McpTransport, Permission, Usage};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::rows::{AgentRow, DriverProtocol};
use crate::program::tool_servers::describe_servers;

/// How to start the child and the answer server: our own binary with the arguments of a hidden subcommand.
#[derive(Debug, Clone)]
pub struct DriverProgram {
    /// The binary.
    pub exe: PathBuf,
    /// The arguments of the child, whose body is [`super::driver_main`].
    pub args: Vec<OsString>,
    /// The arguments of the answer server, whose body is [`crate::answer_server_main`].
    pub answer_server: Vec<String>,
}

/// A call of an agent.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct DriverJob {
    pub(super) name: String,
    /// The row of the agent; `None` for one of the user's own.
    pub(super) row: Option<String>,
    /// The program and its arguments.
    pub(super) command: Vec<String>,
    pub(super) env: BTreeMap<String, String>,
    pub(super) prompt: String,
    pub(super) schema: Option<Value>,
    pub(super) model: Option<String>,
    pub(super) mode: Option<String>,
    pub(super) session: Option<String>,
    /// The usage of that session so far, where the agent reports totals.
    pub(super) totals: Option<Usage>,
    pub(super) permission: Permission,
    pub(super) tools: Option<Vec<String>>,
    /// The servers whose tools the agent gets, with the values of variables.
    pub(super) tool_servers: Vec<McpServer>,
    pub(super) folder: PathBuf,
    /// A folder for files, which may be read-only; in the child a folder of its own.
    pub(super) scratch: PathBuf,
    /// Whether files outside of the agent's boundary cannot be written anyway.
    pub(super) is_sandboxed: bool,
    pub(super) answer: AnswerRoute,
    /// The program and the arguments of the answer server; the folder follows.
    pub(super) answer_server: Vec<String>,
}

impl DriverJob {
    /// The file with the servers of the call for Copilot; arguments are visible to other processes. `None` without any.
    pub(super) fn server_file(&self) -> Option<PathBuf> {
        (!self.tool_servers.is_empty()).then(|| self.scratch.join("mcp.json"))
    }

    fn write_server_file(&self) -> io::Result<()> {
        let Some(path) = self.server_file() else { return Ok(()) };
        let entries = describe_servers(&self.tool_servers, |transport, entry| {
            entry["tools"] = json!(["*"]);
            if let McpTransport::Stdio { .. } = transport {
                entry["type"] = "local".into();
            }
        });
        fs::write(path, json!({ "mcpServers": entries }).to_string())
    }

    /// Writes the settings that its agent gets as a file, into the folder for files.
    pub(super) fn write_row_settings(&mut self, row: Option<&AgentRow>) -> io::Result<()> {
        if row.is_some_and(|row| row.protocol == DriverProtocol::CopilotLines) {
            self.write_server_file()?;
        }
        let Some((variable, settings)) = row.and_then(|row| row.settings) else { return Ok(()) };
        let path = self.scratch.join("settings.json");
        let mut settings: Value = serde_json::from_str(settings)?;
        if !self.tool_servers.is_empty() {
            settings["mcpServers"] = describe_servers(&self.tool_servers, name_http_url).into();
        }
        fs::write(&path, settings.to_string())?;
        // Settings of an administrator stay in force.
        self.env.entry(variable.to_owned()).or_insert_with(|| path.display().to_string());
        Ok(())
    }
}

/// Qwen, as Gemini, tells the types of servers apart by the key of the address: `httpUrl`, or `url` for `sse`.
fn name_http_url(transport: &McpTransport, entry: &mut Value) {
    let Value::Object(entry) = entry else { return };
    entry.remove("type");
    if let McpTransport::Http { url, .. } = transport {
        entry.remove("url");
        entry.insert("httpUrl".to_owned(), url.clone().into());
    }
}

/// How `submit_answer` gets to the agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum AnswerRoute {
    Stdio,
    Http,
    None,
}
