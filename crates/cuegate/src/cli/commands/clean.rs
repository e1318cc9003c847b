//! `clean`: removes worktrees of ended runs.
//!
//! Nothing that an agent wrote is lost with them: the last snapshot of the worktree is in the state dir, from which
//! `diff` and `apply` work, and commits that no other branch has stay below `refs/cuegate`. A worktree whose files differ
//! from that snapshot is kept.

use std::path::{Path, PathBuf};

use cuegate_engine::Run;
use cuegate_journal::{Journal, RunId};
use cuegate_runner::{
    now_ms,
    worktree::{Merge, Trees, branch_worktree},
};
use cuegate_view::{RunState, RunView, clean as shown, plural};
use serde_json::{Value, json};

use super::{Place, diff, view_of};
use crate::{
    Failure,
    cli::{args::Clean, print},
    exit, project, resume_run,
};

/// How many names are listed.
const NAMES_MAX: usize = 5;

/// The worktree of a run.
struct Owned {
    id: RunId,
    view: RunView,
    run: Run,
    path: PathBuf,
    /// Whether its changes are in this working tree.
    merged: bool,
    /// Why it must stay.
    kept: Option<String>,
}

pub(super) fn clean(place: &Place, args: &Clean) -> Result<u8, Failure> {
    let journal = place.view()?;
    let mut all = owned(place, &*journal)?;
    let lists_only = args.run.is_none() && !args.merged && args.older_than.is_none();
    if let Some(typed) = &args.run {
        let id = project::find(&*journal, typed)?;
        all.retain(|owned| owned.id == id);
        let Some(one) = all.first() else {
            return Err(Failure::usage(
                format!("run {id} has no worktree of its own to remove"),
                "`cuegate clean` lists the worktrees",
            ));
        };
        if let Some(why) = &one.kept {
            return Err(Failure::usage(format!("the worktree of run {id} stays: {why}"), hint(one)));
        }
    }
    let chosen = |owned: &Owned| {
        let age = owned.view.ended_ms.and_then(|ended| u64::try_from(now_ms().saturating_sub(ended)).ok());
        let is_old =
            args.older_than.is_some_and(|than| age.is_some_and(|age| u128::from(age) > than.as_millis()));
        owned.kept.is_none() && (args.run.is_some() || args.merged && owned.merged || is_old)
    };
    let mut rows = Vec::new();
    for owned in &all {
        let remove = !lists_only && chosen(owned);
        let ignored =
            if owned.path.is_dir() { branch_worktree::ignored_files(&owned.path)? } else { Vec::new() };
        if remove && !args.dry_run {
            take_away(place, owned)?;
        }
        if args.json {
            rows.push(row(owned, remove && !args.dry_run, &ignored));
            continue;
        }
        let what = match (remove, args.dry_run, &owned.kept) {
            (true, true, _) => format!("would be removed{}", with_ignored(&ignored)),
            (true, false, _) => format!("removed{}", with_ignored(&ignored)),
            (false, _, Some(why)) => format!("stays: {why}"),
            (false, _, None) if owned.merged => "its changes are in this working tree".to_owned(),
            (false, _, None) => "its changes are not in this working tree".to_owned(),
        };
        print::data(&format!("{}  {}  {what}", owned.id, owned.path.display()));
    }
    if args.json {
        print::json(&json!({"schema": "cuegate/clean/v1", "worktrees": rows}));
    } else if all.is_empty() {
        print::line("no run has a worktree here");
    } else if lists_only {
        print::line("nothing was removed; to remove some, add `--merged`, `--older-than 30d` or a run");
    } else if !args.dry_run && args.run.is_some() {
        print::line(&format!("`cuegate diff {0}` and `cuegate apply {0}` still have the changes", all[0].id));
    }
    Ok(exit::DONE)
}

