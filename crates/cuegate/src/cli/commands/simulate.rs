//! `simulate`.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use cuegate_engine::RecordedLoadOptions;
use cuegate_flow::model::Flow;
use cuegate_formats::RunSettings;
use cuegate_runner::simulation::{Agent, RunInputs};
use cuegate_view::FinishedSimulation;

use super::{
    ProjectPlace, check, load_as,
    read_options::{is_takt_workflow, refuse_phases},
};
use crate::cli::{args, params, print, set_values};
use crate::config::{Config, PhasesChoice};
use crate::definition::Location;
use crate::run::start_run::REPAIRS_MAX;
use crate::simulate::SimulationRequest;
use crate::{Failure, config, exit, simulate};

/// Simulates a definition with stand-in agents. It asks no person, starts no process and writes no file.
pub(super) fn simulate_definition(place: &ProjectPlace, args: &args::SimulateArgs) -> Result<u8, Failure> {
    let location = place.locate(&args.path)?;
    let config = config::load_config(place.home.root())?;
    let how = build_load_options(args, &location, &config)?;
    let names: Vec<String> =
        args.set.iter().filter_map(|pair| pair.split_once('=')).map(|(name, _)| name.to_owned()).collect();
    let definition = load_as(&location, &names, &how)?;
    let Some(flow) = &definition.flow else {
        check::print_diagnostics(&definition.diagnostics, &definition.sources, false);
        return Err(Failure::usage(
            format!("`{}` has errors", args.path),
            format!("fix the errors above, then run `cuegate check {}`", args.path),
        ));
    };
    set_values::tell_unread(&names, [&**flow]);
    let (begin, made_up) = prepare_simulation_inputs(args, flow, &definition.settings, &config, how)?;
    let mut agents = if args.agents.is_empty() { Agent::ALL.to_vec() } else { args.agents.clone() };
    // Repeating an agent would only repeat its runs.
    let mut seen = BTreeSet::new();
    agents.retain(|agent| seen.insert(*agent));
    let time = args.time.map(Duration::from_secs).or(args.runs.is_none().then_some(simulate::TIME));
    let progress = if print::has_progress() && !args.json { show_progress } else { |_: &str, _, _| {} };
    let wanted = SimulationRequest { begin, agents, seed: args.seed, runs: args.runs, time, progress };
    // A panic is reported with its seed, like any other bug.
    let usual = std::panic::take_hook();
    std::panic::set_hook(Box::new(|info| print::print_line(&info.to_string())));
    let found = simulate::simulate_flow(flow, &wanted);
    std::panic::set_hook(usual);
    let result = FinishedSimulation {
        flow: &flow.name,
        dialect: flow.dialect,
        seed: args.seed,
        iterations_max: wanted.begin.iterations_max,
        own_iterations_max: flow.limits.iterations_max,
        made_up: &made_up,
        agents: &found.agents,
        coverage: &found.coverage,
        sources: &definition.sources,
        bound: &found.bound,
        observed: &found.observed,
        bugs: &found.bugs,
        min_coverage: args.min_coverage,
        stopped: &found.stopped,
    };
    if print::has_progress() && !args.json {
        print::overwrite_line("");
    }
    if args.json {
        print::print_json(&result.json());
    } else {
        print::print_data(&result.text());
    }
    if !found.bugs.is_empty() {
        print::print_line("this is a bug of cuegate: no run may do this, whatever its agents answer");
        print::print_line(&format!("hint: the same command with `--seed {}` does it again", args.seed));
        return Ok(exit::BUG);
    }
    if !result.is_enough() {
        let least = args.min_coverage.unwrap_or_default();
        print::print_line(&format!("error: coverage is below the required {least}%"));
        print::print_line(
            "hint: the uncovered items are listed above; more runs (`--runs N`) may cover them",
        );
        return Ok(exit::BAD_END);
    }
    Ok(exit::DONE)
}

/// Shows on the terminal which run comes next.
fn show_progress(agent: &str, run: u64, covered: f64) {
    print::overwrite_line(&match run {
        0 => "exploring what runs can reach".to_owned(),
        run => format!("simulating: {agent}, run {run}, {covered:.0}% covered"),
    });
}

/// The load options: those of a headless run.
fn build_load_options(
    args: &args::SimulateArgs,
    location: &Location,
    config: &Config,
) -> Result<RecordedLoadOptions, Failure> {
    if !is_takt_workflow(location) {
        return match args.phases {
            None => Ok(RecordedLoadOptions::default()),
            Some(_) => Err(refuse_phases(&args.path)),
        };
    }
    Ok(RecordedLoadOptions {
        separate: args.phases.or(config.takt.phases) == Some(PhasesChoice::Separate),
        interactive: true,
        gate_retries: config.run.quality_gate_retries,
        width: config.run.width,
    })
}

/// The inputs of the runs, and which of them were generated.
fn prepare_simulation_inputs(
    args: &args::SimulateArgs,
    flow: &Flow,
    settings: &RunSettings,
    config: &Config,
    load: RecordedLoadOptions,
) -> Result<(RunInputs, BTreeMap<String, String>), Failure> {
    let mut set = args.set.clone();
    let mut made_up = BTreeMap::new();
    for (name, value) in simulate::made_up(flow) {
        let given = |pair: &String| {
            pair.split_once('=').is_some_and(|(given, _)| params::is_same_param(given, &name))
        };
        if !set.iter().any(given) {
            set.push(format!("{name}={value}"));
            made_up.insert(name, value);
        }
    }
    // The user did not type this value, so the usual error about it would be confusing.
    for param in &flow.params {
        let made = made_up.get(&*param.name);
        if let Some((value, complaint)) = made.and_then(|value| Some((value, param.rule.complaint(value)?))) {
            return Err(Failure::usage(
                format!(
                    "no value was found that fits `{}`: `{value}`, which was made up, {complaint}",
                    param.name
                ),
                format!("give one with `--set {}=VALUE`", param.name),
            ));
        }
    }
    let values = params::collect_param_values(flow, None, &set)?;
    let task = settings.needs_task.then(|| "a simulated task".to_owned());
    made_up.extend(task.clone().map(|task| ("task".to_owned(), task)));
    let begin = RunInputs {
        path: args.path.clone(),
        params: values,
        task,
        iterations_max: args.max_iterations.unwrap_or_else(|| simulate::iterations_max(flow)),
        repairs_max: config.run.repairs_max.unwrap_or(REPAIRS_MAX),
        load,
    };
    Ok((begin, made_up))
}
