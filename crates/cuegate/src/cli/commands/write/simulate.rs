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

use crate::cli::commands::diagnostics;
use crate::cli::commands::read_options::{is_takt_workflow, refuse_phases};
use crate::cli::commands::{ProjectPlace, load_as};
use crate::cli::{params, print, set_values};
use crate::config::{Config, PhasesChoice};
use crate::definition::Location;
use crate::run::start_run::REPAIRS_MAX;
use crate::simulate::SimulationRequest;
use crate::{Failure, config, exit, simulate};
use clap::Args;
use cuegate_runner::simulation::Agent as StandIn;

#[derive(Debug, Args)]
pub(crate) struct SimulateArgs {
    /// An agent folder, a registry file, a workflow file, or the name of one in `.agent` or `.takt`
    pub(crate) path: String,
    /// Set a parameter or a variable; required values that are not set are generated
    #[arg(long, value_name = "NAME=VALUE")]
    pub(crate) set: Vec<String>,
    /// How many runs each agent gets [default: until its runs cover nothing new]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=100_000))]
    pub(crate) runs: Option<u64>,
    /// The time limit of the runs in seconds; what it leaves out is listed [default: 20, none with --runs]
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..=86_400))]
    pub(crate) time: Option<u64>,
    /// The random seed; the same seed gives the same runs
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) seed: u64,
    /// The simulated agent to use: obedient, malformed, prose, wrong-step, missing-fields, liar, staller, rate-limited,
    /// truncated, refusing or random; repeatable [default: all]
    #[arg(long = "agent", value_name = "NAME", value_parser = stand_in)]
    pub(crate) agents: Vec<StandIn>,
    /// Exit with 1 when coverage is below this percentage
    #[arg(long, value_name = "PERCENT", value_parser = parse_percent)]
    pub(crate) min_coverage: Option<f64>,
    /// The iteration limit of a run [default: the definition's, or fewer where more would cover nothing new]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) max_iterations: Option<u32>,
    /// How many calls a step of a TAKT workflow takes [default: fused]
    #[arg(long, value_enum)]
    pub(crate) phases: Option<PhasesChoice>,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

fn stand_in(name: &str) -> Result<StandIn, String> {
    StandIn::named(name).ok_or_else(|| {
        let names = StandIn::ALL.map(StandIn::as_str);
        format!("unknown agent; use one of {}", names.join(", "))
    })
}

fn parse_percent(text: &str) -> Result<f64, String> {
    let percent = text.strip_suffix('%').unwrap_or(text).parse::<f64>().ok();
    percent
        .filter(|percent| (0.0..=100.0).contains(percent))
        .ok_or_else(|| "not a percentage from 0 to 100".to_owned())
}

/// Simulates a definition with stand-in agents. It asks no person, starts no process and writes no file.
pub(in crate::cli::commands) fn simulate_definition(
    place: &ProjectPlace,
    args: &SimulateArgs,
) -> Result<u8, Failure> {
    let location = place.locate(&args.path)?;
    let config = config::load_config(place.home.root())?;
    let how = build_load_options(args, &location, &config)?;
    let names: Vec<String> =
        args.set.iter().filter_map(|pair| pair.split_once('=')).map(|(name, _)| name.to_owned()).collect();
    let definition = load_as(&location, &names, &how)?;
    let Some(flow) = &definition.flow else {
        diagnostics::print_diagnostics(&definition.diagnostics, &definition.sources, false);
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
    args: &SimulateArgs,
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
        iterations_max: args.max_iterations.or(config.run.max_iterations),
    })
}

/// The inputs of the runs, and which of them were generated.
fn prepare_simulation_inputs(
    args: &SimulateArgs,
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
                    "no value was found that fits `{}`: `{value}`, which was generated, {complaint}",
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
