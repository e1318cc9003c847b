//! Loads and checks definitions.

mod edits;
mod files;
mod locate;
mod names;
mod takt;
mod variants;

pub(crate) use edits::{StepEdit, describe_step_edits, list_step_edits};
pub use files::{DiskFiles, FileState, KeptFiles, RecordedFiles, WatchedFiles};
pub use locate::{Location, find_definition, has_several};
pub use names::{NamedDefinition, Origin, named_definitions, names_in_home};
pub use takt::{find_builtins, list_installed, list_packages};
pub use variants::{combine_variants, each_way, look_each_way};

use std::{collections::BTreeMap, sync::Arc};

use cuegate_engine::RecordedLoadOptions;
use cuegate_flow::{
    diagnostics::{Diagnostic, Severity, Sources, sort_diagnostics},
    model::{Flow, Param},
};
use cuegate_formats::{Files, LoadOptions, Phases, RunSettings, format_of};

/// A loaded and checked definition.
#[derive(Debug)]
pub struct CompiledDefinition {
    /// The flow, if the definition has no errors.
    pub flow: Option<Arc<Flow>>,
    /// The incomplete flow of a definition with errors, only for display.
    pub unsound: Option<Flow>,
    /// The parameters that could be read, also of a definition with errors.
    pub params: Vec<Param>,
    /// All findings, sorted by position.
    pub diagnostics: Vec<Diagnostic>,
    /// The files that findings point into.
    pub sources: Sources,
    /// Settings for the runner besides the flow.
    pub settings: RunSettings,
    /// Every file that was read, by path; empty after [`inspect_definition`].
    pub files: BTreeMap<String, Vec<u8>>,
}

impl CompiledDefinition {
    /// Whether a finding is an error.
    pub fn has_errors(&self) -> bool {
        self.diagnostics.iter().any(|finding| finding.severity == Severity::Error)
    }
}

/// Loads and checks the definition in folder `base`. `set` names values given with `--set`; `how` are the load options
/// of the run.
///
/// `check`, `run` and `resume` use this one compiler, so they accept the same definitions.
pub fn compile_definition(
    files: &dyn Files,
    base: &str,
    file: Option<&str>,
    set: &[String],
    how: &RecordedLoadOptions,
) -> CompiledDefinition {
    let recorded = RecordedFiles::new(files);
    let definition = inspect_definition(&recorded, base, file, set, how);
    CompiledDefinition { files: recorded.into_files(), ..definition }
}

/// As [`compile_definition`], but for inspection only: the files are not recorded.
pub fn inspect_definition(
    files: &dyn Files,
    base: &str,
    file: Option<&str>,
    set: &[String],
    how: &RecordedLoadOptions,
) -> CompiledDefinition {
    let options = LoadOptions {
        base: base.to_owned(),
        file: file.map(str::to_owned),
        set: set.to_vec(),
        phases: if how.separate { Phases::Separate } else { Phases::Fused },
        interactive: how.interactive,
        width: how.width,
        gate_retries: how.gate_retries,
        iterations_max: how.iterations_max,
    };
    let loaded = format_of(file).load(files, &options);
    let mut diagnostics = loaded.diagnostics;
    let unreadable = diagnostics.iter().any(|finding| finding.severity == Severity::Error);
    let empty = loaded.draft.steps.is_empty();
    let params = loaded.draft.params.clone();
    let (mut flow, mut unsound) = (None, None);
    // For a draft without steps the format's own errors give the reason; checking it would repeat them.
    if !(unreadable && empty) {
        let checked = cuegate_flow::checks::check_draft(loaded.draft);
        diagnostics.extend(checked.diagnostics);
        match checked.flow {
            Some(sound) if !unreadable => flow = Some(Arc::new(sound)),
            read => unsound = read.or(checked.unsound),
        }
    }
    sort_diagnostics(&mut diagnostics, &loaded.sources);
    CompiledDefinition {
        flow,
        unsound,
        params,
        diagnostics,
        sources: loaded.sources,
        settings: loaded.run,
        files: BTreeMap::new(),
    }
}
