//! The options and the result of loading.

use std::collections::BTreeSet;

use cuegate_flow::{
    Str,
    diagnostics::sort_diagnostics,
    diagnostics::{Diagnostic, Severity, Sources},
    model::Draft,
};

/// What to load.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AgentOptions {
    /// The folder of `agent.json`, relative to the project root.
    pub agent_dir: String,
    /// The registry file, relative to the project root, if the user named one instead of a folder. `agent_dir` is
    /// then its folder, and an `agent.json` there is optional.
    pub registry: Option<String>,
    /// Names set with `--set`; they count as declared.
    pub set: Vec<String>,
}

/// The result of loading.
#[derive(Debug)]
pub struct LoadedDefinition {
    /// The definition as a draft. It has no steps if nothing could be read; findings say why, and a flow check of
    /// such a draft adds nothing.
    pub draft: Draft,
    /// All findings, sorted by place.
    pub diagnostics: Vec<Diagnostic>,
    /// The files that were read, for showing findings.
    pub sources: Sources,
    /// What the runner needs besides the flow.
    pub run: RunSettings,
}

impl LoadedDefinition {
    /// Sorts the findings by place, removes duplicates that come from aliases, and marks the steps with errors, so
    /// that flow checks suppress findings that follow from them.
    pub(crate) fn sorted(mut self) -> LoadedDefinition {
        sort_diagnostics(&mut self.diagnostics, &self.sources);
        self.diagnostics.dedup_by(|a, b| a.code == b.code && a.span == b.span && a.message == b.message);
        let errors = self.diagnostics.iter().filter(|finding| finding.severity == Severity::Error);
        self.draft.flaws.is_faulted = errors.clone().count() > 0;
        let misread: BTreeSet<Str> = errors.filter_map(|finding| finding.step.clone()).collect();
        self.draft.flaws.misread = misread.into_iter().collect();
        self
    }

    /// Whether any finding is an error.
    pub fn has_errors(&self) -> bool {
        self.diagnostics.iter().any(|finding| finding.severity == Severity::Error)
    }
}

/// What a runner needs to know besides the flow.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RunSettings {
    /// The format and its generation, for people: `TAKT workflow`. Empty if the definition cannot be
    /// read at all.
    pub format: String,
    /// The agent's name.
    pub agent: String,
    /// Its display name.
    pub title: String,
    pub description: String,
    /// Whether it runs in a separate worktree.
    pub worktree: WorktreeRule,
    /// Where a run is logged in addition to its journal; `None` = nowhere.
    pub log: Option<LogRule>,
    /// Whether a run from the entry can reach a prompt that needs the task text. Such a run must not start without
    /// it.
    pub needs_task: bool,
    /// Parts of the definition that a run ignores, one sentence each: the `unsupported-yet` warnings.
    pub unsupported: Vec<String>,
}

/// Where and how a run is logged.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogRule {
    /// The folder of log files, relative to the project root.
    pub directory: String,
    /// The format of their lines.
    pub format: LogFormat,
    /// How many files are kept, at least 1; `None` = all.
    pub files_max: Option<u32>,
}

/// The format of a log file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogFormat {
    /// One JSON object of `cuegate/event/v1` per line.
    Jsonl,
    /// Lines of readable text.
    Text,
}

/// Whether a run uses a separate git worktree.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct WorktreeRule {
    /// Whether it does.
    pub enabled: bool,
    /// The folder of the worktrees, as written; it may be outside the project.
    pub root: Option<String>,
    /// What is done with the work of a completed run.
    pub finalize: FinalizeRule,
}

/// What is done with the work of a completed run that has its own worktree.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FinalizeRule {
    /// Whether its branch is merged into the branch from which it started.
    pub merge: bool,
    /// The remote to which the result is pushed.
    pub push: Option<String>,
    /// Whether a pull request proposes it.
    pub pull_request: bool,
    /// The branch that the pull request changes.
    pub into: Option<String>,
}
