//! A run that is interrupted anywhere ends like an uninterrupted one, for every flow of the testkit and many seeds.

use cuegate_engine::{
    Answer, Command, CommandId, Completion, EffectKind, EndState, Event, Run, State, Usage,
};
use cuegate_flow::{Str, model::Flow};
use cuegate_testkit::{flows, world};
use world::Case;

/// More decisions than any run of these flows takes.
const DECISIONS_MAX: usize = 2_000;
const SEEDS: u64 = 200;

/// Every flow of the testkit.
fn all() -> Vec<std::sync::Arc<Flow>> {
    flows::all().into_iter().chain(flows::verdicts()).chain([flows::acting(), flows::on_issue()]).collect()
}

/// A row: step, visit, attempt, outcome, target.
type Row = (Str, u32, u32, Option<Str>, Option<Str>);

/// What must be the same on every path to the end.
#[derive(Debug, PartialEq)]
struct End {
    state: Option<(EndState, String)>,
    rows: Vec<Row>,
    iterations: u32,
    usage: Usage,
    counters: Vec<(Str, u32)>,
    left: Vec<(Str, Str, String)>,
    answers: usize,
    /// Every version of every report: its file, its author and its content.
    reports: Vec<(String, Str, u32, String)>,
    said: Vec<(Str, Option<String>)>,
}

fn end_of(case: &Case<'_>) -> End {
    let events: Vec<Event> = case.events.iter().flatten().cloned().collect();
    let run = &case.run;
    End {
        state: match &run.state {
            State::Ended { state, reason, .. } => Some((*state, reason.clone())),
            _ => None,
        },
        rows: events
            .iter()
            .filter_map(|event| match event {
                Event::VisitEnded { step, visit, attempt, end, .. } => {
                    Some((step.clone(), *visit, *attempt, end.outcome.clone(), end.target.clone()))
                }
                _ => None,
            })
            .collect(),
        iterations: run.progress.iterations,
        usage: run.spending.usage,
        counters: run.progress.counters.iter().map(|(name, value)| (name.clone(), *value)).collect(),
        left: run
            .context
            .handoffs
            .iter()
            .flat_map(|(step, left)| {
                left.iter().map(move |(key, kept)| (step.clone(), key.clone(), kept.value.digest.clone()))
            })
            .collect(),
        reports: run
            .context
            .reports
            .files()
            .into_iter()
            .map(|file| {
                let version = file.version;
                (file.path, version.step.clone(), version.visit, version.content.digest.clone())
            })
            .collect(),
        said: run
            .context
            .previous
            .iter()
            .map(|spoken| (spoken.step.clone(), spoken.text.as_ref().map(|text| text.digest.clone())))
            .collect(),
        answers: events.iter().filter(|event| matches!(event, Event::Answered { .. })).count(),
    }
}

/// Checks the invariants after every record.
fn check(case: &Case<'_>) {
    let folded = Run::fold(case.events.iter().map(Vec::as_slice));
    assert_eq!(folded, case.run, "the state is the fold of the journal");
    let run = &case.run;
    assert!(run.progress.iterations <= run.progress.iterations_max, "no run passes its limit");
    for command in case.pending().iter().filter(|command| matches!(command, Command::Ask(_))) {
        assert!(run.spending.unsettled.contains(&command.id()), "what is answered is not asked again");
    }
    if matches!(run.state, State::Running) {
        assert!(!case.pending().is_empty(), "a run that goes on wants something: {:?}", run.progress.node);
    }
}

/// Runs to the end; `next` chooses the pending command to answer.
fn run_to_end<'f>(
    flow: &'f Flow,
    seed: u64,
    mut next: impl FnMut(&mut Case<'f>, &[Command]) -> usize,
) -> Case<'f> {
    let mut case = Case::new(flow);
    case.start();
    for _ in 0..DECISIONS_MAX {
        check(&case);
        if case.ended() {
            return case;
        }
        if case.unblock() {
            continue;
        }
        let pending = case.pending();
        let chosen = next(&mut case, &pending);
        let completion = world::respond(&case, seed, &pending[chosen]);
        assert!(case.complete(completion), "an answer to something pending is a decision");
    }
    panic!("seed {seed}: no end after {DECISIONS_MAX} decisions, {} records", case.records.len());
}

