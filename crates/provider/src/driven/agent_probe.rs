//! Tries an agent without asking it anything.

use std::{fs, io, iter, path::Path};

use cuegate_ask::Permission;
use serde_json::json;

use super::{
    acp::{describe_failure, probe_acp},
    agent::DrivenAgent,
    child::AnswerFolder,
    job::{AnswerRoute, DriverJob},
    rows::DriverProtocol,
};
use crate::program::locate::locate_or_missing;

/// What an agent said of itself, and did, before any prompt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgentProbe {
    /// Its name, its version, the version of the protocol and what it does with sessions, in words.
    pub about: String,
    /// Whether it asked for the tools of the answer server.
    pub sees_answer_server: bool,
    /// Whether it takes answer servers over HTTP.
    pub takes_http_servers: bool,
    /// Whether it says that it continues conversations.
    pub continues: bool,
    /// The names of its modes.
    pub modes: Vec<String>,
    /// The names of its models.
    pub models: Vec<String>,
}

impl DrivenAgent {
    /// Starts the agent's program in `folder`, outside of any sandbox, shakes hands and opens a session without a prompt.
    /// `None` for an agent that is asked by lines: there is nothing to try without a prompt.
    ///
    /// # Errors
    /// When it does not start, wants a login, or does not speak the protocol; in words.
    pub fn probe(&self, folder: &Path) -> Option<Result<AgentProbe, String>> {
        if self.row.is_some_and(|row| row.protocol != DriverProtocol::Acp) {
            return None;
        }
        Some(self.probe_in(folder).map_err(|error| format!("failed to prepare the trial: {error}")).flatten())
    }

    fn probe_in(&self, folder: &Path) -> io::Result<Result<AgentProbe, String>> {
        let mut job = self.create_job(Permission::Default);
        job.scratch = folder.join("files");
        job.folder = folder.join("work");
        fs::create_dir_all(&job.scratch)?;
        fs::create_dir_all(&job.folder)?;
        job.write_row_settings(self.row)?;
        let route = match job.answer {
            AnswerRoute::None => AnswerRoute::Stdio,
            route => route,
        };
        job.answer = route;
        let answers = AnswerFolder::create(&job.scratch, &json!({ "type": "object" }), route)?;
        Ok(probe_acp(&job, self.row, &answers).map_err(describe_failure))
    }

    /// A call with everything that does not depend on what is asked.
    pub(super) fn create_job(&self, permission: Permission) -> DriverJob {
        let mut command = self.command();
        if let Some(program) = command.first_mut() {
            *program = locate_or_missing(&*program).display().to_string();
        }
        let server = iter::once(self.program.exe.display().to_string());
        DriverJob {
            name: self.name.clone(),
            row: self.row.map(|row| row.name.to_owned()),
            command,
            env: self.environment(),
            prompt: String::new(),
            schema: None,
            model: self.settings.model.clone(),
            mode: self.mode(permission),
            session: None,
            totals: None,
            permission,
            tools: None,
            tool_servers: Vec::new(),
            folder: Default::default(),
            scratch: Default::default(),
            is_sandboxed: self.is_sandboxed,
            answer: self.answer_route(),
            answer_server: server.chain(self.program.answer_server.iter().cloned()).collect(),
        }
    }
}
