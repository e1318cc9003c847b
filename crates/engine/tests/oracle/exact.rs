//! The cost bound is exact: all runs of small random flows are explored with `decide` alone, within a few iterations,
//! and some run reaches each maximum of the bound. The bound of the rest of a run, which ignores counters, is never
//! exceeded from any state.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use cuegate_engine::{
    Answer, Command, Completion, Event, PendingAsk, Run, RunStarted, Start, State, Work, decide,
    list_pending_commands,
};
use cuegate_flow::{
    analysis::cost_bound::{Certificate, Terms, bound_remaining_asks, price_flow},
    checks::check_draft,
    model::{Act, Draft, Edge, Flow, Gate, Name, OutcomeReader, Selector, StepId, Target, Verdict},
};
use cuegate_testkit::world::started;

use super::explore::{completions, key};
use super::{describe, features, relaxed};
use cuegate_testkit::random::{Dialect, draft};

/// The number of flows compared per format.
const FLOWS: usize = 1_500;
/// The maximum number of explored states. Larger flows are not compared.
const STATES_MAX: usize = 6_000;

/// Counts of actions by name.
type Did = BTreeMap<&'static str, u64>;

struct Runs<'f> {
    flow: &'f Flow,
    /// The maximum counts after a state.
    known: HashMap<String, Did>,
    truncated: bool,
    /// The bound of the rest of a run, by its state and the remaining iterations.
    rests: HashMap<(StepId, u32), u64>,
}

impl Runs<'_> {
    /// Computes the maximum counts after a state.
    fn most(&mut self, run: &Run) -> Did {
        if matches!(run.state, State::Ended { .. }) {
            return Did::new();
        }
        let key = format!("{} {} {:?}", key(self.flow, &[], run), run.progress.iterations, repairs(run));
        if let Some(known) = self.known.get(&key) {
            return known.clone();
        }
        self.truncated |= self.known.len() > STATES_MAX;
        let mut most = Did::new();
        for completion in self.answers(run) {
            if self.truncated {
                break;
            }
            let (next, mut did) = self.decided(run, completion);
            for (what, times) in self.most(&next) {
                *did.entry(what).or_default() += times;
            }
            for (what, times) in did {
                let known = most.entry(what).or_default();
                *known = times.max(*known);
            }
        }
        self.known.insert(key, most.clone());
        if !self.truncated {
            self.holds(run, most.get("asks").copied().unwrap_or_default());
        }
        most
    }

    /// The bound of the rest of a run is never exceeded from any state.
    fn holds(&mut self, run: &Run, asks: u64) {
        let (flow, repairs_max) = (self.flow, run.spending.repairs_max);
        let at = flow.find(&run.progress.node.as_ref().unwrap().step).unwrap();
        let left = run.progress.iterations_max - run.progress.iterations;
        let rest = *self.rests.entry((at, left)).or_insert_with(|| {
            bound_remaining_asks(flow, at, &Terms { iterations_max: left, repairs_max, ..Terms::default() })
        });
        assert!(
            asks <= rest,
            "{asks} asks, and {rest} are said, with {left} iterations left at {at:?}\n{}",
            describe(flow)
        );
    }

    /// All possible answers, including invalid ones.
    fn answers(&self, run: &Run) -> Vec<Completion> {
        let mut all: Vec<Completion> =
            completions(self.flow, run).into_iter().map(|(completion, _)| completion).collect();
        if let Some(Command::Ask(ask)) = list_pending_commands(self.flow, run).first() {
            all.push(Completion::Answered { ask: ask.id, answer: Box::<Answer>::default(), seen: None });
        }
        all
    }

    fn decided(&self, run: &Run, completion: Completion) -> (Run, Did) {
        let events = decide(self.flow, run, 1_000, completion).events;
        assert!(!events.is_empty(), "an answer to what is pending decides something");
        let mut next = run.clone();
        next.apply_record(&events);
        (next, did(self.flow, &events))
    }
}

