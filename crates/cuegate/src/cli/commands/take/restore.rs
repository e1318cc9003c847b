//! `restore`: brings files back as they were at a moment of a run.

use cuegate_runner::worktree::{Change, ChangeKind, Trees};
use cuegate_view::{Liveness, RunState, clean_to_one_line, plural};
use serde_json::json;

use crate::cli::commands::ProjectPlace;
use crate::cli::commands::shared_args::RunRef;
use crate::cli::commands::take::diff::quote_shell_path;
use crate::cli::print;
use crate::project::FoldedRun;
use crate::run::resume_run::tree_owner;
use crate::run::tree_lock::TreeLock;
use crate::run_changes::{RunChanges, finish_changes, open_trees};
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
    let id = project::find_run_id(&place.home, &*journal, &args.run.id)?;
    project::check_is_here(&place.home, &*journal, &id)?;
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
    let Some(own) = RunChanges::of(&history, Some(&trees))? else {
        return Err(Failure::environment(format!("the files of run {id} were not recorded")));
    };
    if !args.dry_run {
        finish_changes(&trees)?.iter().for_each(|note| print::print_line(note));
    }
    let (now, at) = (trees.set_aside()?, &around.after.tree);
    let differing: Vec<String> = trees.changes(at, &now)?.into_iter().map(|change| change.path).collect();
    let (wanted, left) = match args.paths.is_empty() {
        // What the run did not change is somebody's own, unless it is named.
        true => {
            let touched = own.touched(&trees)?;
            differing.into_iter().partition(|path| touched.contains(path))
        }
        false => (select_paths(place, &trees, &differing, &args.paths)?, Vec::new()),
    };
    let to = trees.with_entries_of(&now, at, &wanted)?;
    refuse_folders(&trees, &trees.changes(&now, &to)?)?;
    let mut kept = None;
    let changes = if args.dry_run || wanted.is_empty() {
        trees.changes(&now, &to)?
    } else {
        let reference = trees.keep_aside(&now)?;
        let restored = trees.apply(&now, &to).map_err(|error| Failure {
            hint: Some(format!(
                "`{}` brings the files back as they were before",
                restore_command(&trees, &reference, ".")
            )),
            ..Failure::from(cuegate_runner::Error::from(error))
        })?;
        kept = Some(reference);
        restored
    };
    let files: Vec<String> = changes.into_iter().map(|change| change.path).collect();
    if args.json {
        print::print_json(
            &json!({"schema": "cuegate/restore/v1", "run": id.as_str(), "seq": moment.records.1,
            "folder": trees.root(), "restored": kept.is_some(), "files": files, "left": left, "before": kept}),
        );
        return Ok(exit::DONE);
    }
    files.iter().for_each(|file| print::print_data(&clean_to_one_line(file)));
    let n = files.len() as u64;
    let place = match view.place.owned {
        true => format!(" in `{}`", trees.root().display()),
        false => String::new(),
    };
    print::print_line(&match (n, args.dry_run) {
        (0, _) => format!("nothing to restore: what the run changed is as after {}", moment.name),
        (_, true) => format!("{}{place} would be as after {}", plural(n, "file"), moment.name),
        (_, false) => format!("{}{place} as after {}; nothing was committed", plural(n, "file"), moment.name),
    });
    if !left.is_empty() {
        let names: Vec<String> = left.iter().take(NAMES_MAX).map(|path| clean_to_one_line(path)).collect();
        let more = left.len().saturating_sub(NAMES_MAX);
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        print::print_line(&format!(
            "left    not known to be changed by the run, and other than then: {}{more}; name them to restore them",
            names.join(", ")
        ));
    }
    for gap in &view.snapshot_gaps {
        print::print_line(&format!("note: {}", clean_to_one_line(gap)));
    }
    if let Some(kept) = kept {
        // A file that was not there before cannot come back.
        let was_there = trees.changes(&now, &to)?.into_iter().find(|change| change.kind != ChangeKind::Added);
        let path = was_there.map_or_else(|| ".".to_owned(), |change| quote_shell_path(change.path.as_ref()));
        print::print_line(&format!("before  `{}` brings it back", restore_command(&trees, &kept, &path)));
    }
    Ok(exit::DONE)
}

/// How many files are named that stay as they are.
const NAMES_MAX: usize = 5;

fn restore_command(trees: &Trees, kept: &str, path: &str) -> String {
    format!("git -C {} restore --source {kept} -- {path}", quote_shell_path(trees.root()))
}

/// Fails where a file would take the place of a folder, which may hold files that git ignores.
fn refuse_folders(trees: &Trees, changes: &[Change]) -> Result<(), Failure> {
    let is_folder = |change: &&Change| {
        change.kind != ChangeKind::Deleted
            && trees.root().join(&change.path).symlink_metadata().is_ok_and(|about| about.is_dir())
    };
    match changes.iter().find(is_folder) {
        None => Ok(()),
        Some(change) => Err(Failure::usage(
            format!("`{}` was a file then, and is a folder now", clean_to_one_line(&change.path)),
            "move the folder away first; nothing was changed",
        )),
    }
}

/// The files that are other ones than then, among the paths that a person typed.
fn select_paths(
    place: &ProjectPlace,
    trees: &Trees,
    differing: &[String],
    typed: &[String],
) -> Result<Vec<String>, Failure> {
    let mut selected = Vec::new();
    for path in typed {
        let wanted = place.path_from_top(path);
        let wanted = wanted.trim_end_matches('/');
        let is_in = |path: &&String| {
            wanted == "."
                || *path == wanted
                || path.strip_prefix(wanted).is_some_and(|rest| rest.starts_with('/'))
        };
        let found: Vec<String> = differing.iter().filter(is_in).cloned().collect();
        if found.is_empty() && !trees.root().join(wanted).starts_with(trees.root())
            || found.is_empty() && trees.root().join(wanted).symlink_metadata().is_err()
        {
            return Err(Failure::usage(
                format!("`{}` was not there then, and is not there now", clean_to_one_line(path)),
                "give paths of files or folders in the working tree, as `git status` prints them",
            ));
        }
        selected.extend(found);
    }
    selected.sort_unstable();
    selected.dedup();
    Ok(selected)
}
