//! `doctor`.

use crate::cli::commands::ProjectPlace;
use crate::cli::print;
use crate::config::{self, Config};
use crate::doctor::{self, AttackOutcome, CheckStatus, DoctorFinding, verify_run};
use crate::exported_run::ExportSummary;
use crate::retention::read_past_runs;
use crate::run::start_run::Program;
use crate::{Failure, exit};
use clap::Args;
use cuegate_journal::{Journal, RunId};
use cuegate_runner::worktree::Trees;
use cuegate_view::{clean_to_one_line, plural};
use serde_json::{Value, json};
use std::path::PathBuf;

#[derive(Debug, Args)]
pub(crate) struct DoctorArgs {
    /// Try attacks on the sandbox of this machine, and print which are held
    #[arg(long)]
    pub(crate) sandbox: bool,
    /// Verify the records and texts of all runs
    #[arg(long, conflicts_with = "sandbox")]
    pub(crate) records: bool,
    /// Write what can be read of damaged runs into this folder, a file each, as `export` does
    #[arg(long, value_name = "FOLDER", requires = "records")]
    pub(crate) save: Option<PathBuf>,
    /// Try this agent: its program, its login and what it can do, without a prompt
    #[arg(long, value_name = "NAME", conflicts_with_all = ["sandbox", "records"])]
    pub(crate) agent: Option<String>,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

pub(in crate::cli::commands) fn run_doctor(place: &ProjectPlace, args: &DoctorArgs) -> Result<u8, Failure> {
    let root = place.home.root();
    if args.sandbox {
        return self_test(&config::load_config(root)?, args.json);
    }
    if args.records {
        return check_journal(place, args);
    }
    if let Some(name) = &args.agent {
        return try_agent(name, &config::load_config(root)?, args.json);
    }
    // The rest of the machine is worth knowing, whatever the file says.
    let (config, refused) = match config::load_config(root) {
        Ok(config) => (config, None),
        Err(failure) => (Config::default(), Some(DoctorFinding::of_config(failure))),
    };
    let mut findings = doctor::check_requirements(&place.home, &Program::current()?, &config);
    findings.splice(0..0, refused);
    let ok = doctor::can_run(&findings);
    if args.json {
        print::print_json(&doctor::to_json(&findings));
    } else {
        let width = findings.iter().map(|finding| finding.name.len()).max().unwrap_or(0);
        for finding in &findings {
            print_finding(finding, width);
        }
        let verdict = match ok {
            true => "runs work here with each agent marked ok",
            false => "runs do not work here: fix the lines marked no",
        };
        print::print_data(&format!("\n{verdict}"));
    }
    Ok(if ok { exit::DONE } else { exit::ENVIRONMENT })
}

fn print_finding(finding: &DoctorFinding, width: usize) {
    let DoctorFinding { name, standing, found, hint, .. } = finding;
    print::print_data(&format!("{:4}  {name:width$}  {}", standing.as_str(), clean_to_one_line(found)));
    if let Some(hint) = hint {
        print::print_data(&format!("      {:width$}  → {hint}", ""));
    }
}

/// Tries one agent. Fails if it does not work here.
fn try_agent(name: &str, config: &Config, json: bool) -> Result<u8, Failure> {
    let trial = doctor::try_agent(name, &Program::current()?, config)?;
    if json {
        print::print_json(&trial.to_json());
    } else {
        let width = trial.finding.name.len();
        print_finding(&trial.finding, width);
        for line in trial.describe() {
            print::print_data(&format!("      {:width$}  {}", "", clean_to_one_line(&line)));
        }
        if !trial.advice.is_empty() {
            print::print_line(&format!("these lines of `[agents.{name}]` fit what it says:"));
            trial.advice.iter().for_each(|line| print::print_data(line));
        }
    }
    Ok(if trial.finding.standing == CheckStatus::Bad { exit::ENVIRONMENT } else { exit::DONE })
}

/// Verifies what all runs recorded. Fails if something is damaged.
fn check_journal(place: &ProjectPlace, args: &DoctorArgs) -> Result<u8, Failure> {
    let journal = place.view()?;
    if let Some(folder) = &args.save {
        std::fs::create_dir_all(folder).map_err(|error| {
            Failure::environment(format!("failed to create `{}`: {error}", folder.display()))
        })?;
    }
    let (mut rows, mut damaged, mut records) = (Vec::new(), 0, 0);
    let runs = journal.runs()?.into_iter().filter(|known| known.has_records || known.damage.is_some());
    for known in runs {
        let checked = verify_run(&*journal, &known, args.save.as_deref())?;
        let ExportSummary { records: count, texts, damage, .. } = &checked.summary;
        records += count;
        damaged += u64::from(!damage.is_empty());
        if args.json {
            rows.push(json!({"run": known.run.as_str(), "records": count, "texts": texts, "damage": damage,
                "saved": checked.saved}));
            continue;
        }
        for what in damage {
            print::print_data(&format!("{}  {}", known.run, clean_to_one_line(what)));
        }
        if args.save.is_some() && !damage.is_empty() && checked.saved.is_none() {
            print::print_line(&format!("nothing of run {} can be read", known.run));
        }
        if let Some(saved) = checked.saved {
            print::print_line(&format!(
                "saved   {} of run {} in `{saved}`",
                plural(*count, "record"),
                known.run
            ));
        }
    }
    let missing = find_missing_snapshots(place, &*journal)?;
    damaged += missing.len() as u64;
    for (run, count) in missing.iter().filter(|_| !args.json) {
        let what = plural(*count as u64, "snapshot");
        print::print_data(&format!("{run}  {what} of its files missing: what needs them fails"));
    }
    if args.json {
        let missing: Vec<Value> =
            missing.iter().map(|(run, count)| json!({"run": run.as_str(), "snapshots": count})).collect();
        print::print_json(&json!({"schema": "cuegate/journal-check/v1", "runs": rows, "missing": missing}));
    } else {
        print::print_line(&match damaged {
            0 => format!("{} are as they were written", plural(records, "record")),
            _ => format!("{} damaged; the others are as they were written", plural(damaged, "run")),
        });
        if damaged > 0 && args.save.is_none() {
            print::print_line(
                "`--save FOLDER` writes what can be read of them into files, which `log` and `report` read",
            );
        }
    }
    Ok(if damaged == 0 { exit::DONE } else { exit::ENVIRONMENT })
}

/// The runs of which snapshots are missing, with their number.
fn find_missing_snapshots(
    place: &ProjectPlace,
    journal: &dyn Journal,
) -> Result<Vec<(RunId, usize)>, Failure> {
    let mut missing = Vec::new();
    let Some(trees) = Trees::open(place.home.root(), &place.home.trees())? else { return Ok(missing) };
    for run in read_past_runs(&place.home, journal)? {
        let lost = trees.list_missing_snapshots(&run.snapshots).map_err(cuegate_runner::Error::from)?;
        if !lost.is_empty() {
            missing.push((run.id, lost.len()));
        }
    }
    Ok(missing)
}

/// Tries attacks on the sandbox. Fails if one succeeds.
fn self_test(config: &Config, json: bool) -> Result<u8, Failure> {
    let tried = doctor::self_test(&Program::current()?, config)?;
    let through = tried.count(AttackOutcome::Through);
    if json {
        print::print_json(&tried.to_json());
    } else {
        let width = tried.attacks.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
        for (name, outcome) in &tried.attacks {
            print::print_data(&format!("{name:width$}  {}", outcome.as_str()));
        }
        let held = tried.count(AttackOutcome::Held);
        let verdict = match through {
            _ if tried.partial => format!(
                "without bubblewrap the sandbox is partial: {held} attacks are held, {through} are not"
            ),
            0 => format!("the sandbox holds: {held} attacks succeed without it and fail inside"),
            1 => "the sandbox does not hold: an attack succeeds inside; please report it".to_owned(),
            more => format!("the sandbox does not hold: {more} attacks succeed inside; please report them"),
        };
        print::print_data(&format!("\n{verdict}"));
    }
    Ok(if through == 0 { exit::DONE } else { exit::ENVIRONMENT })
}
