//! Makes a run that goes on from a moment of another one: its records until then, and its files in a worktree of its own.

use std::{path::Path, sync::Arc};

use cuegate_engine::{Budget, EndState, FinalizePlan, Place, Run, RunForked, State};
use cuegate_flow::Str;
use cuegate_journal::{Journal, Owner, RunId};
use cuegate_runner::{
    RunWriter, now_ms, read_each_record, read_stored_text, state_of, state_with,
    worktree::{Snapshot, Trees, WorktreeError, branch_worktree},
};

use super::leftovers::{branch_of, note_preparation};
use super::moved_run::{create_packer, find_machine};
use super::resume_run::load_recorded_definition;
use super::rights;
use super::start_run::{Host, reads_report_dir, worktrees_of};
use super::tree_lock::TreeLock;
use crate::{Failure, project::first_tree, providers};

/// The moment of a run from which another one goes on.
#[derive(Debug, Clone)]
pub(crate) struct ForkMoment {
    /// In words: ``after visit 2 of `fix` ``.
    pub(crate) name: String,
    /// How many records of the source run the fork takes over.
    pub(crate) records: u64,
}

/// What a fork is to be.
#[derive(Debug, Clone, Default)]
pub(crate) struct ForkRequest {
    /// The limits that it sets replace those of the source run.
    pub(crate) budget: Budget,
    /// Whether it leaves GitHub alone.
    pub(crate) no_github: bool,
    /// Whether its work is merged, pushed or proposed as that of the source run is.
    pub(crate) finalizes: bool,
}

/// A fork with its worktree and the files of the moment, before it is recorded.
pub(crate) struct PreparedFork {
    source: RunId,
    id: RunId,
    /// The source run at that moment.
    run: Run,
    moment: ForkMoment,
    trees: Trees,
    /// The files that were written.
    snapshot: Snapshot,
    pub(crate) place: Place,
    _lock: TreeLock,
}

impl PreparedFork {
    /// Makes the worktree of a fork.
    ///
    /// # Errors
    /// When the run was over at that moment, its files were not recorded, or git fails.
    pub(crate) fn create(
        host: &Host,
        id: &RunId,
        source: &RunId,
        moment: ForkMoment,
    ) -> Result<PreparedFork, Failure> {
        let Host { home, journal, config, .. } = host;
        let run = run_at(&**journal, source, moment.records)?;
        refuse_ended(source, &run, &moment)?;
        let Some(tree) = &run.tree else {
            return Err(Failure::usage(
                format!("run {source} worked outside of git, so its files were not recorded"),
                "run `git init` before the next run",
            ));
        };
        let (_, settings) = load_recorded_definition(&**journal, source, run.started())?;
        let root = settings.worktree.root.as_deref().map(Path::new);
        let (folder, branch) = (worktrees_of(home, root, config), branch_of(id));
        super::start_run::keep_folder_of_run(home, id)?;
        RunWriter::claim_lease(&**journal, id, now_ms())?;
        let hint = "start another fork";
        let lock = TreeLock::take(home, id, Some(id.as_str()), hint, None)?;
        // Until the fork has a record, its worktree can be removed and made anew.
        note_preparation(home, id, false)?;
        let made = branch_worktree::create_empty_worktree(
            home.root(),
            &folder.join(id.as_str()),
            &branch,
            tree.head.as_deref(),
        );
        let made = made.map_err(|error| match (error, &tree.head) {
            (WorktreeError::NoCommit { .. }, Some(head)) => Failure::usage(
                format!("the commit {} of that moment is gone", head.get(..12).unwrap_or(head)),
                format!("`cuegate restore {source} --at …` brings its files back here"),
            ),
            (error, _) => error.into(),
        })?;
        let opened = Trees::open(&made.path, &home.trees())?;
        let trees = opened.ok_or_else(|| {
            Failure::environment(format!("`{}` is no working tree of git", made.path.display()))
        })?;
        let snapshot = trees.fill_worktree(&tree.tree)?;
        let source_place = &run.started().place;
        let base = match source_place.owned {
            true => source_place.base.clone(),
            false => branch_worktree::current_branch(home.root())?,
        };
        let work = std::fs::canonicalize(&made.path).unwrap_or(made.path).display().to_string();
        let place = Place {
            work,
            owned: true,
            branch: Some(made.branch),
            base,
            folder: source_place.folder.clone(),
            bounded: source_place.bounded,
            ..Place::default()
        };
        Ok(PreparedFork {
            source: source.clone(),
            id: id.clone(),
            run,
            moment,
            trees,
            snapshot,
            place,
            _lock: lock,
        })
    }

