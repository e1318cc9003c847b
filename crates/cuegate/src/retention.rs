//! Which runs are no longer kept, and which snapshots the others need.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    ops::ControlFlow,
    os::unix::fs::MetadataExt as _,
    path::Path,
    time::Duration,
};

use cuegate_engine::EndState;
use cuegate_journal::{Journal, Liveness as Owning, RunId, RunSummary, log::map_on_threads};
use cuegate_observe::Observer;
use cuegate_runner::{StateDir, worktree::NeededSnapshots};
use cuegate_view::{RunState, RunView};
use serde_json::Value;

use crate::{
    Failure, Program,
    config::{Config, RetentionConfig},
    project, providers,
};

/// How much is kept; without any limit every run is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct RetentionRule {
    pub(crate) runs: Option<u64>,
    /// Milliseconds since the end of a run.
    pub(crate) age_ms: Option<u64>,
    /// The size of the state dir, in bytes.
    pub(crate) size: Option<u64>,
}

impl RetentionRule {
    /// The limits of the configuration.
    pub(crate) fn of(config: &RetentionConfig) -> RetentionRule {
        RetentionRule {
            runs: config.runs.map(|runs| runs.0),
            age_ms: config.days.map(|days| days.0.saturating_mul(86_400_000)),
            size: config.size,
        }
    }
}

/// What `gc` knows of a run when it decides whether to remove it.
#[derive(Debug, Clone)]
pub(crate) struct PastRun {
    pub(crate) id: RunId,
    /// `None` if it cannot be read.
    pub(crate) view: Option<RunView>,
    /// The size of its folder, in bytes.
    pub(crate) bytes: u64,
    /// The time of its last record, in milliseconds since 1970.
    pub(crate) last_ms: i64,
    pub(crate) snapshots: NeededSnapshots,
    /// The conversations of its agents, by provider.
    pub(crate) sessions: BTreeMap<String, BTreeSet<String>>,
    /// Why it must stay.
    pub(crate) stays: Option<String>,
}

impl PastRun {
    /// The run that made its worktree, or itself: runs in one worktree go together.
    fn chain(&self) -> String {
        let first = self.view.as_ref().and_then(|view| view.place.follows.clone());
        first.unwrap_or_else(|| self.id.to_string())
    }

    /// What can no longer be done without it. `is_taken`: what it changed is in the working tree.
    pub(crate) fn list_losses(&self, is_taken: bool) -> Vec<&'static str> {
        let mut losses = vec!["replayed"];
        let in_place = self.view.as_ref().filter(|view| !view.place.owned);
        if in_place.is_some_and(|view| !view.changed_files.is_empty()) {
            losses.push("undone");
        }
        match self.view.as_ref().map(|view| &view.state) {
            Some(RunState::Ended(EndState::Exhausted)) => losses.push("resumed"),
            Some(RunState::Ended(EndState::Failed | EndState::Aborted)) => losses.push("retried"),
            _ => {}
        }
        if !is_taken {
            losses.push("applied");
        }
        losses
    }
}

/// Reads all runs, the newest first.
///
/// # Errors
/// When the journal cannot be read. A damaged run is in the list, and stays.
pub(crate) fn read_past_runs(home: &StateDir, journal: &dyn Journal) -> Result<Vec<PastRun>, Failure> {
    let known = journal.runs()?.into_iter().filter(|known| known.has_records || known.damage.is_some());
    let known: Vec<RunSummary> = known.filter(|known| home.has_files_of(&known.run)).collect();
    Ok(map_on_threads(&known, |known| read_past_run(home, journal, known)))
}

fn read_past_run(home: &StateDir, journal: &dyn Journal, known: &RunSummary) -> PastRun {
    let id = known.run.clone();
    let mut run = PastRun {
        bytes: measure_folder(&home.run(&id)),
        id,
        view: None,
        last_ms: known.created_at_ms,
        snapshots: NeededSnapshots::default(),
        sessions: BTreeMap::new(),
        stays: None,
    };
    // What a damaged run names before its damage is kept.
    let read = journal.read_each(&run.id.clone(), 0, &mut |row| {
        run.last_ms = row.at_ms;
        if let Ok(record) = serde_json::from_slice::<Value>(&row.body) {
            find_snapshots(&record, &mut run.snapshots);
            find_sessions(&record, &mut run.sessions);
        }
        ControlFlow::Continue(())
    });
    let is_held = known.owner.as_ref().is_some_and(|owner| owner.liveness() != Owning::Dead);
    run.stays = match (&known.damage, read) {
        (Some(damage), _) => Some(format!("it is damaged: {damage}")),
        (None, Err(error)) => Some(format!("it is damaged: {error}")),
        (None, Ok(())) if is_held => Some("a process works on it".to_owned()),
        (None, Ok(())) => match project::view_of(journal, &run.id) {
            Err(failure) => Some(failure.message),
            Ok(view) => {
                let is_open = !matches!(view.state, RunState::Ended(_));
                let stays = is_open.then(|| format!("it is not over ({})", view.standing()));
                run.view = Some(view);
                stays
            }
        },
    };
    run
}

