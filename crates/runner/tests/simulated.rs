//! Tests of simulations of a flow of each format: every simulated agent reaches typed ends, and the expected ones.
#![expect(clippy::unwrap_used, reason = "in a test a panic is the message")]

use std::{collections::BTreeSet, sync::Arc};

use cuegate_engine::{EndState, Event, FaultClass, State, WaitKind};
use cuegate_flow::{
    analysis::state_graph::StateGraph,
    diagnostics::Span,
    model::{FieldPath, Flow, Name, Role, Target},
};
use cuegate_runner::simulation::{Agent, RunInputs, SimulatedRun, Simulation};
use cuegate_testkit::{Builder, flows};
use serde_json::json;

const RUNS: usize = 18;

fn all() -> Vec<Arc<Flow>> {
    flows::all().into_iter().chain(flows::verdicts()).chain([flows::acting(), flows::on_issue()]).collect()
}

fn begin(flow: &Flow) -> RunInputs {
    let iterations_max = flow.limits.iterations_max;
    let params = [("output".to_owned(), "out/report.md".to_owned())].into();
    RunInputs { path: "test".to_owned(), iterations_max, repairs_max: 1, params, ..RunInputs::default() }
}

fn walks(flow: &Arc<Flow>, agent: Agent, seed: u64) -> Vec<SimulatedRun> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    let reach = Arc::new(StateGraph::explore(flow.clone(), flow.limits.iterations_max));
    let mut simulation = Simulation::new(reach, begin(flow), agent, seed);
    (0..RUNS).map(|_| runtime.block_on(simulation.walk()).unwrap()).collect()
}

fn events(walk: &SimulatedRun) -> impl Iterator<Item = &Event> {
    walk.records.iter().flat_map(|entry| &entry.events)
}

#[test]
fn every_run_reaches_a_typed_end() {
    for flow in all() {
        for agent in Agent::ALL {
            for walk in walks(&flow, agent, 1) {
                let name = agent.as_str();
                assert_eq!(walk.faults, Vec::<String>::new(), "{} {name} {}", flow.name, walk.number);
                let typed = matches!(walk.run.state, State::Ended { .. } | State::Suspended(_));
                assert!(typed, "{} {name} {}: {:?}", flow.name, walk.number, walk.run.state);
            }
        }
    }
}

#[test]
fn the_same_seed_gives_the_same_records() {
    for flow in flows::all() {
        for agent in [Agent::Obedient, Agent::Random] {
            let records =
                |seed| walks(&flow, agent, seed).into_iter().map(|walk| walk.records).collect::<Vec<_>>();
            let one = records(7);
            assert_eq!(one, records(7), "{}", flow.name);
            assert_ne!(one, records(8), "{}", flow.name);
        }
    }
}

/// The first run of each agent is deterministic. The flow is a registry with one repair per answer.
#[test]
fn each_agent_reaches_its_expected_end() {
    let flow = flows::all().into_iter().find(|flow| flow.dialect == "registry-closing").unwrap();
    let first = |agent| walks(&flow, agent, 3).remove(0);
    let ends = |walk: &SimulatedRun| match &walk.run.state {
        State::Ended { state, .. } => format!("{state:?}"),
        State::Suspended(waiting) => format!("{:?}", waiting.kind),
        other => format!("{other:?}"),
    };
    for (agent, end) in [
        (Agent::Malformed, "Failed"),
        (Agent::WrongStep, "Failed"),
        (Agent::MissingFields, "Failed"),
        (Agent::Liar, "Failed"),
        (Agent::Staller, "Environment"),
        (Agent::RateLimited, "Quota"),
        (Agent::Truncated, "Failed"),
    ] {
        assert_eq!(ends(&first(agent)), end, "{}", agent.as_str());
    }
    // Text around an answer changes nothing.
    let prose = first(Agent::Prose);
    assert!(events(&prose).all(|event| !matches!(event, Event::AnswerRejected { .. })));
    // The liar's claims are not trusted: the validators failed as often as permitted.
    let liar = first(Agent::Liar);
    let failed = |event: &&Event| matches!(event, Event::CommandFinished { passed: false, .. });
    assert!(events(&liar).filter(failed).count() > 1);
    assert!(events(&liar).all(|event| !matches!(event, Event::CommandFinished { passed: true, .. })));
    // Three timeouts of one simulated hour each.
    let stalled = first(Agent::Staller);
    let (from, to) = (stalled.records[0].at_ms, stalled.records.last().unwrap().at_ms);
    assert!(to - from >= 3 * 60 * 60 * 1000, "{}", to - from);
}

#[test]
fn each_agent_shows_each_of_its_behaviors() {
    let any = |agent, seen: &dyn Fn(&Event) -> bool| {
        flows::all().iter().flat_map(|flow| walks(flow, agent, 5)).any(|walk| events(&walk).any(seen))
    };
    let refused = |event: &Event| matches!(event, Event::Faulted { class: FaultClass::Refused, .. });
    let asked = |event: &Event| matches!(event, Event::PersonAnswered { .. });
    let overrun =
        |event: &Event| matches!(event, Event::Ended { state: EndState::Exhausted, stays: true, .. });
    assert!(any(Agent::Refusing, &refused) && any(Agent::Refusing, &asked));
    assert!(any(Agent::Liar, &|event| matches!(event, Event::BoundaryViolated { .. })));
    assert!(any(Agent::RateLimited, &|event| matches!(event, Event::Answered { .. })), "limits pass");
    assert!(any(Agent::Random, &overrun), "budgets are used up");
}

#[test]
fn simulated_persons_answer_questions() {
    let kinds: BTreeSet<String> = flows::all()
        .iter()
        .flat_map(|flow| walks(flow, Agent::Refusing, 2))
        .filter_map(|walk| match &walk.run.state {
            State::Suspended(waiting) if waiting.kind == WaitKind::Person => {
                // Questions are answered a limited number of times, so some stay open.
                assert!(walk.alone < walk.records.len());
                Some("waiting".to_owned())
            }
            State::Ended { .. } if walk.alone < walk.records.len() => Some("answered".to_owned()),
            _ => None,
        })
        .collect();
    assert_eq!(kinds.into_iter().collect::<Vec<_>>(), ["answered", "waiting"]);
}

/// The agent with wrong names uses a wrong name for each kind of name in an answer.
#[test]
fn wrong_names_cover_steps_outcomes_and_targets() {
    let name = |text: &str| Name::new(text, Span::default());
    let target =
        Target::Jump { field: FieldPath::parse("to"), among: vec![name("a"), name("b")], default: None };
    let schema = json!({
        "type": "object",
        "required": ["stepId", "action", "to"],
        "properties": {"stepId": {"const": "a"}, "action": {"enum": ["jump", "done"]}, "to": {"type": "string"}},
    });
    let flow = Builder::new("jumps", "registry-closing", "a")
        .ask("a", Role::Work, &["jump", "done"])
        .schema(schema)
        .edge("jump", target, |_| {})
        .to("done", "@completed")
        .ask("b", Role::Work, &["done"])
        .to("done", "@completed")
        .limit(9)
        .flow();
    let walks = walks(&flow, Agent::WrongStep, 1);
    let said: String = walks.iter().flat_map(events).map(|event| format!("{event:?}")).collect();
    for word in ["`/stepId`", "no-such-outcome", "no-such-target"] {
        assert!(said.contains(word), "no event mentions {word}");
    }
}
