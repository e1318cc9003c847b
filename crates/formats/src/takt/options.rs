//! What a piece is loaded with.

/// What to load, and how it will be run: both decide which asks there are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PieceOptions {
    /// The piece, relative to the folder that files are read below.
    pub file: String,
    /// Names that `--set` gives: they count as declared.
    pub set: Vec<String>,
    /// How many asks a movement takes.
    pub phases: Phases,
    /// Whether somebody is there to answer: rules that are for them only exist then.
    pub interactive: bool,
    /// How many members of a parallel movement are at work at the same time, at least 1.
    pub width: u16,
    /// How often a movement mends what a command of its quality gates found; 0 = not at all.
    pub quality_gate_retries: u32,
}

/// Members at work at the same time: agents are heavy, and services limit how many ask at once.
const WIDTH: u16 = 4;
/// As often as a validator's failure is mended by a visit, unless somebody says otherwise.
const QUALITY_GATE_RETRIES: u32 = 2;

impl Default for PieceOptions {
    fn default() -> PieceOptions {
        PieceOptions {
            file: String::new(),
            set: Vec::new(),
            phases: Phases::default(),
            interactive: false,
            width: WIDTH,
            quality_gate_retries: QUALITY_GATE_RETRIES,
        }
    }
}

/// How many asks a movement takes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Phases {
    /// One: its structured answer speaks, reports and names its outcome.
    #[default]
    Fused,
    /// One for the work, one for each report, one for the outcome.
    Separate,
}
