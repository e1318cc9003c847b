//! The formats that can be read: the only place where the command line learns of them.

use crate::{
    climpt, other_formats,
    source::{
        files::Files,
        loaded::{AgentOptions, LoadedDefinition},
    },
    takt::{self, Phases, TaktOptions},
};

/// How to load a definition, whatever its format. An option that a format does not have is ignored by it.
#[derive(Debug, Clone, Default)]
pub struct LoadOptions {
    /// The folder of the definition, relative to the project root.
    pub base: String,
    /// The file that was named in it, if any.
    pub file: Option<String>,
    /// Names of values given with `--set`: they count as declared.
    pub set: Vec<String>,
    /// The asks of a step; TAKT only.
    pub phases: Phases,
    /// Whether a person can answer; TAKT only: rules for persons exist only then.
    pub interactive: bool,
    /// How many members of a parallel step work at the same time, at least 1; `None` = the format's default.
    pub width: Option<u16>,
    /// How often a step fixes what a quality gate command found; `None` = the format's default.
    pub gate_retries: Option<u32>,
    /// The iteration limit of a definition that says that it has none; TAKT only.
    pub iterations_max: Option<u32>,
}

impl LoadOptions {
    /// The named file relative to the project root.
    fn path(&self) -> Option<String> {
        let file = self.file.as_deref()?;
        Some(if self.base.is_empty() { file.to_owned() } else { format!("{}/{file}", self.base) })
    }
}

/// A format of definitions.
pub trait Format: Sync {
    /// Its name in messages.
    fn name(&self) -> &'static str;
    /// Whether a definition with this file is of the format; `None` = a folder was named.
    fn detect(&self, file: Option<&str>) -> bool;
    /// Loads a definition. Never fails: what is wrong is a finding.
    fn load(&self, files: &dyn Files, options: &LoadOptions) -> LoadedDefinition;
    /// Whether the options `phases` and `interactive` change the flow that is loaded.
    fn variants(&self) -> bool;
}

/// Every format. The last one takes what no other detects.
pub const FORMATS: [&dyn Format; 3] = [&Takt, &Dot, &Climpt];

/// The format of a definition with this file.
pub fn format_of(file: Option<&str>) -> &'static dyn Format {
    FORMATS.into_iter().find(|format| format.detect(file)).unwrap_or(&Climpt)
}

/// TAKT pieces: YAML files.
struct Takt;

impl Format for Takt {
    fn name(&self) -> &'static str {
        "TAKT workflow"
    }

    fn detect(&self, file: Option<&str>) -> bool {
        let Some(name) = file.map(str::to_ascii_lowercase) else { return false };
        [".yaml", ".yml"].iter().any(|ending| name.len() > ending.len() && name.ends_with(ending))
    }

    fn load(&self, files: &dyn Files, options: &LoadOptions) -> LoadedDefinition {
        let usual = TaktOptions::default();
        let options = TaktOptions {
            file: options.path().unwrap_or_default(),
            set: options.set.clone(),
            phases: options.phases,
            interactive: options.interactive,
            width: options.width.unwrap_or(usual.width),
            quality_gate_retries: options.gate_retries.unwrap_or(usual.quality_gate_retries),
            iterations_max: options.iterations_max,
        };
        takt::load_takt_workflow(files, &options)
    }

    fn variants(&self) -> bool {
        true
    }
}

/// Graphs in the DOT language, which other programs run. They are recognised, not read.
struct Dot;

impl Format for Dot {
    fn name(&self) -> &'static str {
        "DOT graph"
    }

    fn detect(&self, file: Option<&str>) -> bool {
        file.is_some_and(other_formats::is_dot)
    }

    fn load(&self, files: &dyn Files, options: &LoadOptions) -> LoadedDefinition {
        other_formats::load_dot(files, &options.path().unwrap_or_default())
    }

    fn variants(&self) -> bool {
        false
    }
}

/// Climpt agents and step registries: folders and JSON files.
struct Climpt;

impl Format for Climpt {
    fn name(&self) -> &'static str {
        "step registry"
    }

    fn detect(&self, _: Option<&str>) -> bool {
        true
    }

    fn load(&self, files: &dyn Files, options: &LoadOptions) -> LoadedDefinition {
        let (agent_dir, registry, set) = (options.base.clone(), options.path(), options.set.clone());
        climpt::load_agent(files, &AgentOptions { agent_dir, registry, set })
    }

    fn variants(&self) -> bool {
        false
    }
}

#[cfg(test)]
mod tests {
    use super::format_of;

    #[test]
    fn yaml_files_are_pieces_and_all_else_are_registries() {
        let name = |file| format_of(file).name();
        assert_eq!([name(Some("a.yaml")), name(Some("A.YML"))], ["TAKT workflow"; 2]);
        assert_eq!([name(None), name(Some(".yaml")), name(Some("steps.json"))], ["step registry"; 3]);
    }
}
