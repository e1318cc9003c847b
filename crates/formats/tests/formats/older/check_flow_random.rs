//! Random check flows, random answers, cuts anywhere: every run comes to an end that has a name, by the executions that a
//! reading of the document word by word comes to, the same however often it is cut.

use std::collections::{BTreeMap, BTreeSet};

use cuegate_engine::{Answer, Command, Completion, EndState, Event, State};
use cuegate_flow::{checks::check_draft, model::Flow};
use cuegate_testkit::world::{Case, answers_of, roll};
use serde_json::{Map, Value, json};

use crate::support::{Project, load};

pub const DIR: &str = ".agent/random";
const SEEDS: u64 = 900;
const EXECUTIONS_MAX: u32 = 100;
const DECISIONS_MAX: usize = 500;

/// What follows from a result.
#[derive(Clone)]
enum Way {
    Complete,
    Next(usize),
    Fallback(usize),
    Retry(u32, Option<usize>),
}

/// A step.
pub struct Step {
    min: u32,
    max: u32,
    pass: Way,
    fail: Way,
}

/// An execution: step, visit, attempt and the way it went on.
type Row = (String, u32, u32, Option<String>);

fn id(step: usize) -> String {
    format!("s_{step:04x}")
}

/// The steps of a seed.
pub fn random(seed: u64) -> Vec<Step> {
    let mut thrown = 0;
    let mut below = |bound: u64| {
        thrown += 1;
        roll(seed, &format!("d{thrown}")) % bound
    };
    let count = 1 + below(4) as usize;
    (0..count)
        .map(|_| {
            let min = 1 + below(3) as u32;
            let max = min + below(3) as u32;
            let mut way = |ends: u64| {
                let to = below(count as u64) as usize;
                match below(8) {
                    0 | 1 => Way::Fallback(to),
                    2 | 3 => Way::Retry(below(4) as u32, (below(2) == 0).then_some(to)),
                    kind if kind < 4 + ends => Way::Complete,
                    _ => Way::Next(to),
                }
            };
            Step { min, max, pass: way(2), fail: way(0) }
        })
        .collect()
}

fn written(way: &Way) -> Value {
    match way {
        Way::Complete => json!({"complete": true}),
        Way::Next(to) => json!({"next": id(*to)}),
        Way::Fallback(to) => json!({"fallback": id(*to)}),
        Way::Retry(max, fallback) => {
            let mut retry = json!({"retry": true, "maxRetries": max});
            if let Some(to) = fallback {
                retry["fallback"] = json!(id(*to));
            }
            retry
        }
    }
}

/// The files of these steps.
pub fn project(steps: &[Step]) -> Project {
    let written: Map<String, Value> = steps
        .iter()
        .enumerate()
        .map(|(index, step)| {
            let step = json!({
                "id": id(index), "name": format!("Step {index}"), "prompt": {"path": "work.md"},
                "iterations": {"min": step.min, "max": step.max},
                "check": {"prompt": {"path": "check.md"}, "onPass": written(&step.pass), "onFail": written(&step.fail)}
            });
            (id(index), step)
        })
        .collect();
    let registry = json!({"version": "2.0.0", "basePath": "prompts", "entryStep": id(0), "steps": written});
    let agent = json!({"name": "random", "displayName": "Random",
        "behavior": {"systemPromptPath": "prompts/work.md", "completionType": "stepFlow"}});
    let file = |path: &str, text: String| (format!("{DIR}/{path}"), text.into_bytes());
    [
        file("agent.json", agent.to_string()),
        file("steps_registry.json", registry.to_string()),
        file("prompts/work.md", "Work.".to_owned()),
        file("prompts/check.md", "Check.".to_owned()),
    ]
    .into()
}

/// What the check of a step answers the nth time, and whether it has passed.
fn said(seed: u64, step: usize, nth: u32) -> (&'static str, bool) {
    const ANSWERS: [(&str, bool); 12] = [
        ("{\"result\": \"ok\", \"message\": \"m\"}", true),
        ("```json\n{\"result\": true}\n```", true),
        ("so result: PASS", true),
        ("OK", true),
        ("{\"result\": \"pass\"}", true),
        ("{\"result\": \"ng\", \"message\": \"m\"}", false),
        ("{\"result\": false}", false),
        ("Result: fail", false),
        ("looks good to me", false),
        ("{\"result\": \"perhaps\"}", false),
        ("{\"result\": \"ok\", \"message\": 7}", false),
        ("", false),
    ];
    ANSWERS[(roll(seed, &format!("{step} {nth}")) % ANSWERS.len() as u64) as usize]
}

