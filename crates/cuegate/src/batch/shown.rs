//! Batches as people see them: their tasks with the present states of their runs, and which of these were reviewed.

use std::{fs, io::ErrorKind, path::PathBuf, sync::Arc};

use cuegate_engine::{Batch, StopKind, TakenTask};
use cuegate_journal::{Journal, RunId};
use cuegate_runner::{StateDir, read_batch};
use cuegate_view::{BatchRow, Liveness, ReviewFacts, RunState, TaskRow, batch_json};

use super::run_of_task;
use crate::{Failure, project};

/// The journal of batches, for reading; `None` if there was no batch.
pub(crate) fn journal_of_batches(home: &StateDir) -> Result<Option<Arc<dyn Journal>>, Failure> {
    Ok(home.open_batches(None)?)
}

/// Finds a batch by its id, a unique prefix of it, or `last`.
///
/// # Errors
/// When there is none, or several fit.
pub(crate) fn find_batch(home: &StateDir, typed: &str) -> Result<(RunId, Batch), Failure> {
    let none =
        || Failure::usage("this project has no batches", "`cuegate work AGENT --label LABEL` starts one");
    let journal = journal_of_batches(home)?.ok_or_else(none)?;
    let batches: Vec<RunId> =
        journal.runs()?.into_iter().filter(|batch| batch.has_records).map(|batch| batch.run).collect();
    let fits = |id: &&RunId| typed == "last" || id.as_str().starts_with(typed);
    let matching: Vec<&RunId> = batches.iter().filter(fits).collect();
    let id = match matching[..] {
        [] if batches.is_empty() => return Err(none()),
        [] => {
            return Err(Failure::usage(
                format!("there is no batch `{typed}`"),
                "`cuegate work --list` prints all, `cuegate work --show` the last one",
            ));
        }
        [first, ..] if typed == "last" || first.as_str() == typed => first.clone(),
        [only] => only.clone(),
        [..] => {
            return Err(Failure::usage(format!("`{typed}` matches several batches"), "give a longer prefix"));
        }
    };
    let (batch, ..) = read_batch(&*journal, &id)?;
    Ok((id, batch))
}

/// The batches of a project, the newest first. One that cannot be read is left out.
///
/// # Errors
/// When the journal cannot be read.
pub(crate) fn list_batches(home: &StateDir, runs: Option<&dyn Journal>) -> Result<Vec<BatchRow>, Failure> {
    let Some(journal) = journal_of_batches(home)? else { return Ok(Vec::new()) };
    let mut rows = Vec::new();
    for known in journal.runs()?.into_iter().filter(|known| known.has_records) {
        let Ok((batch, ..)) = read_batch(&*journal, &known.run) else { continue };
        let tasks = rows_of_batch(home, runs, &batch);
        let object = batch_json(known.run.as_str(), &batch, &tasks);
        rows.push(BatchRow { batch: known.run.to_string(), began_ms: known.created_at_ms, object });
    }
    rows.sort_by_key(|row| std::cmp::Reverse(row.began_ms));
    Ok(rows)
}

/// The tasks that were taken, with the present states of their runs.
pub(crate) fn rows_of_batch(home: &StateDir, runs: Option<&dyn Journal>, batch: &Batch) -> Vec<TaskRow> {
    let row = |taken: &TakenTask| {
        let run = taken.run.as_ref().and_then(|run| Some((runs?, run.parse::<RunId>().ok()?)));
        let Some((journal, id)) = run else { return TaskRow::new(taken, None, None, None) };
        let is = match run_of_task(journal, taken) {
            Some(Ok(is)) => is,
            None => return TaskRow::new(taken, None, None, None),
            Some(Err(why)) => return TaskRow { state: why, ..TaskRow::new(taken, None, None, None) },
        };
        let view = project::view_of(journal, &id).ok();
        let Some(view) = view.filter(|view| view.started_ms.is_some()) else {
            return TaskRow::new(taken, Some(is), None, None);
        };
        if view.state == RunState::Running && view.live == Liveness::Alive {
            return TaskRow {
                state: view.standing(),
                ..TaskRow::new(taken, None, view.usage.cost_usd, None)
            };
        }
        let review = ReviewFacts::from_run(&view, is_reviewed(home, &id));
        let request = review.pull_request.as_ref().filter(|_| is.stop == StopKind::Completed);
        let next = match request {
            Some(request) => Some(format!("pull request #{}: {}", request.number, request.url)),
            None => view.suggest_next_commands().into_iter().next(),
        };
        TaskRow { review: Some(review), ..TaskRow::new(taken, Some(is), view.usage.cost_usd, next) }
    };
    batch.taken.iter().map(row).collect()
}

/// The file whose presence says that a person reviewed a run.
fn reviewed_path(home: &StateDir, run: &RunId) -> PathBuf {
    home.run(run).join("reviewed")
}

/// Whether a person reviewed a run, by their mark on this machine.
pub(crate) fn is_reviewed(home: &StateDir, run: &RunId) -> bool {
    reviewed_path(home, run).exists()
}

/// Marks a run as reviewed, or takes that back.
///
/// # Errors
/// When the mark cannot be written.
pub(crate) fn mark_reviewed(home: &StateDir, run: &RunId, is_reviewed: bool) -> Result<(), Failure> {
    let path = reviewed_path(home, run);
    let done = match is_reviewed {
        true => fs::create_dir_all(home.run(run)).and_then(|()| fs::write(&path, "")),
        false => fs::remove_file(&path).or_else(|error| match error.kind() {
            ErrorKind::NotFound => Ok(()),
            _ => Err(error),
        }),
    };
    done.map_err(|error| Failure::environment(format!("failed to write `{}`: {error}", path.display())))
}
