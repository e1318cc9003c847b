//! What a run changed: its files compared with those at its start.

use std::{
    collections::BTreeSet,
    path::Path,
    time::{Duration, SystemTime},
};

use cuegate_engine::{Event, Run, TreeState};
use cuegate_journal::{Journal, RunId};
use cuegate_runner::{
    StateDir,
    worktree::{ChangeSize, FinishedChanges, Trees},
};
use cuegate_view::{LineCount, RunView, StampedRecord, clean_to_one_line, obeyed_by, plural};
use serde_json::{Value, json};

mod gate_files;

use crate::Failure;
use crate::run::start_run::reload_flow;
use gate_files::{find_gate_files, gate_commands};

/// Opens the tree store of the project; any worktree of the repository can read it.
pub(crate) fn open_trees(home: &StateDir, run: &Run) -> Result<Option<Trees>, Failure> {
    let place_of = &run.started().place;
    let work = Path::new(&place_of.work);
    let at = if place_of.owned && work.is_dir() { work } else { home.root() };
    Ok(Trees::open(at, &home.trees())?)
}

/// Opens the tree store for the project's own working tree.
pub(crate) fn open_main(home: &StateDir) -> Result<Trees, Failure> {
    Trees::open(home.root(), &home.trees())?.ok_or_else(|| {
        Failure::environment(format!("`{}` is not in a git repository", home.root().display()))
    })
}

/// Finishes changes of files that a killed `apply`, `undo` or `restore` began, and says so. Call it with the lock of the tree.
pub(crate) fn finish_changes(trees: &Trees) -> Result<Vec<String>, Failure> {
    let finished = trees.finish_changes().map_err(cuegate_runner::Error::from)?;
    let Some(FinishedChanges { finished, left }) = finished else { return Ok(Vec::new()) };
    let mut notes = vec![format!(
        "note: a command that was killed while it changed this working tree is finished: {} changed now",
        plural(finished as u64, "file")
    )];
    if !left.is_empty() {
        let names: Vec<String> = left.iter().map(|path| format!("`{}`", clean_to_one_line(path))).collect();
        notes.push(format!("note: edited since, and left as they are: {}", names.join(", ")));
    }
    Ok(notes)
}

/// Who changed which files, folded record by record, and the state of the run.
#[derive(Debug, Default)]
pub(crate) struct ChangeHistory {
    /// The state of the run after the last record.
    pub(crate) run: Run,
    /// Files that agents changed.
    own: BTreeSet<String>,
    /// Files that were found changed after commands were stopped.
    seen: BTreeSet<String>,
    /// Files that others changed.
    others: BTreeSet<String>,
    /// Files that changed while no process drove the run, and of which no tool call of an agent tells.
    unknown: BTreeSet<String>,
    /// The trees before and after the run waited. Changes that were made meanwhile are in the second one.
    waits: Vec<(String, String)>,
    /// Whether HEAD moved while no agent worked.
    moved_by_others: bool,
}

impl ChangeHistory {
    pub(crate) fn apply(&mut self, record: &StampedRecord) {
        record.update_unknown_changes(&mut self.unknown);
        use Event::{Forked, PersonAnswered, Resumed};
        let goes_on = |event: &Event| matches!(event, Forked(_) | Resumed(_) | PersonAnswered { .. });
        let before = record.events.iter().any(goes_on).then(|| self.run.tree.clone()).flatten();
        for event in &record.events {
            let tree = if goes_on(event) { self.run.tree.clone() } else { None };
            self.run.apply(event);
            match event {
                Event::Answered { changed_files, .. } | Event::Faulted { changed_files, .. } => {
                    self.own.extend(changed_files.iter().cloned());
                }
                Event::TreeSeen { changed_files, .. } => self.seen.extend(changed_files.iter().cloned()),
                Event::ChangedByOthers { paths, .. } => self.others.extend(paths.iter().cloned()),
                _ => {}
            }
            if let (Some(before), Some(after)) = (tree, &self.run.tree)
                && before.tree != after.tree
            {
                self.waits.push((before.tree, after.tree.clone()));
            }
        }
        self.run.seq += 1;
        let head = before.and_then(|tree| tree.head);
        let now = self.run.tree.as_ref().and_then(|tree| tree.head.clone());
        self.moved_by_others |= head.is_some() && head != now;
    }
}

/// The changes of a run, without those made by others meanwhile.
pub(crate) struct RunChanges {
    pub(crate) from: TreeState,
    pub(crate) to: TreeState,
    /// The first tree with what the run changed, and nothing of others.
    pub(crate) own_tree: Option<String>,
    /// Paths that the run was seen to change.
    own: BTreeSet<String>,
    /// Paths that both the run and others changed.
    pub(crate) shared: BTreeSet<String>,
    /// Whether HEAD moved while no agent worked.
    pub(crate) moved_by_others: bool,
}

