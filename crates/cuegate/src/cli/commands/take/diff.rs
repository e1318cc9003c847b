//! `diff`: the changes of a run, and how to undo them.

use crate::cli::commands::shared_args::RunOrFile;
use std::path::Path;

use cuegate_journal::{Journal, RunId};
use cuegate_view::{RunView, clean_to_one_line};

use crate::cli::commands::ProjectPlace;
use crate::cli::print;
use crate::project::FoldedRun;
use crate::run::moved_run;
use crate::run_changes::{RunChanges, open_trees};
use crate::visits::{find_moment, trees_around};
use crate::{Failure, exit, project};
use clap::Args;

#[derive(Debug, Args)]
pub(crate) struct DiffArgs {
    #[command(flatten)]
    pub(crate) run: RunOrFile,
    /// With the changes of the earlier runs that this one follows in its worktree
    #[arg(long)]
    pub(crate) whole: bool,
    /// Only what this visit changed: STEP#VISIT, or STEP for its last visit; or a record by its number
    #[arg(long, value_name = "VISIT", conflicts_with = "whole")]
    pub(crate) at: Option<String>,
    /// What differs between the files of the run and those of this other one, such as a fork of it
    #[arg(long, value_name = "RUN", conflicts_with_all = ["whole", "at"])]
    pub(crate) with: Option<String>,
    /// Print only the changed line counts of each file
    #[arg(long)]
    pub(crate) stat: bool,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

pub(in crate::cli::commands) fn print_diff(place: &ProjectPlace, args: &DiffArgs) -> Result<u8, Failure> {
    let opened = place.open_run_file(&args.run.id)?;
    if let Some((_, project)) = opened.as_ref().filter(|(_, project)| !project.has_snapshots) {
        return Err(Failure::usage(
            format!("the files of run {} are not in `{}`", project.id, args.run.id),
            "`cuegate export RUN FILE --snapshots` writes them, too",
        ));
    }
    let (place, typed) = match &opened {
        Some((place, project)) => (place, project.id.as_str()),
        None => (place, args.run.id.as_str()),
    };
    let journal = place.view()?;
    let id = project::find_run_id(&place.home, &*journal, typed)?;
    moved_run::fetch_files(&place.home, &*journal, &id)?;
    let FoldedRun { history, .. } = FoldedRun::read(&*journal, &id)?;
    let run = &history.run;
    let trees = open_trees(&place.home, run)?;
    let whole = if args.whole { project::first_tree(&*journal, run.started())? } else { None };
    let moment = args.at.as_deref().map(|at| find_moment(&*journal, &id, at)).transpose()?;
    let other =
        args.with.as_deref().map(|other| project::find_run_id(&place.home, &*journal, other)).transpose()?;
    let changed = match &moment {
        None if other.is_some() => {
            other.as_ref().map(|other| changes_between(&*journal, &id, other)).transpose()?.flatten()
        }
        None => RunChanges::of(&history, trees.as_ref())?,
        Some(moment) => match (trees_around(&*journal, &id, moment.records)?, &trees) {
            (Some(around), Some(trees)) => Some(around.changes(trees)?),
            _ => None,
        },
    };
    let Some(mut changed) = changed else {
        return Err(Failure::usage(
            format!("run {id} worked outside of git, so the state before it was not recorded"),
            "run `git init` before the next run",
        ));
    };
    let trees = trees.ok_or_else(|| {
        Failure::environment(format!("`{}` is not in a git repository", place.home.root().display()))
    })?;
    if let Some(from) = whole {
        (changed.from, changed.own_tree) = (from, None);
    }
    if !changed.shared.is_empty() {
        let names: Vec<&str> = changed.shared.iter().map(String::as_str).collect();
        print::print_line(&format!(
            "note: files that the run changed were also changed by others meanwhile: {}",
            names.join(", ")
        ));
    }
    let committed = if other.is_none() { changed.list_committed_otherwise(&trees)? } else { Vec::new() };
    for (path, what) in committed {
        print::print_line(&format!("note: `{}`: {what}", clean_to_one_line(&path)));
    }
    if args.json {
        print::print_json(&changed.as_json(&trees, id.as_str())?);
    } else if args.stat {
        for stat in changed.stat(&trees)? {
            let number = |lines: Option<u64>| lines.map_or_else(|| "-".to_owned(), |lines| lines.to_string());
            print::print_data(&format!(
                "+{:<6} -{:<6} {}",
                number(stat.added),
                number(stat.removed),
                stat.path
            ));
        }
    } else {
        let patch = changed.patch(&trees)?;
        if patch.is_empty() {
            print::print_line(&match (moment, other) {
                (Some(moment), _) => format!("{} changed nothing", moment.name),
                (None, Some(other)) => format!("runs {id} and {other} have the same files"),
                (None, None) => format!("run {id} changed nothing"),
            });
        }
        print::print_bytes(&patch);
    }
    Ok(exit::DONE)
}

/// The changes of a run as a patch, or those between two of its records; `None` if the run recorded no trees.
pub(in crate::cli::commands) fn patch_of_run(
    place: &ProjectPlace,
    journal: &dyn Journal,
    id: &RunId,
    between: Option<(u64, u64)>,
) -> Result<Option<Vec<u8>>, Failure> {
    let FoldedRun { history, .. } = FoldedRun::read(journal, id)?;
    let Some(trees) = open_trees(&place.home, &history.run)? else { return Ok(None) };
    let Some((from_seq, to_seq)) = between else {
        let changed = RunChanges::of(&history, Some(&trees))?;
        return changed.map(|changed| changed.patch(&trees)).transpose();
    };
    let around = trees_around(journal, id, (from_seq, to_seq))?;
    around.map(|around| around.changes(&trees)?.patch(&trees)).transpose()
}

/// What differs between the files of two runs; `None` if one of them recorded no trees.
fn changes_between(journal: &dyn Journal, id: &RunId, other: &RunId) -> Result<Option<RunChanges>, Failure> {
    let trees = [id, other].map(|id| Ok::<_, Failure>(cuegate_runner::read_run(journal, id)?.tree));
    let [from, to] = trees;
    Ok(from?.zip(to?).map(|(from, to)| RunChanges::between(from, to)))
}

/// What differs between the files of two runs, as a patch; `None` if one of them recorded no trees.
pub(in crate::cli::commands) fn patch_between_runs(
    place: &ProjectPlace,
    journal: &dyn Journal,
    id: &RunId,
    other: &RunId,
) -> Result<Option<Vec<u8>>, Failure> {
    let FoldedRun { history, .. } = FoldedRun::read(journal, id)?;
    let trees = open_trees(&place.home, &history.run)?;
    let changed = changes_between(journal, id, other)?;
    changed.zip(trees).map(|(changed, trees)| changed.patch(&trees)).transpose()
}

/// The command that takes the work of a run back, whose files were compared.
pub(in crate::cli::commands) fn undo_hint(view: &RunView) -> Option<String> {
    let id = &view.run;
    if view.place.owned {
        return Some(format!("cuegate clean {id}"));
    }
    let has_changes = view.difference.as_ref().is_some_and(|files| !files.is_empty());
    has_changes.then(|| format!("cuegate undo {id}"))
}

pub(in crate::cli::commands) fn quote_shell_path(path: &Path) -> String {
    let word = path.display().to_string();
    let plain = |c: char| c.is_ascii_alphanumeric() || "/._-+,:@%".contains(c);
    if word.chars().all(plain) {
        return word;
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}
