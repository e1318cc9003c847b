//! Continuing runs, and what is known of one that nobody drives.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use cuegate_engine::{Budget, Resume, Run, Seen, SourceBlob, Started, State};
use cuegate_flow::model::{BlobRef, Conduct, Flow, Limits, StepId, Verdict};
use cuegate_formats::RunSettings;
use cuegate_journal::{Journal, RunId};
use cuegate_runner::{
    FormerProviders, RunWriter, Setting, StateDir, lookup, sandbox::mend, state_of, worktree::Trees,
};
use tokio::sync::mpsc;

use super::start_run::{ASK_TIMEOUT, Host, Program, Ready};
use crate::{
    Agent, Failure, config::Config, definition, definition::KeptFiles, logfile::LogFile, providers,
    sandbox_setup,
};

/// What a run is continued with; `None` = as before.
#[derive(Debug, Clone, Default)]
pub struct Again {
    /// Another limit of iterations.
    pub iterations_max: Option<u32>,
    /// Another limit of repairs.
    pub repairs_max: Option<u32>,
    /// Another provider.
    pub provider: Option<String>,
    /// Another script, by path and content.
    pub script: Option<(String, String)>,
    /// Another model for all asks.
    pub model: Option<String>,
    /// How long a limit of the provider is waited for, in milliseconds.
    pub wait_max_ms: Option<u64>,
    /// Other limits, where it has some.
    pub budget: Budget,
    /// Whether it goes on without the sandbox that the definition demands.
    pub unsandboxed: bool,
}

/// Loads the flow of a run from what the run kept.
///
/// # Errors
/// When the journal lacks a file, or this program no longer accepts the definition.
pub fn reload(journal: &dyn Journal, run: &Run) -> Result<Arc<Flow>, Failure> {
    Ok(reload_with(journal, run)?.0)
}

/// The same, with what the runner has to know besides.
fn reload_with(journal: &dyn Journal, run: &Run) -> Result<(Arc<Flow>, RunSettings), Failure> {
    let started = run.started();
    let files =
        KeptFiles::new(journal, started.sources.iter().map(|kept| (kept.path.clone(), kept.blob.clone())));
    let loaded =
        definition::load(&files, &started.base, started.file.as_deref(), &started.set, &started.load);
    let settings = loaded.settings.clone();
    let flow = loaded.flow.ok_or_else(|| {
        let first =
            loaded.diagnostics.first().map(|finding| format!(": {}", finding.message)).unwrap_or_default();
        Failure {
            message: format!(
                "this version of cuegate does not accept the definition that the run was begun with{first}"
            ),
            hint: Some(format!("continue it with cuegate {}", started.program)),
            code: crate::exit::ENVIRONMENT,
        }
    })?;
    Ok((flow, settings))
}

/// Makes the providers that may have been asked before this run was resumed, to read what they left.
fn former_providers(
    started: &Started,
    script: Option<(String, String)>,
    program: &Program,
    config: &Config,
) -> FormerProviders {
    let (program, config) = (program.clone(), config.clone());
    let scripted = started.provider == "scripted";
    Box::new(move |name| {
        // Of a script only its own reader knows how far it is; what a scripted agent left under another provider is asked
        // again.
        if name == "scripted" && !scripted {
            return None;
        }
        providers::make(name, script.as_ref(), &program, &config).ok()
    })
}

/// A flow without steps, for what needs none.
pub fn no_flow() -> Arc<Flow> {
    Arc::new(Flow {
        name: "".into(),
        dialect: "",
        entry: StepId(0),
        lost_entry: None,
        steps: Vec::new(),
        schemas: Vec::new(),
        counters: Vec::new(),
        monitors: Vec::new(),
        proofs: Vec::new(),
        verdict: Verdict::Flow,
        limits: Limits { iterations_max: 0 },
        default_model: None,
        params: Vec::new(),
        conduct: Conduct::default(),
        keys: Vec::new(),
    })
}

/// The working tree of a run that nobody drives, and what differs from what its journal says. `None` where there is no
/// git, or the folder is gone.
///
/// # Errors
/// When git fails.
pub fn seen(home: &StateDir, run: &Run) -> Result<Option<Seen>, Failure> {
    let work = PathBuf::from(&run.started().place.work);
    let Some(before) = run.tree.as_ref().filter(|_| work.is_dir()) else { return Ok(None) };
    let Some(trees) = Trees::open(&work, &home.trees())? else { return Ok(None) };
    let tree = state_of(&trees)?;
    let changed = trees.changes(&before.tree, &tree.tree)?.into_iter().map(|change| change.path).collect();
    Ok(Some(Seen { tree, changed, ..Seen::default() }))
}

