//! A program as a [`Provider`].

use std::env;

use super::{ExecSettings, read::ExecReader, wire::AskLine};
use crate::{
    Capabilities, Fault, FaultClass, Inspection, Launch, PreparedAsk, Problem, Provider, Request,
    SandboxNeeds, locate_or_missing, locate_program, program::locate::list_named_files,
};

/// Any program that speaks the lines of `cuegate/ask/v1`.
#[derive(Debug)]
pub struct ExecAgent {
    name: String,
    settings: ExecSettings,
}

impl ExecAgent {
    /// An agent of this name.
    pub fn new(name: &str, settings: ExecSettings) -> ExecAgent {
        ExecAgent { name: name.to_owned(), settings }
    }

    fn program(&self) -> &str {
        self.settings.exec.first().map_or("", String::as_str)
    }
}

impl Provider for ExecAgent {
    fn name(&self) -> &str {
        &self.name
    }

    fn capabilities(&self) -> Capabilities {
        let ExecSettings { schema, sessions, edits, cost, .. } = self.settings;
        // It is told to fork a conversation, and its tools are its own.
        Capabilities {
            schema,
            sessions,
            fork: sessions,
            system_prompt: true,
            tools: false,
            cost,
            edits,
            progress: true,
        }
    }

    fn is_priced(&self, model: Option<&str>) -> bool {
        self.settings.cost || self.settings.prices.knows(model.or(self.settings.model.as_deref()))
    }

    fn map_model_name(&self, name: &str) -> Option<String> {
        // What the short names mean to it, nobody knows.
        (!matches!(name, "opus" | "sonnet" | "haiku")).then(|| name.to_owned())
    }

    fn takes_effort(&self) -> bool {
        true
    }

    fn tool_transports(&self) -> &'static [&'static str] {
        &["stdio", "http", "sse"]
    }

    fn inspect(&self) -> Inspection {
        let at = locate_program(self.program()).map(|path| path.display().to_string());
        let missing = || Problem {
            what: format!("the program `{}` of the agent `{}` was not found", self.program(), self.name),
            hint: format!(
                "set `exec` in `[agents.{}]` of cuegate.toml to a program in PATH, or a path",
                self.name
            ),
            class: FaultClass::MissingProgram,
        };
        let problems = if at.is_none() { vec![missing()] } else { Vec::new() };
        Inspection { at, model: self.settings.model.clone(), problems, ..Inspection::default() }
    }

    fn loads(&self) -> String {
        "its own".to_owned()
    }

    fn needs(&self) -> SandboxNeeds {
        let home = env::home_dir().unwrap_or_default();
        let expand = |path: &std::path::PathBuf| match path.strip_prefix("~") {
            Ok(rest) => home.join(rest),
            Err(_) => path.clone(),
        };
        SandboxNeeds {
            services: self.settings.hosts.clone(),
            state: self.settings.state.iter().map(expand).collect(),
            variables: self.settings.variables.clone(),
            programs: list_named_files(&self.settings.exec),
            ..SandboxNeeds::default()
        }
    }

    fn restore(&self, _receipts: &[String]) {}

    fn prepare(&self, request: &Request) -> Result<PreparedAsk, Fault> {
        let model = request.model.as_deref().or(self.settings.model.as_deref());
        let mut stdin =
            serde_json::to_vec(&AskLine::of(request, model)).expect("a request has string keys only");
        stdin.push(b'\n');
        let launch = Launch {
            program: locate_or_missing(self.program()),
            args: self.settings.exec.iter().skip(1).map(Into::into).collect(),
            env: self.settings.env.iter().map(|(name, value)| (name.into(), value.into())).collect(),
            stdin,
            files: Vec::new(),
        };
        let prices = self.settings.prices.clone();
        let reader = ExecReader::new((&self.name, model), &request.prompt, prices, self.settings.edits);
        Ok(PreparedAsk::Process { launch, reader: Box::new(reader) })
    }
}
