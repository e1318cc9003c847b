//! The piece format of TAKT: workflows of movements, written in YAML.

mod answer_schema;
mod completion;
mod expand;
mod gate_steps;
mod gates;
mod judge;
mod later_spellings;
mod load;
mod lower;
mod monitor_steps;
mod monitors;
mod movement;
mod options;
mod report_names;
mod reports;
mod routing;
mod selection;
mod team;
mod texts;
mod weak_permissions;

pub use load::load_piece;
pub use options::{Phases, PieceOptions};
