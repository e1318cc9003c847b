//! Options for loading a workflow.

/// Which workflow to load, and how it will run. Both determine which asks the flow contains.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TaktOptions {
    /// The workflow, relative to the root folder of the project's files.
    pub file: String,
    /// Names set with `--set`; they count as declared.
    pub set: Vec<String>,
    /// How many asks a step takes.
    pub phases: Phases,
    /// Whether a person can answer. Rules for persons exist only then.
    pub interactive: bool,
    /// How many members of a parallel step run at the same time; at least 1.
    pub width: u16,
    /// How often a step may fix what a quality gate command reported; 0 disables retries.
    pub quality_gate_retries: u32,
    /// The most visits of steps, for a workflow with `max_steps: infinite`.
    pub iterations_max: Option<u32>,
}

/// The default width. Agents need much memory, and providers limit concurrent requests.
const WIDTH: u16 = 4;
/// The default number of retries, equal to that of a validator.
const QUALITY_GATE_RETRIES: u32 = 2;

impl Default for TaktOptions {
    fn default() -> TaktOptions {
        TaktOptions {
            file: String::new(),
            set: Vec::new(),
            phases: Phases::default(),
            interactive: false,
            width: WIDTH,
            quality_gate_retries: QUALITY_GATE_RETRIES,
            iterations_max: None,
        }
    }
}

/// How many asks a step takes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Phases {
    /// One ask: the structured answer holds the text, the reports and the outcome.
    #[default]
    Fused,
    /// Separate asks for the work, each report, and the outcome.
    Separate,
}
