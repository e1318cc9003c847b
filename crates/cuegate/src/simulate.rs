//! Simulations: runs with stand-in agents until nothing new comes of them, held against the bound of their flow.

use std::{
    collections::BTreeMap,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
    time::{Duration, Instant},
};

use cuegate_engine::{Budget, Event, State};
use cuegate_flow::{
    analysis::{
        cost_bound::{Certificate, Terms},
        state_graph::StateGraph,
    },
    model::{Act, Flow, Param, ParamType, Source, Verdict},
};
use cuegate_runner::simulation::{Agent, RunInputs, SimulatedRun, Simulation, text_for};
use cuegate_view::{AgentRow, BugRow, Coverage, ObservedCounts, end_of};

/// How many runs in a row may find nothing new before an agent is done.
const PATIENCE: u64 = 6;
/// The same, while the obedient agent knows of something that it has not come to.
const PATIENCE_EAGER: u64 = 24;
/// How many runs an agent gets at most when nobody says.
const RUNS_MAX: u64 = 400;
/// How many bugs are told.
const BUGS_MAX: usize = 20;
/// The most iterations of a run when nobody says, unless the definition has many steps: a loop that goes on for
/// hundreds shows nothing that it does not show before.
const ITERATIONS_MAX: u32 = 60;

/// The most iterations of a run where something is counted that takes so many.
const COUNTED_MAX: u32 = 600;

/// What is to be simulated.
#[derive(Debug, Clone)]
pub struct SimulationRequest {
    /// What each run begins with.
    pub begin: RunInputs,
    /// Who answers.
    pub agents: Vec<Agent>,
    /// The same seed gives the same runs.
    pub seed: u64,
    /// How many runs each agent gets; `None` = until nothing new is found.
    pub runs: Option<u64>,
    /// The time limit of the runs of all agents together.
    pub time: Option<Duration>,
    /// Is called before each run with its agent, its number and the share that is covered, in percent; first with run 0
    /// before the states are explored.
    pub progress: fn(&str, u64, f64),
}

/// The default time limit.
pub const TIME: Duration = Duration::from_secs(20);

/// What came of it.
#[derive(Debug, Clone)]
pub struct SimulationResult {
    /// By agent.
    pub agents: Vec<AgentRow>,
    /// What the runs came by.
    pub coverage: Coverage,
    /// The most that a run may do.
    pub bound: Certificate,
    /// The most that one did.
    pub observed: ObservedCounts,
    /// What must not have happened.
    pub bugs: Vec<BugRow>,
    /// The agents that the time limit stopped.
    pub stopped: Vec<&'static str>,
}

/// Runs a flow with stand-in agents.
pub fn simulate_flow(flow: &Arc<Flow>, wanted: &SimulationRequest) -> SimulationResult {
    (wanted.progress)("", 0, 0.0);
    let bound = cost_bound_of_flow(flow, wanted, &Budget::default());
    let reach = Arc::new(StateGraph::explore(flow.clone(), wanted.begin.iterations_max));
    // The exploration has its own limits; without it no run could be steered.
    let began = Instant::now();
    let none = Coverage::new(reach.clone());
    let mut found = SimulationResult {
        agents: Vec::new(),
        coverage: none.clone(),
        bound,
        observed: ObservedCounts::default(),
        bugs: Vec::new(),
        stopped: Vec::new(),
    };
    for (index, agent) in wanted.agents.iter().enumerate() {
        // Each agent gets an equal share of the time that is left.
        let share = u32::try_from(wanted.agents.len() - index).unwrap_or(u32::MAX);
        let deadline = wanted.time.map(|time| Instant::now() + time.saturating_sub(began.elapsed()) / share);
        let simulation = Simulation::new(reach.clone(), wanted.begin.clone(), *agent, wanted.seed);
        let simulation = simulation.until(deadline);
        run_all(flow, wanted, (simulation, deadline), none.clone(), &mut found);
    }
    found
}

