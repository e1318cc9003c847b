//! The workflow format of TAKT, written in YAML: workflows of steps, and the older pieces of movements.

mod answer_schema;
mod check;
mod compose;
mod load;
mod lower;
mod notes;
mod options;
mod read;
mod routing;
mod spellings;
mod texts;
mod upgrade;

pub use compose::read_takt_language;
pub use load::load_takt_workflow;
pub use options::{Phases, TaktOptions};
pub use upgrade::{UpgradedWorkflow, upgrade_takt_workflow};
