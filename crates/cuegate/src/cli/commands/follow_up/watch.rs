//! `watch`: runs in the whole terminal.

use std::{io::IsTerminal as _, sync::Arc};

use cuegate_journal::RunId;
use cuegate_tui::{App, ScreenExit};
use cuegate_view::TimeZone;

use crate::cli::commands::local_project::LocalProject;
use crate::cli::commands::take::diff;
use crate::cli::commands::{ProjectPlace, texts_of_run};
use crate::cli::print;
use crate::project::FoldedRun;
use crate::run_changes::compare_files;
use crate::{Failure, exit, project};
use clap::Args;

#[derive(Debug, Args)]
pub(crate) struct WatchArgs {
    /// The run: its id, a unique prefix of it, or `last`; without one, the list of runs
    pub(crate) run: Option<String>,
}

pub(in crate::cli::commands) fn watch_runs(place: &ProjectPlace, args: &WatchArgs) -> Result<u8, Failure> {
    let run = match &args.run {
        Some(run) => Some(project::find_run_id(&place.home, &*place.view()?, run)?),
        None => None,
    };
    show_screen(place, run.as_ref())
}

/// Refuses to start where there is no terminal.
pub(in crate::cli::commands) fn needs_terminal() -> Result<(), Failure> {
    if print::is_terminal() && std::io::stdin().is_terminal() {
        return Ok(());
    }
    let hint = "`cuegate attach` follows a run with lines, and `cuegate log --json --follow` for programs";
    Err(Failure::usage("watching needs a terminal", hint))
}

/// Shows a run, or all runs, until the person leaves. The state of the run is printed to the normal screen afterwards.
pub(in crate::cli::commands) fn show_screen(
    place: &ProjectPlace,
    run: Option<&RunId>,
) -> Result<u8, Failure> {
    needs_terminal()?;
    cuegate_tui::use_colours(print::has_colours());
    let project = Arc::new(LocalProject::new(place)?);
    let mut app = App::new(project, run).map_err(|problem| Failure::environment(problem.message))?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| Failure::environment(format!("failed to start: {error}")))?;
    print::set_full_screen(true);
    let ended = runtime.block_on(cuegate_tui::show_until_left(&mut app));
    print::set_full_screen(false);
    // The thread that reads keys waits for the next one.
    runtime.shutdown_background();
    let ended =
        ended.map_err(|error| Failure::environment(format!("failed to use the terminal: {error}")))?;
    if let Some(id) = app.shown() {
        let journal = place.view()?;
        let FoldedRun { mut view, history, .. } = FoldedRun::read(&*journal, id)?;
        match view.exit_code() {
            Some(code) => {
                compare_files(&place.home, &*journal, id, &mut view, &history);
                let undo = diff::undo_hint(&view);
                let zone = TimeZone::system();
                for line in
                    cuegate_view::render_run_end(&view, &texts_of_run(&*journal, id), &zone, undo.as_deref())
                {
                    print::print_line(&line);
                }
                if ended == ScreenExit::Left {
                    return Ok(code);
                }
            }
            None => print::print_line(&format!("run {id} goes on; `cuegate watch {id}` shows it again")),
        }
    }
    Ok(if ended == ScreenExit::Signal { exit::INTERRUPTED } else { exit::DONE })
}
