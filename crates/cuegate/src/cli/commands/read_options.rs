//! How a definition is read: what its format leaves to whoever runs it.

use cuegate_engine::Load;

use super::Place;
use crate::{
    Failure, config,
    config::Phases,
    definition::{Location, is_piece},
};

/// How the definition at a place is read by a run with nobody there, by flags and configuration.
///
/// # Errors
/// `--phases` of what is no piece; a configuration that cannot be read.
pub(super) fn how(
    place: &Place,
    path: &str,
    location: &Location,
    phases: Option<Phases>,
) -> Result<Load, Failure> {
    // Nothing can be done under a configuration that cannot be read, whatever a definition wants of it.
    let config = config::load(place.home.root())?;
    if !of_piece(location) {
        return match phases {
            None => Ok(Load::default()),
            Some(_) => Err(no_piece(path)),
        };
    }
    Ok(Load {
        separate: phases.or(config.piece.phases) == Some(Phases::Separate),
        interactive: false,
        gate_retries: config.run.quality_gate_retries,
        width: config.run.width,
    })
}

/// Whether a piece lies there.
pub(super) fn of_piece(location: &Location) -> bool {
    location.file.as_deref().is_some_and(is_piece)
}

/// The failure of `--phases` without a piece.
pub(super) fn no_piece(path: &str) -> Failure {
    Failure::usage(format!("`--phases` is about pieces, and `{path}` is none"), "leave it out")
}
