//! What a piece is loaded with.

/// What to load, and how it will be run: both decide which asks there are.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PieceOptions {
    /// The piece, relative to the folder that files are read below.
    pub file: String,
    /// Names that `--set` gives: they count as declared.
    pub set: Vec<String>,
    /// How many asks a movement takes.
    pub phases: Phases,
    /// Whether somebody is there to answer: rules that are for them only exist then.
    pub interactive: bool,
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
