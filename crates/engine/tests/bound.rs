//! No run exceeds the cost bound of its flow, for every flow of the testkit, many seeds and any answers.
#![expect(clippy::unwrap_used, reason = "in a test a panic is the message")]

use std::{collections::BTreeMap, sync::Arc};

use cuegate_engine::{Answer, AskCommand, Command, Completion, Event, State, WaitKind};
use cuegate_flow::{
    analysis::cost_bound::{Terms, price_flow},
    model::{Act, Flow},
};
use cuegate_testkit::{
    flows,
    world::{self, Case},
};

const DECISIONS_MAX: usize = 2_000;
const SEEDS: u64 = 200;
const REPAIRS_MAX: u32 = 1;

/// The behaviour of a world's agents.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Agents {
    /// The testkit's default: mostly sensible, with faults.
    Usual,
    /// Without faults.
    Faultless,
    /// Every answer is invalid as long as repairs remain.
    Bad,
    /// Every answer is a question as long as questions are answered.
    Asking,
}

/// Every flow of the testkit.
fn all() -> Vec<Arc<Flow>> {
    flows::all().into_iter().chain(flows::verdicts()).chain([flows::acting()]).collect()
}

/// Runs until the end, or until only a person can continue the run, because the bound does not cover added limits.
fn drive(flow: &Flow, seed: u64, agents: Agents) -> Case<'_> {
    let mut case = Case::new(flow);
    case.start();
    for _ in 0..DECISIONS_MAX {
        let for_person = matches!(&case.run.state, State::Suspended(by) if by.kind == WaitKind::Person);
        if case.ended() || for_person {
            return case;
        }
        if case.unblock() {
            continue;
        }
        let pending = case.pending();
        let chosen = &pending[seed as usize % pending.len()];
        let completion = match chosen {
            Command::Ask(ask) => answer(&case, seed, ask, agents, chosen),
            _ => world::respond(&case, seed, chosen),
        };
        assert!(case.complete(completion), "an answer to something pending is a decision");
    }
    panic!("{} seed {seed}: no end", flow.name);
}

fn answer(case: &Case<'_>, seed: u64, ask: &AskCommand, agents: Agents, command: &Command) -> Completion {
    let usual = world::respond(case, seed, command);
    let said = |answer: Answer| Completion::Answered { ask: ask.id, answer: Box::new(answer), seen: None };
    let repairs = case.run.asking(ask.id).map_or(0, |(_, _, asking)| asking.repairs);
    match (agents, &usual) {
        (Agents::Bad, _) if repairs < REPAIRS_MAX => said(Answer::default()),
        (Agents::Asking, _)
            if case.flow.conduct.auto_response.is_some()
                && case.run.context.questions < cuegate_flow::model::Conduct::QUESTIONS_MAX =>
        {
            said(Answer { asks_person: Some("which one?".to_owned()), ..Answer::default() })
        }
        (Agents::Usual, _) | (_, Completion::Answered { .. }) => usual,
        // Retries with the next seed until the world has an answer.
        _ => (1..)
            .map(|more| world::respond(case, seed + 1_000 * more, command))
            .find(|completion| matches!(completion, Completion::Answered { .. }))
            .unwrap(),
    }
}

/// The totals of a run, by their names in the bound.
fn observed(case: &Case<'_>) -> BTreeMap<&'static str, u64> {
    let mut did = BTreeMap::from([("iterations", u64::from(case.run.progress.iterations))]);
    let mut count = |what, times| *did.entry(what).or_default() += times;
    for event in case.events.iter().flatten() {
        match event {
            Event::Answered { kind, .. } => {
                count("asks", 1);
                count(kind.as_str(), 1);
            }
            Event::StepEntered { step, counts: true, attempt: 1, .. } => {
                let step = case.flow.step(case.flow.find(step).unwrap());
                let members = match &step.act {
                    Act::All { members, .. } => members.len() as u64,
                    _ => 1,
                };
                count("visits", members);
            }
            _ => {}
        }
    }
    did
}

#[test]
fn no_run_exceeds_its_bound() {
    let mut reached = BTreeMap::<&str, u64>::new();
    for flow in all() {
        let iterations_max = flow.limits.iterations_max;
        let bound =
            price_flow(&flow, &Terms { iterations_max, repairs_max: REPAIRS_MAX, ..Terms::default() });
        let mut most = BTreeMap::from([
            ("iterations", bound.iterations),
            ("asks", bound.asks),
            ("visits", bound.visits),
        ]);
        most.extend(bound.by_role.iter().map(|(role, times)| (role.as_str(), *times)));
        for agents in [Agents::Usual, Agents::Faultless, Agents::Bad, Agents::Asking] {
            for seed in 0..SEEDS {
                for (what, times) in observed(&drive(&flow, seed, agents)) {
                    let most = most.get(what).copied().unwrap_or(0);
                    assert!(
                        times <= most,
                        "{} seed {seed}, {agents:?}: {times} {what}, at most {most}",
                        flow.name
                    );
                    let part = reached.entry(what).or_default();
                    *part = (*part).max(times * 100 / most);
                }
            }
        }
    }
    // Runs come close to every quantity of the bound.
    for what in ["iterations", "asks", "visits", "work", "report", "judge", "check", "repair", "remedy"] {
        assert!(reached.get(what).is_some_and(|percent| *percent >= 40), "{what}: {reached:?}");
    }
}
