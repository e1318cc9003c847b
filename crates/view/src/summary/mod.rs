//! The state and history of a run: one fold, which every other view uses.

mod action_blocks;
mod answer_modes;
mod asks;
mod fold;
mod json;
mod open_rows;
mod view;

pub(crate) use json::{cost, waiting};
pub(crate) use open_rows::tokens_of;
pub(crate) use view::waits_for;

pub use action_blocks::{Acts, EffectRow, EffectState, InspectionRow, effect_json};
pub use answer_modes::Ways;
pub use asks::Asks;
pub use fold::{RunFold, run_view};
pub use view::{
    Check, FaultRow, GateFile, HandedRow, LineCount, Liveness, Open, Pending, QuestionRow, Row, RunState,
    RunView, ToolRow, ValidatorRow,
};

#[cfg(test)]
mod tests;
