//! `runs`, `status` and `report`.

use cuegate_runner::{now_ms, worktree::branch_worktree::run_branches};
use cuegate_view::{RunView, TimeZone};

use super::{ProjectPlace, texts_of_journal, view_of};
use crate::{
    Failure,
    cli::{
        args::{ReportArgs, RunsArgs, StatusArgs},
        print,
    },
    exit, project,
    run_changes::compare_files,
};

pub(super) fn list_runs(place: &ProjectPlace, args: &RunsArgs) -> Result<u8, Failure> {
    let mut views: Vec<RunView> = Vec::new();
    let mut damaged: Vec<(String, Failure)> = Vec::new();
    if let Some(journal) = project::open_journal_read_only(&place.home)? {
        for run in journal.runs()?.into_iter().filter(|run| run.records > 0 || run.damage.is_some()) {
            match view_of(&*journal, &run.run) {
                Ok((view, _)) => views.push(view),
                Err(failure) => damaged.push((run.run.to_string(), failure)),
            }
        }
    }
    if let Some(state) = &args.state {
        views.retain(|view| view.state.as_str() == state);
    }
    views.sort_by_key(|view| std::cmp::Reverse(view.started_ms));
    views.truncate(args.n.unwrap_or(usize::MAX));
    if args.json {
        let damaged: Vec<_> =
            damaged.iter().map(|(run, failure)| (run.clone(), failure.message.clone())).collect();
        print::print_json(&cuegate_view::runs_json(&views, &damaged));
    } else if views.is_empty() && damaged.is_empty() {
        match (&args.state, args.n) {
            (None, None) => {
                print::print_line("this project has no runs; `cuegate run PATH` starts one");
                let left = run_branches(place.home.root()).unwrap_or_default();
                if !left.is_empty() {
                    print::print_line(&format!(
                        "note: runs were deleted with `.cuegate`, as `git clean -x` does, and their branches are left: {}; \
                         `git worktree list` shows where their files are",
                        left.join(", ")
                    ));
                }
            }
            _ => print::print_line("no such runs"),
        }
    } else if !views.is_empty() {
        print::print_data(&cuegate_view::runs_table(&views, now_ms()));
    }
    let code = if damaged.is_empty() { exit::DONE } else { exit::ENVIRONMENT };
    for (_, failure) in damaged {
        print::print_failure(&failure);
    }
    Ok(code)
}

pub(super) fn print_run_status(place: &ProjectPlace, args: &StatusArgs) -> Result<u8, Failure> {
    let journal = place.view()?;
    let id = project::find_run_id(&*journal, &args.run)?;
    let (mut view, records) = view_of(&*journal, &id)?;
    compare_files(&place.home, &*journal, &mut view, &records);
    if args.json {
        print::print_json(&view.to_json(&texts_of_journal(&*journal)));
    } else {
        print::print_data(&cuegate_view::render_status(
            &view,
            &texts_of_journal(&*journal),
            now_ms(),
            &TimeZone::system(),
        ));
    }
    Ok(exit::DONE)
}

pub(super) fn print_run_report(place: &ProjectPlace, args: &ReportArgs) -> Result<u8, Failure> {
    let journal = place.view()?;
    let id = project::find_run_id(&*journal, &args.run)?;
    let (mut view, records) = view_of(&*journal, &id)?;
    compare_files(&place.home, &*journal, &mut view, &records);
    if let Some(name) = &args.name {
        print::print_exact(&read_newest_report(&view, name, &texts_of_journal(&*journal))?);
    } else if args.json {
        print::print_json(&view.to_json(&texts_of_journal(&*journal)));
    } else {
        print::print_data(&cuegate_view::render_report(
            &view,
            &texts_of_journal(&*journal),
            &TimeZone::system(),
        ));
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