/// Gets a run ready to go on from its last record.
///
/// # Errors
/// When somebody else drives it, or the provider, the journal or this machine refuses.
pub fn resume(host: &Host, id: &RunId, again: &Again) -> Result<Ready, Failure> {
    let Host { home, journal, program, config } = host;
    let entries = cuegate_runner::records(&**journal, id)?;
    let run = Run::fold(entries.iter().map(|entry| entry.events.as_slice()));
    let (flow, settings) = reload_with(&**journal, &run)?;
    if let Some(node) = &run.node
        && flow.find(&node.step).is_none()
    {
        return Err(Failure {
            message: format!(
                "this version of cuegate has no step `{}` in the definition that the run was begun with",
                node.step
            ),
            hint: Some(format!("continue it with cuegate {}", run.started().program)),
            code: crate::exit::ENVIRONMENT,
        });
    }
    let mut book = RunWriter::reopen(journal.clone(), id, flow)?;
    let started = book.run().started().clone();
    let name = again.provider.clone().unwrap_or_else(|| started.provider.clone());
    let script = match (&again.script, &started.script) {
        (Some(script), _) => Some(script.clone()),
        (None, Some(kept)) => Some((kept.path.clone(), lookup(&**journal, &kept.blob)?)),
        (None, None) => None,
    };
    // A model by another provider's name means nothing to this one.
    let model = again.model.clone().or_else(|| started.model.clone().filter(|_| name == started.provider));
    let budget = book.run().ledger.budget.with(again.budget);
    let agent = Agent::find(&name, script.as_ref(), model.as_deref(), book.flow(), &budget, program, config)?;
    let unsandboxed = again.unsandboxed || started.unsandboxed;
    let sandbox = sandbox_setup::raise(book.flow(), unsandboxed, program)?;
    let work = PathBuf::from(&started.place.work);
    if book.flow().conduct.sandbox.is_some() {
        mend(&work);
    }
    let trees = if work.is_dir() { Trees::open(&work, &home.trees())? } else { return Err(gone(&work)) };
    let found = seen(home, book.run())?;
    // The tree may hold partial edits of an ask that was cut off; nothing else was at work when it waited.
    let suspect = matches!(&book.run().state, State::Running)
        || matches!(&book.run().state, State::Suspended(waiting) if waiting.kind == cuegate_engine::WaitKind::Interrupted);
    let mut texts = Vec::new();
    let new_script = again.script.as_ref().map(|(path, text)| {
        texts.push(text.as_bytes().to_vec());
        SourceBlob { path: path.clone(), blob: BlobRef::of(text.as_bytes()) }
    });
    let entry = book.resume(
        Resume {
            iterations_max: again.iterations_max,
            repairs_max: again.repairs_max,
            provider: again.provider.clone(),
            script: new_script,
            model: again.model.clone(),
            wait_max_ms: again.wait_max_ms.filter(|wait| *wait != started.wait_max_ms),
            notional: Some(agent.is_notional()).filter(|notional| *notional != started.notional),
            budget: again.budget.limits().then_some(again.budget),
            unsandboxed: unsandboxed && !started.unsandboxed && book.flow().conduct.sandbox.is_some(),
            found,
        },
        texts,
    )?;
    let former = former_providers(&started, script.clone(), program, config);
    let journaled = entries.iter().chain(&entry).map(|entry| entry.events.as_slice());
    agent.provider.restore(&Run::receipts(journaled));
    let (tell, heard) = mpsc::channel(256);
    let setting = Setting {
        run: id.clone(),
        home: home.clone(),
        journal: journal.clone(),
        provider: agent.provider,
        model: agent.model,
        models: agent.models,
        default_model: agent.default_model,
        ask_timeout: config.run.ask_timeout.unwrap_or(ASK_TIMEOUT),
        shim: program.shim(),
        work,
        owned: started.place.owned,
        branch: started.place.branch.clone(),
        former,
        trees,
        suspect,
        spares_new_files: config.boundary.spares_new_files(),
        sandbox,
        heard: tell,
    };
    let log = match &settings.log {
        Some(rule) => Some(LogFile::open(home.root(), rule, id, &**journal, &entries)?),
        None => None,
    };
    Ok(Ready { book, setting, heard, log, before: entries, entries: entry.into_iter().collect() })
}

fn gone(work: &Path) -> Failure {
    Failure {
        message: format!("the folder `{}` that the run works in is gone", work.display()),
        hint: Some("bring it back, or `cuegate cancel` the run".to_owned()),
        code: crate::exit::ENVIRONMENT,
    }
}
