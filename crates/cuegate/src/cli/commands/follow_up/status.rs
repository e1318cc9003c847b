//! `status`: what a run did so far.

use crate::batch::shown::is_reviewed;
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
    let (journal, id) = place.view_run(&args.run.id)?;
    let FoldedRun { mut view, history, .. } = FoldedRun::read(&*journal, &id)?;
    compare_files(&place.home, &*journal, &id, &mut view, &history);
    if args.json {
        let mut object = view.to_json(&texts_of_run(&*journal, &id));
        object["reviewed"] = is_reviewed(&place.home, &id).into();
        print::print_json(&object);
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
