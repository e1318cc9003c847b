//! The project of a run, and its journal.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use cuegate_engine::{Run, RunStarted, TreeState};
use cuegate_journal::{
    Journal, Liveness as Owning, RunId,
    sqlite::{Durability, Options, SqliteJournal},
};
use cuegate_runner::{StateDir, read_stored_text, worktree::project_top};
use cuegate_view::{Liveness, RunView, StampedRecord, run_view};

use crate::Failure;

/// The top folder of a project: of the git working tree, else the folder itself.
pub fn root_of(here: &Path) -> PathBuf {
    project_top(here).unwrap_or_else(|| here.to_owned())
}

/// Opens the journal of a project for writing; it is created if missing.
///
/// # Errors
/// When it cannot be opened.
pub fn open_project_journal(home: &StateDir, durability: Durability) -> Result<Arc<dyn Journal>, Failure> {
    Ok(Arc::new(SqliteJournal::open(home.journal(), Options { durability })?))
}

/// Opens the journal of a project with runs for writing.
///
/// # Errors
/// When there is none, or it cannot be opened.
pub fn open_existing(home: &StateDir, durability: Durability) -> Result<Arc<dyn Journal>, Failure> {
    // Reading creates no file.
    open_journal_read_only(home)?.ok_or_else(no_runs)?;
    open_project_journal(home, durability)
}

/// Opens the journal of a project for reading. `None` if the project has no journal.
///
/// # Errors
/// When it exists and cannot be read.
pub fn open_journal_read_only(home: &StateDir) -> Result<Option<Arc<dyn Journal>>, Failure> {
    match SqliteJournal::open_read_only(home.journal()) {
        Ok(journal) => Ok(Some(Arc::new(journal))),
        // No run was recorded, or a process was killed between creating the file and writing its schema.
        Err(cuegate_journal::Error::Missing { .. }) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// Finds the run with this id or unique prefix; `last` is the newest run.
///
/// # Errors
/// When no run or several runs match.
pub fn find_run_id(journal: &dyn Journal, typed: &str) -> Result<RunId, Failure> {
    // A run without records crashed before it started, unless they are lost; then reading it fails with the reason.
    let runs = journal.runs()?.into_iter().filter(|run| run.records > 0 || run.damage.is_some());
    let runs: Vec<RunId> = runs.map(|run| run.run).collect();
    if typed == "last" {
        return runs.into_iter().next().ok_or_else(no_runs);
    }
    let mut matching: Vec<&RunId> = runs.iter().filter(|run| run.as_str() == typed).collect();
    if matching.is_empty() {
        matching = runs.iter().filter(|run| run.as_str().starts_with(typed)).collect();
    }
    match matching.as_slice() {
        [run] => Ok((*run).clone()),
        [] => Err(Failure::usage(format!("there is no run `{typed}`"), "`cuegate runs` lists them")),
        several => {
            let names: Vec<&str> = several.iter().map(|run| run.as_str()).collect();
            Err(Failure::usage(
                format!("`{typed}` matches several runs: {}", names.join(", ")),
                "give a longer prefix",
            ))
        }
    }
}

/// The state of a run, folded from its journal records.
///
/// # Errors
/// When the journal cannot be read.
pub(crate) fn view_of(journal: &dyn Journal, id: &RunId) -> Result<(RunView, Vec<StampedRecord>), Failure> {
    let entries = cuegate_runner::read_records(journal, id)?;
    let records: Vec<StampedRecord> = entries
        .into_iter()
        .map(|entry| StampedRecord { seq: entry.seq, at_ms: entry.at_ms, events: entry.events })
        .collect();
    let live = match journal.holder(id)?.map(|lease| lease.owner.liveness()) {
        None => Liveness::None,
        Some(Owning::Dead) => Liveness::Dead,
        Some(Owning::Alive | Owning::Unknown) => Liveness::Alive,
    };
    // A running run without a live owner has crashed.
    let mut view = run_view(id.as_str(), &records, live);
    view.is_answered = cuegate_runner::has_inbox_answer(journal, id)?;
    view.task = view.task_blob.as_ref().and_then(|task| read_stored_text(journal, task).ok());
    Ok((view, records))
}

/// The tree with which a run started, or the run whose worktree it follows.
///
/// # Errors
/// When the journal cannot be read.
pub(crate) fn first_tree(journal: &dyn Journal, started: &RunStarted) -> Result<Option<TreeState>, Failure> {
    let Some(first) = &started.place.follows else { return Ok(started.tree.clone()) };
    let entries = cuegate_runner::read_records(journal, &find_run_id(journal, first)?)?;
    Ok(Run::fold(entries.iter().take(1).map(|entry| entry.events.as_slice())).started().tree.clone())
}

/// The failure for a project without runs.
pub fn no_runs() -> Failure {
    Failure::usage("this project has no runs", "`cuegate run PATH` starts one")
}

/// A new run id: eight letters and digits that are easy to type.
pub fn new_run_id() -> RunId {
    use std::hash::{BuildHasher, Hasher};
    // No vowels, to avoid words; no 0, 1 and l, which look alike.
    const LETTERS: &[u8; 28] = b"bcdfghjkmnpqrstvwxz23456789y";
    let mut random = std::collections::hash_map::RandomState::new().build_hasher().finish();
    let mut name = String::new();
    for _ in 0..8 {
        name.push(char::from(LETTERS[(random % 28) as usize]));
        random /= 28;
    }
    name.parse().expect("letters and digits are a name for a run")
}
