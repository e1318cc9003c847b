//! The key that `price` names: what it says a lower value would cost is what the definition costs when that value is
//! written there.

use std::collections::BTreeMap;

use cuegate_flow::{
    analysis::cost_bound::{Certificate, Sensitivity, Terms, price_flow},
    checks::check_draft,
    diagnostics::Severity,
};
use cuegate_formats::LoadedDefinition;
use cuegate_testkit::definitions::{Project, edit, project};

use crate::{
    older::check_flow, older::check_flow_random, older::complete_random, support, takt, takt::takt_support,
};

/// A definition as its format loads it.
type Load = dyn Fn(&Project) -> LoadedDefinition;

/// What a definition costs; `None` where it is not sound.
fn priced(loaded: LoadedDefinition) -> Option<Certificate> {
    let errors = |found: &[cuegate_flow::diagnostics::Diagnostic]| {
        found.iter().any(|found| found.severity == Severity::Error)
    };
    if errors(&loaded.diagnostics) {
        return None;
    }
    let flow = check_draft(loaded.draft).flow?;
    // Repairs are a setting, and would be the one key for all that are short.
    let terms = Terms { iterations_max: flow.limits.iterations_max, repairs_max: 0, ..Terms::default() };
    Some(price_flow(&flow, &terms))
}

/// The files with the key of a lever at its lower value; `None` where it is not written: it has its default then.
fn written(files: &Project, loaded: &LoadedDefinition, lever: &Sensitivity) -> Option<Project> {
    let span = lever.span?;
    let file = loaded.sources.get(span.file)?;
    let name = lever.key.rsplit('.').next().unwrap_or_default();
    let (before, rest) = file.text.split_at(span.start as usize);
    // It points at the number, or at the beginning of what that stands in.
    let at = match rest.starts_with(|c: char| c.is_ascii_digit()) {
        true => 0,
        false => {
            let key = rest.find(&format!("\"{name}\":")).or_else(|| rest.find(&format!("{name}:")))?;
            key + rest[key..].find(|c: char| c.is_ascii_digit())?
        }
    };
    let digits = rest[at..].chars().take_while(char::is_ascii_digit).count();
    if rest[at..at + digits] != lever.from.to_string() {
        return None;
    }
    let text = format!("{before}{}{}{}", &rest[..at], lever.to, &rest[at + digits..]);
    let mut files = files.clone();
    files.insert(file.path.to_string(), text.into_bytes());
    Some(files)
}

/// Compares what is said with what is, and counts the keys that were lowered.
fn compare(files: &Project, load: &Load, about: &str, seen: &mut BTreeMap<String, usize>) {
    let Some(now) = priced(load(files)) else { return };
    let Some(lever) = now.lever.clone() else { return };
    let loaded = load(files);
    let Some(lowered) = written(files, &loaded, &lever) else { return };
    let then = priced(load(&lowered)).unwrap_or_else(|| panic!("{about}: sound no more with {lever:?}"));
    assert!(then.asks < now.asks, "{about}: {lever:?} lowers nothing");
    assert_eq!(
        (then.asks, then.tokens, then.usd_micro),
        (lever.asks, lever.tokens, lever.usd_micro),
        "{about}: {lever:?}"
    );
    *seen.entry(lever.key.to_string()).or_default() += 1;
}

#[test]
fn a_lower_value_costs_what_is_said() {
    let mut seen = BTreeMap::new();
    let registry: Box<Load> = Box::new(|files| support::load(files, support::DIR));
    compare(&support::sound(), &*registry, "closing", &mut seen);
    compare(&check_flow::sound(), &*registry, "check flow", &mut seen);
    let piece: Box<Load> = Box::new(|files| takt_support::load(files, |_| {}));
    compare(&takt_support::sound(), &*piece, "piece", &mut seen);
    for seed in 0..250 {
        let random: Box<Load> = Box::new(|files| support::load(files, check_flow_random::DIR));
        let files = check_flow_random::project(&check_flow_random::random(seed));
        compare(&files, &*random, &format!("check flow {seed}"), &mut seen);
        let random: Box<Load> = Box::new(|files| support::load(files, complete_random::DIR));
        compare(&complete_random::random(seed), &*random, &format!("complete {seed}"), &mut seen);
        let random: Box<Load> = Box::new(|files| takt_support::load(files, |_| {}));
        compare(&takt::random::random(seed), &*random, &format!("piece {seed}"), &mut seen);
    }
    for key in ["maxIterations", "max_iterations"] {
        assert!(seen.contains_key(key), "`{key}` is never the one: {seen:?}");
    }
}

/// A piece that goes round until its monitor acts.
const WATCHED: &str = "\
//- .takt/pieces/sound.yaml
name: p
max_iterations: 100
initial_movement: a
movements:
  - name: a
    instruction: do it
    edit: true
    rules:
      - condition: on
        next: b
  - name: b
    instruction: look at it
    edit: false
    rules:
      - condition: again
        next: a
      - condition: done
        next: COMPLETE
loop_monitors:
  - cycle: [a, b]
    threshold: 8
    judge:
      instruction_template: does it help
      rules:
        - condition: it does not
          next: ABORT
