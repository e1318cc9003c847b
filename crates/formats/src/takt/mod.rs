//! The piece format of TAKT: workflows of movements, written in YAML.

mod answer_schema;
mod completion;
mod condition;
mod expand;
mod facet_text;
mod gate_steps;
mod gates;
mod instruction_template;
mod join;
mod judge;
mod later_spellings;
mod load;
mod lower;
mod monitor_steps;
mod monitors;
mod movement;
mod options;
mod predicate;
mod prompt;
mod prompt_texts;
mod report_names;
mod reports;
mod rules;
mod sections;
mod selection;
mod team;
mod weak_permissions;

pub use load::load_piece;
pub use options::{Phases, PieceOptions};
