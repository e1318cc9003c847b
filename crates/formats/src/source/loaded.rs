//! What loading takes and gives.

use std::collections::BTreeSet;

use cuegate_flow::{
    Str,
    diagnostics::sort,
    diagnostics::{Diagnostic, Severity, Sources},
    model::Draft,
};

/// What to load.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Options {
    /// The folder that holds `agent.json`, relative to the project root.
    pub agent_dir: String,
    /// The registry file, relative to the project root, when one was named instead of a folder. `agent_dir` is its
    /// folder then, and an `agent.json` there is used but not required.
    pub registry: Option<String>,
    /// Names that `--set` gives: they count as declared.
    pub set: Vec<String>,
}

/// What was loaded.
#[derive(Debug)]
pub struct Loaded {
    /// The definition in the one representation. Without steps when nothing could be read, which findings say:
    /// checking such a draft as a flow says nothing new.
    pub draft: Draft,
    /// Everything that was found, sorted by place.
    pub diagnostics: Vec<Diagnostic>,
    /// The files it was read from, for showing findings.
    pub sources: Sources,
    /// What the runner needs besides the flow.
    pub run: RunSettings,
}

impl Loaded {
    /// Sorts the findings by place, reports what an alias makes appear twice once, and marks the draft's steps that have
    /// errors, so that checks of the flow skip what follows from them.
    pub(crate) fn sorted(mut self) -> Loaded {
        sort(&mut self.diagnostics, &self.sources);
        self.diagnostics.dedup_by(|a, b| a.code == b.code && a.span == b.span && a.message == b.message);
        let errors = self.diagnostics.iter().filter(|finding| finding.severity == Severity::Error);
        self.draft.faulted = errors.clone().count() > 0;
        let misread: BTreeSet<Str> = errors.filter_map(|finding| finding.step.clone()).collect();
        self.draft.misread = misread.into_iter().collect();
        self
    }

    /// Whether something was found with which it cannot run.
    pub fn has_errors(&self) -> bool {
        self.diagnostics.iter().any(|finding| finding.severity == Severity::Error)
    }
}

/// What a runner needs to know besides the flow.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RunSettings {
    /// The agent's name.
    pub agent: String,
    /// What people call it.
    pub title: String,
    /// What it is for.
    pub description: String,
    /// Whether it works in a worktree of its own.
    pub worktree: WorktreeRule,
    /// Where a run is logged, besides its journal; `None` = nowhere.
    pub log: Option<LogRule>,
    /// Whether a run from the entry can come to a prompt that needs the task text: without any it must not start.
    pub needs_task: bool,
    /// What a run will not do though the definition asks for it, one sentence each: the `unsupported-yet` findings
    /// of severity warning.
    pub unsupported: Vec<String>,
}

/// Where and how a run is logged.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogRule {
    /// The folder of log files, relative to the project root.
    pub directory: String,
    /// What they hold.
    pub format: LogFormat,
    /// How many are kept at most, at least 1; `None` = all.
    pub files_max: Option<u32>,
}

/// What a log file holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogFormat {
    /// A JSON object of `cuegate/event/v1` a line.
    Jsonl,
    /// The lines that people see.
    Text,
}

/// Whether a run works in a git worktree of its own.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct WorktreeRule {
    /// Whether it does.
    pub enabled: bool,
    /// Where worktrees are put, as written; it may lie outside the project.
    pub root: Option<String>,
}
