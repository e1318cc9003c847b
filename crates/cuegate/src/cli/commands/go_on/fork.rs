//! `fork`: a new run that goes on from a moment of another one, with its files.

use std::path::Path;

use clap::Args;
use cuegate_engine::{Run, State, WaitKind};
use cuegate_journal::{Journal, RunId};
use cuegate_runner::{InboxMessage, now_ms, read_each_record};
use cuegate_view::{clean_to_one_line, describe_fork, list_unrepeated_effects};

use super::answer::read_run;
use super::resume::{ContinueOptions, ResumeArgs, continue_run, settings_of_run};
use crate::cli::commands::shared_args::{RunLimits, RunRef};
use crate::cli::commands::start::{run, run_start};
use crate::cli::commands::{ProjectPlace, texts_of_run, view_of};
use crate::cli::print;
use crate::run::fork_run::{ForkMoment, ForkRequest, PreparedFork, RecordedFork, discard_fork};
use crate::run::moved_run;
use crate::run::start_run::{Host, Program};
use crate::visits::{RunPart, find_moment};
use crate::{Failure, exit, project};

#[derive(Debug, Args)]
pub(crate) struct ForkArgs {
    #[command(flatten)]
    pub(crate) run: RunRef,
    /// Go on after this moment: STEP#VISIT, STEP (its last visit) or the number of a record
    #[arg(long, value_name = "VISIT", required_unless_present = "before")]
    pub(crate) at: Option<String>,
    /// Go on from before this moment, and do it again: STEP#VISIT, STEP or the number of a record
    #[arg(long, value_name = "VISIT", conflicts_with = "at")]
    pub(crate) before: Option<String>,
    /// Go on from the question that the run asked then, with this answer
    #[arg(long, value_name = "TEXT", conflicts_with = "before")]
    pub(crate) answer: Option<String>,
    /// Leave GitHub alone
    #[arg(long)]
    pub(crate) no_github: bool,
    /// Merge, push or propose the work of the fork at its end, as that of the run is
    #[arg(long)]
    pub(crate) finalize: bool,
    /// Only make the fork; `resume` starts it, with its own options
    #[arg(long, conflicts_with_all = ["provider", "script", "model", "new_session", "no_sandbox", "flow", "wait",
        "max_iterations", "repairs"])]
    pub(crate) no_continue: bool,
    #[command(flatten)]
    pub(crate) options: ContinueOptions,
}

pub(in crate::cli::commands) fn fork_run(place: &ProjectPlace, args: ForkArgs) -> Result<u8, Failure> {
    let ForkArgs { run: typed, at, before, answer, no_github, finalize, no_continue, mut options } = args;
    if answer.as_ref().is_some_and(|answer| answer.trim().is_empty()) {
        return Err(Failure::usage("the answer is empty", "give the text that the run continues with"));
    }
    let journal = project::open_existing(&place.home, run::convert_durability(options.durability))?;
    let source = project::find_run_id(&place.home, &*journal, &typed.id)?;
    moved_run::fetch_files(&place.home, &*journal, &source)?;
    let moment = match (at, before) {
        (Some(at), _) => {
            let part = find_moment(&*journal, &source, &at)?;
            match &answer {
                Some(_) => find_question(&*journal, &source, &part)?,
                None => ForkMoment { name: format!("after {}", part.name), records: part.records.1 + 1 },
            }
        }
        (None, Some(before)) => {
            let part = find_moment(&*journal, &source, &before)?;
            if part.records.1 == 0 {
                return Err(Failure::usage("nothing comes before record 0", "start a new run"));
            }
            ForkMoment { name: format!("before {}", part.name), records: part.records.0 + 1 }
        }
        (None, None) => return Err(Failure::usage("no moment was given", "give it with `--at VISIT`")),
    };
    let config = settings_of_run(place, &*journal, &source, options.reload_config)?.config;
    let host =
        Host { home: place.home.clone(), journal: journal.clone(), program: Program::current()?, config };
    let id = project::new_run_id();
    let prepared = PreparedFork::create(&host, &id, &source, moment)?;
    let is_set_up = run_start::run_setup_commands(&host, &id, &prepared.place)?;
    let request = ForkRequest { budget: options.limits.budget(), no_github, finalizes: finalize };
    let forked = prepared.record(&host, &request, is_set_up)?;
    // The limits are recorded in the fork: `resume` must not set them again.
    options.limits = RunLimits::default();
    tell_fork(&*journal, &id, &forked)?;
    if let Some(text) = answer {
        let letter = InboxMessage::Answer { text };
        journal.post(&id, now_ms(), &serde_json::to_vec(&letter).unwrap_or_default())?;
    }
    if no_continue {
        match options.json {
            true => print::print_json(&view_of(&*journal, &id)?.to_json(&texts_of_run(&*journal, &id))),
            false => print::print_line(&format!("run {id}: not started; `cuegate resume {id}` starts it")),
        }
        return Ok(exit::DONE);
    }
    let resume = ResumeArgs {
        detach: false,
        run: RunRef { id: id.to_string() },
        options,
        take_over: false,
        background: false,
        batch_process: None,
    };
    let went_on = continue_run(place, resume, forked.is_failed.then_some((None, None)));
    if went_on.is_err() && read_run(&*journal, &id)?.seq == forked.fork.records + 1 {
        discard_fork(&host, &id, &forked.fork)?;
        print::print_line(&format!("run {id}: not begun, and removed again"));
    }
    went_on
}

