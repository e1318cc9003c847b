//! Load options of a definition, from flags and the configuration.

use cuegate_engine::RecordedLoadOptions;

use crate::cli::commands::ProjectPlace;
use cuegate_formats::format_of;

use crate::{Failure, config, config::PhasesChoice, definition::Location};

/// The load options for a non-interactive run.
///
/// # Errors
/// When `--phases` is given for a definition that is not a TAKT workflow, or the configuration cannot be read.
pub(in crate::cli::commands) fn read_load_options(
    place: &ProjectPlace,
    path: &str,
    location: &Location,
    phases: Option<PhasesChoice>,
) -> Result<RecordedLoadOptions, Failure> {
    // A broken configuration is an error for every format, even one that reads none of its keys.
    let config = config::load_config(place.home.root())?;
    if !is_takt_workflow(location) {
        return match phases {
            None => Ok(RecordedLoadOptions::default()),
            Some(_) => Err(refuse_phases(path)),
        };
    }
    Ok(RecordedLoadOptions {
        separate: phases.or(config.takt.phases) == Some(PhasesChoice::Separate),
        interactive: false,
        gate_retries: config.run.quality_gate_retries,
        width: config.run.width,
        iterations_max: config.run.max_iterations,
    })
}

/// Whether the location is a TAKT workflow.
pub(in crate::cli::commands) fn is_takt_workflow(location: &Location) -> bool {
    format_of(location.file.as_deref()).variants()
}

/// The failure for `--phases` with another definition.
pub(in crate::cli::commands) fn refuse_phases(path: &str) -> Failure {
    Failure::usage(format!("`--phases` is for TAKT workflows; `{path}` is not one"), "leave it out")
}
