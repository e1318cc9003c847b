//! `why`: why a run is where it is.

use cuegate_runner::now_ms;
use cuegate_view::{TimeZone, render_why, why_json};

use crate::cli::commands::shared_args::RunOrFile;
use crate::cli::commands::{ProjectPlace, texts_of_run, view_of};
use crate::cli::print;
use crate::{Failure, exit};
use clap::Args;

#[derive(Debug, Args)]
pub(crate) struct WhyArgs {
    #[command(flatten)]
    pub(crate) run: RunOrFile,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

pub(in crate::cli::commands) fn explain_state_of_run(
    place: &ProjectPlace,
    args: &WhyArgs,
) -> Result<u8, Failure> {
    let (journal, id) = place.view_run(&args.run.id)?;
    let view = view_of(&*journal, &id)?;
    let (texts, zone) = (texts_of_run(&*journal, &id), TimeZone::system());
    if args.json {
        print::print_json(&why_json(&view, &texts, now_ms(), &zone));
    } else {
        print::print_data(&render_why(&view, &texts, now_ms(), &zone));
    }
    Ok(exit::DONE)
}
