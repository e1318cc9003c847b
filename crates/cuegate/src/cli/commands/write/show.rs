//! `show`: a definition as the flow that will run.

use super::check::load_sound_definition;
use crate::cli::commands::diagnostics::{count_errors_and_warnings, plural_ending};
use crate::cli::commands::shared_args::DefinitionArgs;

use crate::cli::commands::ProjectPlace;
use crate::cli::print;
use crate::{Failure, exit};
use clap::Args;

#[derive(Debug, Args)]
pub(crate) struct ShowArgs {
    #[command(flatten)]
    pub(crate) definition: DefinitionArgs,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// Prints a definition as the flow that will run.
pub(in crate::cli::commands) fn show_definition(
    place: &ProjectPlace,
    args: &ShowArgs,
) -> Result<u8, Failure> {
    let (definition, flow) =
        load_sound_definition(place, &args.definition.path, &args.definition.set, args.definition.phases)?;
    if args.json {
        print::print_json(&cuegate_view::show_json(&flow));
    } else {
        print::print_data(&cuegate_view::render_flow(&flow));
        let (_, warnings) = count_errors_and_warnings(&definition.diagnostics, false);
        if warnings > 0 {
            print::print_line(&format!(
                "{warnings} warning{}: see `cuegate check {}`",
                plural_ending(warnings),
                args.definition.path
            ));
        }
    }
    Ok(exit::DONE)
}
