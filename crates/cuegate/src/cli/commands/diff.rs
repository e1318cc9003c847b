//! `diff`: what a run changed, and how to undo it.

use std::path::Path;

use cuegate_engine::{Run, TreeState};
use cuegate_runner::tree::Trees;
use cuegate_view::RunView;
use serde_json::{Value, json};

use super::Place;
use crate::{
    Failure,
    cli::{args::Diff, print},
    exit, project,
};

pub(super) fn diff(place: &Place, args: &Diff) -> Result<u8, Failure> {
    let journal = place.view()?;
    let id = project::find(&*journal, &args.run)?;
    let entries = cuegate_runner::records(&*journal, &id)?;
    let run = Run::fold(entries.iter().map(|entry| entry.events.as_slice()));
    let (Some(from), Some(to)) = (run.started().tree.clone(), run.tree.clone()) else {
        return Err(Failure::usage(
            format!("run {id} worked outside of git, so nobody kept what was there before"),
            "run `git init` before the next run",
        ));
    };
    let trees = open(place, &run.started().place.work)?;
    if args.json {
        print::json(&as_json(&trees, id.as_str(), &from, &to)?);
    } else if args.stat {
        for stat in trees.stat(&from.tree, &to.tree)? {
            let number = |lines: Option<u64>| lines.map_or_else(|| "-".to_owned(), |lines| lines.to_string());
            print::data(&format!("+{:<6} -{:<6} {}", number(stat.added), number(stat.removed), stat.path));
        }
    } else {
        print::data(&trees.patch(&from.tree, &to.tree)?);
    }
    Ok(exit::DONE)
}

/// The trees of a run are in the project's own store; any working tree of the repository can read them.
fn open(place: &Place, work: &str) -> Result<Trees, Failure> {
    let work = Path::new(work);
    let at = if work.is_dir() { work } else { place.home.root() };
    Trees::open(at, &place.home.trees())?.ok_or_else(|| {
        Failure::environment(format!("`{}` is in no git repository any more", place.home.root().display()))
    })
}

fn as_json(trees: &Trees, run: &str, from: &TreeState, to: &TreeState) -> Result<Value, Failure> {
    let files: Vec<Value> = trees
        .stat(&from.tree, &to.tree)?
        .into_iter()
        .map(|stat| json!({"path": stat.path, "added": stat.added, "removed": stat.removed}))
        .collect();
    Ok(json!({
        "schema": "cuegate/diff/v1", "run": run,
        "from": {"tree": from.tree, "head": from.head}, "to": {"tree": to.tree, "head": to.head},
        "files": files, "patch": trees.patch(&from.tree, &to.tree)?,
    }))
}

/// How to undo what a run did, in one line.
pub(super) fn undo_hint(place: &Place, view: &RunView) -> Option<String> {
    if let Some(branch) = view.place.branch.as_deref().filter(|_| view.place.owned) {
        return Some(format!("git worktree remove --force {} && git branch -D {branch}", view.place.work));
    }
    open(place, &view.place.work).ok()?;
    (!view.changed_files.is_empty()).then(|| format!("cuegate diff {} | git apply -R", view.run))
}
