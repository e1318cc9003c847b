//! Usage and reservations never exceed the budget, whatever is interrupted, and a run that stopped at its budget
//! continues as if it had never stopped.

use cuegate_engine::{
    Budget, Command, CommandId, Completion, EndState, Event, FaultClass, ResumeSettings, State, Usage,
    convert_usd_to_micro,
};
use cuegate_flow::{Str, model::Flow};
use cuegate_testkit::{flows, world};
use world::{Case, roll, thrifty};

const DECISIONS_MAX: usize = 4_000;
const SEEDS: u64 = 150;

/// The usage of one answer in the testkit's world: 110 tokens, a quarter of a dollar.
const ANSWER_USD_MICRO: u64 = 250_000;

fn budget(usd_micro: u64, tokens: u64, asks: u64) -> Budget {
    Budget { usd_micro: Some(usd_micro), tokens: Some(tokens), asks: Some(asks), ..Budget::default() }
}

/// Whether the run stopped at its budget.
fn stopped(case: &Case<'_>) -> bool {
    matches!(case.run.state, State::Ended { state: EndState::Exhausted, hold: None, .. })
        && case.run.progress.node.is_some()
}

/// Doubles every limit.
fn top_up(case: &mut Case<'_>) {
    let had = case.run.spending.ledger.budget;
    let twice = |limit: Option<u64>| limit.map(|limit| limit * 2 + 1);
    let more = Budget {
        usd_micro: twice(had.usd_micro),
        tokens: twice(had.tokens),
        asks: twice(had.asks),
        driven_ms: twice(had.driven_ms),
        ..Budget::default()
    };
    assert!(case.complete(Completion::Resumed(Box::new(ResumeSettings {
        budget: Some(more),
        ..ResumeSettings::default()
    }))));
}

/// Holds after every record, as long as no ask exceeds its reservation.
fn within(case: &Case<'_>) {
    let ledger = &case.run.spending.ledger;
    let (spent, reserved, budget) = (ledger.spent, ledger.reserved(), ledger.budget);
    let holds = |most: Option<u64>, sum: u64| most.is_none_or(|most| sum <= most);
    assert!(holds(budget.usd_micro, spent.usd_micro + reserved.usd_micro), "{ledger:?}");
    assert!(holds(budget.tokens, spent.tokens + reserved.tokens), "{ledger:?}");
    assert!(holds(budget.asks, spent.asks + reserved.asks), "{ledger:?}");
    for command in case.pending() {
        if let Command::Ask(ask) = &command {
            let share = ledger.reserved.get(&command.id()).copied();
            assert_eq!(share.is_some(), budget.limits(), "no ask without its share");
            assert_eq!(share.unwrap_or_default(), ask.share);
        }
    }
}

type Row = (Str, u32, Option<Str>, Option<Str>);

fn rows(case: &Case<'_>) -> Vec<Row> {
    let row = |event: &Event| match event {
        Event::VisitEnded { step, visit, end, .. } => {
            Some((step.clone(), *visit, end.outcome.clone(), end.target.clone()))
        }
        _ => None,
    };
    case.events.iter().flatten().filter_map(row).collect()
}

fn drive<'f>(flow: &'f Flow, start: Budget, mut step: impl FnMut(&mut Case<'f>, &[Command])) -> Case<'f> {
    let mut case = Case::new(flow);
    case.start_within(start);
    for _ in 0..DECISIONS_MAX {
        within(&case);
        if stopped(&case) {
            top_up(&mut case);
        } else if case.ended() {
            return case;
        } else if !case.unblock() {
            let pending = case.pending();
            assert!(
                !pending.is_empty(),
                "a run that goes on wants something: {:?}",
                case.run.spending.ledger
            );
            step(&mut case, &pending);
        }
    }
    panic!("no end after {DECISIONS_MAX} decisions");
}

#[test]
fn a_run_that_stopped_at_its_budget_continues_as_if_it_had_not() {
    let mut stops = 0;
    for flow in flows::all() {
        for seed in 0..SEEDS {
            let answer = |case: &mut Case<'_>, pending: &[Command]| {
                let completion = thrifty(case, seed, &pending[0]);
                assert!(case.complete(completion));
            };
            let whole = drive(&flow, Budget::default(), answer);
            let small = budget(ANSWER_USD_MICRO * (1 + seed % 5), 110 * (1 + seed % 7), 1 + seed % 4);
            let cut = drive(&flow, small, answer);
            assert_eq!(rows(&cut), rows(&whole), "{} seed {seed}", flow.name);
            stops +=
                cut.events.iter().flatten().filter(|event| matches!(event, Event::Resumed { .. })).count();
        }
    }
    assert!(stops > 1_000, "only {stops} resumptions");
}