";

/// Where the limit is far away something else is the key.
#[test]
fn so_does_what_bounds_a_part() {
    let registry: Box<Load> = Box::new(|files| support::load(files, check_flow::DIR));
    let piece: Box<Load> = Box::new(|files| takt_support::load(files, |_| {}));
    let retried =
        edit(&check_flow::sound(), "\"fallback\": \"s_a8f3\"", "\"retry\": true, \"maxRetries\": 1");
    let retries = edit(&retried, "\"maxRetries\": 2", "\"maxRetries\": 24");
    let rounds = edit(&retried, "\"max\": 5", "\"max\": 16");
    for (files, load, key) in [
        (retries, &registry, "maxRetries"),
        (rounds, &registry, "iterations.max"),
        (project(WATCHED), &piece, "threshold"),
    ] {
        let mut seen = BTreeMap::new();
        compare(&files, &**load, key, &mut seen);
        assert_eq!(seen.keys().collect::<Vec<_>>(), [key]);
    }
}

/// A registry in which nothing goes round but remedies: each attempt less is so much less.
/// A single retry is the fewest that can be written: 0 would be any number of them.
#[test]
fn a_value_that_means_no_limit_is_not_named() {
    let registry: Box<Load> = Box::new(|files| support::load(files, check_flow::DIR));
    let once = edit(&check_flow::sound(), "\"maxRetries\": 2", "\"maxRetries\": 1");
    let alone = edit(&once, "\"onFail\": { \"fallback\": \"s_a8f3\" }", "\"onFail\": { \"complete\": true }");
    let alone = edit(&alone, "\"iterations\": { \"min\": 2, \"max\": 5 },", "");
    for files in [once, alone] {
        compare(&files, &registry, "a single retry", &mut BTreeMap::new());
        let named = priced(registry(&files)).unwrap().lever.map(|lever| lever.key);
        assert_ne!(named.as_deref(), Some("maxRetries"));
    }
}

#[test]
fn so_do_attempts_at_what_validators_found() {
    let load: Box<Load> = Box::new(|files| support::load(files, support::DIR));
    let straight = [
        ("\"enum\": [\"next\", \"repeat\"]", "\"enum\": [\"next\"]"),
        ("\"allowedIntents\": [\"next\", \"repeat\"]", "\"allowedIntents\": [\"next\"]"),
        (", \"repeat\": { \"target\": \"initial.fix\" }", ""),
        ("\"enum\": [\"repeat\", \"handoff\"]", "\"enum\": [\"handoff\"]"),
        ("\"allowedIntents\": [\"repeat\", \"handoff\"]", "\"allowedIntents\": [\"handoff\"]"),
        ("\"repeat\": { \"target\": \"continuation.fix\" }, ", ""),
        ("\"enum\": [\"closing\", \"repeat\"]", "\"enum\": [\"closing\"]"),
        ("\"allowedIntents\": [\"closing\", \"repeat\"]", "\"allowedIntents\": [\"closing\"]"),
        ("\"failFast\": false, \"fallbackIntent\": \"repeat\"", "\"failFast\": true"),
        (", \"repeat\": { \"target\": \"closure.fix\" }", ""),
    ];
    let files = straight.iter().fold(support::sound(), |files, (from, to)| edit(&files, from, to));
    let of = |attempts: u32| edit(&files, "\"maxAttempts\": 2", &format!("\"maxAttempts\": {attempts}"));
    let costs = [0, 1, 2, 3].map(|attempts| priced(load(&of(attempts))).expect("it is sound").asks);
    let each = costs[1] - costs[0];
    assert!(each > 0 && costs.windows(2).all(|pair| pair[1] - pair[0] == each), "{costs:?}");
    let mut seen = BTreeMap::new();
    compare(&files, &*load, "attempts", &mut seen);
    assert_eq!(seen.keys().collect::<Vec<_>>(), ["maxAttempts"]);
    let lever = priced(load(&files)).and_then(|found| found.lever).expect("something lowers it");
    assert_eq!((lever.from, lever.to, lever.asks), (2, 1, costs[1]));
}

/// The retries of gates are a setting: it stands in no file of the definition.
#[test]
fn so_do_retries_of_gates() {
    let gated = "\
//- .takt/pieces/sound.yaml
name: p
max_iterations: 20
initial_movement: a
movements:
  - name: a
    instruction: do it
    edit: true
    quality_gates: [{ command: make }]
    rules:
      - condition: done
        next: COMPLETE
";
    let of = |retries| {
        let loaded = takt_support::load(&project(gated), |options| options.quality_gate_retries = retries);
        priced(loaded).expect("it is sound")
    };
    let costs = [0, 1, 2, 3].map(|retries| of(retries).asks);
    let each = costs[1] - costs[0];
    assert!(each > 0 && costs.windows(2).all(|pair| pair[1] - pair[0] == each), "{costs:?}");
    let lever = of(2).lever.expect("something lowers it");
    assert_eq!((&*lever.key, lever.span, lever.from, lever.to), ("quality_gate_retries", None, 2, 1));
    assert_eq!(lever.asks, costs[1]);
}
