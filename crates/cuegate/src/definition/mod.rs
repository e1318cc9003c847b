//! From a path to a checked flow.

mod files;
mod locate;
mod variants;

pub use files::{DiskFiles, KeptFiles, Recorded, Sight, Watched};
pub use locate::{Location, locate};
pub use variants::{both, each_way, look_each_way};

use std::{collections::BTreeMap, sync::Arc};

use cuegate_engine::Load;
use cuegate_flow::{
    diagnostics::{Diagnostic, Severity, Sources, sort},
    model::{Flow, Param},
};
use cuegate_formats::{Files, Options, Phases, PieceOptions, RunSettings};

/// What was read of a definition, checked.
#[derive(Debug)]
pub struct Definition {
    /// The flow, when it can run.
    pub flow: Option<Arc<Flow>>,
    /// What could be made of it when it cannot: to be looked at, never to be run.
    pub unsound: Option<Flow>,
    /// What it is given at start, as far as that can be read, whether it can run or not.
    pub params: Vec<Param>,
    /// Everything that was found, sorted by place.
    pub diagnostics: Vec<Diagnostic>,
    /// The files that findings point into.
    pub sources: Sources,
    /// What the runner has to know besides the flow.
    pub settings: RunSettings,
    /// Every file that was read, by path; none of what was only [looked at](look).
    pub files: BTreeMap<String, Vec<u8>>,
}

impl Definition {
    /// Whether anything of severity error was found.
    pub fn has_errors(&self) -> bool {
        self.diagnostics.iter().any(|finding| finding.severity == Severity::Error)
    }
}

/// Loads and checks the definition in folder `base` of some files; `set` names values given from outside, `how` says what
/// its format leaves to whoever runs it.
///
/// There is one compiler: what `check` accepts is what `run` runs, and what a resumed run is loaded from again.
pub fn load(files: &dyn Files, base: &str, file: Option<&str>, set: &[String], how: &Load) -> Definition {
    let recorded = Recorded::new(files);
    let definition = look(&recorded, base, file, set, how);
    Definition { files: recorded.into_files(), ..definition }
}

/// The same to look at, not to begin a run with: what was read is not kept.
pub fn look(files: &dyn Files, base: &str, file: Option<&str>, set: &[String], how: &Load) -> Definition {
    let path = file.map(|file| if base.is_empty() { file.to_owned() } else { format!("{base}/{file}") });
    let loaded = match path {
        Some(path) if is_piece(&path) => cuegate_formats::load_piece(files, &piece_options(path, set, how)),
        registry => {
            let options = Options { agent_dir: base.to_owned(), registry, set: set.to_vec() };
            cuegate_formats::load_agent(files, &options)
        }
    };
    let mut diagnostics = loaded.diagnostics;
    let unreadable = diagnostics.iter().any(|finding| finding.severity == Severity::Error);
    let empty = loaded.draft.steps.is_empty();
    let params = loaded.draft.params.clone();
    let (mut flow, mut unsound) = (None, None);
    // A draft without steps has its reason among the dialect's findings; to check it would only repeat that.
    if !(unreadable && empty) {
        let checked = cuegate_flow::checks::check(loaded.draft);
        diagnostics.extend(checked.diagnostics);
        match checked.flow {
            Some(sound) if !unreadable => flow = Some(Arc::new(sound)),
            read => unsound = read.or(checked.unsound),
        }
    }
    sort(&mut diagnostics, &loaded.sources);
    Definition {
        flow,
        unsound,
        params,
        diagnostics,
        sources: loaded.sources,
        settings: loaded.run,
        files: BTreeMap::new(),
    }
}

/// Whether a file is a piece: the other formats are JSON.
pub fn is_piece(file: &str) -> bool {
    let name = file.to_ascii_lowercase();
    [".yaml", ".yml"].iter().any(|ending| name.len() > ending.len() && name.ends_with(ending))
}

fn piece_options(file: String, set: &[String], how: &Load) -> PieceOptions {
    let usual = PieceOptions::default();
    PieceOptions {
        file,
        set: set.to_vec(),
        phases: if how.separate { Phases::Separate } else { Phases::Fused },
        interactive: how.interactive,
        width: how.width.unwrap_or(usual.width),
        quality_gate_retries: how.gate_retries.unwrap_or(usual.quality_gate_retries),
    }
}
