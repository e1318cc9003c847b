//! `replay`: decides recorded runs again, as they were or through an edited workflow. Nothing is asked, run or written.

use std::{sync::Arc, time::Duration};

use clap::Args;
use cuegate_engine::{Event, RecordedLoadOptions, RunStarted};
use cuegate_flow::model::Flow;
use cuegate_journal::{Journal, RunId};
use cuegate_runner::{
    now_ms, read_first_record,
    replay::{Divergence, ReplayStop, replay_run},
};
use cuegate_view::{VisitRow, clean_to_one_line, format_count, format_money, plural, target_word};
use serde_json::{Value, json};

use crate::cli::commands::shared_args::{RunOrFile, parse_age};
use crate::cli::commands::{ProjectPlace, load_as, sound_flow};
use crate::cli::print;
use crate::replay::{EditedRun, replay_edited, with_adopted_flows};
use crate::run::resume_run::reload_recorded_flow;
use crate::{Failure, config, exit};

#[derive(Debug, Args)]
pub(crate) struct ReplayArgs {
    #[command(flatten)]
    pub(crate) run: RunOrFile,
    /// Replay all runs; with --flow those of that workflow
    #[arg(long)]
    pub(crate) all: bool,
    /// With --all: only runs that were started within this time: `30d`, `12h`
    #[arg(long, value_name = "TIME", requires = "all", value_parser = parse_age)]
    pub(crate) since: Option<Duration>,
    /// Route the recorded results through this workflow, and say where its path differs, what the recording does not
    /// answer, and what the rest could cost
    #[arg(long, value_name = "PATH")]
    pub(crate) flow: Option<String>,
    /// With --flow: use recorded results also where the prompt, the command or the files differ
    #[arg(long, requires = "flow")]
    pub(crate) same_answers: bool,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// What a replay found.
enum ReplayResult {
    /// The number of decisions that are as recorded, and the first that is not.
    Decisions(u64, Option<Box<Divergence>>),
    Edited(Box<EditedRun>),
}

impl ReplayResult {
    fn is_same(&self) -> bool {
        match self {
            ReplayResult::Decisions(_, divergence) => divergence.is_none(),
            ReplayResult::Edited(edited) => edited.is_same(),
        }
    }
}

pub(in crate::cli::commands) fn replay_runs(place: &ProjectPlace, args: &ReplayArgs) -> Result<u8, Failure> {
    let mut edited = None;
    let (journal, runs) = if args.all {
        let journal = place.view()?;
        let runs = list_started_runs(&*journal, args.since)?;
        (journal, runs)
    } else {
        let (journal, id) = place.view_run(&args.run.id)?;
        (journal, vec![id])
    };
    let (mut rows, mut code, mut replayed) = (Vec::new(), exit::DONE, 0_usize);
    for run in &runs {
        let result = replay_one(place, &*journal, run, args, &mut edited);
        match result {
            // A run of another workflow.
            Ok(None) => continue,
            Ok(Some(result)) => {
                replayed += 1;
                if !result.is_same() {
                    code = code.max(exit::BAD_END);
                }
                match args.json {
                    true => rows.push(row_json(run, &result)),
                    false => print_row(run, &result),
                }
            }
            Err(failure) if args.all => {
                code = exit::ENVIRONMENT;
                match args.json {
                    true => rows.push(json!({"run": run.as_str(), "error": failure.message})),
                    false => print::print_failure(&failure),
                }
            }
            Err(failure) => return Err(failure),
        }
    }
    if replayed == 0 && code == exit::DONE {
        let hint = "`cuegate runs` lists the runs; with `--flow` only those of the workflow with the same name count";
        return Err(Failure::usage("there are no such runs to replay", hint));
    }
    if args.json {
        print::print_json(&json!({"schema": "cuegate/replay/v1", "runs": rows}));
    } else if args.all {
        print::print_data(&format!("{} replayed", plural(replayed as u64, "run")));
    }
    Ok(code)
}

/// The runs with records, the newest first.
fn list_started_runs(journal: &dyn Journal, since: Option<Duration>) -> Result<Vec<RunId>, Failure> {
    let from_ms =
        since.map(|since| now_ms().saturating_sub(i64::try_from(since.as_millis()).unwrap_or(i64::MAX)));
    let runs = journal.runs()?.into_iter();
    let wanted = runs.filter(|run| run.has_records && from_ms.is_none_or(|from| run.created_at_ms >= from));
    Ok(wanted.map(|run| run.run).collect())
}

/// Replays a run; `None` if it is none of the edited workflow.
fn replay_one(
    place: &ProjectPlace,
    journal: &dyn Journal,
    run: &RunId,
    args: &ReplayArgs,
    edited: &mut Option<(RecordedLoadOptions, Arc<Flow>)>,
) -> Result<Option<ReplayResult>, Failure> {
    let first = read_first_record(journal, run)?;
    let Some(Event::RunStarted(started)) = first.as_ref().and_then(|first| first.events.first()) else {
        return Err(Failure::environment(format!("run {run} has no records")));
    };
    let flow = reload_recorded_flow(journal, run, started)?;
    let Some(path) = &args.flow else {
        let (same, divergence) =
            with_adopted_flows(journal, run, |load| replay_run(journal, run, &flow, load))?;
        return Ok(Some(ReplayResult::Decisions(same, divergence)));
    };
    let now = match edited.take().filter(|(how, _)| *how == started.load) {
        Some((_, now)) => now,
        None => load_edited(place, path, started)?,
    };
    *edited = Some((started.load.clone(), now.clone()));
    if args.all && now.name != flow.name {
        return Ok(None);
    }
    let config = config::load_config(place.home.root())?;
    let result = replay_edited(&place.home, journal, run, (&flow, &now), args.same_answers, &config)?;
    Ok(Some(ReplayResult::Edited(Box::new(result))))
}

/// Loads the edited workflow with the options of a run.
fn load_edited(place: &ProjectPlace, path: &str, started: &RunStarted) -> Result<Arc<Flow>, Failure> {
    sound_flow(&load_as(&place.locate(path)?, &started.set, &started.load)?, path)
}

fn row_json(run: &RunId, replayed: &ReplayResult) -> Value {
    match replayed {
        ReplayResult::Edited(edited) => {
            let mut row = json!({"run": run.as_str()});
            if let (Some(row), Value::Object(edited)) = (row.as_object_mut(), edited.to_json()) {
                row.extend(edited);
            }
            row
        }
        ReplayResult::Decisions(same, divergence) => json!({
            "run": run.as_str(),
            "same": divergence.is_none(),
            "records_same": same,
            "divergence": divergence.as_ref().map(|divergence| json!({
                "seq": divergence.seq,
                "at": cuegate_view::format_rfc3339(divergence.at_ms),
                "step": divergence.at.as_ref().map(|(step, _)| step),
                "visit": divergence.at.as_ref().map(|(_, visit)| visit),
                "recorded": divergence.recorded,
                "now": divergence.decided,
            })),
        }),
    }
}

fn print_row(run: &RunId, replayed: &ReplayResult) {
    match replayed {
        ReplayResult::Decisions(same, None) => {
            print::print_data(&format!("run {run}: identical, {}", plural(*same, "decision")));
        }
        ReplayResult::Decisions(_, Some(divergence)) => print_divergence(run, divergence),
        ReplayResult::Edited(edited) => print_edited(run, edited),
    }
}

fn print_divergence(run: &RunId, divergence: &Divergence) {
    let Divergence { seq, at, recorded, decided, .. } = divergence;
    let at = at.as_ref().map(|(step, visit)| format!(", in visit {visit} of `{step}`")).unwrap_or_default();
    print::print_data(&format!("run {run}: record {seq} differs{at}"));
    let [recorded, decided] = [recorded, decided].map(|event| event_lines(event.as_ref()));
    let differs = |line: &&String, others: &[String]| !others.contains(line);
    for (side, lines, others) in [("recorded", &recorded, &decided), ("now", &decided, &recorded)] {
        // The kind of the event, and only those of its values that are others.
        let values = lines.iter().skip(1).filter(|line| differs(line, others));
        let text: Vec<&str> = lines.iter().take(1).chain(values).map(String::as_str).collect();
        print::print_data(&format!("  {side:<9} {}", text.join(" ")));
    }
}

/// An event as its kind and its values.
fn event_lines(event: Option<&Event>) -> Vec<String> {
    const VALUE_MAX: usize = 200;
    let Some(Value::Object(object)) = event.and_then(|event| serde_json::to_value(event).ok()) else {
        return vec!["nothing more".to_owned()];
    };
    let kind = object.get("event").and_then(Value::as_str).unwrap_or_default().replace('_', " ");
    let value = |(key, value): (&String, &Value)| {
        let value = clean_to_one_line(&value.to_string());
        format!("{key}={}", cuegate_view::shorten_end(&value, VALUE_MAX))
    };
    let values = object.iter().filter(|(key, _)| *key != "event").map(value);
    std::iter::once(kind).chain(values).collect()
}

fn print_edited(run: &RunId, edited: &EditedRun) {
    let EditedRun { view, used, recorded, .. } = edited;
    let words = match (&edited.other, &edited.stop) {
        (Some(_), _) => "takes another path".to_owned(),
        (None, ReplayStop::Needs { .. }) => "the same path, as far as the recording reaches".to_owned(),
        (None, ReplayStop::Ended | ReplayStop::Waits) => {
            format!("the same path to its end, {}", view.state.as_str())
        }
    };
    print::print_data(&format!(
        "run {run}: {words} ({} of {} used)",
        format_count(*used as u64),
        plural(*recorded as u64, "recorded result")
    ));
    if let Some((was, is)) = &edited.other {
        let end = match edited.stop {
            ReplayStop::Waits => "asks a person",
            _ => view.state.as_str(),
        };
        print::print_data(&format!("  recorded  {}", visit_line(was.as_ref(), "no further visit")));
        print::print_data(&format!("  now       {}", visit_line(is.as_ref(), end)));
    }
    for (step, visit, what) in &edited.asked_otherwise {
        print::print_data(&format!("  used      though the {what} of visit {visit} of `{step}` differs"));
    }
    if let ReplayStop::Needs { step, visit, is_call, why } = &edited.stop {
        let what = if *is_call { "the call" } else { "the command" };
        print::print_data(&format!("  ends at   {what} of visit {visit} of `{step}`: {why}"));
    }
    if let Some(rest) = &edited.rest {
        let calls = match rest.asks_max() {
            Some(calls) => format!("at most {}", plural(calls, "call")),
            None => "calls without a bound".to_owned(),
        };
        let usd = match rest.usd_micro {
            Some(micro) => format_money(Some(micro as f64 / 1e6)),
            None => "no bound in money".to_owned(),
        };
        print::print_data(&format!("  to know   {calls}, {usd}"));
    }
}

fn visit_line(row: Option<&VisitRow>, without: &str) -> String {
    let Some(row) = row else { return without.to_owned() };
    let outcome = row.outcome.as_deref().unwrap_or("no outcome");
    let target = row.target.as_deref().map(|target| format!(" → {}", target_word(target)));
    clean_to_one_line(&format!("{} #{}: {outcome}{}", row.step, row.visit, target.unwrap_or_default()))
}
