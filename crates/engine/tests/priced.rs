//! No run exceeds the cost bound of its definition, whatever is answered, interrupted and resumed; limits that people add
//! are priced again. A bound that is wrong is reported and stops nothing.

use cuegate_engine::{Completion, EndState, ResumeSettings, RunStarted, Start, State, WaitKind};
use cuegate_flow::{
    analysis::cost_bound::{Terms, price_without_sensitivity},
    model::Flow,
};
use cuegate_testkit::{
    flows,
    world::{Case, respond, roll, started},
};

const SEEDS: u64 = 400;
const DECISIONS_MAX: u64 = 400;

fn start<'f>(flow: &'f Flow, asks_max: Option<u64>) -> Case<'f> {
    let mut case = Case::new(flow);
    let started = RunStarted { asks_max, ..started(flow) };
    assert!(case.complete(Completion::Start(Box::new(Start { started }))));
    case
}

fn priced(flow: &Flow) -> Option<u64> {
    let terms = Terms { iterations_max: flow.limits.iterations_max, repairs_max: 1, ..Terms::default() };
    price_without_sensitivity(flow, &terms).asks_max()
}

#[test]
fn no_run_exceeds_its_cost_bound() {
    let (mut persons, mut resumed, mut full) = (0, 0, 0);
    for flow in flows::all().into_iter().chain(flows::verdicts()).chain([flows::acting()]) {
        for seed in 0..SEEDS {
            let mut case = start(&flow, priced(&flow));
            for turn in 0..DECISIONS_MAX {
                let ledger = &case.run.spending.ledger;
                assert!(ledger.asks_max.is_some_and(|most| ledger.answered <= most), "{ledger:?}");
                match &case.run.state {
                    State::Ended { state: EndState::Exhausted, hold, .. } => {
                        let further = hold.is_some() && case.run.progress.iterations < 60;
                        let iterations_max = further.then_some(case.run.progress.iterations_max + 2);
                        let resume = ResumeSettings { iterations_max, ..ResumeSettings::default() };
                        if !further || !case.complete(Completion::Resumed(Box::new(resume))) {
                            break;
                        }
                        resumed += 1;
                    }
                    State::Ended { .. } => break,
                    State::Suspended(waiting) => {
                        persons += u32::from(waiting.kind == WaitKind::Person);
                        assert!(case.unblock());
                    }
                    _ => {
                        let pending = case.pending();
                        let roll = roll(seed, &turn.to_string());
                        let command = &pending[roll as usize % pending.len()];
                        let interrupted = (roll >> 20).is_multiple_of(12);
                        let completion = match interrupted {
                            true => Completion::Interrupted { seen: None },
                            false => respond(&case, seed, command),
                        };
                        assert!(case.complete(completion));
                    }
                }
            }
            full += u32::from(case.run.spending.ledger.asks_max == Some(case.run.spending.ledger.answered));
        }
    }
    assert!(persons > 100 && resumed > 100 && full > 0, "{persons} persons, {resumed} resumed, {full} full");
}

#[test]
fn a_run_beyond_its_cost_bound_goes_on_and_is_reported() {
    let flow = flows::closing();
    let mut case = start(&flow, Some(1));
    for answered in 1..=2 {
        let command = case.pending().remove(0);
        let answers = |completion: &Completion| matches!(completion, Completion::Answered { answer, .. } if answer.blocked.is_none() && answer.asks_person.is_none());
        let completion = (0..).map(|seed| respond(&case, seed, &command)).find(answers).unwrap();
        assert!(case.complete(completion));
        assert_eq!(case.run.state, State::Running);
        assert_eq!(case.run.spending.ledger.beyond_bound(), (answered > 1).then_some((answered, 1)));
    }
}
