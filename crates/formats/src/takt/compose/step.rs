//! What composition gives to the reader.

use std::collections::BTreeMap;
use std::sync::Arc;

use cuegate_flow::{Str, diagnostics::Span, model::Source};

use super::tree::{build_text, get_mut};
use super::{Layers, Pools};
use crate::values::json::Json;

/// A workflow with everything that it uses.
pub(in crate::takt) struct ComposedWorkflow {
    /// The workflow itself and each called one; the first is the workflow itself.
    pub(in crate::takt) scopes: Vec<WorkflowScope>,
    /// The steps of all of them.
    pub(in crate::takt) steps: Vec<ComposedStep>,
    pub(in crate::takt) monitors: Vec<ComposedMonitor>,
    /// The name of the first step; `None` if the workflow has no steps, or names an undefined one.
    pub(in crate::takt) first: Option<String>,
}

/// The context in which the names in a step are resolved.
#[derive(Debug, Clone)]
pub(in crate::takt) struct WorkflowScope {
    /// The workflow that holds the step.
    pub(in crate::takt) root: Arc<Json>,
    pub(in crate::takt) folder: String,
    /// Where bare names are searched.
    pub(in crate::takt) layers: Layers,
    /// What names of its reports begin with, then those of its callers; the last is empty.
    pub(in crate::takt) prefixes: Vec<String>,
    /// The values of `{var:…}`.
    pub(in crate::takt) vars: BTreeMap<String, String>,
    /// The files with rules for every step.
    pub(in crate::takt) rules: Vec<(String, Span)>,
    pub(in crate::takt) pools: Pools,
}

/// A step, or a member of a parallel step.
#[derive(Debug, Clone)]
pub(in crate::takt) struct ComposedStep {
    /// Its keys as written, with fragments and parameters filled in, its full name, and full names as targets. The members
    /// under `parallel` are as in the file.
    pub(in crate::takt) source: Json,
    /// The index of the scope of its names.
    pub(in crate::takt) scope: usize,
    /// The members of a parallel step.
    pub(in crate::takt) members: Vec<ComposedStep>,
    /// The selections among its members.
    pub(in crate::takt) selections: Vec<ComposedSelection>,
    /// For a member that can be selected: the value that is set if it is.
    pub(in crate::takt) when: Option<Source>,
}

/// A selection among members.
#[derive(Debug, Clone)]
pub(in crate::takt) struct ComposedSelection {
    /// The name of the step that selects.
    pub(in crate::takt) name: String,
    /// Its settings, as written.
    pub(in crate::takt) settings: Json,
    /// The index of the scope of its names.
    pub(in crate::takt) scope: usize,
    pub(in crate::takt) candidates: Vec<SelectionCandidate>,
    /// Whether nothing at all may be selected.
    pub(in crate::takt) may_be_empty: bool,
}

/// Something that can be selected.
#[derive(Debug, Clone)]
pub(in crate::takt) struct SelectionCandidate {
    pub(in crate::takt) id: Str,
    pub(in crate::takt) description: Option<Str>,
}

impl SelectionCandidate {
    /// Reads a candidate. `None` if its id is no scalar.
    pub(in crate::takt) fn new(id: &Json, description: Option<&Json>) -> Option<Self> {
        let description = description.and_then(Json::as_text).map(|text| text.trim().into());
        Some(SelectionCandidate { id: id.scalar_text()?.trim().into(), description })
    }

    /// The value that is set if the step `selector` selects this candidate.
    pub(in crate::takt) fn source(&self, selector: &str) -> Source {
        Source::Handoff { step: selector.into(), key: self.id.clone() }
    }
}

/// A monitor of a cycle of steps.
#[derive(Debug, Clone)]
pub(in crate::takt) struct ComposedMonitor {
    /// Its keys as written, with parameters filled in and full names.
    pub(in crate::takt) source: Json,
    /// The index of the scope of its names.
    pub(in crate::takt) scope: usize,
    /// The steps of each called workflow that it names.
    pub(in crate::takt) stages: BTreeMap<String, Vec<String>>,
}

impl ComposedStep {
    pub(super) fn new(source: Json, scope: usize) -> Self {
        ComposedStep { source, scope, members: Vec::new(), selections: Vec::new(), when: None }
    }

    /// Puts the prefix of its workflow before its name.
    pub(super) fn add_name_prefix(&mut self, prefix: &str) {
        if let Some(name) = get_mut(&mut self.source, "name")
            && let Some(written) = name.as_text()
        {
            *name = build_text(format!("{prefix}{}", written.trim()), name.span);
        }
    }
}
