//! Compares the findings of `check` with all runs of random flows, whose configurations are explored with `decide`
//! alone. No finding is false, and none is missing.
#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "in a test a panic is the message, and output is for who looks"
)]

mod exact;
mod explore;
mod reach;

use std::collections::{BTreeMap, BTreeSet};

use cuegate_flow::{
    Str,
    checks::check_draft,
    diagnostics::{Diagnostic, Severity},
    model::{
        Act, CounterId, Draft, Flow, Gate, Limits, Monitor, Name, Outcome, OutcomeReader, Selector, Step,
        StepId, Target,
    },
};
use cuegate_testkit::random::{Dialect, draft, read_by};
use explore::{Explored, Need, explore};

/// The number of flows compared per format.
const FLOWS: usize = 3_000;

/// A comparable finding: its code and subject.
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
            // Selectors without a step, whatever the cause.
            "transition-without-default" => faults.extend(selecting(finding)),
            "unassigned-value" if finding.message.contains(" selects by ") => {
                faults.extend(selecting(finding));
            }
            // Runs cannot distinguish a value that no step provides from one that answers may omit.
            "unassigned-value" | "maybe-unassigned" => {
                faults.insert(("unassigned-value", names[0].to_owned()));
            }
            "join-never-fires" => {
                faults.insert((finding.code, format!("{} {}", names[1], names[0])));
            }
            "unreachable-step" | "missing-transition" | "monitor-never-acts" | "unmatched-join"
            | "unwritten-report" => {
                faults.insert((finding.code, names[0].to_owned()));
            }
            "unreachable-transition" => {
                faults.insert((finding.code, format!("{} {}", names[0], names[1])));
            }
            // Findings about the whole flow are compared separately.
            "bound-never-hit" | "ambiguous-join" => {}
            // Not about paths: commands of these flows return without their own prompt.
            "retry-without-change" => {}
            other => panic!("{other} is compared with nothing"),
        }
    }
    faults
}

fn selecting(finding: &Diagnostic) -> Option<(&'static str, String)> {
    finding.step.as_ref().map(|step| ("transition-without-default", step.to_string()))
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
        faults.insert(("missing-transition", (*quoted(reason).last().unwrap()).to_owned()));
    }
    faults.extend(found.unselected.iter().map(|step| ("transition-without-default", step.to_string())));
    for reason in found.failures.iter().filter(|reason| is_unmatched(reason)) {
        faults.insert(("unmatched-join", quoted(reason)[0].to_owned()));
    }
    faults.extend(found.unassigned.iter().map(|(step, ..)| ("unassigned-value", step.to_string())));
    for (step, missing) in &found.unwritten {
        let sometimes = found.unwritten.contains(&(step.clone(), false));
        // A report that no step writes is a finding of the text; a step's own report is not.
        let is_said =
            *missing && !sometimes && is_written(flow) && !writes(flow.step(flow.find(step).unwrap()));
        faults.extend(is_said.then(|| ("unwritten-report", step.to_string())));
    }
    for step in &flow.steps {
        faults.extend(stray(step, found).map(|on| ("unreachable-transition", format!("{} {on}", step.name))));
    }
    faults
}

/// Whether all members had an outcome and no rule matched.
fn is_unmatched(reason: &str) -> bool {
    let without = ["failed", "blocked"].iter().any(|word| reason.contains(word));
    reason.starts_with("no rule of `") && reason.contains(" matched: ") && !without
}

/// Whether a step that is asked individually writes the report.
fn is_written(flow: &Flow) -> bool {
    flow.steps.iter().any(writes)
}

fn writes(step: &Step<StepId>) -> bool {
    matches!(&step.act, Act::Ask(ask) if !ask.reports.is_empty())
}

