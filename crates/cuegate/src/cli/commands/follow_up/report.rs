//! `report`: what a run did, proved and spent.

use crate::cli::commands::shared_args::RunOrFile;
use cuegate_provider::redact_secret_forms;
use cuegate_view::{RunView, TimeZone};

use crate::cli::commands::{ProjectPlace, texts_of_run};
use crate::cli::print;
use crate::project::FoldedRun;
use crate::run_changes::compare_files;
use crate::{Failure, exit};
use clap::Args;

#[derive(Debug, Args)]
pub(crate) struct ReportArgs {
    #[command(flatten)]
    pub(crate) run: RunOrFile,
    /// Print the newest version of this report, verbatim
    #[arg(conflicts_with = "json")]
    pub(crate) name: Option<String>,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

pub(in crate::cli::commands) fn print_run_report(
    place: &ProjectPlace,
    args: &ReportArgs,
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
    if let Some(name) = &args.name {
        print::print_exact(&read_newest_report(&view, name, &texts_of_run(&*journal, &id))?);
    } else if args.json {
        print::print_json(&view.to_json(&texts_of_run(&*journal, &id)));
    } else {
        let report = cuegate_view::render_report(&view, &texts_of_run(&*journal, &id), &TimeZone::system());
        print::print_data(&redact_secret_forms(&report));
    }
    Ok(exit::DONE)
}

/// The newest version of a report.
fn read_newest_report(
    view: &RunView,
    name: &str,
    texts: &dyn Fn(&cuegate_flow::model::BlobRef) -> Option<String>,
) -> Result<String, Failure> {
    let files = view.reports.files();
    // A report of a called workflow is in a folder: its own name is enough where no other has it.
    let mut like: Vec<&str> = files.iter().map(|file| &**file.name).collect();
    like.retain(|known| known.rsplit('/').next() == Some(name));
    like.dedup();
    let name = match like.as_slice() {
        [only] if view.reports.versions(name).last().is_none() => only,
        _ => name,
    };
    let Some(version) = view.reports.versions(name).last() else {
        let mut names: Vec<String> = files.iter().map(|file| format!("`{}`", file.name)).collect();
        names.dedup();
        let hint = match names.is_empty() {
            true => "the run has written no reports".to_owned(),
            false => format!("its reports are {}", names.join(", ")),
        };
        return Err(Failure::usage(format!("run {} has no report `{name}`", view.run), hint));
    };
    texts(&version.content)
        .ok_or_else(|| Failure::environment(format!("the journal lacks the text of the report `{name}`")))
}
