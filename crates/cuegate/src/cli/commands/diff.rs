//! `diff`: the changes of a run, and how to undo them.

use std::{collections::BTreeSet, path::Path};

use cuegate_engine::{Event, Run, TreeState};
use cuegate_journal::Journal;
use cuegate_runner::worktree::Trees;
use cuegate_view::Stamped;
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
    let (_, records) = super::view_of(&*journal, &id)?;
    let run = Run::fold(records.iter().map(|record| record.events.as_slice()));
    let trees = open(place, &run)?;
    let whole = if args.whole { first_tree(&*journal, &run)? } else { None };
    let Some(mut changed) = Changed::of(&records, &run, trees.as_ref())? else {
        return Err(Failure::usage(
            format!("run {id} worked outside of git, so the state before it was not recorded"),
            "run `git init` before the next run",
        ));
    };
    let trees = trees.ok_or_else(|| {
        Failure::environment(format!("`{}` is no longer in a git repository", place.home.root().display()))
    })?;
    if let Some(from) = whole {
        changed.from = from;
    }
    if !changed.shared.is_empty() {
        let names: Vec<&str> = changed.shared.iter().map(String::as_str).collect();
        print::line(&format!(
            "note: files that the run changed were also changed by others meanwhile: {}",
            names.join(", ")
        ));
    }
    if args.json {
        print::json(&changed.as_json(&trees, id.as_str())?);
    } else if args.stat {
        for stat in changed.stat(&trees)? {
            let number = |lines: Option<u64>| lines.map_or_else(|| "-".to_owned(), |lines| lines.to_string());
            print::data(&format!("+{:<6} -{:<6} {}", number(stat.added), number(stat.removed), stat.path));
        }
    } else {
        let patch = changed.patch(&trees)?;
        if patch.is_empty() {
            print::line(&format!("run {id} changed nothing"));
        }
        print::bytes(&patch);
    }
    Ok(exit::DONE)
}

/// The changes of a run as a patch, or those between two of its records; `None` if the run recorded no trees.
pub(super) fn patch(
    place: &Place,
    records: &[Stamped],
    run: &Run,
    between: Option<(u64, u64)>,
) -> Result<Option<Vec<u8>>, Failure> {
    let Some(trees) = open(place, run)? else { return Ok(None) };
    let Some((from_seq, to_seq)) = between else {
        let changed = Changed::of(records, run, Some(&trees))?;
        return changed.map(|changed| changed.patch(&trees)).transpose();
    };
    let tree_after = |is_in: &dyn Fn(u64) -> bool| {
        let part = records.iter().filter(|record| is_in(record.seq));
        Run::fold(part.map(|record| record.events.as_slice())).tree
    };
    let (before, after) = (tree_after(&|seq| seq < from_seq), tree_after(&|seq| seq <= to_seq));
    let before = before.or_else(|| run.started().tree.clone());
    let (Some(before), Some(after)) = (before, after) else { return Ok(None) };
    Ok(Some(trees.patch(&before.tree, &after.tree, &[])?))
}

/// The tree with which a run started, or the run whose worktree it follows.
pub(super) fn first_tree(journal: &dyn Journal, run: &Run) -> Result<Option<TreeState>, Failure> {
    let Some(first) = &run.started().place.follows else { return Ok(run.started().tree.clone()) };
    let entries = cuegate_runner::records(journal, &project::find(journal, first)?)?;
    Ok(Run::fold(entries.iter().take(1).map(|entry| entry.events.as_slice())).started().tree.clone())
}

/// Opens the tree store of the project; any worktree of the repository can read it.
fn open(place: &Place, run: &Run) -> Result<Option<Trees>, Failure> {
    let place_of = &run.started().place;
    let work = Path::new(&place_of.work);
    let at = if place_of.owned && work.is_dir() { work } else { place.home.root() };
    Ok(Trees::open(at, &place.home.trees())?)
}

/// The changes of a run, without those made by others meanwhile.
struct Changed {
    from: TreeState,
    to: TreeState,
    /// The paths that the run changed; empty if nobody else changed any.
    only: Vec<String>,
    /// Paths that both the run and others changed.
    shared: BTreeSet<String>,
    /// Whether HEAD moved while no agent worked.
    moved_by_others: bool,
}