#[test]
fn interruptions_and_crashes_stay_within_the_budget() {
    let (mut cuts, mut ends) = (0, 0);
    for flow in flows::all() {
        for seed in 0..SEEDS {
            let mut turn = 0_u64;
            let small = budget(ANSWER_USD_MICRO * 3, 500, 5);
            let small = Budget { ask_usd_micro: Some(ANSWER_USD_MICRO), ask_tokens: Some(120), ..small };
            let case = drive(&flow, small, |case, pending| {
                turn += 1;
                let roll = roll(seed, &turn.to_string());
                let command = &pending[roll as usize % pending.len()];
                match (command, (roll >> 16) % 8) {
                    (Command::Ask(_), 0) => {
                        let usage = Usage { input_tokens: roll % 50, ..Usage::default() };
                        let ask = command.id();
                        assert!(case.complete(Completion::Cut {
                            ask,
                            usage,
                            usage_unknown: (roll >> 24).is_multiple_of(2),
                            spoilt: roll.is_multiple_of(2),
                            tools: Default::default()
                        }));
                        cuts += 1;
                    }
                    (_, 1) => {
                        assert!(case.complete(Completion::Interrupted { seen: None }));
                    }
                    (_, 2) => case.crash(),
                    _ => {
                        let completion = thrifty(case, seed, command);
                        assert!(case.complete(completion));
                    }
                }
            });
            ends += usize::from(case.ended());
        }
    }
    assert!(cuts > 100 && ends > 0, "{cuts} cuts, {ends} ends");
}

/// The first ask of a flow with a budget.
fn first(case: &Case<'_>) -> CommandId {
    case.pending()[0].id()
}

#[test]
fn an_interrupted_ask_of_unknown_usage_is_settled_at_its_reservation_and_repeated() {
    let flow = flows::closing();
    let mut case = Case::new(&flow);
    case.start_within(Budget { ask_tokens: Some(40), ask_usd_micro: Some(300), ..budget(1_000, 100, 10) });
    let ask = first(&case);
    let usage = Usage { input_tokens: 3, ..Usage::default() };
    assert!(case.complete(Completion::Cut {
        ask,
        usage,
        usage_unknown: true,
        spoilt: false,
        tools: Default::default()
    }));
    assert_ne!(first(&case), ask);
    let spent = case.run.spending.ledger.spent;
    assert_eq!((spent.usd_micro, spent.tokens, spent.asks), (300, 40, 1));
    assert_eq!(case.run.spending.usage.input_tokens, 3, "what was seen is what was seen");
    let late = Completion::Cut { ask, usage, usage_unknown: true, spoilt: false, tools: Default::default() };
    assert!(!case.complete(late), "a cut that is told twice is no decision");
}

#[test]
fn an_answer_beyond_its_reservation_stops_the_run_before_the_next_ask() {
    let flow = flows::closing();
    let mut case = Case::new(&flow);
    case.start_within(Budget { ask_usd_micro: Some(10), ..budget(10_000_000, 1_000_000, 100) });
    let pending = case.pending();
    let usable = |completion: &Completion| matches!(completion, Completion::Answered { answer, .. } if answer.text.is_empty() && answer.blocked.is_none() && answer.asks_person.is_none());
    let completion =
        (0..).map(|seed| world::respond(&case, seed, &pending[0])).find(usable).expect("most seeds answer");
    let Completion::Answered { answer, .. } = &completion else { unreachable!("it is usable") };
    assert!(convert_usd_to_micro(answer.usage.cost_usd.unwrap()).unwrap() > 10);
    case.complete(completion);
    assert!(case.events.iter().flatten().any(|event| matches!(event, Event::Overspent { .. })));
    assert!(stopped(&case), "{:?}", case.run.state);
    assert!(case.complete(Completion::Resumed(Box::default())));
    assert_eq!(case.run.state, State::Running, "somebody looked, on it goes");
}

