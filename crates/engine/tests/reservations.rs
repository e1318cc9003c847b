//! Usage and reservations never exceed the budget in a million decisions of runs with random budgets, whose members
//! answer in any order and which are interrupted, crash, run out of time and are resumed with higher limits.

use std::{collections::BTreeMap, sync::Arc};

use cuegate_engine::{Budget, Command, Completion, EndState, Event, ResumeSettings, State, Usage};
use cuegate_flow::model::Flow;
use cuegate_testkit::{
    flows,
    world::{Case, roll, thrifty},
};

const DECISIONS: u64 = 1_000_000;
/// A longer run is abandoned.
const DECISIONS_OF_A_RUN: u64 = 50;
/// The number of concurrent runs.
const THREADS: u64 = 4;

/// A deterministic random number generator.
struct Dice {
    seed: u64,
    thrown: u64,
}

impl Dice {
    fn below(&mut self, bound: u64) -> u64 {
        self.thrown += 1;
        roll(self.seed ^ (self.thrown << 32), "") % bound.max(1)
    }

    fn maybe(&mut self, least: u64, most: u64) -> Option<u64> {
        (self.below(2) == 0).then(|| least + self.below(most - least))
    }
}

fn random(dice: &mut Dice) -> Budget {
    Budget {
        usd_micro: dice.maybe(1, 3_000_000),
        tokens: dice.maybe(1, 1_500),
        asks: dice.maybe(1, 12),
        driven_ms: dice.maybe(1, 4_000),
        ask_usd_micro: dice.maybe(1, 500_000),
        ask_tokens: dice.maybe(1, 300),
    }
}

/// Raises some limits. Only the time limit may be exceeded before it is checked.
fn more(dice: &mut Dice, had: Budget, driven_ms: u64) -> Budget {
    let mut raise = |limit: Option<u64>| limit.map(|limit| limit + dice.below(limit + 2));
    Budget {
        usd_micro: raise(had.usd_micro),
        tokens: raise(had.tokens),
        asks: raise(had.asks),
        driven_ms: raise(had.driven_ms.map(|limit| limit.max(driven_ms) + 20)),
        ..Budget::default()
    }
}

/// Checks the budget after every record, and that each pending ask has a reservation.
fn within(case: &Case<'_>, pending: &[Command]) {
    let ledger = &case.run.spending.ledger;
    let (spent, reserved, budget) = (ledger.spent, ledger.reserved(), ledger.budget);
    let holds = |most: Option<u64>, sum: u64| most.is_none_or(|most| sum <= most);
    assert!(holds(budget.usd_micro, spent.usd_micro + reserved.usd_micro), "{ledger:?}");
    assert!(holds(budget.tokens, spent.tokens + reserved.tokens), "{ledger:?}");
    assert!(holds(budget.asks, spent.asks + reserved.asks), "{ledger:?}");
    for command in pending {
        if let Command::Ask(ask) = command {
            let share = ledger.reserved.get(&ask.id).copied();
            assert_eq!(share.is_some(), budget.limits(), "no ask without its share");
            assert_eq!(share.unwrap_or_default(), ask.share);
            let capped = |most: Option<u64>, share: Option<u64>| {
                most.is_none_or(|most| share.is_some_and(|share| share <= most))
            };
            assert!(capped(budget.ask_usd(), ask.share.usd_micro), "{ledger:?}");
            assert!(capped(budget.ask_tokens(), ask.share.tokens), "{ledger:?}");
        }
    }
}