/// The outcomes of edges that no run takes: no run has that outcome, or an earlier edge always applies.
fn stray<'s>(step: &'s Step<StepId>, found: &Explored) -> impl Iterator<Item = &'s Outcome> {
    let rules: Vec<&Outcome> = match &step.gate {
        Gate::Join { rules, .. } => rules.iter().map(|rule| &rule.outcome).collect(),
        _ => Vec::new(),
    };
    let comes = |on: &Outcome| found.decided.contains(&(step.name.clone(), on.to_string().into()));
    let edges = step.edges.iter().enumerate().filter(move |(at, edge)| {
        let shut = edge.bound.is_some_and(|bound| bound.max == 0)
            || step.edges[..*at].iter().any(|before| before.on == edge.on && before.bound.is_none());
        let plain = matches!(edge.to, Target::Step(_) | Target::End(_));
        !edge.implied && (shut || (plain && !comes(&edge.on) && !rules.contains(&&edge.on)))
    });
    edges.map(|(_, edge)| &edge.on).collect::<Vec<_>>().into_iter()
}

/// Whether the analysis tracks every selector of this flow exactly, and how many steps a round of a monitor takes.
fn is_plain(flow: &Flow) -> bool {
    let edges = || flow.steps.iter().flat_map(|step| &step.edges);
    edges().all(|edge| matches!(edge.to, Target::Step(_) | Target::End(_)))
        && !flow.monitors.iter().any(is_wide)
}

/// Whether the number of steps of a round of a monitor differs.
fn is_wide(monitor: &Monitor<StepId>) -> bool {
    !monitor.ignored.is_empty() || monitor.cycle.iter().any(|stage| stage.len() > 1)
}

/// Findings about iterations and about loops that only the limit ends.
fn measured(dialect: Dialect, seed: u64, flow: &Flow, found: &Explored, seen: &mut BTreeMap<String, usize>) {
    let mut count = |what: &str| *seen.entry(what.to_owned()).or_default() += 1;
    let mut checked: BTreeMap<u32, Vec<Diagnostic>> = BTreeMap::new();
    let mut within = |max: u32, code: &str| -> Vec<String> {
        let found = checked.entry(max).or_insert_with(|| {
            let limits = Limits::new(max);
            check_draft(relaxed(Draft { limits, ..draft(dialect, seed) }).0).diagnostics
        });
        found.iter().filter(|finding| finding.code == code).map(|finding| finding.message.clone()).collect()
    };
    let what = || format!("{dialect:?} {seed}\n{}", describe(flow));
    if let Some(least) = found.completed {
        assert_eq!(within(least, "limit-too-low"), [""; 0], "{least} are enough: {}", what());
        if is_plain(flow) && least > 1 {
            let said = within(least - 1, "limit-too-low");
            assert!(said.len() == 1 && said[0].contains(&format!("takes {least} ")), "{said:?}: {}", what());
            count("measured");
        }
    }
    let mut said = |max: u32, step: &Str, on: &Outcome| {
        let of = |message: &String| quoted(message)[..] == [&**step, &on.to_string()][..];
        let beginning = |message: &String| quoted(message).len() >= 2 && of(&first_two(message));
        let found = within(max, "bound-never-hit");
        match step.split_once('@') {
            // Check steps have no name in the definition; their findings are about the checked step.
            Some((owner, _)) => {
                found.iter().any(|message| message.starts_with(&format!("`{owner}` never reaches ")))
            }
            None => found.iter().any(beginning),
        }
    };
    for (at, step) in flow.steps.iter().enumerate() {
        for (index, edge) in step.edges.iter().enumerate() {
            let Some(bound) = edge.bound.filter(|bound| bound.max > 0) else { continue };
            let alone = is_alone(flow, bound.counter, at, index);
            match found.used_up.get(&(step.name.clone(), index)) {
                Some(least) => {
                    assert!(!said(*least, &step.name, &edge.on), "{} is used up: {}", step.name, what());
                    count("used up");
                    if alone
                        && flow.counters.len() == 1
                        && flow.monitors.is_empty()
                        && is_plain(flow)
                        && found.completed.is_some_and(|end| end < *least)
                    {
                        assert!(said(*least - 1, &step.name, &edge.on), "not within {least}: {}", what());
                        count("not used up in time");
                    }
                }
                None if said(u32::MAX, &step.name, &edge.on) => count("bound-never-hit"),
                None => {}
            }
        }
    }
}

/// The first two quoted names of a message.
fn first_two(message: &str) -> String {
    quoted(message).iter().take(2).map(|name| format!("`{name}`")).collect::<Vec<_>>().join(" ")
}

