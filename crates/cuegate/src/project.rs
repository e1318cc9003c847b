//! The project of a run, and its journal.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
    time::{Duration, Instant},
};

use cuegate_engine::{RunStarted, State, TreeState};
use cuegate_journal::{Journal, Liveness as Owning, RunId, log::Durability};
use cuegate_runner::{StateDir, now_ms, read_stored_text, worktree::project_top};
use cuegate_view::{Liveness, RunFold, RunView, StampedRecord};

use crate::{Failure, run_changes::ChangeHistory};

/// The top folder of a project: of the git working tree, else the folder itself.
pub fn root_of(here: &Path) -> PathBuf {
    project_top(here).unwrap_or_else(|| here.to_owned())
}

/// Opens the journal of a project for writing; it is created if missing.
///
/// # Errors
/// When it cannot be opened.
pub fn open_project_journal(home: &StateDir, durability: Durability) -> Result<Arc<dyn Journal>, Failure> {
    home.open_runs(Some(durability))?.ok_or_else(no_runs)
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
    Ok(home.open_runs(None)?)
}

/// Refuses a run whose files are elsewhere, in the project or on the machine that made it.
///
/// # Errors
/// When they are.
pub(crate) fn check_is_here(home: &StateDir, journal: &dyn Journal, id: &RunId) -> Result<(), Failure> {
    if home.has_files_of(id) {
        return Ok(());
    }
    let run = cuegate_runner::read_run(journal, id)?;
    Err(Failure::usage(
        format!(
            "the files of run {id} are not here: it worked in `{}`, in another project or on another machine",
            run.started().place.work
        ),
        format!(
            "use the command there, or move the run here with `cuegate resume {id}`; `status`, `log`, `diff` and `answer` \
             work everywhere"
        ),
    ))
}

/// Finds the run with this id or unique prefix; `last` is the newest run of this project, else of the journal.
///
/// # Errors
/// When no run or several runs match.
pub fn find_run_id(home: &StateDir, journal: &dyn Journal, typed: &str) -> Result<RunId, Failure> {
    // A run without records crashed before it started, unless they are lost; then reading it fails with the reason.
    let runs = journal.runs()?.into_iter().filter(|run| run.has_records || run.damage.is_some());
    let runs: Vec<RunId> = runs.map(|run| run.run).collect();
    if typed == "last" {
        let own = runs.iter().find(|run| home.has_files_of(run)).cloned();
        return own.or_else(|| runs.into_iter().next()).ok_or_else(no_runs);
    }
    let mut matching: Vec<&RunId> = runs.iter().filter(|run| run.as_str() == typed).collect();
    if matching.is_empty() {
        matching = runs.iter().filter(|run| run.as_str().starts_with(typed)).collect();
    }
    match matching.as_slice() {
        [run] => Ok((*run).clone()),
        // `status`, `diff` and others read exported runs, so a file is tried with any command.
        [] if Path::new(typed).is_file() => Err(Failure::usage(
            format!("`{typed}` is a file, and this needs a run of this project"),
            format!("if it is an exported run: `cuegate status {typed}`, `cuegate diff {typed}`"),
        )),
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

/// A run, folded record by record.
pub(crate) struct FoldedRun {
    /// Its state and history for people.
    pub(crate) view: RunView,
    /// Its state for the engine, and who changed which files.
    pub(crate) history: ChangeHistory,
    /// The time of its last record, in milliseconds since 1970.
    pub(crate) last_ms: Option<i64>,
}

impl FoldedRun {
    /// Reads a run.
    ///
    /// # Errors
    /// When the journal cannot be read.
    pub(crate) fn read(journal: &dyn Journal, id: &RunId) -> Result<FoldedRun, Failure> {
        let (mut history, mut last_ms) = (ChangeHistory::default(), None);
        let view = fold_view(journal, id, |record| {
            history.apply(record);
            last_ms = Some(record.at_ms);
        })?;
        Ok(FoldedRun { view, history, last_ms })
    }
}

/// The state of a run for people.
///
/// # Errors
/// When the journal cannot be read.
pub(crate) fn view_of(journal: &dyn Journal, id: &RunId) -> Result<RunView, Failure> {
    fold_view(journal, id, |_| {})
}

fn fold_view(
    journal: &dyn Journal,
    id: &RunId,
    mut each: impl FnMut(&StampedRecord),
) -> Result<RunView, Failure> {
    let mut fold = RunFold::new(id.as_str());
    cuegate_runner::read_each_record(journal, id, 0, |entry| {
        let record = StampedRecord { seq: entry.seq, at_ms: entry.at_ms, events: entry.events };
        fold.apply(&record);
        each(&record);
    })?;
    let mut view = fold.into_view(liveness_of_run(journal, id)?);
    view.seen_ms = Some(now_ms());
    view.is_answered = cuegate_runner::has_inbox_answer(journal, id)?;
    view.task = view.task_blob.as_ref().and_then(|task| read_stored_text(journal, id, task).ok());
    Ok(view)
}

/// Whether a process drives a run. A running run without a live owner has crashed.
///
/// # Errors
/// When the journal cannot be read.
pub(crate) fn liveness_of_run(journal: &dyn Journal, id: &RunId) -> Result<Liveness, Failure> {
    Ok(match journal.holder(id)?.map(|lease| lease.owner.liveness()) {
        None => Liveness::None,
        Some(Owning::Dead) => Liveness::Dead,
        Some(Owning::Alive | Owning::Unknown) => Liveness::Alive,
    })
}

/// How long a process may hold a run after its last record. It sends telemetry meanwhile.
const RELEASE_MAX: Duration = Duration::from_secs(10);

/// Waits while the process that wrote that a run ended or waits still holds it. Who reads that record may act on the run
/// at once.
///
/// # Errors
/// When the journal cannot be read. A run that is still held is none: taking its lease says by whom.
pub(crate) fn wait_for_release(journal: &dyn Journal, id: &RunId) -> Result<(), Failure> {
    let until = Instant::now() + RELEASE_MAX;
    while journal.holder(id)?.is_some_and(|lease| lease.owner.liveness() == Owning::Alive)
        && is_at_rest(journal, id)?
        && Instant::now() < until
    {
        std::thread::sleep(Duration::from_millis(20));
    }
    Ok(())
}

/// Whether the last record of a run says that it ended or waits.
fn is_at_rest(journal: &dyn Journal, id: &RunId) -> Result<bool, Failure> {
    Ok(matches!(cuegate_runner::read_run(journal, id)?.state, State::Ended { .. } | State::Suspended(_)))
}

/// The tree with which a run started, or the run whose worktree it follows.
///
/// # Errors
/// When the journal cannot be read.
pub(crate) fn first_tree(journal: &dyn Journal, started: &RunStarted) -> Result<Option<TreeState>, Failure> {
    let Some(first) = &started.place.follows else { return Ok(started.tree.clone()) };
    let first: RunId = first.parse().map_err(|_| no_runs())?;
    Ok(cuegate_runner::read_run(journal, &first)?.started().tree.clone())
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