    /// Records the fork. Returns what it said about its source, and the files in which its tree differs from the recorded
    /// one, except for what setup commands wrote.
    ///
    /// # Errors
    /// When git or the journal fails.
    pub(crate) fn record(
        self,
        host: &Host,
        request: &ForkRequest,
        is_set_up: bool,
    ) -> Result<RecordedFork, Failure> {
        let PreparedFork { source, id, run, moment, trees, snapshot, place, _lock } = self;
        let Host { home, journal, .. } = host;
        let branch = place.branch.as_deref();
        let tree = match is_set_up {
            true => state_of(&trees, branch)?,
            false => state_with(&trees, branch, snapshot)?,
        };
        let recorded = run.tree.as_ref().map_or("", |tree| &tree.tree);
        let started = run.started();
        let (flow, _) = load_recorded_definition(&**journal, &source, started)?;
        let new_sessions = list_new_sessions(host, &source, &run)?;
        // The claim on the remote is the source run's.
        let finalize = started.finalize.clone().map(|plan| FinalizePlan { claim: None, ..plan });
        let fork = RunForked {
            run: source.to_string(),
            records: moment.records,
            moment: moment.name,
            first_tree: first_tree(&**journal, started)?,
            tree: Some(tree),
            budget: run.spending.ledger.budget.with(request.budget),
            report_dir: reads_report_dir(&flow).then(|| home.reports(&id).display().to_string().into()),
            finalize: finalize.clone().filter(|_| request.finalizes),
            no_github: request.no_github,
            new_sessions,
            place,
            machine: find_machine(home)?,
        };
        let repositories_without_files = trees.list_repositories(recorded)?;
        let packer = create_packer(home, Some(&trees), fork.first_tree.as_ref(), run.tree.as_ref());
        drop(RunWriter::fork(journal.clone(), &id, &source, Arc::clone(&flow), fork.clone(), packer)?);
        // It may do what the run may that it comes from.
        if rights::are_rights_own(home, &source, started) {
            let forked = cuegate_runner::read_run(&**journal, &id)?;
            // Without a signature it goes on as one of another machine.
            let _ = rights::sign_rights(home, &id, forked.started());
        }
        let skipped_finalize = finalize.filter(|_| !request.finalizes);
        Ok(RecordedFork {
            fork,
            repositories_without_files,
            skipped_finalize,
            is_failed: is_failed(&run.state),
        })
    }
}

/// What a fork is after its first record.
pub(crate) struct RecordedFork {
    pub(crate) fork: RunForked,
    /// Submodules and nested repositories: their files are in no snapshot.
    pub(crate) repositories_without_files: Vec<String>,
    /// How the source run ends (merge, push, pull request), which the fork does not follow.
    pub(crate) skipped_finalize: Option<FinalizePlan>,
    /// Whether the run had failed at that moment: the fork tries its last step again.
    pub(crate) is_failed: bool,
}

/// The run after its first `records` records.
fn run_at(journal: &dyn Journal, id: &RunId, records: u64) -> Result<Run, Failure> {
    let mut run = Run::default();
    read_each_record(journal, id, 0, |entry| {
        if entry.seq < records {
            run.apply_record(&entry.events);
        }
    })?;
    Ok(run)
}

fn is_failed(state: &State) -> bool {
    matches!(state, State::Ended { state: EndState::Failed | EndState::Aborted, .. })
}

/// Fails if nothing can go on from a moment.
fn refuse_ended(source: &RunId, run: &Run, moment: &ForkMoment) -> Result<(), Failure> {
    let is_over = match &run.state {
        State::Ended { state, .. } => matches!(state, EndState::Completed | EndState::Cancelled),
        State::New => true,
        State::Running | State::Suspended(_) => run.effects.ending.is_some(),
    };
    if !is_over {
        return Ok(());
    }
    let last = run.progress.last_step.as_ref();
    let hint = match last.and_then(|step| Some((step, run.progress.visits.get(step)?))) {
        Some((step, visit)) => {
            format!("`cuegate fork {source} --before {step}#{visit}` does its last step again")
        }
        None => "start a new run".to_owned(),
    };
    Err(Failure::usage(format!("run {source} was over {}", moment.name), hint))
}

/// The keys of the conversations that a fork cannot continue: an agent that cannot fork a conversation would add to that of
/// the source run.
fn list_new_sessions(host: &Host, source: &RunId, run: &Run) -> Result<Vec<Str>, Failure> {
    let Host { journal, program, config, .. } = host;
    let started = run.started();
    let script = match &started.script {
        Some(kept) => Some((kept.path.clone(), read_stored_text(&**journal, source, &kept.blob)?)),
        None => None,
    };
    let can_fork = |agent: &str| {
        providers::create_provider(agent, script.as_ref(), program, config)
            .is_ok_and(|provider| provider.capabilities().fork)
    };
    let lost = run.context.sessions.iter().filter(|(_, head)| !can_fork(&head.agent));
    Ok(lost.map(|(key, _)| key.clone()).collect())
}

/// Removes a fork that could not begin: its worktree, its branch and its record. Nobody worked in it.
///
/// # Errors
/// When git or the journal fails.
pub(crate) fn discard_fork(host: &Host, id: &RunId, fork: &RunForked) -> Result<(), Failure> {
    let Host { home, journal, .. } = host;
    let lease = journal.acquire(id, &Owner::current())?;
    let branch = fork.place.branch.clone().unwrap_or_default();
    let keep = format!("refs/{branch}");
    branch_worktree::remove_worktree(home.root(), Path::new(&fork.place.work), &branch, &keep)?;
    journal.remove(&lease)?;
    Ok(())
}