/// All runs of one agent.
fn run_all(
    flow: &Arc<Flow>,
    wanted: &SimulationRequest,
    (mut simulation, deadline): (Simulation, Option<Instant>),
    mut covered: Coverage,
    found: &mut SimulationResult,
) {
    let agent = simulation.agent();
    let mut row = AgentRow { agent: agent.as_str(), runs: 0, ends: BTreeMap::new(), covered: 0 };
    let mut idle = 0;
    let goes_on = |runs: u64, idle: u64, eager: bool| match wanted.runs {
        Some(most) => runs < most,
        None => runs < RUNS_MAX && idle < if eager { PATIENCE_EAGER } else { PATIENCE },
    };
    while goes_on(row.runs, idle, simulation.is_eager()) {
        let late = || deadline.is_some_and(|deadline| Instant::now() >= deadline);
        if late() {
            found.stopped.push(agent.as_str());
            break;
        }
        row.runs += 1;
        (wanted.progress)(agent.as_str(), row.runs, covered.all().percent());
        let bug = |what: String| BugRow { agent: agent.as_str(), run: row.runs, what };
        let walk = match simulate_one_run(&mut simulation) {
            Ok(walk) => walk,
            Err(what) => {
                found.bugs.push(bug(what));
                break;
            }
        };
        let mut wrong = walk.faults.clone();
        wrong.extend(list_bound_violations(flow, wanted, &walk, found));
        let stopped = late() && matches!(walk.run.state, State::Suspended(_));
        match end_of(&walk.run.state) {
            Some(_) if stopped => *row.ends.entry("stopped").or_default() += 1,
            Some(end) => *row.ends.entry(end).or_default() += 1,
            None => *row.ends.entry("without an end").or_default() += 1,
        }
        found.bugs.extend(wrong.into_iter().map(bug));
        if found.bugs.len() >= BUGS_MAX {
            break;
        }
        let new = covered.follow(walk.records.iter().map(|entry| entry.events.as_slice()));
        idle = if new { 0 } else { idle + 1 };
    }
    row.covered = covered.all().covered;
    found.coverage.add(&covered);
    found.agents.push(row);
}

/// One run. A panic in it is a bug like any other, with its seed.
fn simulate_one_run(simulation: &mut Simulation) -> Result<SimulatedRun, String> {
    let walked = catch_unwind(AssertUnwindSafe(|| {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .build()
            .map_err(|error| format!("failed to start: {error}"))?;
        runtime.block_on(simulation.walk()).map_err(|error| error.to_string())
    }));
    walked.unwrap_or_else(|_| Err("it panicked, see above".to_owned()))
}

/// In what a run did more than it may.
fn list_bound_violations(
    flow: &Flow,
    wanted: &SimulationRequest,
    walk: &SimulatedRun,
    found: &mut SimulationResult,
) -> Vec<String> {
    let alone: Vec<&[Event]> =
        walk.records.iter().take(walk.alone).map(|entry| entry.events.as_slice()).collect();
    let did = ObservedCounts::new(flow, alone);
    found.observed.most(&did);
    let mut beyond = match walk.budget.limits() {
        true => did.beyond(&cost_bound_of_flow(flow, wanted, &walk.budget)),
        false => did.beyond(&found.bound),
    };
    if let Some((answered, most)) = walk.run.spending.ledger.beyond_bound() {
        beyond.push(format!("{answered} calls, of at most {most}"));
    }
    beyond.into_iter().map(|what| format!("more than its price says: {what}")).collect()
}

/// The most that a run may do.
fn cost_bound_of_flow(flow: &Flow, wanted: &SimulationRequest, budget: &Budget) -> Certificate {
    let RunInputs { iterations_max, repairs_max, .. } = wanted.begin;
    cuegate_flow::analysis::cost_bound::price_without_sensitivity(
        flow,
        &Terms { iterations_max, repairs_max, asks: budget.asks, ..Terms::default() },
    )
}