/// The trees and git states that a record names: each is an object with the digest of the references beside it.
fn find_snapshots(json: &Value, found: &mut NeededSnapshots) {
    match json {
        Value::Object(object) => {
            if object.contains_key("refs") {
                found.trees.extend(object.get("tree").and_then(Value::as_str).map(str::to_owned));
                found.git_states.extend(object.get("git").and_then(Value::as_str).map(str::to_owned));
            }
            object.values().for_each(|value| find_snapshots(value, found));
        }
        Value::Array(list) => list.iter().for_each(|value| find_snapshots(value, found)),
        _ => {}
    }
}

fn find_sessions(record: &Value, found: &mut BTreeMap<String, BTreeSet<String>>) {
    for event in events_of(record) {
        if event["event"] == "forked" {
            // Those before it belong to the source run.
            found.clear();
        }
        if let (Some(session), Some(provider)) = (event["session"].as_str(), event["provider"].as_str()) {
            found.entry(provider.to_owned()).or_default().insert(session.to_owned());
        }
    }
}

/// Removes what agents keep of the conversations of a run, except those from which a fork of it may go on; `folder` is
/// where they worked, if that is gone.
///
/// # Errors
/// When the journal cannot be read.
pub(crate) fn remove_sessions(
    home: &StateDir,
    config: &Config,
    id: &RunId,
    sessions: &BTreeMap<String, BTreeSet<String>>,
    folder: Option<&Path>,
) -> Result<(), Failure> {
    let needed = list_sessions_of_forks(home, id)?;
    let program = Program::current()?;
    for (provider, sessions) in sessions {
        if let Ok(provider) = providers::create_provider(provider, None, &program, config) {
            let own = sessions.difference(&needed).cloned().collect();
            provider.remove_sessions(&own, folder.filter(|_| needed.is_empty()));
        }
    }
    Ok(())
}

/// All conversations in the records of the forks of a run, and of the forks of those.
fn list_sessions_of_forks(home: &StateDir, id: &RunId) -> Result<BTreeSet<String>, Failure> {
    let observer = Observer::new(home.clone());
    let (mut wanted, mut needed) = (vec![id.to_string()], BTreeSet::new());
    let rows = observer.list_runs().map_err(Failure::from)?.rows;
    let Some(journal) = observer.journal().map_err(Failure::from)? else { return Ok(needed) };
    while let Some(source) = wanted.pop() {
        for fork in rows.iter().filter(|row| row.fork_of.as_ref() == Some(&source)) {
            wanted.push(fork.run.clone());
            let Ok(fork) = fork.run.parse() else { continue };
            journal.read_each(&fork, 0, &mut |row| {
                for event in serde_json::from_slice::<Value>(&row.body).iter().flat_map(events_of) {
                    needed.extend(event["session"].as_str().map(str::to_owned));
                }
                ControlFlow::Continue(())
            })?;
        }
    }
    Ok(needed)
}

fn events_of(record: &Value) -> impl Iterator<Item = &Value> {
    record["events"].as_array().into_iter().flatten()
}

/// The conversations of the agents of a run, by provider.
///
/// # Errors
/// When the journal cannot be read.
pub(crate) fn list_sessions(
    journal: &dyn Journal,
    id: &RunId,
) -> Result<BTreeMap<String, BTreeSet<String>>, Failure> {
    let mut sessions = BTreeMap::new();
    journal.read_each(id, 0, &mut |row| {
        let record = serde_json::from_slice::<Value>(&row.body);
        record.iter().for_each(|record| find_sessions(record, &mut sessions));
        ControlFlow::Continue(())
    })?;
    Ok(sessions)
}

/// The runs beyond the limits on their number and age, and then the oldest ones until `size_without` says that the rest is
/// small enough. Runs that must stay do, and so do all runs of a worktree in which one of them stays.
///
/// # Errors
/// As `size_without`.
pub(crate) fn select_runs(
    runs: &[PastRun],
    rule: RetentionRule,
    now_ms: i64,
    mut size_without: impl FnMut(&BTreeSet<RunId>) -> Result<u64, Failure>,
) -> Result<BTreeSet<RunId>, Failure> {
    let mut selected = keep_whole_chains(runs, list_runs_beyond(runs, rule, now_ms));
    let Some(most) = rule.size else { return Ok(selected) };
    // In steps, because each asks git what the rest needs.
    let step = runs.len().div_ceil(16).max(1);
    let mut oldest: Vec<&PastRun> = runs.iter().rev().filter(|run| run.stays.is_none()).collect();
    oldest.retain(|run| !selected.contains(&run.id));
    for chunk in oldest.chunks(step) {
        if size_without(&selected)? <= most {
            break;
        }
        let more = selected.iter().cloned().chain(chunk.iter().map(|run| run.id.clone()));
        selected = keep_whole_chains(runs, more.collect());
    }
    Ok(selected)
}