/// Whether a counter belongs to a single edge.
fn is_alone(flow: &Flow, counter: CounterId, at: usize, index: usize) -> bool {
    let edges = flow
        .steps
        .iter()
        .enumerate()
        .flat_map(|(at, step)| step.edges.iter().enumerate().map(move |edge| (at, edge)));
    let mut users = edges.filter(|(_, (_, edge))| edge.bound.is_some_and(|bound| bound.counter == counter));
    users.all(|(of, (place, _))| (of, place) == (at, index))
}

/// Failures that no run of an accepted flow may have, warnings included.
fn is_faulty(reason: &str) -> bool {
    let faults = ["leads nowhere from", "has left it", "has itself to be judged", "nobody handed off"];
    faults.iter().any(|fault| reason.contains(fault)) || is_unmatched(reason)
}

/// Whether a finding is about a reachable step. Findings about unreachable steps are reported too.
fn is_met(found: &Explored, (code, what): &(&'static str, String)) -> bool {
    match *code {
        "unreachable-step" | "monitor-never-acts" => true,
        _ => found.met.contains(what.split(' ').next().unwrap()),
    }
}

/// What differs because it is not followed on which ways a value that selects was left: there are no fewer ways for it.
fn approximated(flow: &Flow, said: &Faults, done: &Faults) -> Faults {
    // A monitor that always acts before a step of its own stages keeps runs from it, which is not followed.
    if flow.monitors.iter().any(is_wide) {
        let kept = done.difference(said);
        return kept
            .filter(|fault| matches!(fault.0, "unreachable-step" | "no-way-to-end"))
            .cloned()
            .collect();
    }
    if !selects_what_may_be_older(flow) {
        return Faults::new();
    }
    let traps = done.difference(said).filter(|fault| fault.0 == "no-way-to-end");
    let unassigned = said.difference(done).filter(|fault| fault.0 == "unassigned-value");
    traps.chain(unassigned).cloned().collect()
}

/// Whether a step selects by a value of an earlier step. The search for paths to an end does not track which value it
/// has on each path.
fn selects_what_may_be_older(flow: &Flow) -> bool {
    flow.steps.iter().any(|step| {
        let keys = step.edges.iter().filter_map(|edge| match &edge.to {
            Target::Select { by: Selector::Handoff(key), .. } => Some(key),
            _ => None,
        });
        let schema = match &step.act {
            Act::Ask(ask) => ask.schema.map(|schema| flow.schema(schema)),
            _ => None,
        };
        let always = |key: &Str| {
            let left = step.handoff.iter().find(|left| left.key == *key);
            schema.zip(left).is_some_and(|(schema, left)| schema.always_has(&left.path))
        };
        keys.into_iter().any(|key| !always(key)) || falls_back(step)
    })
}

/// The flow without required inputs, those inputs, and the inputs that prompts and failure prompts read directly.
fn relaxed(mut draft: Draft) -> (Draft, Vec<Need>) {
    let mut needs = Vec::new();
    for step in &mut draft.steps {
        let prompt = match &step.act {
            Act::Ask(ask) => Some(&ask.prompt),
            _ => None,
        };
        let texts = prompt.into_iter().chain(step.edges.iter().filter_map(|edge| edge.remedy.as_ref()));
        needs.extend(texts.flat_map(read_by).map(|(from, key)| (step.name.clone(), from, key)));
        for input in &mut step.inputs {
            input.required = false;
            needs.push((step.name.clone(), input.step.clone(), input.key.clone()));
        }
    }
    (draft, needs)
}

/// A flow as text, one line per step.
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
        let prompt = match &step.act {
            Act::Ask(ask) => Some(&ask.prompt),
            _ => None,
        };
        let texts = prompt.into_iter().chain(step.edges.iter().filter_map(|edge| edge.remedy.as_ref()));
        let reads: Vec<String> = texts.flat_map(read_by).map(|(step, key)| format!("{step}.{key}")).collect();
        let edges = edges.collect::<Vec<_>>();
        let joins = match &step.gate {
            Gate::Join { rules, .. } => format!(" {rules:?}"),
            _ => String::new(),
        };
        format!("{}: {edges:?} needs {needs:?} reads {reads:?} {schema:?}{joins}", step.name)
    });
    let monitors = flow.monitors.iter().map(|monitor| {
        format!(
            "{} x {}",
            monitor.cycle.iter().map(|stage| names(stage)).collect::<Vec<_>>().join(" "),
            monitor.threshold
        )
    });
    lines.chain(monitors).collect::<Vec<_>>().join("\n")
}

