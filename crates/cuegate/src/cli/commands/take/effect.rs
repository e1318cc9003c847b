//! `effect`: lists the effects of a run, and settles those that failed or whose result is unknown.

use crate::cli::commands::shared_args::RunRef;
use cuegate_view::{EffectRow, EffectState, clean_to_one_line, effect_json};
use serde_json::{Value, json};

use crate::cli::commands::shared_args::DurabilityChoice;
use crate::cli::commands::start::run;
use crate::cli::commands::{ProjectPlace, view_of};
use crate::cli::print;
use crate::run::start_run;
use crate::run::start_run::{Host, Program};
use crate::{Failure, exit, project};
use clap::Args;

#[derive(Debug, Args)]
pub(crate) struct EffectArgs {
    #[command(flatten)]
    pub(crate) run: RunRef,
    /// The number of the effect in the list, or its id
    pub(crate) effect: Option<String>,
    /// Take the effect as done: this is what it created
    #[arg(long, value_name = "URL", conflicts_with = "send_again")]
    pub(crate) adopt: Option<String>,
    /// Send the effect again; a comment that was created nevertheless is then there twice
    #[arg(long)]
    pub(crate) send_again: bool,
    /// What every journal record survives
    #[arg(long, value_enum, default_value = "synced", hide = true)]
    pub(crate) durability: DurabilityChoice,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

pub(in crate::cli::commands) fn list_or_settle_effects(
    place: &ProjectPlace,
    args: &EffectArgs,
) -> Result<u8, Failure> {
    let journal = project::open_existing(&place.home, run::convert_durability(args.durability))?;
    let id = project::find_run_id(&place.home, &*journal, &args.run.id)?;
    let rows = view_of(&*journal, &id)?.acts.effects;
    let wanted = args.adopt.is_some() || args.send_again;
    let Some(named) = &args.effect else {
        if wanted {
            let hint = format!("`cuegate effect {id}` lists them with their numbers");
            return Err(Failure::usage("which effect is meant?", hint));
        }
        return print_effects(id.as_str(), &rows, args.json);
    };
    let (number, row) = find_effect(&rows, named, id.as_str())?;
    if !wanted {
        return print_effects(id.as_str(), std::slice::from_ref(row), args.json);
    }
    require_settleable_effect(row, number, id.as_str())?;
    let config = crate::cli::commands::go_on::resume::settings_of_run(place, &*journal, &id, false)?.config;
    let host =
        Host { home: place.home.clone(), journal: journal.clone(), program: Program::current()?, config };
    let ready = start_run::prepare_effect_settlement(&host, &id, row.id, args.adopt.clone())?;
    crate::cli::commands::drive_run(ready)?;
    let rows = view_of(&*journal, &id)?.acts.effects;
    let row = rows.iter().find(|known| known.id == row.id).unwrap_or(row);
    print_effects(id.as_str(), std::slice::from_ref(row), args.json)?;
    Ok(if row.state == EffectState::Done { exit::DONE } else { exit::BAD_END })
}

/// The effect of this number in the list, or of this id.
fn find_effect<'r>(rows: &'r [EffectRow], named: &str, run: &str) -> Result<(usize, &'r EffectRow), Failure> {
    let by_number = named.parse::<usize>().ok().and_then(|number| number.checked_sub(1));
    let at = by_number.or_else(|| rows.iter().position(|row| row.id.to_string() == named));
    at.and_then(|at| Some((at + 1, rows.get(at)?))).ok_or_else(|| {
        Failure::usage(
            format!("run {run} has no effect `{named}`"),
            format!("`cuegate effect {run}` lists them with their numbers"),
        )
    })
}

/// Checks that a person can settle an effect.
fn require_settleable_effect(row: &EffectRow, number: usize, run: &str) -> Result<(), Failure> {
    let why = match row.state {
        EffectState::Done => "is done",
        EffectState::Pending => "is not over; `cuegate resume` continues the run",
        EffectState::Failed | EffectState::Unknown if row.kind.finalizes() => {
            let hint = format!("`cuegate retry {run}` repeats what is left of the work after it");
            return Err(Failure::usage(format!("effect {number} is a part of the end of the run"), hint));
        }
        EffectState::Failed | EffectState::Unknown if !row.kind.is_github() => {
            "is a program of the definition"
        }
        EffectState::Failed | EffectState::Unknown => return Ok(()),
    };
    Err(Failure::usage(
        format!("effect {number} {why}"),
        "only failed and unknown effects on GitHub are settled",
    ))
}

fn print_effects(run: &str, rows: &[EffectRow], as_json: bool) -> Result<u8, Failure> {
    if as_json {
        let effects: Vec<Value> = rows.iter().map(|row| effect_json(row, run)).collect();
        print::print_json(&json!({"schema": "cuegate/effects/v1", "run": run, "effects": effects}));
        return Ok(exit::DONE);
    }
    if rows.is_empty() {
        print::print_line(&format!("run {run} has no effects"));
        return Ok(exit::DONE);
    }
    for (number, row) in (1..).zip(rows) {
        let mut what = row.said.clone().unwrap_or_default();
        if let Some(url) = row.url.as_ref().filter(|url| !what.contains(url.as_str())) {
            what = format!("{what} {url}");
        }
        let step = Some(&row.step).filter(|step| !step.is_empty()).map(|step| format!(" of {step}"));
        let word = format!("{}{}", row.kind.word(), step.unwrap_or_default());
        print::print_data(&format!(
            "{number:>2}  {:<9}  {:<7}  {}",
            row.kind.class().as_str(),
            row.state.as_str(),
            clean_to_one_line(format!("{word}: {what}").trim_end_matches([':', ' ']))
        ));
        let settled = row.kind.is_github() && !row.kind.finalizes();
        if settled && matches!(row.state, EffectState::Failed | EffectState::Unknown) {
            print::print_data(&format!(
                "    `cuegate effect {run} {number} --send-again` sends it, `--adopt URL` takes it as done"
            ));
        }
    }
    Ok(exit::DONE)
}
