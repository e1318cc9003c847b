//! `attach`: follows a run that another process drives.

use super::followed_run::{ActivityTail, follow_records};
use crate::cli::commands::shared_args::RunRef;

use cuegate_view::{TimeZone, Timeline};

use crate::cli::commands::take::diff;
use crate::cli::commands::{ProjectPlace, texts_of_journal, view_of};
use crate::cli::live::status_text;
use crate::cli::print;
use crate::cli::status_line::StatusLine;
use crate::run_changes::compare_files;
use crate::{Failure, exit, project};
use clap::Args;

#[derive(Debug, Args)]
pub(crate) struct AttachArgs {
    #[command(flatten)]
    pub(crate) run: RunRef,
}

/// How many of the earlier lines `attach` prints.
const BEFORE: usize = 10;

pub(in crate::cli::commands) fn attach_to_run(
    place: &ProjectPlace,
    args: &AttachArgs,
) -> Result<u8, Failure> {
    let journal = place.view()?;
    let id = project::find_run_id(&*journal, &args.run.id)?;
    let mut timeline =
        Timeline::new(TimeZone::system()).with_width(print::is_terminal().then(print::stderr_width));
    let (mut first, mut tail) = (true, ActivityTail::default());
    follow_records(&*journal, &id, true, StatusLine::new(print::has_progress()), |records| {
        let lines: Vec<String> = records.iter().flat_map(|record| timeline.line(record)).collect();
        let left_out = if first { lines.len().saturating_sub(BEFORE) } else { 0 };
        if std::mem::take(&mut first) {
            print::print_line(&format!("run {id}: Ctrl-C detaches; the run goes on"));
        }
        lines.iter().skip(left_out).for_each(|line| print::print_line(line));
        status_text(&timeline, tail.read(place, &id, &timeline), print::stderr_width())
    })?;
    let (mut view, records) = view_of(&*journal, &id)?;
    compare_files(&place.home, &*journal, &mut view, &records);
    let undo = diff::undo_hint(place, id.as_str(), &records);
    for line in cuegate_view::render_run_end(
        &view,
        &texts_of_journal(&*journal),
        &TimeZone::system(),
        undo.as_deref(),
    ) {
        print::print_line(&line);
    }
    Ok(view.exit_code().unwrap_or(exit::ENVIRONMENT))
}