fn did(flow: &Flow, events: &[Event]) -> Did {
    let mut did = Did::new();
    let mut count = |what, times| *did.entry(what).or_default() += times;
    for event in events {
        match event {
            Event::Answered { kind, .. } => {
                count("asks", 1);
                count(kind.as_str(), 1);
            }
            Event::StepEntered { step, counts: true, attempt, .. } => {
                count("iterations", 1);
                let members = match &flow.step(flow.find(step).unwrap()).act {
                    // Another attempt continues the same visit.
                    _ if *attempt > 1 => 0,
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

/// The number of repairs of the pending ask.
fn repairs(run: &Run) -> Vec<u32> {
    let of = |asking: Option<&PendingAsk>| asking.map_or(0, |asking| asking.repairs);
    match run.progress.node.as_ref().map(|node| &node.work) {
        Some(Work::Asking(asking)) => vec![asking.repairs],
        Some(Work::Joining(members)) => members.iter().map(|member| of(member.asking.as_ref())).collect(),
        _ => Vec::new(),
    }
}

/// The maximum counts over all runs of a flow; `None` if there are too many states.
fn observed(flow: &Flow, terms: &Terms) -> Option<Did> {
    let (iterations_max, repairs_max) = (terms.iterations_max, terms.repairs_max);
    let begin = RunStarted { iterations_max, repairs_max, ..started(flow) };
    let mut runs = Runs { flow, known: HashMap::new(), truncated: false, rests: HashMap::new() };
    let (run, mut most) =
        runs.decided(&Run::default(), Completion::Start(Box::new(Start { started: begin })));
    for (what, times) in runs.most(&run) {
        *most.entry(what).or_default() += times;
    }
    (!runs.truncated).then_some(most)
}

fn said(bound: &Certificate) -> Did {
    let mut said =
        Did::from([("iterations", bound.iterations), ("asks", bound.asks), ("visits", bound.visits)]);
    said.extend(bound.by_role.iter().map(|(role, times)| (role.as_str(), *times)));
    said
}

/// Whether a bound declares itself an upper bound.
fn is_loose(bound: &Certificate) -> bool {
    bound.assumptions.iter().any(|said| said.contains("may be too high"))
}

/// The features of a flow, for statistics.
fn seen_in(draft: &Draft) -> BTreeSet<&'static str> {
    let mut seen = features(draft);
    for step in &draft.steps {
        let judged = match &step.gate {
            Gate::Readers(readers) => {
                readers.iter().any(|reader| matches!(reader, OutcomeReader::Judge { .. }))
            }
            Gate::Join { judges, .. } => !judges.is_empty(),
            _ => false,
        };
        seen.extend(judged.then_some("judges"));
        seen.extend(matches!(&step.act, Act::Ask(ask) if !ask.reports.is_empty()).then_some("reports"));
        let counts = |part: &Verdict| matches!(part, Verdict::Checks { of, .. } if !of.is_empty());
        seen.extend(draft.verdict.places().iter().any(|(_, part)| counts(part)).then_some("checks that end"));
        seen.extend(step.edges.iter().any(|edge| !edge.resets.is_empty()).then_some("resets"));
    }
    seen
}

/// A counting verdict.
fn verdict(draft: &Draft, seed: u64) -> Verdict {
    let max = 1 + (seed % 3) as u32;
    let asks = draft.steps.iter().filter(|step| matches!(step.act, Act::Ask(_)));
    let kept = asks.enumerate().filter(|(at, _)| !seed.is_multiple_of(*at as u64 + 2));
    let checks = Verdict::Checks { max, of: kept.map(|(_, step)| step.name.clone()).collect() };
    let visits = Verdict::Iterations(1 + (seed / 3 % 5) as u32);
    let word = Verdict::Keyword("NEVER SAID".into());
    match seed / 15 % 7 {
        0 | 1 => checks,
        2 => visits,
        3 => Verdict::Any(vec![visits, checks]),
        4 => Verdict::Every(vec![checks, visits]),
        5 => Verdict::First(vec![Verdict::Every(vec![visits, word]), checks]),
        _ => Verdict::Every(vec![Verdict::Any(vec![word, checks]), visits]),
    }
}

/// Compares the bounds of many flows with all their runs.
fn compare(dialect: Dialect, wanted: &[&str]) {
    let mut seen: BTreeMap<&str, usize> = BTreeMap::new();
    let (mut seed, mut compared) = (1_000_000, 0);
    while compared < FLOWS {
        seed += 1;
        let (mut wired, _) = relaxed(draft(dialect, seed));
        // A missing handoff value selects no step, and the bound does not track missing values.
        let selects = |edge: &Edge<Name>| matches!(edge.to, Target::Select { by: Selector::Handoff(_), .. });
        let selects = wired.steps.iter().flat_map(|step| &step.edges).any(selects);
        let counts = matches!(dialect, Dialect::Closing | Dialect::Complete) && !selects;
        if counts && seed.is_multiple_of(3) {
            wired.verdict = verdict(&wired, seed / 3);
        }
        let features = seen_in(&wired);
        let checked = check_draft(wired);
        let flow = checked.flow.or(checked.unsound).unwrap();
        let terms = Terms {
            iterations_max: 1 + (seed % 6) as u32,
            repairs_max: (seed / 6 % 3) as u32,
            ..Terms::default()
        };
        let Some(most) = observed(&flow, &terms) else {
            *seen.entry("left out, with too many states").or_default() += 1;
            continue;
        };
        compared += 1;
        let bound = price_flow(&flow, &terms);
        let said = said(&bound);
        let about = || {
            format!(
                "{dialect:?} {seed}, {terms:?}, {:?}\nsaid {said:?}\ndone {most:?}\n{}",
                flow.verdict,
                describe(&flow)
            )
        };
        let exceeded = most.iter().any(|(what, times)| said.get(what).is_none_or(|most| times > most));
        assert!(!exceeded, "a run does more than the bound: {}", about());
        let exact = said == most;
        assert!(!is_loose(&bound), "all of it is followed: {}", about());
        // Where members can be skipped, a dear way may be open only to those that skip some.
        let skips = flow.steps.iter().any(|step| step.when.is_some());
        assert!(exact || skips, "no run does as much as the bound: {}", about());
        for what in features {
            *seen.entry(what).or_default() += 1;
        }
    }
    println!("{dialect:?}: {compared} flows\n{seen:#?}");
    for what in wanted {
        let count = seen.get(what).copied().unwrap_or_default();
        assert!(count >= FLOWS / 30, "{dialect:?} has {count} x {what}");
    }
}

#[test]
fn bounds_of_closing_registries_are_reached_by_runs() {
    compare(
        Dialect::Closing,
        &["validators", "remedies", "jumps", "counters", "goes round", "checks that end"],
    );
}

#[test]
fn bounds_of_complete_registries_are_reached_by_runs() {
    compare(
        Dialect::Complete,
        &["validators", "remedies", "jumps", "counters", "goes round", "checks that end"],
    );
}

#[test]
fn bounds_of_check_flows_are_reached_by_runs() {
    compare(Dialect::Check, &["counters", "resets", "goes round"]);
}

#[test]
fn bounds_of_pieces_are_reached_by_runs() {
    let wanted =
        ["parallel", "judges", "reports", "monitors", "validators", "counters", "persons", "goes round"];
    compare(Dialect::Piece, &wanted);
}
