//! What `check` says of a flow is what its runs do: every configuration that random flows can come to is walked with
//! `decide` alone, and compared with the findings. Both directions: no finding is made up, none is missing.
#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "in a test a panic is the message, and output is for who looks"
)]

mod exact;
mod explore;
mod random;

use std::collections::{BTreeMap, BTreeSet};

use cuegate_flow::{Act, Diagnostic, Draft, Flow, Gate, Name, Step, StepId, Str, Target, check};
use explore::{Explored, Need, explore};
use random::{Dialect, draft};

/// How many flows of each format are compared.
const FLOWS: usize = 10_000;

/// What both say: a code, and what it is about.
type Faults = BTreeSet<(&'static str, String)>;

fn quoted(text: &str) -> Vec<&str> {
    text.split('`').skip(1).step_by(2).collect()
}

fn of_findings(diagnostics: &[Diagnostic]) -> Faults {
    let mut faults = Faults::new();
    for finding in diagnostics {
        let names = quoted(&finding.message);
        match finding.code {
            "no-way-to-end" => faults.extend(names.iter().map(|name| (finding.code, (*name).to_owned()))),
            // Runs cannot tell a value that nobody leaves from one that answers may leave out.
            "unassigned-value" | "maybe-unassigned" => {
                faults.insert(("unassigned-value", names[0].to_owned()));
            }
            "join-never-fires" => {
                faults.insert((finding.code, format!("{} {}", names[1], names[0])));
            }
            "unreachable-step" | "outcome-without-edge" | "monitor-never-acts" => {
                faults.insert((finding.code, names[0].to_owned()));
            }
            other => panic!("{other} is compared with nothing"),
        }
    }
    faults
}

fn of_runs(flow: &Flow, found: &Explored) -> Faults {
    let mut faults = Faults::new();
    for step in flow.steps.iter().filter(|step| step.counts) {
        if !found.met.contains(&step.name) {
            faults.insert(("unreachable-step", step.name.to_string()));
        }
        if found.trapped.contains(&step.name) {
            faults.insert(("no-way-to-end", step.name.to_string()));
        }
    }
    for step in &flow.steps {
        let Gate::Join { rules, .. } = &step.gate else { continue };
        let outcomes = rules.iter().map(|rule| Str::from(rule.outcome.to_string()));
        let never = outcomes.filter(|outcome| !found.decided.contains(&(step.name.clone(), outcome.clone())));
        faults.extend(never.map(|outcome| ("join-never-fires", format!("{} {outcome}", step.name))));
    }
    let silent = flow.monitors.iter().filter(|monitor| !found.monitors.contains(&monitor.name));
    faults.extend(silent.map(|monitor| ("monitor-never-acts", monitor.name.to_string())));
    for reason in found.failures.iter().filter(|reason| reason.contains("leads nowhere from")) {
        faults.insert(("outcome-without-edge", (*quoted(reason).last().unwrap()).to_owned()));
    }
    faults.extend(found.unassigned.iter().map(|(step, ..)| ("unassigned-value", step.to_string())));
    faults
}

/// Whether a fault is of a step that some run comes to. What is wrong with others is said all the same.
fn is_met(found: &Explored, (code, what): &(&'static str, String)) -> bool {
    match *code {
        "unreachable-step" | "monitor-never-acts" => true,
        _ => found.met.contains(what.split(' ').next().unwrap()),
    }
}

/// The same without required inputs, and what these were.
fn relaxed(mut draft: Draft) -> (Draft, Vec<Need>) {
    let mut needs = Vec::new();
    for step in &mut draft.steps {
        for input in &mut step.inputs {
            input.required = false;
            needs.push((step.name.clone(), input.step.clone(), input.key.clone()));
        }
    }
    (draft, needs)
}

/// A flow in a line a step.
fn describe(flow: &Flow) -> String {
    let names = |ids: &[StepId]| ids.iter().map(|id| &*flow.step(*id).name).collect::<Vec<_>>().join("|");
    let lines = flow.steps.iter().map(|step| {
        let edges = step.edges.iter().map(|edge| {
            let to = match &edge.to {
                Target::Step(to) => names(&[*to]),
                Target::End(end) => format!("{end:?}"),
                Target::Origin { among } => format!("origin of {}", names(among)),
                Target::Select { cases, default, .. } => {
                    let cases = cases.iter().map(|(value, to)| format!("{value}: {}", names(&[*to])));
                    format!("{:?} else {:?}", cases.collect::<Vec<_>>(), default.map(|to| names(&[to])))
                }
                Target::Jump { among, .. } => format!("any of {}", names(among)),
            };
            format!("{} → {to} {:?}", edge.on, edge.bound.map(|bound| bound.max))
        });
        let schema = match &step.act {
            Act::Ask(ask) => ask.schema.map(|id| flow.schema(id).value().to_string()),
            _ => None,
        };
        let needs: Vec<String> =
            step.inputs.iter().map(|input| format!("{}.{}", input.step, input.key)).collect();
        format!("{}: {:?} needs {needs:?} {schema:?}", step.name, edges.collect::<Vec<_>>())
    });
    let monitors =
        flow.monitors.iter().map(|monitor| format!("{} x {}", names(&monitor.cycle), monitor.threshold));
    lines.chain(monitors).collect::<Vec<_>>().join("\n")
}

/// Compares many flows of a format, and says what they were like.
fn compare(dialect: Dialect) {
    let mut seen: BTreeMap<String, usize> = BTreeMap::new();
    let mut seed = 0;
    let mut compared = 0;
    while compared < FLOWS {
        seed += 1;
        let checked = check(draft(dialect, seed));
        let (wired, needs) = relaxed(draft(dialect, seed));
        let features = features(&wired);
        let relaxed = check(wired);
        let flow = relaxed.flow.or(relaxed.unsound).unwrap();
        let found = explore(&flow, &needs);
        if found.truncated {
            *seen.entry("left out, with too many configurations".to_owned()).or_default() += 1;
            continue;
        }
        compared += 1;
        let met = |faults: Faults| faults.into_iter().filter(|fault| is_met(&found, fault)).collect();
        let (said, done): (Faults, Faults) =
            (met(of_findings(&checked.diagnostics)), met(of_runs(&flow, &found)));
        assert_eq!(said, done, "{dialect:?} {seed}: said and done\n{}", describe(&flow));
        let size = format!("{} steps", flow.steps.iter().filter(|step| step.counts).count());
        let codes: BTreeSet<String> = done.into_iter().map(|(code, _)| code.to_owned()).collect();
        let sound = checked.flow.is_some().then(|| "sound".to_owned());
        for feature in features.into_iter().map(str::to_owned).chain([size]).chain(codes).chain(sound) {
            *seen.entry(feature).or_default() += 1;
        }
        *seen.entry("configurations".to_owned()).or_default() += found.configurations;
    }
    println!("{dialect:?}: {compared} flows\n{seen:#?}");
    // Neither chains nor all alike: each shape and each fault occurs, and so do flows without any.
    for feature in dialect.features().iter().chain(&["sound", "branches", "goes round", "no-way-to-end"]) {
        let count = seen.get(*feature).copied().unwrap_or_default();
        assert!(count >= FLOWS / 100, "{dialect:?} has {count} x {feature}");
    }
}

/// What a flow is wired of.
fn features(draft: &Draft) -> BTreeSet<&'static str> {
    let mut features = BTreeSet::new();
    for (at, step) in draft.steps.iter().enumerate() {
        features.extend(of_step(step));
        let back = |target: &Target<Name>| match target {
            Target::Step(to) => draft.steps[..=at].iter().any(|earlier| earlier.name == to.text),
            _ => false,
        };
        if step.edges.iter().any(|edge| back(&edge.to)) {
            features.insert("goes round");
        }
    }
    if !draft.monitors.is_empty() {
        features.insert("monitors");
    }
    features
}

fn of_step(step: &Step<Name>) -> BTreeSet<&'static str> {
    let mut features = BTreeSet::new();
    let mut is = |holds: bool, feature| {
        if holds {
            features.insert(feature);
        }
    };
    is(step.edges.len() > 1, "branches");
    is(!step.inputs.is_empty(), "handoffs");
    is(matches!(step.act, Act::All { .. }), "parallel");
    is(matches!(step.act, Act::Exec { .. }), "validators");
    is(matches!(step.act, Act::Person { .. }), "persons");
    is(step.edges.iter().any(|edge| edge.bound.is_some()), "counters");
    is(step.edges.iter().any(|edge| edge.remedy.is_some()), "remedies");
    is(step.edges.iter().any(|edge| matches!(edge.to, Target::Select { .. })), "conditions");
    is(step.edges.iter().any(|edge| matches!(edge.to, Target::Jump { .. })), "jumps");
    features
}

#[test]
fn closing_registries_do_what_is_said() {
    compare(Dialect::Closing);
}

#[test]
fn complete_registries_do_what_is_said() {
    compare(Dialect::Complete);
}

#[test]
fn check_flows_do_what_is_said() {
    compare(Dialect::Check);
}

#[test]
fn pieces_do_what_is_said() {
    compare(Dialect::Piece);
}