impl RunChanges {
    /// Where the commits of the run and its files differ, in words after each path. Nothing if others moved HEAD too.
    pub(crate) fn list_committed_otherwise(
        &self,
        trees: &Trees,
    ) -> Result<Vec<(String, &'static str)>, Failure> {
        let (Some(from), Some(to)) = (&self.from.head, &self.to.head) else { return Ok(Vec::new()) };
        if self.moved_by_others {
            return Ok(Vec::new());
        }
        let is_named = |path: &str| path.starts_with(".cuegate/") || obeyed_by(path).is_some();
        let differences = trees.list_commit_differences(from, to, &self.to.tree, &is_named)?;
        Ok(differences.into_iter().map(|one| (one.path, one.kind.describe())).collect())
    }

    /// `None` if the run recorded no trees.
    pub(crate) fn of(history: &ChangeHistory, trees: Option<&Trees>) -> Result<Option<RunChanges>, Failure> {
        let run = &history.run;
        let (Some(from), Some(to)) = (run.started().tree.clone(), run.tree.clone()) else { return Ok(None) };
        let own: BTreeSet<&String> = history.seen.difference(&history.unknown).chain(&history.own).collect();
        let mut others: BTreeSet<String> = history.others.union(&history.unknown).cloned().collect();
        if let Some(trees) = trees {
            for (before, after) in &history.waits {
                others.extend(trees.changes(before, after)?.into_iter().map(|change| change.path));
            }
        }
        let shared = own.iter().filter(|path| others.contains(**path)).map(|path| (*path).clone()).collect();
        let own: BTreeSet<String> = own.into_iter().cloned().collect();
        let own_tree = match trees.filter(|_| !others.is_empty()) {
            Some(trees) => {
                let own: Vec<String> = own.iter().cloned().collect();
                Some(trees.with_entries_of(&from.tree, &to.tree, &own)?)
            }
            None => None,
        };
        Ok(Some(RunChanges { from, to, own_tree, own, shared, moved_by_others: history.moved_by_others }))
    }

    /// Those between two moments, whoever made them.
    pub(crate) fn between(from: TreeState, to: TreeState) -> RunChanges {
        let (own, shared) = (BTreeSet::new(), BTreeSet::new());
        RunChanges { from, to, own_tree: None, own, shared, moved_by_others: false }
    }

    /// The tree with the changes of the run.
    pub(crate) fn last_tree(&self) -> &str {
        self.own_tree.as_deref().unwrap_or(&self.to.tree)
    }

    /// The paths that the run changed at any time, and nobody else; also those that it changed back.
    pub(crate) fn touched(&self, trees: &Trees) -> Result<BTreeSet<String>, Failure> {
        let changed = trees.changes(&self.from.tree, self.last_tree())?.into_iter().map(|change| change.path);
        let all = changed.chain(self.own.iter().cloned());
        Ok(all.filter(|path| !self.shared.contains(path)).collect())
    }

    pub(crate) fn patch(&self, trees: &Trees) -> Result<Vec<u8>, Failure> {
        Ok(trees.patch(&self.from.tree, self.last_tree())?)
    }

    pub(crate) fn stat(&self, trees: &Trees) -> Result<Vec<ChangeSize>, Failure> {
        Ok(trees.stat(&self.from.tree, self.last_tree())?)
    }

    pub(crate) fn as_json(&self, trees: &Trees, run: &str) -> Result<Value, Failure> {
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

/// Compares the files of a run with those at its start, for its views: what differs, which changed files its gates run, and
/// which new files git does not show. What cannot be told stays empty.
pub(crate) fn compare_files(
    home: &StateDir,
    journal: &dyn Journal,
    id: &RunId,
    view: &mut RunView,
    history: &ChangeHistory,
) {
    view.is_reviewed = crate::batch::shown::is_reviewed(home, id);
    let run = &history.run;
    let Ok(Some(trees)) = open_trees(home, run) else { return };
    let Ok(Some(changes)) = RunChanges::of(history, Some(&trees)) else { return };
    let Ok(stat) = changes.stat(&trees) else { return };
    let count = |stat: ChangeSize| (stat.path, LineCount { added: stat.added, removed: stat.removed });
    view.difference = Some(stat.into_iter().map(count).collect());
    view.committed_otherwise = changes.list_committed_otherwise(&trees).unwrap_or_default();
    let agents: BTreeSet<String> = view.agent_changes().into_iter().map(str::to_owned).collect();
    if !agents.is_empty()
        && let Ok(flow) = reload_flow(journal, id, run)
    {
        let (from, to) = (&changes.from.tree, &changes.to.tree);
        let content = |path: &str| {
            [from, to].map(|tree| {
                let bytes = trees.file_of(tree, path).ok().flatten()?;
                Some(String::from_utf8_lossy(&bytes).into_owned())
            })
        };
        let folder = run.started().place.folder.clone().unwrap_or_default();
        view.gate_files = find_gate_files(&gate_commands(&flow), &agents, &folder, &content);
    }
    let place = &run.started().place;
    // The files of a run that was exported are elsewhere.
    let is_there = match place.owned {
        true => Path::new(&place.work).is_dir(),
        false => Path::new(&place.work) == home.root(),
    };
    if let Some(started) = view.started_ms.and_then(|ms| u64::try_from(ms).ok()).filter(|_| is_there) {
        let since = SystemTime::UNIX_EPOCH + Duration::from_millis(started);
        view.hidden_files = trees.hidden_files(&changes.from.tree, since).unwrap_or_default();
    }
}