/// Compares many flows of a format and returns statistics of them.
fn compare(dialect: Dialect) {
    let mut seen: BTreeMap<String, usize> = BTreeMap::new();
    let mut seed = 0;
    let mut compared = 0;
    while compared < FLOWS {
        seed += 1;
        let checked = check_draft(draft(dialect, seed));
        let (wired, needs) = relaxed(draft(dialect, seed));
        let features = features(&wired);
        let relaxed = check_draft(wired);
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
        let apart = approximated(&flow, &said, &done);
        let without = |faults: &Faults| faults.difference(&apart).cloned().collect::<Faults>();
        let (said, done) = (without(&said), without(&done));
        if !apart.is_empty() {
            *seen.entry("only with some values".to_owned()).or_default() += 1;
        }
        assert_eq!(said, done, "{dialect:?} {seed}: said and done\n{}", describe(&flow));
        measured(dialect, seed, &flow, &found, &mut seen);
        let passes = |finding: &Diagnostic| {
            finding.severity == Severity::Note || finding.code == "retry-without-change"
        };
        if checked.diagnostics.iter().all(passes) {
            let faulty: Vec<&String> = found.failures.iter().filter(|reason| is_faulty(reason)).collect();
            assert!(faulty.is_empty() && found.unassigned.is_empty(), "{dialect:?} {seed}: {faulty:?}");
            *seen.entry("accepted".to_owned()).or_default() += 1;
        }
        let size = format!("{} steps", flow.steps.iter().filter(|step| step.counts).count());
        let codes: BTreeSet<String> = done.into_iter().map(|(code, _)| code.to_owned()).collect();
        let sound = checked.flow.is_some().then(|| "sound".to_owned());
        for feature in features.into_iter().map(str::to_owned).chain([size]).chain(codes).chain(sound) {
            *seen.entry(feature).or_default() += 1;
        }
        *seen.entry("configurations".to_owned()).or_default() += found.configurations;
    }
    println!("{dialect:?}: {compared} flows\n{seen:#?}");
    // The flows are varied: each shape and each fault occurs, and so do flows without faults.
    for feature in
        dialect.features().iter().chain(&["sound", "accepted", "branches", "goes round", "no-way-to-end"])
    {
        let count = seen.get(*feature).copied().unwrap_or_default();
        assert!(count >= FLOWS / 100, "{dialect:?} has {count} x {feature}");
    }
}

/// The elements of a flow.
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
    is(matches!(&step.act, Act::Ask(ask) if read_by(&ask.prompt).next().is_some()), "direct reads");
    is(
        step.edges.iter().flat_map(|edge| &edge.remedy).any(|text| read_by(text).next().is_some()),
        "late reads",
    );
    is(falls_back(step), "fallbacks");
    is(matches!(step.act, Act::All { .. }), "parallel");
    is(matches!(step.act, Act::Exec { .. }), "validators");
    is(matches!(step.act, Act::Person { .. }), "persons");
    is(step.edges.iter().any(|edge| edge.bound.is_some()), "counters");
    is(step.edges.iter().any(|edge| edge.remedy.is_some()), "remedies");
    is(step.edges.iter().any(|edge| matches!(edge.to, Target::Select { .. })), "conditions");
    is(step.edges.iter().any(|edge| matches!(edge.to, Target::Jump { .. })), "jumps");
    features
}

fn falls_back<R>(step: &Step<R>) -> bool {
    let falls = |reader: &OutcomeReader<R>| {
        matches!(reader, OutcomeReader::Fallback(_) | OutcomeReader::FirstFallback(_))
    };
    matches!(&step.gate, Gate::Readers(readers) if readers.iter().any(falls))
}

#[test]
fn closing_registries_match_their_findings() {
    compare(Dialect::Closing);
}

#[test]
fn complete_registries_match_their_findings() {
    compare(Dialect::Complete);
}

#[test]
fn check_flows_match_their_findings() {
    compare(Dialect::Check);
}

#[test]
fn pieces_match_their_findings() {
    compare(Dialect::Piece);
}