/// The most iterations of a simulated run when nobody says.
pub fn iterations_max(flow: &Flow) -> u32 {
    let steps = u32::try_from(flow.steps.len()).unwrap_or(u32::MAX);
    let usual = ITERATIONS_MAX.max(steps.saturating_mul(3));
    let needed = largest_limit_of_flow(flow).saturating_add(2).saturating_mul(steps).min(COUNTED_MAX);
    let needed = if largest_limit_of_flow(flow) >= usual / steps.max(1) { needed } else { 0 };
    let limit = flow.limits.iterations_max;
    if limit <= usual.max(needed) {
        return limit;
    }
    // Counts multiply where one is within another: then the iteration is known in which what comes last can come first.
    let reach = StateGraph::explore(Arc::new(flow.clone()), limit.min(COUNTED_MAX));
    let last = reach.marks().values().copied().max().unwrap_or(0).min(COUNTED_MAX);
    limit.min(usual.max(needed).max(last.saturating_add(1)))
}

/// The most that anything in a flow counts: a bound, the rounds of a monitor, a verdict.
fn largest_limit_of_flow(flow: &Flow) -> u32 {
    let edges = flow.steps.iter().flat_map(|step| &step.edges);
    let bounds = edges.filter_map(|edge| edge.bound.map(|bound| bound.max));
    let rounds = flow.monitors.iter().map(|monitor| monitor.threshold);
    let verdicts = flow.verdict.places().into_iter().filter_map(|(_, part)| match part {
        Verdict::Iterations(max) | Verdict::Checks { max, .. } => Some(*max),
        _ => None,
    });
    bounds.chain(rounds).chain(verdicts).max().unwrap_or(0)
}

/// Values for what a run needs and nobody gives: parameters that are required, that a prompt reads, or that say what a
/// verdict looks at. They fit the rules of their parameters.
pub fn made_up(flow: &Flow) -> BTreeMap<String, String> {
    let polled: Vec<&str> = flow
        .verdict
        .places()
        .into_iter()
        .filter_map(|(_, part)| match part {
            Verdict::Poll(poll) => Some(&*poll.param),
            _ => None,
        })
        .collect();
    let read: Vec<&Source> = flow
        .steps
        .iter()
        .filter_map(|step| match &step.act {
            Act::Ask(ask) => Some(
                ask.prompt.sources().into_iter().chain(ask.system.iter().flat_map(|system| system.sources())),
            ),
            _ => None,
        })
        .flatten()
        .collect();
    let needed = |param: &&Param| {
        param.default.is_none()
            && (param.required
                || polled.contains(&&*param.name)
                || read.contains(&&Source::Param(param.name.clone())))
    };
    let declared = flow.params.iter().filter(needed).map(|param| (param.name.to_string(), value_for(param)));
    // What says which file or service is looked at need not be declared.
    let polled = polled.iter().filter(|name| flow.params.iter().all(|param| *param.name != ***name));
    declared.chain(polled.map(|name| ((*name).to_owned(), "out/simulated".to_owned()))).collect()
}

/// A value that fits a parameter; where none of those that are tried does, the first of them.
fn value_for(param: &Param) -> String {
    let rule = &param.rule;
    let kind: &[&str] = match param.kind {
        ParamType::Number => &["1", "0", "10", "100", "0.5", "-1"],
        ParamType::Boolean => &["false", "true"],
        ParamType::Text | ParamType::List => &[
            "simulated",
            "1",
            "a",
            "A",
            "a-1",
            "src/a.rs",
            "main",
            "1.0.0",
            "v1.0.0",
            "#1",
            "owner/name",
            "2020-01-01",
            "https://localhost/a",
            "a@localhost.example",
            "0123456789abcdef0123456789abcdef01234567",
        ],
    };
    let limits = rule.min.iter().chain(&rule.max).map(ToString::to_string);
    let choices = rule.choices.iter().flatten().map(ToString::to_string);
    let pattern = rule.pattern.as_deref();
    let made = (0..16).filter_map(|variant| text_for(pattern?, variant));
    let fixed = kind.iter().map(|text| (*text).to_owned());
    let mut tried = choices.chain(limits).chain(fixed).chain(made);
    let fits = |value: &String| rule.complaint(value).is_none();
    tried.clone().find(fits).or_else(|| tried.next()).unwrap_or_default()
}