#[test]
fn an_interrupted_run_ends_the_same() {
    let mut ends = std::collections::BTreeMap::<String, usize>::new();
    for flow in all() {
        for seed in 0..SEEDS {
            let whole = run_to_end(&flow, seed, |_, _| 0);
            let cut = run_to_end(&flow, seed, |case, pending| {
                // A crash between a completion and its record: all work is lost and repeated.
                for command in pending {
                    let _lost = world::respond(case, seed, command);
                }
                case.crash();
                assert_eq!(
                    case.pending(),
                    pending,
                    "the same state wants the same commands under the same names"
                );
                0
            });
            assert_eq!(end_of(&cut), end_of(&whole), "{} seed {seed}", flow.name);
            assert_eq!(cut.records, whole.records, "{} seed {seed}", flow.name);
            let State::Ended { state, .. } = &whole.run.state else { unreachable!("it ended") };
            *ends.entry(format!("{} {state:?}", flow.name)).or_default() += 1;
        }
    }
    // Every end of a flow was reached, so the test is not vacuous.
    for end in [
        "closing Completed",
        "closing Failed",
        "closing Aborted",
        "closing Exhausted",
        "complete Completed",
        "check Completed",
        "check Failed",
        "piece Completed",
        "piece Aborted",
        "piece Failed",
        "iterations Completed",
        "checks Completed",
        "keyword Completed",
        "signal Completed",
        "poll Completed",
        "handler Completed",
        "handler Failed",
        "every Completed",
        "any Completed",
        "first Completed",
        "reporting Completed",
        "reporting Aborted",
        "reporting Failed",
    ] {
        assert!(ends.contains_key(end), "{end} did not occur: {ends:?}");
    }
}

#[test]
fn every_order_of_arrival_ends_the_same() {
    for flow in [flows::piece(), flows::reporting()] {
        for seed in 0..SEEDS {
            let whole = run_to_end(&flow, seed, |_, _| 0);
            for order in 1..4 {
                let mut turn = 0;
                let other = run_to_end(&flow, seed, |case, pending| {
                    case.crash();
                    turn += 1;
                    world::roll(order, &turn.to_string()) as usize % pending.len()
                });
                assert_eq!(end_of(&other), end_of(&whole), "{} seed {seed}, order {order}", flow.name);
            }
        }
    }
}

#[test]
fn repeated_and_late_answers_change_nothing_but_the_bill() {
    for flow in all() {
        for seed in 0..SEEDS / 4 {
            let whole = run_to_end(&flow, seed, |_, _| 0);
            let mut answered: Vec<Completion> = Vec::new();
            let noisy = run_to_end(&flow, seed, |case, pending| {
                for completion in &answered {
                    assert!(!case.complete(completion.clone()), "a repeated completion is no decision");
                }
                answered.push(world::respond(case, seed, &pending[0]));
                0
            });
            assert_eq!(end_of(&noisy), end_of(&whole), "{} seed {seed}", flow.name);
        }
    }
}

#[test]
fn an_answer_that_nobody_asked_for_changes_nothing() {
    let flow = flows::closing();
    let mut case = Case::new(&flow);
    case.start();
    let stray = |seq| {
        let answer = Answer {
            usage: Usage { input_tokens: 7, output_tokens: 1, cost_usd: None, ..Usage::default() },
            output: Some(serde_json::json!({"action": "next"})),
            ..Answer::default()
        };
        Completion::Answered { ask: CommandId::Step { seq }, answer: Box::new(answer), seen: None }
    };
    let before = (case.pending(), case.run.clone());
    assert!(!case.complete(stray(77)));
    assert_eq!((case.pending(), case.run.clone()), before);
}

#[test]
fn interrupted_and_cancelled_at_every_record() {
    for flow in all() {
        for seed in 0..20 {
            let whole = run_to_end(&flow, seed, |_, _| 0);
            let interrupted = run_to_end(&flow, seed, |case, pending| {
                assert!(case.complete(Completion::Interrupted { seen: None }));
                assert!(case.pending().is_empty());
                case.crash();
                assert!(case.unblock());
                let without_pauses = |mut commands: Vec<Command>| {
                    for command in &mut commands {
                        match command {
                            Command::Ask(ask) => ask.not_before_ms = None,
                            Command::Read(read) => read.not_before_ms = None,
                            _ => {}
                        }
                    }
                    commands
                };
                // It is tried at once, whatever it waited for.
                assert_eq!(
                    case.pending(),
                    without_pauses(pending.to_vec()),
                    "an interrupted ask keeps its name"
                );
                0
            });
            assert_eq!(end_of(&interrupted), end_of(&whole), "{} seed {seed}", flow.name);
            for stop in 1..whole.records.len().min(12) {
                let mut case = Case::new(&flow);
                case.start();
                while case.records.len() < stop && !case.ended() {
                    if case.unblock() {
                        continue;
                    }
                    let completion = world::respond(&case, seed, &case.pending()[0]);
                    case.complete(completion);
                }
                let ended = case.ended();
                case.complete(Completion::Cancelled { seen: None });
                // Only its labels are taken back.
                assert!(case.ended());
                assert!(case.pending().iter().all(|command| matches!(command, Command::Effect(effect)
                    if matches!(&effect.effect.kind, EffectKind::Labels { add, .. } if add.is_empty()))));
                if !ended {
                    assert!(matches!(case.run.state, State::Ended { state: EndState::Cancelled, .. }));
                }
            }
        }
    }
}
