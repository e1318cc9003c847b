//! Effects of a run that is over: no agent is needed for them.

use cuegate_engine::{CommandId, Completion, Run, State, WaitKind};
use cuegate_journal::RunId;
use cuegate_runner::{Entry, ExecutorSettings, RunWriter, worktree::Trees};
use tokio::sync::mpsc;

use super::executor_settings::build_executor_settings;
use super::resume_run::reload_with;
use super::start_run::{Host, PreparedRun};
use crate::Failure;
use crate::agents::RunAgents;
use crate::github::{effect_plan, reconnect_run};

/// Settles an effect of a run on GitHub that failed or whose result is unknown: it is done at this address, or tried
/// again. No agent is needed.
///
/// # Errors
/// When another process drives the run, or the journal fails.
pub fn prepare_effect_settlement(
    host: &Host,
    id: &RunId,
    effect: CommandId,
    url: Option<String>,
) -> Result<PreparedRun, Failure> {
    let Host { journal, .. } = host;
    let entries = cuegate_runner::read_records(&**journal, id)?;
    let run = Run::fold(entries.iter().map(|entry| entry.events.as_slice()));
    let waits = matches!(&run.state, State::Suspended(waiting) if waiting.kind != WaitKind::Interrupted);
    if !waits && !matches!(run.state, State::Ended { .. }) {
        let hint = format!("`cuegate resume {id}` continues it; settle the effect when it has ended");
        return Err(Failure::usage(format!("run {id} is not over"), hint));
    }
    let (flow, _) = reload_with(&**journal, id, &run)?;
    let book = RunWriter::reopen(journal.clone(), id, flow)?;
    for_effects(host, book, entries, Completion::Settled { id: effect, url })
}

/// Journals a completion of a run that is over, and prepares the effects that it requests. No agent is needed.
///
/// # Errors
/// When the journal fails.
pub fn for_effects(
    host: &Host,
    mut book: RunWriter,
    before: Vec<Entry>,
    completion: Completion,
) -> Result<PreparedRun, Failure> {
    let Host { home, config, .. } = host;
    let id = &book.id().clone();
    let started = book.run().started().clone();
    let entry = book.commit(completion, Vec::new(), &[])?;
    let (tell, heard) = mpsc::channel(256);
    let effects = effect_plan(host, &started, book.flow(), id, reconnect_run(&started));
    // It works in the project, whatever folder the run worked in.
    let setting = ExecutorSettings {
        cwd: home.root().to_owned(),
        owned: false,
        trees: Trees::open(home.root(), &home.trees()).ok().flatten(),
        ..build_executor_settings(host, &book, RunAgents::none(), home.root().to_owned(), effects, tell)
    };
    Ok(PreparedRun {
        book,
        setting,
        heard,
        log: None,
        lock: None,
        otel: config.otel.clone(),
        before,
        entries: entry.into_iter().collect(),
        permission: None,
    })
}
