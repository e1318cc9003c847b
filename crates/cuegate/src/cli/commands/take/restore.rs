//! `restore`: brings files back as they were at a moment of a run.

use cuegate_view::{Liveness, RunState, clean_to_one_line, plural};
use serde_json::json;

use crate::cli::commands::ProjectPlace;
use crate::cli::commands::shared_args::RunRef;
use crate::cli::print;
use crate::project::FoldedRun;
use crate::run::resume_run::tree_owner;
use crate::run::tree_lock::TreeLock;
use crate::run_changes::open_trees;
use crate::visits::{find_moment, trees_around};
use crate::{Failure, exit, project};
use clap::Args;

#[derive(Debug, Args)]
pub(crate) struct RestoreArgs {
    #[command(flatten)]
    pub(crate) run: RunRef,
    /// The moment: the end of a visit as STEP#VISIT, of the last visit as STEP, or a record by its number
    #[arg(long, value_name = "VISIT")]
    pub(crate) at: String,
    /// These files and folders [default: what the run changed after that moment]; files that git ignores are not recorded
    #[arg(value_name = "PATH")]
    pub(crate) paths: Vec<String>,
    /// Only list the files that would change
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

pub(in crate::cli::commands) fn restore_files(
    place: &ProjectPlace,
    args: &RestoreArgs,
) -> Result<u8, Failure> {
    let journal = place.view()?;
    let id = project::find_run_id(&*journal, &args.run.id)?;
    let moment = find_moment(&*journal, &id, &args.at)?;
    let FoldedRun { view, history, .. } = FoldedRun::read(&*journal, &id)?;
    if view.state == RunState::Running && view.live == Liveness::Alive {
        return Err(Failure::usage(format!("run {id} is at work"), "restore files when it has ended"));
    }
    let made_by = tree_owner(&id, history.run.started());
    let hint = "restore files when that one has ended";
    let _lock = TreeLock::take(&place.home, &id, made_by.as_deref(), hint, None)?;
    let around = trees_around(&*journal, &id, moment.records)?;
    let (Some(around), Some(trees)) = (around, open_trees(&place.home, &history.run)?) else {
        return Err(Failure::usage(
            format!("run {id} worked outside of git, so its files were not recorded"),
            "run `git init` before the next run",
        ));
    };
    if view.place.owned && trees.root() != std::path::Path::new(&view.place.work) {
        return Err(Failure::usage(
            format!("the worktree of run {id} is gone"),
            format!("`cuegate diff {id} --at {}` prints what was changed then", args.at),
        ));
    }
    let now = trees.set_aside()?;
    let at = &around.after.tree;
    let last = history.run.tree.as_ref().map_or(at, |tree| &tree.tree);
    // What the run never touched is somebody's own, unless it is named.
    let candidates = trees.changes(at, if args.paths.is_empty() { last } else { &now })?;
    let wanted = select_paths(place, &candidates, args);
    let to = trees.with_entries_of(&now, at, &wanted)?;
    let mut kept = None;
    let changes = if args.dry_run || wanted.is_empty() {
        trees.changes(&now, &to)?
    } else {
        kept = Some(trees.keep_aside(&now)?);
        trees.apply(&now, &to)?
    };
    let files: Vec<String> = changes.into_iter().map(|change| change.path).collect();
    if args.json {
        print::print_json(
            &json!({"schema": "cuegate/restore/v1", "run": id.as_str(), "seq": moment.records.1,
            "restored": kept.is_some(), "files": files, "before": kept}),
        );
        return Ok(exit::DONE);
    }
    files.iter().for_each(|file| print::print_data(&clean_to_one_line(file)));
    let n = files.len() as u64;
    print::print_line(&match (n, args.dry_run) {
        (0, _) => format!("nothing to restore: these files are as after {}", moment.name),
        (_, true) => format!("{} would be as after {}", plural(n, "file"), moment.name),
        (_, false) => format!("{} as after {}; nothing was committed", plural(n, "file"), moment.name),
    });
    for gap in &view.snapshot_gaps {
        print::print_line(&format!("note: {}", clean_to_one_line(gap)));
    }
    if let Some(kept) = kept {
        print::print_line(&format!(
            "before  kept as `{kept}`; `git restore --source {kept} -- PATH` brings a file back"
        ));
    }
    Ok(exit::DONE)
}

/// The changed paths that are among those that a person typed.
fn select_paths(
    place: &ProjectPlace,
    changes: &[cuegate_runner::worktree::Change],
    args: &RestoreArgs,
) -> Vec<String> {
    let typed: Vec<String> = args.paths.iter().map(|path| place.shown(path)).collect();
    let is_in = |path: &str, typed: &str| {
        typed == "." || path == typed || path.strip_prefix(typed).is_some_and(|rest| rest.starts_with('/'))
    };
    let selected = |path: &&String| {
        typed.is_empty() || typed.iter().any(|typed| is_in(path, typed.trim_end_matches('/')))
    };
    changes.iter().map(|change| &change.path).filter(selected).cloned().collect()
}