#[test]
fn an_unknown_cost_is_settled_at_the_reservation() {
    let flow = flows::closing();
    let mut case = Case::new(&flow);
    case.start_within(Budget { ask_usd_micro: Some(5_000_000), ..budget(5_000_000, 1_000, 10) });
    let ask = first(&case);
    let fault = cuegate_engine::Fault {
        class: FaultClass::Crashed,
        message: "gone".to_owned(),
        resets_in_ms: None,
        usage: Usage::default(),
        usage_unknown: true,
        continued: false,
        receipt: None,
        tools: Default::default(),
        limit: None,
    };
    assert!(case.complete(Completion::Faulted { ask, fault, seen: None }));
    assert_eq!(case.run.spending.ledger.spent.usd_micro, 5_000_000);
    assert!(stopped(&case), "nothing is left for another try");
    let State::Ended { reason, .. } = &case.run.state else { unreachable!("it stopped") };
    assert_eq!(
        reason,
        "agent crashed: gone; the budget of $5.00 is used up: $0.00 were spent, plus $5.00 reserved for calls of unknown \
         usage"
    );
    assert!(case.run.spending.ledger.lacks(Budget::default()).is_none(), "nothing is known to be spent");
    assert!(case.complete(Completion::Resumed(Box::default())));
    assert_eq!((case.run.spending.ledger.spent.usd_micro, &case.run.state), (0, &State::Running));
}

#[test]
fn an_interrupted_ask_costs_what_it_reported() {
    let flow = flows::closing();
    let mut case = Case::new(&flow);
    case.start_within(budget(5_000_000, 1_000, 10));
    for (usage, spent) in [
        (Usage { input_tokens: 20, cost_usd: Some(0.5), ..Usage::default() }, (500_000, 20)),
        (Usage::default(), (500_000, 20)),
    ] {
        let ask = first(&case);
        let cut =
            Completion::Cut { ask, usage, usage_unknown: false, spoilt: false, tools: Default::default() };
        assert!(case.complete(cut));
        assert_eq!((case.run.spending.ledger.spent.usd_micro, case.run.spending.ledger.spent.tokens), spent);
    }
    let shares: Vec<_> = case.run.spending.ledger.reserved.values().map(|share| share.usd_micro).collect();
    assert_eq!(shares, [Some(1_000_000)], "a fifth of the budget");
}

#[test]
fn a_rejected_ask_costs_nothing() {
    let flow = flows::closing();
    let mut case = Case::new(&flow);
    case.start_within(budget(5_000_000, 1_000, 10));
    let ask = first(&case);
    let fault = cuegate_engine::Fault {
        class: FaultClass::RateLimited,
        message: "slow down".to_owned(),
        resets_in_ms: Some(10),
        usage: Usage::default(),
        usage_unknown: false,
        continued: false,
        receipt: None,
        tools: Default::default(),
        limit: None,
    };
    assert!(case.complete(Completion::Faulted { ask, fault, seen: None }));
    let spent = case.run.spending.ledger.spent;
    assert_eq!((spent.usd_micro, spent.tokens, spent.asks), (0, 0, 1));
    assert_eq!(case.run.state, State::Running);
}

#[test]
fn the_time_limit_interrupts_running_asks() {
    let flow = flows::closing();
    let mut case = Case::new(&flow);
    case.start_within(Budget { driven_ms: Some(1_000), ..Budget::default() });
    let before = case.pending();
    assert!(case.complete(Completion::OutOfTime { seen: None }));
    assert!(stopped(&case));
    let nothing = Completion::Resumed(Box::default());
    let more = Budget { driven_ms: Some(2_000), ..Budget::default() };
    assert!(case.complete(nothing), "the time was not told as used up, so there is some left");
    assert_eq!(case.pending(), before, "an answer that arrived meanwhile is adopted under the same name");
    assert!(case.run.spending.ledger.lacks(more).is_none());
}
