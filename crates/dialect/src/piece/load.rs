//! Loads a piece and every file that it names.

use cuegate_flow::{Diagnostic, Draft, sort};

use super::options::PieceOptions;
use crate::Files;
use crate::codes;
use crate::desk::Desk;
use crate::loaded::{Loaded, RunSettings};

/// The name of the format in results.
const DIALECT: &str = "piece";

/// Loads a piece.
///
/// Reads only through `files`, and the same files give the same result. Never fails: what is wrong stands in the
/// findings, and the draft holds what could be read.
pub fn load_piece(files: &dyn Files, options: &PieceOptions) -> Loaded {
    let desk = Desk::new(files);
    let message = format!("`{}` is a piece, which is not supported yet", options.file);
    desk.found.push(Diagnostic::error(codes::UNSUPPORTED_YET, desk.start_of(&options.file), message));
    let (found, sources) = desk.into_parts();
    let (mut diagnostics, _) = found.into_parts();
    sort(&mut diagnostics, &sources);
    Loaded { draft: Draft::empty("piece", DIALECT), diagnostics, sources, run: RunSettings::default() }
}
