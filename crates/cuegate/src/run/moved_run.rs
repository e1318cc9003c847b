//! Goes on with a run in another project or on another machine than it worked in: makes its files here, exactly.

use std::path::{Path, PathBuf};

use cuegate_engine::{
    Command, Completion, EffectResult, Machine, RunMoved, RunStarted, Tools, TreeState, list_pending_commands,
};
use cuegate_journal::{Journal, RunId};
use cuegate_provider::Usage;
use cuegate_runner::{
    MissingState, RunWriter, StateDir, StatePacker, put_back, restore_packs, state_of,
    worktree::{AgentGit, Trees, branch_worktree},
};

use cuegate_view::clean_to_one_line;

use super::leftovers;
use super::start_run::{Host, keep_folder_of_run, worktrees_of};
use super::worktree_setup::run_setup_commands;
use crate::Failure;
use cuegate_formats::RunSettings;

/// Where this process is, if the journal is shared with other machines.
pub(crate) fn find_machine(home: &StateDir) -> Result<Option<Machine>, Failure> {
    match home.shared() {
        Some(_) => Ok(Some(home.machine()?)),
        None => Ok(None),
    }
}

/// What keeps the files of a run in the journal, if that is shared with other machines.
pub(crate) fn create_packer(
    home: &StateDir,
    trees: Option<&Trees>,
    start: Option<&TreeState>,
    last: Option<&TreeState>,
) -> Option<StatePacker> {
    home.shared()?;
    Some(StatePacker::new(trees?.clone(), start?.clone(), last))
}

/// Whether a run was driven elsewhere last.
pub(crate) fn is_elsewhere(home: &StateDir, id: &RunId, started: &RunStarted) -> Result<bool, Failure> {
    let here = find_machine(home)?;
    Ok(here.is_some() && (started.machine != here || !home.has_files_of(id)))
}

/// What a run finds at its new place.
pub(crate) struct Arrival {
    pub(crate) moved: RunMoved,
    /// What the user should know.
    pub(crate) notes: Vec<String>,
}

/// Makes the files of a run here, as its last record says. The lease of the run and the lock of its tree are held.
/// Repeated after a kill.
///
/// # Errors
/// When something is missing here, in words, or git fails.
pub(crate) fn bring_here(
    host: &Host,
    book: &RunWriter,
    settings: &RunSettings,
    reads_reports: bool,
) -> Result<Arrival, Failure> {
    let (home, id) = (&host.home, book.id());
    let started = book.run().started();
    let from = describe_machine(started);
    let to = home.machine()?;
    keep_folder_of_run(home, id)?;
    remove_stale_calls(home, id)?;
    let mut notes = vec![format!("run {id} goes on here; it was driven {from}")];
    let work = match (&started.tree, &book.run().tree) {
        (Some(start), Some(last)) => restore_files(host, book, settings, (start, last), &mut notes)?,
        // It worked outside of git: nobody knows its files.
        _ => {
            return Err(Failure::usage(
                format!("run {id} worked outside of git, so its files are only {from}"),
                "use the command there; a run moves if it works in a git repository",
            ));
        }
    };
    let work = std::fs::canonicalize(&work).unwrap_or(work).display().to_string();
    let report_dir = reads_reports.then(|| home.reports(id).display().to_string().into());
    Ok(Arrival { moved: RunMoved { to, work, report_dir }, notes })
}

/// Makes all states of the files of a run known to the store of this project, for commands that compare them.
///
/// # Errors
/// As [`bring_here`].
pub(crate) fn fetch_files(home: &StateDir, journal: &dyn Journal, id: &RunId) -> Result<(), Failure> {
    let run = cuegate_runner::read_run(journal, id)?;
    let started = run.started();
    if !is_elsewhere(home, id, started)? {
        return Ok(());
    }
    let trees = open_trees(home.root(), home)?;
    let Some(start) = &started.tree else { return Ok(()) };
    restore_packs(journal, id, &trees, start).map_err(|missing| explain_missing(missing, id, started))
}

/// What was in progress when the former machine stopped: nobody here can look at it. A call has used an unknown amount; a
/// program of the definition may have done its work. `last_ms`: the time of the last record, in milliseconds since 1970.
pub(crate) fn describe_lost_commands(book: &RunWriter, last_ms: i64) -> Vec<Completion> {
    let started = book.run().started();
    let Some(from) = &started.machine else { return Vec::new() };
    let lost = |command: Command| match command {
        Command::Ask(ask) if ask.not_before_ms.is_none_or(|at| at <= last_ms) => {
            let agent = ask.agent.as_ref().map_or(&started.provider, |choice| &choice.agent);
            let usage_unknown = agent != "scripted";
            let (usage, tools) = (Usage::default(), Tools::default());
            Some(Completion::Cut { ask: ask.id, usage, usage_unknown, spoilt: false, tools })
        }
        Command::Effect(effect) if effect.program.is_some() => {
            let stderr = format!("it may have been started on `{}`, in `{}`", from.host, from.root);
            let result = EffectResult::CutOff { stdout: String::new(), stderr };
            let (id, attempt) = (effect.effect.id, effect.effect.attempt);
            Some(Completion::Acted { id, attempt, result, duration_ms: 0, seen: None })
        }
        Command::Ask(_) | Command::Exec(_) | Command::Probe(_) | Command::Effect(_) | Command::Read(_) => {
            None
        }
    };
    list_pending_commands(book.flow(), book.run()).into_iter().filter_map(lost).collect()
}

fn describe_machine(started: &RunStarted) -> String {
    match &started.machine {
        Some(machine) => format!("on `{}`, in `{}`", machine.host, machine.root),
        None => format!("in `{}`", started.place.work),
    }
}

