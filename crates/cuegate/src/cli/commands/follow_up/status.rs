//! `status`: what a run did so far.

use crate::cli::commands::shared_args::RunOrFile;
use cuegate_runner::now_ms;
use cuegate_view::TimeZone;

use crate::cli::commands::{ProjectPlace, texts_of_run};
use crate::cli::print;
use crate::project::FoldedRun;
use crate::run_changes::compare_files;
use crate::{Failure, exit};
use clap::Args;

#[derive(Debug, Args)]
pub(crate) struct StatusArgs {
    #[command(flatten)]
    pub(crate) run: RunOrFile,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

pub(in crate::cli::commands) fn print_run_status(
    place: &ProjectPlace,
    args: &StatusArgs,
) -> Result<u8, Failure> {
    // With its snapshots, a file tells the sizes of changes as the project does.
    let opened = place.open_run_file(&args.run.id)?;
    let (place, typed) = match &opened {
        Some((within, project)) => (within, project.id.as_str()),
        None => (place, args.run.id.as_str()),
    };
    let (journal, id) = place.view_run(typed)?;
    let FoldedRun { mut view, history, .. } = FoldedRun::read(&*journal, &id)?;
    compare_files(&place.home, &*journal, &id, &mut view, &history);
    if args.json {
        print::print_json(&view.to_json(&texts_of_run(&*journal, &id)));
    } else {
        print::print_data(&cuegate_view::render_status(
            &view,
            &texts_of_run(&*journal, &id),
            now_ms(),
            &TimeZone::system(),
        ));
    }
    Ok(exit::DONE)
}
