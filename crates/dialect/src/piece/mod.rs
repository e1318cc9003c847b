//! Pieces: workflows of movements, written in YAML.

mod load;
mod options;

pub use load::load_piece;
pub use options::{Phases, PieceOptions};
