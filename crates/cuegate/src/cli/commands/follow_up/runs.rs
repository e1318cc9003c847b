//! `runs`: the runs of the project.

use cuegate_runner::{now_ms, worktree::branch_worktree::run_branches};
use cuegate_view::RunView;

use crate::cli::commands::{ProjectPlace, view_of};
use crate::cli::print;
use crate::{Failure, exit, project};
use clap::Args;

#[derive(Debug, Args)]
pub(crate) struct RunsArgs {
    /// Only runs in this state
    #[arg(long, value_name = "STATE", value_parser = ["running", "suspended", "completed", "failed", "aborted", "exhausted", "cancelled"])]
    pub(crate) state: Option<String>,
    /// At most this many runs, the newest ones
    #[arg(short, value_name = "N")]
    pub(crate) n: Option<usize>,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

pub(in crate::cli::commands) fn list_runs(place: &ProjectPlace, args: &RunsArgs) -> Result<u8, Failure> {
    let mut views: Vec<RunView> = Vec::new();
    let mut damaged: Vec<(String, Failure)> = Vec::new();
    if let Some(journal) = project::open_journal_read_only(&place.home)? {
        for run in journal.runs()?.into_iter().filter(|run| run.records > 0 || run.damage.is_some()) {
            match view_of(&*journal, &run.run) {
                Ok(view) => views.push(view),
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