fn row(owned: &Owned, removed: bool, ignored: &[String]) -> Value {
    json!({
        "run": owned.id.as_str(), "path": owned.path.display().to_string(), "branch": owned.view.place.branch,
        "state": owned.view.state.as_str(), "merged": owned.merged, "removed": removed, "kept": owned.kept,
        "ignored": ignored,
    })
}

/// Ignored files are in no snapshot.
fn with_ignored(ignored: &[String]) -> String {
    let names: Vec<String> = ignored.iter().take(NAMES_MAX).map(|name| shown(name)).collect();
    match ignored.len() {
        0 => String::new(),
        all if all > names.len() => {
            format!(", with {} that git ignores: {}, …", plural(all as u64, "path"), names.join(", "))
        }
        _ => format!(", with what git ignores: {}", names.join(", ")),
    }
}

fn hint(owned: &Owned) -> String {
    match owned.view.state {
        RunState::Ended(_) => format!("look at `{}`; commit or copy what you need", owned.path.display()),
        _ => format!("`cuegate cancel {}` ends the run", owned.id),
    }
}

/// The worktrees of all runs, that of several runs once, by the newest of them.
fn owned(place: &Place, journal: &dyn Journal) -> Result<Vec<Owned>, Failure> {
    let trees = Trees::open(place.home.root(), &place.home.trees())?;
    let newest = resume_run::newest_in_worktrees(journal)?;
    let mut all = Vec::new();
    for known in journal.runs()?.into_iter().filter(|known| known.records > 0 && known.damage.is_none()) {
        let (view, records) = view_of(journal, &known.run)?;
        let run = Run::fold(records.iter().map(|record| record.events.as_slice()));
        let path = PathBuf::from(&view.place.work);
        let first = view.place.follows.as_deref().unwrap_or(known.run.as_str());
        let is_newest = newest.get(first).is_none_or(|newest| *newest == known.run);
        if !view.place.owned || !path.is_dir() || !is_newest {
            continue;
        }
        let merged = match (&trees, diff::first_tree(journal, &run)?, &run.tree) {
            (Some(trees), Some(from), Some(to)) => {
                matches!(trees.merge(&from.tree, &to.tree)?, Merge::Clean { ours, merged } if ours == merged)
            }
            _ => false,
        };
        let kept = match &view.state {
            RunState::Ended(_) => changed_since(place, &path, &run)?,
            _ => Some(format!("the run is {}", view.standing())),
        };
        all.push(Owned { id: known.run, view, run, path, merged, kept });
    }
    Ok(all)
}

/// What is in a worktree and in no snapshot of the run.
fn changed_since(place: &Place, path: &Path, run: &Run) -> Result<Option<String>, Failure> {
    let (Some(trees), Some(last)) = (Trees::open(path, &place.home.trees())?, &run.tree) else {
        return Ok(Some("its last state is not recorded".to_owned()));
    };
    if branch_worktree::has_submodules(path)? {
        return Ok(Some("it has submodules, whose commits are in no snapshot".to_owned()));
    }
    let now = trees.snapshot()?.tree;
    let changes = trees.changes(&last.tree, &now)?;
    let names: Vec<String> = changes.iter().take(NAMES_MAX).map(|change| shown(&change.path)).collect();
    let more = if changes.len() > names.len() { ", …" } else { "" };
    Ok((!changes.is_empty()).then(|| format!("changed after the run: {}{more}", names.join(", "))))
}

fn take_away(place: &Place, owned: &Owned) -> Result<(), Failure> {
    let place_of = &owned.run.started().place;
    let branch = place_of.branch.clone().unwrap_or_default();
    let first = place_of.follows.clone().unwrap_or_else(|| owned.id.to_string());
    let keep = format!("refs/cuegate/{first}");
    for kept in branch_worktree::remove(place.home.root(), &owned.path, &branch, &keep)? {
        print::line(&format!("commits of run {first} stay as `{kept}`"));
    }
    Ok(())
}