/// The moment within a visit, or at a record, at which the run asked a person.
fn find_question(journal: &dyn Journal, id: &RunId, part: &RunPart) -> Result<ForkMoment, Failure> {
    let (mut run, mut found) = (Run::default(), None);
    read_each_record(journal, id, 0, |entry| {
        run.apply_record(&entry.events);
        let asks = matches!(&run.state, State::Suspended(waiting) if waiting.kind == WaitKind::Person);
        if asks && (part.records.0..=part.records.1).contains(&entry.seq) {
            found = Some(entry.seq + 1);
        }
    })?;
    if let Some(records) = found {
        return Ok(ForkMoment { name: format!("at the question in {}", part.name), records });
    }
    Err(Failure::usage(
        format!("run {id} asked nothing in {}", part.name),
        format!("`cuegate log {id}` shows where it asked a person"),
    ))
}

/// Says of what a new run is a fork, and what it does not have of that one.
fn tell_fork(journal: &dyn Journal, id: &RunId, forked: &RecordedFork) -> Result<(), Failure> {
    let view = view_of(journal, id)?;
    let Some(fork) = &view.fork else { return Ok(()) };
    print::print_line(&format!("run {id}: a fork of {}", describe_fork(fork)));
    let branch = forked.fork.place.branch.as_deref().unwrap_or_default();
    print::print_line(&format!("  folder   {} on {branch}", Path::new(&forked.fork.place.work).display()));
    if let Some(limits) = cuegate_view::format_budget_limits(&forked.fork.budget) {
        print::print_line(&format!("  budget   {limits}, of its own"));
    }
    let effects = list_unrepeated_effects(fork);
    if !effects.is_empty() {
        print::print_line(&format!("  not repeated: {}", effects.join(", ")));
    }
    if !forked.fork.new_sessions.is_empty() {
        let keys: Vec<String> = forked.fork.new_sessions.iter().map(|key| clean_to_one_line(key)).collect();
        print::print_line(&format!(
            "  note: the agent cannot fork a conversation; these start anew: {}",
            keys.join(", ")
        ));
    }
    if let Some(plan) = &forked.skipped_finalize {
        let ends = [(plan.merge, "merged"), (plan.push.is_some(), "pushed"), (plan.pull_request, "proposed")];
        let ends: Vec<&str> = ends.into_iter().filter(|(wanted, _)| *wanted).map(|(_, word)| word).collect();
        print::print_line(&format!(
            "  note: its work is not {}, as that of run {} is; `--finalize` does that",
            ends.join(" or "),
            forked.fork.run
        ));
    }
    if !forked.repositories_without_files.is_empty() {
        let names: Vec<String> =
            forked.repositories_without_files.iter().map(|path| clean_to_one_line(path)).collect();
        print::print_line(&format!(
            "  note: nested repositories that are empty in the fork, because no snapshot has their files: {}",
            names.join(", ")
        ));
    }
    for gap in &view.snapshot_gaps {
        print::print_line(&format!("  note: {}", clean_to_one_line(gap)));
    }
    Ok(())
}