impl Changed {
    /// `None` if the run recorded no trees.
    fn of(records: &[Stamped], run: &Run, trees: Option<&Trees>) -> Result<Option<Changed>, Failure> {
        let (Some(from), Some(to)) = (run.started().tree.clone(), run.tree.clone()) else { return Ok(None) };
        let (mut own, mut others) = (BTreeSet::new(), BTreeSet::new());
        let mut so_far = Run::default();
        let mut moved_by_others = false;
        let unknown = cuegate_view::files_of_unknown_origin(records);
        others.extend(unknown.iter().cloned());
        for record in records {
            let head = so_far.tree.as_ref().and_then(|tree| tree.head.clone());
            for event in &record.events {
                let before = so_far.tree.clone();
                so_far.apply(event);
                match event {
                    Event::Answered { changed_files, .. } | Event::Faulted { changed_files, .. } => {
                        own.extend(changed_files.iter().cloned())
                    }
                    Event::TreeSeen { changed_files, .. } => {
                        own.extend(changed_files.iter().filter(|path| !unknown.contains(*path)).cloned());
                    }
                    Event::ChangedByOthers { paths, .. } => others.extend(paths.iter().cloned()),
                    // Changes made while the run was suspended became its new base tree.
                    Event::Resumed { .. } | Event::PersonAnswered { .. } => {
                        if let (Some(before), Some(after), Some(trees)) = (before, &so_far.tree, trees)
                            && before.tree != after.tree
                        {
                            others.extend(
                                trees.changes(&before.tree, &after.tree)?.into_iter().map(|c| c.path),
                            );
                        }
                    }
                    _ => {}
                }
            }
            so_far.seq += 1;
            let goes_on =
                |event: &Event| matches!(event, Event::Resumed { .. } | Event::PersonAnswered { .. });
            let now = so_far.tree.as_ref().and_then(|tree| tree.head.clone());
            moved_by_others |= head.is_some() && head != now && record.events.iter().any(goes_on);
        }
        let shared = own.intersection(&others).cloned().collect();
        let only = if others.is_empty() { Vec::new() } else { own.into_iter().collect() };
        // If only others changed files, the difference of the run is empty.
        let to = if !others.is_empty() && only.is_empty() { from.clone() } else { to };
        Ok(Some(Changed { from, to, only, shared, moved_by_others }))
    }

    fn patch(&self, trees: &Trees) -> Result<Vec<u8>, Failure> {
        Ok(trees.patch(&self.from.tree, &self.to.tree, &self.only)?)
    }

    fn stat(&self, trees: &Trees) -> Result<Vec<cuegate_runner::worktree::Stat>, Failure> {
        let mut stat = trees.stat(&self.from.tree, &self.to.tree)?;
        stat.retain(|stat| self.only.is_empty() || self.only.contains(&stat.path));
        Ok(stat)
    }

    fn as_json(&self, trees: &Trees, run: &str) -> Result<Value, Failure> {
        let files: Vec<Value> = self
            .stat(trees)?
            .into_iter()
            .map(|stat| json!({"path": stat.path, "added": stat.added, "removed": stat.removed}))
            .collect();
        Ok(json!({
            "schema": "cuegate/diff/v1", "run": run,
            "from": {"tree": self.from.tree, "head": self.from.head},
            "to": {"tree": self.to.tree, "head": self.to.head},
            "files": files, "changed_by_others_too": self.shared,
            "patch": String::from_utf8_lossy(&self.patch(trees)?),
        }))
    }
}

/// The files that differ between the start and the end of a run; `None` if that cannot be told.
pub(super) fn difference(place: &Place, records: &[Stamped]) -> Option<Vec<String>> {
    let run = Run::fold(records.iter().map(|record| record.events.as_slice()));
    let trees = open(place, &run).ok()??;
    let changed = Changed::of(records, &run, Some(&trees)).ok()??;
    Some(changed.stat(&trees).ok()?.into_iter().map(|stat| stat.path).collect())
}

pub(super) fn undo_hint(place: &Place, id: &str, records: &[Stamped]) -> Option<String> {
    let run = Run::fold(records.iter().map(|record| record.events.as_slice()));
    let place_of = &run.started().place;
    if place_of.owned {
        return Some(format!("cuegate clean {id}"));
    }
    let trees = open(place, &run).ok()??;
    let changed = Changed::of(records, &run, Some(&trees)).ok()??;
    if !changed.shared.is_empty() || changed.stat(&trees).ok()?.is_empty() {
        return None;
    }
    // In a folder below the top git would apply only a part of the patch.
    let at = if place.here == place.home.root() {
        String::new()
    } else {
        format!(" -C {}", quoted(place.home.root()))
    };
    let files = format!("cuegate diff {id} | git{at} apply -R");
    match (&changed.from.head, &changed.to.head) {
        // Reset the commits first; the files keep the changes until the reverse patch removes them.
        (Some(before), after) if Some(before) != after.as_ref() && !changed.moved_by_others => {
            Some(format!("git{at} reset -q {} && {files}", before.get(..12).unwrap_or(before)))
        }
        _ => Some(files),
    }
}

/// Quotes a path for the shell.
pub(super) fn quoted(path: &Path) -> String {
    let word = path.display().to_string();
    let plain = |c: char| c.is_ascii_alphanumeric() || "/._-+,:@%".contains(c);
    if word.chars().all(plain) {
        return word;
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}
