//! A recorded agent as files, loaded and checked as by `check` and `run`.

use std::collections::BTreeMap;

use cuegate_flow::{
    checks::check_draft,
    diagnostics::{Diagnostic, Severity},
    model::Flow,
};
use cuegate_formats::{AgentOptions, load_agent};
use serde_json::Value;

/// The folder of a case's agent.
const AGENT_DIR: &str = ".agent/case";

/// The files of a project with one agent.
pub(super) struct Project {
    files: BTreeMap<String, Vec<u8>>,
    set: Vec<String>,
}

/// The result of loading and checking.
pub(super) struct Checked {
    /// The flow, if there is no error.
    pub(super) flow: Option<Flow>,
    /// All findings.
    pub(super) found: Vec<Found>,
    /// Whether a run uses its own worktree.
    pub(super) worktree: bool,
}

/// A finding.
pub(super) struct Found {
    /// The file it is in, relative to the agent's folder.
    pub(super) file: String,
    /// The finding itself.
    pub(super) finding: Diagnostic,
}

impl Project {
    /// A project with only this agent.
    pub(super) fn of(agent: &Value) -> Project {
        let mut project = Project { files: BTreeMap::new(), set: Vec::new() };
        project.put("agent.json", agent.to_string());
        project
    }

    /// Writes a file of the agent, unless it exists.
    pub(super) fn put(&mut self, path: &str, text: impl Into<Vec<u8>>) {
        self.files.entry(format!("{AGENT_DIR}/{path}")).or_insert(text.into());
    }

    /// Declares variables as with `--set`.
    pub(super) fn give<'n>(&mut self, names: impl IntoIterator<Item = &'n String>) {
        self.set.extend(names.into_iter().cloned());
    }

    /// Loads and checks the agent.
    pub(super) fn check(&self) -> Checked {
        let options = AgentOptions {
            agent_dir: AGENT_DIR.to_owned(),
            set: self.set.clone(),
            ..AgentOptions::default()
        };
        let loaded = load_agent(&self.files, &options);
        let mut findings = loaded.diagnostics;
        let mut flow = None;
        if !loaded.draft.steps.is_empty() {
            let checked = check_draft(loaded.draft);
            findings.extend(checked.diagnostics);
            flow = checked.flow;
        }
        let faulty = findings.iter().any(|finding| finding.severity == Severity::Error);
        let found = findings.into_iter().map(|finding| {
            let path = loaded.sources.get(finding.span.file).map_or("", |file| &*file.path);
            let file = path.strip_prefix(AGENT_DIR).unwrap_or(path).trim_start_matches('/').to_owned();
            Found { file, finding }
        });
        Checked {
            found: found.collect(),
            flow: flow.filter(|_| !faulty),
            worktree: loaded.run.worktree.enabled,
        }
    }
}

impl Checked {
    /// All errors in one line.
    pub(super) fn errors(&self) -> String {
        let errors = self.found.iter().filter(|found| found.finding.severity == Severity::Error);
        errors.map(|found| found.finding.message.as_str()).collect::<Vec<_>>().join("; ")
    }
}

/// The registry path in an agent.
pub(super) fn registry_path(agent: &Value) -> &str {
    agent["runner"]["flow"]["prompts"]["registry"].as_str().unwrap_or("steps_registry.json")
}

/// The system prompt path in an agent.
pub(super) fn system_path(agent: &Value) -> &str {
    agent["runner"]["flow"]["systemPromptPath"].as_str().unwrap_or("prompts/system.md")
}