/// The next random action and its name.
fn happens(case: &mut Case<'_>, dice: &mut Dice, pending: &[Command]) -> (&'static str, bool) {
    let driven = dice.below(60);
    if let State::Ended { state: EndState::Exhausted, hold, .. } = &case.run.state {
        let held = hold.is_some();
        let resume = ResumeSettings {
            budget: Some(more(
                dice,
                case.run.spending.ledger.budget,
                case.run.spending.ledger.spent.driven_ms,
            )),
            iterations_max: held.then_some(case.run.progress.iterations_max + 3),
            ..ResumeSettings::default()
        };
        return ("resumed with more", case.decide(driven, Completion::Resumed(Box::new(resume))));
    }
    if let State::Suspended(_) = &case.run.state {
        return ("let go on", case.unblock());
    }
    let command = &pending[dice.below(pending.len() as u64) as usize];
    match (command, dice.below(24)) {
        (Command::Ask(ask), 0 | 1) => {
            let most = ask.share.tokens.unwrap_or(50).min(50);
            let usage = Usage { input_tokens: dice.below(most + 1), ..Usage::default() };
            let (spoilt, usage_unknown) = (dice.below(2) == 0, dice.below(2) == 0);
            (
                "cut",
                case.decide(
                    driven,
                    Completion::Cut { ask: ask.id, usage, usage_unknown, spoilt, tools: Default::default() },
                ),
            )
        }
        (_, 2) => ("interrupted", case.decide(driven, Completion::Interrupted { seen: None })),
        (_, 3) => ("time told", case.decide(driven, Completion::TimePassed)),
        (_, 4) if case.run.spending.ledger.budget.driven_ms.is_some() => {
            ("out of time", case.decide(driven, Completion::OutOfTime { seen: None }))
        }
        (_, 5) => {
            case.crash();
            ("crashed", case.decide(driven, Completion::Resumed(Box::default())))
        }
        (_, 6) => {
            let completion = thrifty(case, dice.seed, command);
            let first = case.decide(driven, completion.clone());
            assert!(!case.decide(0, completion), "what is told twice decides nothing");
            ("told twice", first)
        }
        _ => {
            let completion = thrifty(case, dice.seed, command);
            ("answered", case.decide(driven, completion))
        }
    }
}

#[test]
fn a_million_decisions_keep_within_their_budgets() {
    let all: Vec<Arc<Flow>> = flows::all()
        .into_iter()
        .chain(flows::verdicts())
        .chain([flows::acting(), flows::on_issue()])
        .collect();
    let mut decisions = 0;
    let mut seen: BTreeMap<&str, u64> = BTreeMap::new();
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..THREADS)
            .map(|first| {
                scope.spawn({
                    let all = &all;
                    move || runs(all, first)
                })
            })
            .collect();
        for thread in threads {
            let (more, what) = thread.join().expect("it asserts only");
            decisions += more;
            what.into_iter().for_each(|(what, times)| *seen.entry(what).or_default() += times);
        }
    });
    println!("{decisions} decisions: {seen:#?}");
    assert!(decisions >= DECISIONS);
    for what in
        ["answered", "cut", "crashed", "interrupted", "out of time", "resumed with more", "told twice"]
    {
        assert!(seen.get(what).is_some_and(|times| *times >= DECISIONS / 200), "{what}: {seen:?}");
    }
    assert!(seen["with several asks at once"] >= DECISIONS / 200, "{seen:?}");
}

/// The runs of a thread: the number of decisions, and of actions by name.
fn runs(all: &[Arc<Flow>], first: u64) -> (u64, BTreeMap<&'static str, u64>) {
    let (mut decisions, mut seed) = (0, first);
    let mut seen: BTreeMap<&str, u64> = BTreeMap::new();
    while decisions < DECISIONS / THREADS {
        seed += THREADS;
        let mut dice = Dice { seed, thrown: 0 };
        let flow = &all[seed as usize % all.len()];
        let mut case = Case::new(flow);
        case.start_within(random(&mut dice));
        for _ in 0..DECISIONS_OF_A_RUN {
            let pending = case.pending();
            within(&case, &pending);
            *seen.entry("with several asks at once").or_default() +=
                u64::from(case.run.spending.ledger.reserved.len() > 1);
            if matches!(&case.run.state, State::Ended { state, .. } if *state != EndState::Exhausted) {
                break;
            }
            let (what, decided) = happens(&mut case, &mut dice, &pending);
            *seen.entry(what).or_default() += 1;
            decisions += u64::from(decided);
        }
        let stopped = case.events.iter().flatten().any(|event| matches!(event, Event::Overspent { .. }));
        assert!(!stopped, "nobody passes a share: {:?}", case.run.spending.ledger);
        *seen.entry("runs").or_default() += 1;
    }
    (decisions, seen)
}
