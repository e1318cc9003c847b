//! `runs`: the runs of the project.

use cuegate_observe::{Observer, RunList};
use cuegate_runner::{now_ms, worktree::branch_worktree::run_branches};

use crate::cli::commands::ProjectPlace;
use crate::cli::print;
use crate::{Failure, exit};
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
    let RunList { mut rows, damaged } = Observer::new(place.home.clone()).list_runs()?;
    if let Some(state) = &args.state {
        rows.retain(|row| row.state == *state);
    }
    rows.truncate(args.n.unwrap_or(usize::MAX));
    let damaged: Vec<(String, Failure)> =
        damaged.into_iter().map(|(run, error)| (run.to_string(), error.into())).collect();
    if args.json {
        let damaged: Vec<_> =
            damaged.iter().map(|(run, failure)| (run.clone(), failure.message.clone())).collect();
        print::print_json(&cuegate_view::runs_json(&rows, &damaged));
    } else if rows.is_empty() && damaged.is_empty() {
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
    } else if !rows.is_empty() {
        print::print_data(&cuegate_view::runs_table(&rows, now_ms()));
    }
    let code = if damaged.is_empty() { exit::DONE } else { exit::ENVIRONMENT };
    for (_, failure) in damaged {
        print::print_failure(&failure);
    }
    Ok(code)
}
