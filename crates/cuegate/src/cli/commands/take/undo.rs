//! `undo`: takes back what a run changed in the working tree of the user.

use crate::cli::commands::shared_args::RunRef;
use std::collections::BTreeSet;

use cuegate_runner::worktree::MergeResult;
use cuegate_view::{Liveness, RunState, clean_to_one_line, perhaps_by_user, plural};
use serde_json::json;

use crate::cli::commands::ProjectPlace;
use crate::cli::print;
use crate::project::FoldedRun;
use crate::run::tree_lock::TreeLock;
use crate::run_changes::{RunChanges, finish_changes, open_main};
use crate::{Failure, exit, project};
use clap::Args;

#[derive(Debug, Args)]
pub(crate) struct UndoArgs {
    #[command(flatten)]
    pub(crate) run: RunRef,
    /// Also files that no tool call of the agent names, which you may have changed while the run worked
    #[arg(long)]
    pub(crate) all: bool,
    /// Only list the files that would change
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

pub(in crate::cli::commands) fn undo_changes(place: &ProjectPlace, args: &UndoArgs) -> Result<u8, Failure> {
    let journal = place.view()?;
    let id = project::find_run_id(&place.home, &*journal, &args.run.id)?;
    project::check_is_here(&place.home, &*journal, &id)?;
    let FoldedRun { view, history, .. } = FoldedRun::read(&*journal, &id)?;
    if view.state == RunState::Running && view.live == Liveness::Alive {
        return Err(Failure::usage(format!("run {id} is at work"), "undo its changes when it has ended"));
    }
    let _lock = TreeLock::take(&place.home, &id, None, "undo the changes when that one has ended", None)?;
    let trees = open_main(&place.home)?;
    if !args.dry_run {
        finish_changes(&trees)?.iter().for_each(|note| print::print_line(note));
    }
    let Some(changed) = RunChanges::of(&history, Some(&trees))? else {
        return Err(Failure::usage(
            format!("run {id} worked outside of git, so the state before it was not recorded"),
            "run `git init` before the next run",
        ));
    };
    let perhaps: BTreeSet<&str> =
        if args.all { BTreeSet::new() } else { perhaps_by_user(&view).into_iter().collect() };
    let all: Vec<String> = changed.stat(&trees)?.into_iter().map(|stat| stat.path).collect();
    let mut repositories = trees.changed_repositories(&changed.from.tree, &changed.to.tree)?;
    repositories.retain(|name| trees.root().join(name).exists());
    let all: Vec<String> = all.into_iter().filter(|path| !repositories.contains(path)).collect();
    let is_left = |path: &String| changed.shared.contains(path) || perhaps.contains(path.as_str());
    let (mut left, own): (Vec<String>, Vec<String>) = all.into_iter().partition(is_left);
    // The state at the end of the run with these files as they were before it. Merged as a change of that state, so that
    // what the user edited since stays.
    let before = trees.with_entries_of(&changed.to.tree, &changed.from.tree, &own)?;
    let (files, conflicts) = match trees.merge(&changed.to.tree, &before)? {
        MergeResult::Conflicts(paths) => (Vec::new(), paths),
        MergeResult::Clean { ours, merged } if args.dry_run => (trees.changes(&ours, &merged)?, Vec::new()),
        MergeResult::Clean { ours, merged } => (trees.apply(&ours, &merged)?, Vec::new()),
    };
    let files: Vec<String> = files.into_iter().map(|change| change.path).collect();
    let undone = conflicts.is_empty() && !args.dry_run;
    if undone && !view.place.owned {
        let before = changed.from.head.as_deref().filter(|_| !changed.moved_by_others);
        trees.unstage(&own, &changed.to.tree, before.zip(changed.to.head.as_deref()))?;
    }
    let named: Vec<String> = left.iter().map(|path| clean_to_one_line(path)).collect();
    left.extend(repositories.iter().cloned());
    if args.json {
        print::print_json(&json!({"schema": "cuegate/undo/v1", "run": id.as_str(), "undone": undone,
            "files": files, "left": left, "conflicts": conflicts}));
    } else {
        files.iter().for_each(|file| print::print_data(&clean_to_one_line(file)));
    }
    if !conflicts.is_empty() {
        let names: Vec<String> =
            conflicts.iter().map(|path| format!("`{}`", clean_to_one_line(path))).collect();
        return Err(Failure {
            message: format!("files were edited since run {id} where it changed them: {}", names.join(", ")),
            hint: Some(format!(
                "nothing was changed; commit your edits, then `cuegate diff {id} | git apply -R --3way` marks the conflicts"
            )),
            code: exit::BAD_END,
        });
    }
    print::print_line(&match (files.len() as u64, args.dry_run) {
        (0, _) => "nothing to undo: this working tree has none of these changes of the run".to_owned(),
        (n, true) => format!("{} would change", plural(n, "file")),
        (n, false) => format!("{} as before the run; nothing was committed", plural(n, "file")),
    });
    if !repositories.is_empty() {
        let names: Vec<String> = repositories.iter().map(|path| clean_to_one_line(path)).collect();
        print::print_line(&format!(
            "left    repositories, remove or reset them yourself: {}",
            names.join(", ")
        ));
    }
    if !named.is_empty() {
        let why = if args.all { "others changed them too" } else { "perhaps changed by you" };
        let hint = if args.all { "" } else { "; `--all` takes those back that nobody else changed" };
        print::print_line(&format!("left    {}: {}{hint}", why, named.join(", ")));
    }
    Ok(exit::DONE)
}