/// The document, word by word.
fn expected(seed: u64, steps: &[Step]) -> (Vec<Row>, EndState) {
    let mut rows = Vec::new();
    let (mut here, mut executions) = (0, 0);
    let mut visits: BTreeMap<usize, u32> = BTreeMap::new();
    let mut checks: BTreeMap<usize, u32> = BTreeMap::new();
    let mut retries: BTreeMap<usize, u32> = BTreeMap::new();
    loop {
        let step = &steps[here];
        let visit = visits.entry(here).or_default();
        *visit += 1;
        let visit = *visit;
        let mut attempt = 0;
        let passed = loop {
            if executions == EXECUTIONS_MAX {
                return (rows, EndState::Exhausted);
            }
            executions += 1;
            attempt += 1;
            if attempt < step.min {
                rows.push((id(here), visit, attempt, None));
                continue;
            }
            let nth = checks.entry(here).or_default();
            let (_, passed) = said(seed, here, *nth);
            *nth += 1;
            if passed || attempt == step.max {
                break passed;
            }
            rows.push((id(here), visit, attempt, Some("retry".to_owned())));
        };
        let mut row = |way: &str| rows.push((id(here), visit, attempt, Some(way.to_owned())));
        match if passed { &step.pass } else { &step.fail } {
            Way::Complete => {
                row("complete");
                return (rows, EndState::Completed);
            }
            Way::Next(to) => {
                row("next");
                retries.remove(&here);
                here = *to;
            }
            Way::Fallback(to) => {
                row("fallback");
                retries.remove(&here);
                here = *to;
            }
            Way::Retry(max, fallback) => {
                let before = retries.entry(here).or_default();
                match fallback {
                    _ if *max == 0 || *before < *max => {
                        // What has no limit counts toward none.
                        *before += u32::from(*max > 0);
                        row("retry");
                    }
                    Some(to) => {
                        row("fallback");
                        retries.remove(&here);
                        here = *to;
                    }
                    None => {
                        row("fail");
                        return (rows, EndState::Failed);
                    }
                }
            }
        }
    }
}

fn respond(case: &Case<'_>, seed: u64, command: &Command) -> Completion {
    let Command::Ask(ask) = command else { panic!("a check flow only asks") };
    let text = match &ask.of {
        Some(of) => {
            let step = usize::from_str_radix(of.strip_prefix("s_").unwrap(), 16).unwrap();
            said(seed, step, answers_of(case, &ask.step) as u32).0
        }
        None => "done",
    };
    let answer = Answer { text: text.to_owned(), session: Some("s".to_owned()), ..Answer::default() };
    Completion::Answered { ask: ask.id, answer: Box::new(answer), seen: None }
}

/// Runs to the end; with `cut`, everything that is not in the journal is lost before each answer.
fn driven<'f>(flow: &'f Flow, seed: u64, cut: impl Fn(usize) -> bool) -> Case<'f> {
    let mut case = Case::new(flow);
    case.start();
    for nth in 0..DECISIONS_MAX {
        if case.ended() {
            return case;
        }
        let pending = case.pending();
        if cut(nth) {
            let _lost = respond(&case, seed, &pending[0]);
            case.crash();
            assert_eq!(case.pending(), pending, "the same state wants the same");
        }
        let completion = respond(&case, seed, &pending[0]);
        assert!(case.complete(completion));
    }
    panic!("seed {seed}: no end after {DECISIONS_MAX} decisions");
}

fn rows(case: &Case<'_>) -> Vec<Row> {
    let mut way = None;
    let mut rows = Vec::new();
    for event in case.events.iter().flatten() {
        match event {
            Event::Decided { way: taken, .. } => way = taken.as_ref().map(ToString::to_string),
            Event::VisitEnded { step, visit, attempt, .. } => {
                rows.push((step.to_string(), *visit, *attempt, way.take()));
            }
            _ => {}
        }
    }
    rows
}

#[test]
fn every_run_goes_as_the_document_says_however_it_is_cut() {
    let mut ends = BTreeSet::new();
    let mut ran = 0;
    for seed in 0..SEEDS {
        let steps = random(seed);
        let loaded = load(&project(&steps), DIR);
        assert!(!loaded.has_errors(), "seed {seed}: {:#?}", loaded.diagnostics);
        // One from which no path leads to an end is refused.
        let Some(flow) = check_draft(loaded.draft).flow else { continue };
        let whole = driven(&flow, seed, |_| false);
        let State::Ended { state, .. } = &whole.run.state else { unreachable!("it ended") };
        let (expected_rows, expected_end) = expected(seed, &steps);
        assert_eq!(rows(&whole), expected_rows, "seed {seed}");
        assert_eq!(*state, expected_end, "seed {seed}");
        let everywhere = driven(&flow, seed, |_| true);
        let somewhere = driven(&flow, seed, |nth| roll(seed, &format!("cut {nth}")).is_multiple_of(3));
        assert_eq!(
            (&everywhere.records, &somewhere.records),
            (&whole.records, &whole.records),
            "seed {seed}"
        );
        ends.insert(format!("{state:?}"));
        ran += 1;
    }
    assert!(ran > SEEDS / 3, "only {ran} were sound");
    assert_eq!(ends.into_iter().collect::<Vec<_>>(), ["Completed", "Exhausted", "Failed"]);
}
