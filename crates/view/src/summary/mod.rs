//! The state and history of a run: one fold, which every other view uses.

mod action_blocks;
mod answer_modes;
mod ask_results;
mod asks;
mod fold;
mod json;
mod open_rows;
mod pending_command;
mod present;
mod standing;
mod view;

pub(crate) use json::{json_of_agent_plan, json_of_cost, json_of_waiting, round_cost};
pub(crate) use open_rows::tokens_of;
pub(crate) use view::waits_for;

pub use action_blocks::{ActionRows, EffectRow, EffectState, InspectionRow, effect_json};
pub use answer_modes::AnswerModes;
pub use asks::AskCounts;
pub use fold::{RunFold, run_view};
pub use json::json_of_agents;
pub use pending_command::PendingCommand;
pub use view::{
    CheckOutcome, FaultRow, ForkSource, GateFile, HandoffRow, LineCount, Liveness, OpenVisit, QuestionRow,
    RunState, RunView, ToolRow, ValidatorRow, VisitRow,
};

#[cfg(test)]
mod tests;