/// Removes what an earlier stay of the run here left: its calls were done again elsewhere since.
fn remove_stale_calls(home: &StateDir, id: &RunId) -> Result<(), Failure> {
    leftovers::remove_commands(home, id, &[]);
    if let Some(folder) = leftovers::list_command_folders(home, id).first() {
        return Err(Failure {
            message: format!("a call of an earlier stay of run {id} still runs here"),
            hint: Some(format!("wait until it ends; its files are in `{}`", folder.display())),
            code: crate::exit::ENVIRONMENT,
        });
    }
    let git = home.git(id);
    if git.is_dir() {
        AgentGit::remove_spent(&git);
    }
    Ok(())
}

fn restore_files(
    host: &Host,
    book: &RunWriter,
    settings: &RunSettings,
    (start, last): (&TreeState, &TreeState),
    notes: &mut Vec<String>,
) -> Result<PathBuf, Failure> {
    let (home, id) = (&host.home, book.id());
    let started = book.run().started();
    let main = open_trees(home.root(), home)?;
    restore_packs(&**book.journal(), id, &main, start)
        .map_err(|missing| explain_missing(missing, id, started))?;
    if !started.place.owned {
        restore_checkout(&main, id, started, last)?;
        return Ok(home.root().to_owned());
    }
    let branch = started.place.branch.as_deref().unwrap_or_default();
    let folder = worktrees_of(home, settings.worktree.root.as_deref().map(Path::new), &host.config);
    let work = folder.join(started.place.follows.as_deref().unwrap_or(id.as_str()));
    let is_new = !cuegate_runner::worktree::is_working_tree(&work);
    if is_new {
        // Of a move that was killed, or of an earlier stay whose folder somebody removed.
        branch_worktree::remove_worktree(home.root(), &work, branch, &format!("refs/{branch}"))?;
        branch_worktree::create_empty_worktree(home.root(), &work, branch, last.head.as_deref())?;
    }
    let trees = open_trees(&work, home)?;
    if is_new {
        trees.fill_worktree(&last.tree)?;
        if let Some(git) = &last.git {
            trees
                .restore_git_state(branch, git, last.head.as_deref())
                .map_err(cuegate_runner::Error::from)?;
        }
    } else {
        notes.extend(put_back(&trees, Some(branch), last, &[])?);
    }
    let (first, now) = (cuegate_runner::name_state(start), cuegate_runner::name_state(last));
    trees.restore_new_branches(first, now).map_err(cuegate_runner::Error::from)?;
    let place = cuegate_engine::Place { work: work.display().to_string(), ..started.place.clone() };
    let mut said = Vec::new();
    let is_set_up = run_setup_commands(host, id, &place, &mut |line| said.push(line.to_owned()))?;
    notes.append(&mut said);
    if is_set_up {
        // What they write belongs to nobody, and is not a part of the recorded files.
        trees.restore(&last.tree).map_err(cuegate_runner::Error::from)?;
    }
    let inner = trees.list_repositories(&last.tree).map_err(cuegate_runner::Error::from)?;
    if !inner.is_empty() {
        let names: Vec<String> = inner.iter().map(|path| format!("`{}`", clean_to_one_line(path))).collect();
        notes.push(format!(
            "repositories inside the working tree are in no snapshot, and their files did not move: {}",
            names.join(", ")
        ));
    }
    let is = state_of(&trees, Some(branch))?;
    if is.tree != last.tree || is.head != last.head {
        return Err(Failure::environment(format!(
            "the files of run {id} could not be made here: git made the tree {} of the recorded {}",
            is.tree, last.tree
        )));
    }
    Ok(work)
}

/// Writes the files of a run that works in the checkout itself, if that holds no work of anybody else.
fn restore_checkout(
    trees: &Trees,
    id: &RunId,
    started: &RunStarted,
    last: &TreeState,
) -> Result<(), Failure> {
    let is = state_of(trees, None)?;
    if is.tree == last.tree && is.head == last.head {
        return Ok(());
    }
    let refused = |message: String| {
        let hint = "commit or stash your changes, and check out the commit of the run; a run with `--worktree` needs neither";
        Err(Failure::usage(message, hint))
    };
    if is.head != last.head {
        let wanted = last.head.as_deref().map_or("no commit", |head| head.get(..12).unwrap_or(head));
        return refused(format!(
            "run {id} works in the checkout itself, {}, at the commit {wanted}, which is not checked out here",
            describe_machine(started)
        ));
    }
    if cuegate_runner::worktree::is_dirty(trees.root())? {
        return refused(format!("run {id} works in the checkout itself, and this one has changes"));
    }
    trees.restore(&last.tree).map_err(cuegate_runner::Error::from)?;
    Ok(())
}

fn open_trees(folder: &Path, home: &StateDir) -> Result<Trees, Failure> {
    Trees::open(folder, &home.trees())?.ok_or_else(|| {
        Failure::usage(
            format!("`{}` is not in a git repository", folder.display()),
            "use the command in a clone of the repository that the run works on",
        )
    })
}

fn explain_missing(missing: MissingState, id: &RunId, started: &RunStarted) -> Failure {
    let hint = match &missing {
        MissingState::NoCommit { .. } => {
            "fetch it, or use the command in a clone of the repository that the run works on".to_owned()
        }
        MissingState::TooLarge { .. } | MissingState::NotKept { .. } => {
            format!("use the command where it was driven, {}", describe_machine(started))
        }
        MissingState::Failed(_) => "repeat it".to_owned(),
    };
    let code = crate::exit::ENVIRONMENT;
    match missing {
        MissingState::Failed(error) => error.into(),
        missing => {
            Failure { message: format!("run {id} cannot go on here: {missing}"), hint: Some(hint), code }
        }
    }
}