/// The runs beyond the limits on their number and age, whether or not they must stay. `runs`: the newest first.
pub(crate) fn list_runs_beyond(runs: &[PastRun], rule: RetentionRule, now_ms: i64) -> BTreeSet<RunId> {
    let is_beyond = |(index, run): &(usize, &PastRun)| {
        let age = u64::try_from(now_ms.saturating_sub(run.last_ms)).unwrap_or(0);
        rule.runs.is_some_and(|most| *index as u64 >= most) || rule.age_ms.is_some_and(|most| age > most)
    };
    runs.iter().enumerate().filter(is_beyond).map(|(_, run)| run.id.clone()).collect()
}

/// Leaves out the runs that must stay, and those in the same worktree.
fn keep_whole_chains(runs: &[PastRun], selected: BTreeSet<RunId>) -> BTreeSet<RunId> {
    let stay = runs.iter().filter(|run| run.stays.is_some() || !selected.contains(&run.id));
    let chains: BTreeSet<String> = stay.map(PastRun::chain).collect();
    let is_whole = |run: &&PastRun| selected.contains(&run.id) && !chains.contains(&run.chain());
    runs.iter().filter(is_whole).map(|run| run.id.clone()).collect()
}

/// From this size of the state dir on, in bytes, users are told.
const LARGE: u64 = 1 << 30;
/// How often the size is measured, which is slow for a large folder.
const MEASURE_EVERY: Duration = Duration::from_secs(24 * 60 * 60);

/// The size of the state dir in bytes, if it is large and was not measured for a day.
pub(crate) fn measure_when_due(home: &StateDir) -> Option<u64> {
    let stamp = home.dir().join("size");
    let measured = fs::metadata(&stamp).and_then(|about| about.modified()).ok();
    if measured.and_then(|then| then.elapsed().ok()).is_some_and(|age| age < MEASURE_EVERY) {
        return None;
    }
    let bytes = measure_folder(home.dir());
    // Without the stamp it is only measured more often.
    let _ = fs::write(stamp, bytes.to_string());
    (bytes >= LARGE).then_some(bytes)
}

/// What all files below a folder take on the disk, in bytes.
pub(crate) fn measure_folder(folder: &Path) -> u64 {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries
        .map(|entry| match entry.file_type() {
            Ok(kind) if kind.is_dir() => measure_folder(&entry.path()),
            // What it takes on the disk: a small file takes a whole block.
            _ => entry.metadata().map_or(0, |about| about.blocks() * 512),
        })
        .sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(id: &str, last_ms: i64, stays: bool) -> PastRun {
        PastRun {
            id: id.parse().unwrap(),
            view: None,
            bytes: 10,
            last_ms,
            snapshots: NeededSnapshots::default(),
            sessions: BTreeMap::new(),
            stays: stays.then(|| "it must".to_owned()),
        }
    }

    fn names(runs: &[PastRun], rule: RetentionRule) -> String {
        let size = |without: &BTreeSet<RunId>| Ok(10 * (runs.len() - without.len()) as u64);
        let selected = select_runs(runs, rule, 1_000, size).unwrap();
        selected.iter().map(RunId::as_str).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn limits_select_the_oldest_that_need_not_stay() {
        let runs = [run("d", 900, false), run("c", 800, false), run("b", 500, true), run("a", 100, false)];
        let none = RetentionRule::default();
        assert_eq!(names(&runs, none), "");
        assert_eq!(names(&runs, RetentionRule { runs: Some(1), ..none }), "a c");
        assert_eq!(names(&runs, RetentionRule { age_ms: Some(400), ..none }), "a");
        assert_eq!(names(&runs, RetentionRule { size: Some(30), ..none }), "a");
        assert_eq!(names(&runs, RetentionRule { size: Some(1), ..none }), "a c d");
        assert_eq!(names(&runs, RetentionRule { size: Some(40), ..none }), "");
    }

    #[test]
    fn snapshots_are_found_wherever_a_record_names_them() {
        let record = serde_json::json!({
            "completion": {"answered": {"seen": {"tree": {"tree": "t1", "refs": "r", "git": "g1"}}}},
            "events": [{"event": "x", "tree": {"tree": "t2", "refs": "r"}}, {"tree": "no tree"}]
        });
        let mut found = NeededSnapshots::default();
        find_snapshots(&record, &mut found);
        assert_eq!(found.trees, ["t1", "t2"].map(str::to_owned).into());
        assert_eq!(found.git_states, ["g1".to_owned()].into());
    }
}
