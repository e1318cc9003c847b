//! `apply`: brings the changes of a worktree run into the working tree.

use crate::cli::commands::shared_args::RunRef;
use cuegate_engine::EndState;
use cuegate_runner::worktree::MergeResult;
use cuegate_view::{Liveness, RunState, clean_to_one_line, plural};
use serde_json::json;

use super::diff;

use crate::cli::commands::ProjectPlace;
use crate::cli::print;
use crate::project::FoldedRun;
use crate::run::moved_run;
use crate::run::tree_lock::TreeLock;
use crate::run_changes::{finish_changes, open_main};
use crate::{Failure, exit, project};
use clap::Args;

#[derive(Debug, Args)]
pub(crate) struct ApplyArgs {
    #[command(flatten)]
    pub(crate) run: RunRef,
    /// Only list the files that would change
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

pub(in crate::cli::commands) fn apply_changes(place: &ProjectPlace, args: &ApplyArgs) -> Result<u8, Failure> {
    let journal = place.view()?;
    let id = project::find_run_id(&place.home, &*journal, &args.run.id)?;
    moved_run::fetch_files(&place.home, &*journal, &id)?;
    let FoldedRun { view, history, .. } = FoldedRun::read(&*journal, &id)?;
    let run = history.run;
    if !run.started().place.owned {
        return Err(Failure::usage(
            format!("run {id} worked in this working tree, so its changes are already here"),
            format!("`cuegate diff {id}` prints them"),
        ));
    }
    if view.state == RunState::Running && view.live == Liveness::Alive {
        return Err(Failure::usage(format!("run {id} is at work"), "apply its changes when it has ended"));
    }
    // The changes of the runs that it follows in the same worktree come with its own.
    let from = project::first_tree(&*journal, run.started())?;
    let (Some(from), Some(to)) = (&from, &run.tree) else {
        return Err(Failure::environment(format!("run {id} recorded no trees")));
    };
    // No run may work here meanwhile.
    let _lock = TreeLock::take(&place.home, &id, None, "apply the changes when that one has ended", None)?;
    let trees = open_main(&place.home)?;
    if !args.dry_run {
        finish_changes(&trees)?.iter().for_each(|note| print::print_line(note));
    }
    let inner = trees.changed_repositories(&from.tree, &to.tree)?;
    if !inner.is_empty() {
        let names: Vec<String> = inner.iter().map(|path| format!("`{}`", clean_to_one_line(path))).collect();
        return Err(Failure::usage(
            format!(
                "the changes of run {id} hold repositories inside the working tree: {}",
                names.join(", ")
            ),
            format!(
                "nothing was changed; their files are in `{}`: remove the `.git` there and `cuegate retry {id}`, or copy \
                 them by hand",
                run.started().place.work
            ),
        ));
    }
    let (changed, conflicts) = match trees.merge(&from.tree, &to.tree)? {
        MergeResult::Conflicts(paths) => (Vec::new(), paths),
        MergeResult::Clean { ours, merged } if args.dry_run => (trees.changes(&ours, &merged)?, Vec::new()),
        MergeResult::Clean { ours, merged } => (trees.apply(&ours, &merged)?, Vec::new()),
    };
    let files: Vec<String> = changed.into_iter().map(|change| change.path).collect();
    let applied = conflicts.is_empty() && !args.dry_run;
    if args.json {
        print::print_json(&json!({"schema": "cuegate/apply/v1", "run": id.as_str(), "applied": applied,
            "files": files, "conflicts": conflicts}));
    } else {
        files.iter().for_each(|file| print::print_data(&clean_to_one_line(file)));
    }
    if !conflicts.is_empty() {
        let whole = if run.started().place.follows.is_some() { " --whole" } else { "" };
        let root = place.home.root();
        let at =
            if place.here == root { String::new() } else { format!(" -C {}", diff::quote_shell_path(root)) };
        let names: Vec<String> =
            conflicts.iter().map(|path| format!("`{}`", clean_to_one_line(path))).collect();
        return Err(Failure {
            message: format!(
                "the changes of run {id} conflict with this working tree in {}",
                names.join(", ")
            ),
            hint: Some(format!(
                "nothing was changed; commit your changes of these files, then `cuegate diff {id}{whole} | git{at} apply --3way` \
                 marks the conflicts in them"
            )),
            code: exit::BAD_END,
        });
    }
    let what = match (files.len() as u64, args.dry_run) {
        (0, _) => "nothing to apply: this working tree has all changes of the run so far".to_owned(),
        (n, true) => format!("{} would change", plural(n, "file")),
        (n, false) => format!("{} changed; nothing was committed", plural(n, "file")),
    };
    let what = match &run.started().place.follows {
        Some(first) => format!("{what}; with the changes of run {first} and those after it"),
        None => what,
    };
    if !matches!(view.state, RunState::Ended(EndState::Completed)) {
        print::print_line(&format!("note: run {id} did not complete ({})", view.standing()));
    }
    print::print_line(&what);
    Ok(exit::DONE)
}
