//! `attach`: follows a run that another process drives.

use std::collections::VecDeque;

use super::followed_run::{ActivityTail, Followed, follow_records};
use crate::cli::commands::shared_args::RunRef;

use cuegate_view::{TimeZone, Timeline};

use crate::cli::commands::take::diff;
use crate::cli::commands::{ProjectPlace, texts_of_run};
use crate::cli::live::status_text;
use crate::cli::print;
use crate::cli::status_line::StatusLine;
use crate::project::FoldedRun;
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
    let id = project::find_run_id(&place.home, &*journal, &args.run.id)?;
    let mut timeline =
        Timeline::new(TimeZone::system()).with_width(print::is_terminal().then(print::stderr_width));
    // The last lines of what happened before.
    let (mut before, mut tail) = (Some(VecDeque::new()), ActivityTail::default());
    follow_records(
        &*journal,
        &id,
        true,
        StatusLine::new(print::has_progress()),
        |followed| match followed {
            Followed::Record(record) => {
                for line in timeline.line(record) {
                    match &mut before {
                        Some(before) => {
                            before.push_back(line);
                            before.drain(..before.len().saturating_sub(BEFORE));
                        }
                        None => print::print_line(&line),
                    }
                }
                None
            }
            Followed::Pause => {
                if let Some(before) = before.take() {
                    print::print_line(&format!("run {id}: Ctrl-C detaches; the run goes on"));
                    before.iter().for_each(|line| print::print_line(line));
                }
                status_text(&timeline, tail.read(place, &id, &timeline), print::stderr_width())
            }
        },
    )?;
    let FoldedRun { mut view, history, .. } = FoldedRun::read(&*journal, &id)?;
    compare_files(&place.home, &*journal, &id, &mut view, &history);
    let undo = diff::undo_hint(&view);
    for line in cuegate_view::render_run_end(
        &view,
        &texts_of_run(&*journal, &id),
        &TimeZone::system(),
        undo.as_deref(),
    ) {
        print::print_line(&line);
    }
    Ok(view.exit_code().unwrap_or(exit::ENVIRONMENT))
}
