//! `clean`: removes worktrees of ended runs.
//!
//! Nothing that an agent wrote is lost with them: the last snapshot of the worktree is in the state dir, from which
//! `diff` and `apply` work; commits that no other branch has, and files that git ignores, stay below `refs/cuegate`. Only
//! what can be built or installed again is deleted. A worktree whose files differ from the snapshot is kept.

use std::path::{Path, PathBuf};

use cuegate_engine::Run;
use cuegate_journal::{Journal, RunId, RunSummary};
use cuegate_runner::{
    now_ms,
    worktree::{IgnoredFiles, MergeResult, Trees, branch_worktree},
};
use cuegate_view::{RunState, RunView, clean_to_one_line as shown, plural};
use serde_json::{Value, json};

use crate::cli::commands::shared_args::parse_age;
use crate::cli::commands::{ProjectPlace, view_of};
use crate::cli::print;
use crate::config::load_config;
use crate::project::FoldedRun;
use crate::retention::{list_sessions, remove_sessions};
use crate::run::resume_run;
use crate::run::tree_lock::TreeLock;
use crate::{Failure, exit, project};
use clap::Args;

#[derive(Debug, Args)]
pub(crate) struct CleanArgs {
    /// Remove the worktree of this run: its id, a unique prefix of it, or `last` [default: list all worktrees]
    pub(crate) run: Option<String>,
    /// Remove those whose changes are in this working tree
    #[arg(long, conflicts_with = "run")]
    pub(crate) merged: bool,
    /// Remove those of runs that ended longer ago than this: `30d`, `12h`
    #[arg(long, value_name = "TIME", conflicts_with_all = ["run", "merged"], value_parser = parse_age)]
    pub(crate) older_than: Option<std::time::Duration>,
    /// Print what would be removed, and remove nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// How many paths a line names at most.
const NAMES_MAX: usize = 5;

/// The worktree of a run.
pub(super) struct OwnedWorktree {
    pub(super) id: RunId,
    view: RunView,
    run: Run,
    path: PathBuf,
    /// Whether its changes are in this working tree.
    pub(super) merged: bool,
    /// Why it must stay.
    pub(super) kept: Option<String>,
    /// What git ignores in it.
    ignored: IgnoredFiles,
}

impl OwnedWorktree {
    /// The run that made the worktree.
    fn made_by(&self) -> String {
        self.run.started().place.follows.clone().unwrap_or_else(|| self.id.to_string())
    }
}

pub(in crate::cli::commands) fn clean_worktrees(
    place: &ProjectPlace,
    args: &CleanArgs,
) -> Result<u8, Failure> {
    let journal = place.view()?;
    let mut all = find_run_worktrees(place, &*journal)?;
    let lists_only = args.run.is_none() && !args.merged && args.older_than.is_none();
    if let Some(typed) = &args.run {
        let id = project::find_run_id(&place.home, &*journal, typed)?;
        all.retain(|owned| owned.id == id);
        let Some(one) = all.first() else {
            return Err(Failure::usage(
                format!("run {id} has no worktree of its own to remove"),
                "`cuegate clean` lists the worktrees",
            ));
        };
        if let Some(why) = &one.kept {
            return Err(Failure::usage(
                format!("the worktree of run {id} stays: {why}"),
                hint_of_kept_worktree(one),
            ));
        }
    }
    let chosen = |owned: &OwnedWorktree| {
        let age = owned.view.ended_ms.and_then(|ended| u64::try_from(now_ms().saturating_sub(ended)).ok());
        let is_old =
            args.older_than.is_some_and(|than| age.is_some_and(|age| u128::from(age) > than.as_millis()));
        owned.kept.is_none() && (args.run.is_some() || args.merged && owned.merged || is_old)
    };
    let mut rows = Vec::new();
    for owned in &all {
        let remove = !lists_only && chosen(owned);
        let ignored = &owned.ignored;
        if remove && !args.dry_run {
            take_away(place, &*journal, owned)?;
        }
        if args.json {
            rows.push(json_of_worktree(owned, remove && !args.dry_run));
            continue;
        }
        let what = match (remove, args.dry_run, &owned.kept) {
            (true, true, _) => format!("would be removed{}", with_ignored(ignored)),
            (true, false, _) => format!("removed{}", with_ignored(ignored)),
            (false, _, Some(why)) => format!("stays: {why}"),
            (false, _, None) if !owned.path.is_dir() => "its removal was interrupted".to_owned(),
            (false, _, None) if owned.merged => "its changes are in this working tree".to_owned(),
            (false, _, None) => "its changes are not in this working tree".to_owned(),
        };
        print::print_data(&format!("{}  {}  {what}", owned.id, owned.path.display()));
    }
    if args.json {
        print::print_json(&json!({"schema": "cuegate/clean/v1", "worktrees": rows}));
    } else if all.is_empty() {
        print::print_line("no run has a worktree here");
    } else if lists_only {
        print::print_line("nothing was removed; to remove some, add `--merged`, `--older-than 30d` or a run");
    } else if !args.dry_run && args.run.is_some() {
        print::print_line(&format!(
            "`cuegate diff {0}` and `cuegate apply {0}` still have the changes",
            all[0].id
        ));
    }
    Ok(exit::DONE)
}

fn json_of_worktree(owned: &OwnedWorktree, removed: bool) -> Value {
    let names = |paths: &[PathBuf]| paths.iter().map(|path| path.display().to_string()).collect::<Vec<_>>();
    json!({
        "run": owned.id.as_str(), "path": owned.path.display().to_string(), "branch": owned.view.place.branch,
        "state": owned.view.state.as_str(), "merged": owned.merged, "removed": removed, "kept": owned.kept,
        "ignored": names(&owned.ignored.files), "rebuilt": names(&owned.ignored.rebuilt),
    })
}

/// What git ignores: files that are kept, and folders that are not.
fn with_ignored(ignored: &IgnoredFiles) -> String {
    let names: Vec<String> = ignored
        .rebuilt
        .iter()
        .take(NAMES_MAX)
        .map(|path| format!("{}/", shown(&path.to_string_lossy())))
        .collect();
    match ignored.rebuilt.len() {
        0 => String::new(),
        all if all > names.len() => {
            format!(
                ", with {} that can be built again: {}, …",
                plural(all as u64, "folder"),
                names.join(", ")
            )
        }
        _ => format!(", with what can be built again: {}", names.join(", ")),
    }
}

fn hint_of_kept_worktree(owned: &OwnedWorktree) -> String {
    match owned.view.state {
        RunState::Ended(_) => format!("look at `{}`; commit or copy what you need", owned.path.display()),
        _ => format!("`cuegate cancel {}` ends the run", owned.id),
    }
}

/// The worktrees of all runs, that of several runs once, by the newest of them.
pub(super) fn find_run_worktrees(
    place: &ProjectPlace,
    journal: &dyn Journal,
) -> Result<Vec<OwnedWorktree>, Failure> {
    let trees = Trees::open(place.home.root(), &place.home.trees())?;
    // A damaged run does not stand in the way of the others. Nobody knows what its own worktree should hold.
    let (readable, damaged): (Vec<RunSummary>, Vec<RunSummary>) = journal
        .runs()?
        .into_iter()
        .filter(|known| known.has_records || known.damage.is_some())
        .filter(|known| place.home.has_files_of(&known.run))
        .partition(|known| known.damage.is_none() && view_of(journal, &known.run).is_ok());
    for known in damaged {
        print::print_line(&format!(
            "note: run {} is damaged and left out; its own worktree stays",
            known.run
        ));
    }
    let newest = resume_run::newest_in_worktrees(journal, readable.clone())?;
    let mut all = Vec::new();
    for known in readable {
        let FoldedRun { view, history, .. } = FoldedRun::read(journal, &known.run)?;
        let run = history.run;
        let path = PathBuf::from(&view.place.work);
        let first = view.place.follows.as_deref().unwrap_or(known.run.as_str());
        let is_newest = newest.get(first).is_none_or(|newest| *newest == known.run);
        let is_cut_off = branch_worktree::set_aside(&path).is_dir();
        if !view.place.owned || !(path.is_dir() || is_cut_off) || !is_newest {
            continue;
        }
        if is_cut_off && !path.is_dir() {
            // Everything was kept before it was moved.
            let ignored = IgnoredFiles::default();
            all.push(OwnedWorktree { id: known.run, view, run, path, merged: true, kept: None, ignored });
            continue;
        }
        let taken = is_taken(trees.as_ref(), journal, &run);
        let merged = taken.as_ref().is_ok_and(|taken| *taken);
        let ignored = IgnoredFiles::find(&path)?;
        let kept = match &view.state {
            _ if taken.is_err() => {
                Some("its snapshots cannot be read: `cuegate doctor --records`".to_owned())
            }
            RunState::Ended(_) if ignored.is_too_much() => Some(too_much(&ignored)),
            RunState::Ended(_) => changed_since(place, &path, &run)?,
            _ => Some(format!("the run is not over ({})", view.standing())),
        };
        all.push(OwnedWorktree { id: known.run, view, run, path, merged, kept, ignored });
    }
    Ok(all)
}

/// Whether what a run changed is in this working tree.
pub(super) fn is_taken(trees: Option<&Trees>, journal: &dyn Journal, run: &Run) -> Result<bool, Failure> {
    Ok(match (trees, project::first_tree(journal, run.started())?, &run.tree) {
        (Some(trees), Some(from), Some(to)) => {
            matches!(trees.merge(&from.tree, &to.tree)?, MergeResult::Clean { ours, merged } if ours == merged)
        }
        _ => false,
    })
}

/// What is in a worktree and in no snapshot of the run.
fn changed_since(place: &ProjectPlace, path: &Path, run: &Run) -> Result<Option<String>, Failure> {
    let (Some(trees), Some(last)) = (Trees::open(path, &place.home.trees())?, &run.tree) else {
        return Ok(Some("its last state is not recorded".to_owned()));
    };
    if branch_worktree::has_submodules(path)? {
        return Ok(Some("it has submodules, whose commits are in no snapshot".to_owned()));
    }
    if let Some(first) = branch_worktree::inner_repositories(path)?.first() {
        let first = shown(first.trim_end_matches('/'));
        return Ok(Some(format!("it has a repository of its own in `{first}`, which is in no snapshot")));
    }
    let now = trees.snapshot()?.tree;
    let changes = trees.changes(&last.tree, &now)?;
    let names: Vec<String> = changes.iter().take(NAMES_MAX).map(|change| shown(&change.path)).collect();
    let more = if changes.len() > names.len() { ", …" } else { "" };
    Ok((!changes.is_empty()).then(|| format!("changed after the run: {}{more}", names.join(", "))))
}

fn too_much(ignored: &IgnoredFiles) -> String {
    let first = ignored.files.iter().take(NAMES_MAX).map(|path| shown(&path.to_string_lossy()));
    let first: Vec<String> = first.collect();
    let more = if ignored.files.len() > first.len() { ", …" } else { "" };
    format!(
        "git ignores {} MiB in it, which is too much to be kept: {}{more}",
        ignored.bytes >> 20,
        first.join(", ")
    )
}

/// Keeps what is nowhere else, and removes a worktree. Repeated after a kill, it goes on.
pub(super) fn take_away(
    place: &ProjectPlace,
    journal: &dyn Journal,
    owned: &OwnedWorktree,
) -> Result<(), Failure> {
    let (root, first) = (place.home.root(), owned.made_by());
    let _lock = TreeLock::take(&place.home, &owned.id, Some(&first), "clean up when that has ended", None)?;
    // Somebody may have gone on meanwhile.
    let view = view_of(journal, &owned.id)?;
    let gone_on = match &view.state {
        RunState::Ended(_) if owned.path.is_dir() => changed_since(place, &owned.path, &owned.run)?,
        RunState::Ended(_) => None,
        _ => Some(format!("the run is not over ({})", view.standing())),
    };
    if let Some(why) = gone_on {
        return Err(Failure::usage(
            format!("the worktree of run {} stays: {why}", owned.id),
            hint_of_kept_worktree(owned),
        ));
    }
    let branch = owned.run.started().place.branch.clone().unwrap_or_default();
    let keep = format!("refs/cuegate/{first}");
    if !owned.ignored.files.is_empty() {
        let name = format!("{keep}-ignored");
        owned.ignored.keep(root, &owned.path, &name)?;
        let files = plural(owned.ignored.files.len() as u64, "file");
        print::print_line(&format!("{files} of run {first} that git ignores stay as `{name}`"));
    }
    for kept in branch_worktree::remove_worktree(root, &owned.path, &branch, &keep)? {
        print::print_line(&format!("commits of run {first} stay as `{kept}`"));
    }
    // Nothing goes on in that folder.
    let folder = PathBuf::from(owned.run.started().place.start_folder());
    let sessions = list_sessions(journal, &owned.id)?;
    remove_sessions(&place.home, &load_config(root)?, &owned.id, &sessions, Some(&folder))?;
    Ok(())
}
