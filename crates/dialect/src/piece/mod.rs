//! Pieces: workflows of movements, written in YAML.

mod condition;
mod gate_steps;
mod gates;
mod join;
mod judge;
mod literal;
mod load;
mod lower;
mod misplaced;
mod monitors;
mod movement;
mod newer;
mod options;
mod prompt;
mod renamed;
mod report_names;
mod reports;
mod rules;
mod schema;
mod sections;
mod template;
mod unread;
mod watch;
mod weak;
mod words;

pub use load::load_piece;
pub use options::{Phases, PieceOptions};
