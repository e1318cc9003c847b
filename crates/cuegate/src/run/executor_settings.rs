//! The settings of the executor of a run, as far as they are the same however the run came to be driven.

use std::path::PathBuf;

use cuegate_runner::{EffectPlan, ExecutorMessage, ExecutorSettings, RunWriter};
use tokio::sync::mpsc;

use super::start_run::{ASK_TIMEOUT, Host, IDLE_WARNING, folder_of, sealed_files_of_run};
use crate::agents::RunAgents;

/// Settings without snapshots and a sandbox, for a run that works in `work`.
pub(super) fn build_executor_settings(
    host: &Host,
    book: &RunWriter,
    agents: RunAgents,
    work: PathBuf,
    effects: EffectPlan,
    heard: mpsc::Sender<ExecutorMessage>,
) -> ExecutorSettings {
    let Host { home, journal, program, config } = host;
    let started = book.run().started();
    ExecutorSettings {
        run: book.id().clone(),
        home: home.clone(),
        lease: book.lease().clone(),
        journal: journal.clone(),
        fence_key: started.fence_key.clone(),
        agents: agents.into_called(),
        ask_timeout: config.run.call_timeout.unwrap_or(ASK_TIMEOUT),
        idle_warning: config.run.idle_warning.unwrap_or(IDLE_WARNING),
        shim: program.shim(),
        clock: book.clock(),
        cwd: folder_of(&work, &started.place),
        work,
        owned: started.place.owned,
        branch: started.place.branch.clone(),
        effects,
        hides_tokens: !config.github.token_for_agents,
        former: Box::new(|_| None),
        trees: None,
        main: None,
        suspect: None,
        spares_new_files: config.boundary.spares_new_files(),
        sandbox: None,
        sealed: sealed_files_of_run(started),
        trace: None,
        heard,
    }
}
