//! Random registries of the "complete" generation, random answers, cuts anywhere: every run comes to an end that has a
//! name, the same however often it is cut.

use std::collections::BTreeMap;

use cuegate_engine::{Answer, Command, Completion, EndState, Event, ExecResult, Exit, State};
use cuegate_flow::{checks::check_draft, diagnostics::Severity, model::Flow};
use cuegate_testkit::world::{Case, answers_of, roll};
use serde_json::{Map, Value, json};

use crate::support::{Project, load};

pub const DIR: &str = ".agent/random";
const SEEDS: u64 = 200;
const DECISIONS_MAX: usize = 500;

/// Choices of one seed.
struct Dice {
    seed: u64,
    thrown: u64,
}

impl Dice {
    fn below(&mut self, bound: usize) -> usize {
        self.thrown += 1;
        (roll(self.seed, &format!("d{}", self.thrown)) % bound.max(1) as u64) as usize
    }

    fn one_in(&mut self, of: usize) -> bool {
        self.below(of) == 0
    }

    fn pick<'t, T>(&mut self, from: &'t [T]) -> &'t T {
        &from[self.below(from.len())]
    }
}

/// A registry with one or two domains, each with its stages and perhaps a further step.
pub fn random(seed: u64) -> Project {
    let mut dice = Dice { seed, thrown: 0 };
    let domains: &[&str] = if dice.one_in(2) { &["a"] } else { &["a", "b"] };
    let mut work: Vec<String> = Vec::new();
    let mut ends: Vec<String> = Vec::new();
    for domain in domains {
        work.extend([format!("initial.{domain}"), format!("continuation.{domain}")]);
        if dice.one_in(2) {
            work.push(format!("further.{domain}"));
        }
        ends.push(format!("complete.{domain}"));
    }
    let mut files = Project::new();
    let mut put = |path: &str, text: String| files.insert(format!("{DIR}/{path}"), text.into_bytes());
    let (mut steps, mut completions, mut schemas) = (Map::new(), Map::new(), Map::new());
    for id in work.iter().chain(&ends) {
        let (stage, domain) = id.split_once('.').unwrap();
        put(&format!("prompts/steps/{stage}/{domain}/f_default.md"), format!("Do {id}.\n"));
        let ending = stage == "complete";
        let (gate, transitions, intents) = gate(&mut dice, id, ending, &work, &ends);
        schemas.insert(id.clone(), schema(&mut dice, id, &intents, &work));
        let schema = json!({"file": "all.json", "schema": format!("#/definitions/{id}")});
        if ending && dice.one_in(2) {
            let mut entry = json!({"stepId": id, "name": "End", "outputSchemaRef": schema});
            if dice.one_in(2) {
                entry["completionConditions"] = json!([{"validator": "proof"}]);
                entry["onFailure"] = json!({"action": dice.pick(&["retry", "retry", "abort", "skip"])});
                (entry["c2"], entry["c3"]) = (json!("retry"), json!("any"));
            }
            completions.insert(id.clone(), entry);
            schemas[id]["properties"]["next_action"]["properties"]["action"] = json!({"type": "string"});
            continue;
        }
        let step = json!({"stepId": id, "name": id, "c2": stage, "c3": domain, "outputSchemaRef": schema,
            "structuredGate": gate, "transitions": transitions});
        steps.insert(id.clone(), step);
    }
    let registry = json!({
        "agentId": "random", "entryStep": "initial.a", "steps": steps, "completionSteps": completions,
        "validators": {"proof": {"type": "command", "command": "true", "successWhen": "exitCode:0",
            "failurePattern": "unproven"}},
        "completionPatterns": {"unproven": {"description": "Not proven", "edition": "failed"}}
    });
    put("steps_registry.json", registry.to_string());
    put("schemas/all.json", json!({"definitions": schemas}).to_string());
    put("prompts/steps/retry/any/f_failed.md", "Mend it.\n".to_owned());
    put("system.md", "You are an agent.\n".to_owned());
    let verdict = if dice.one_in(6) {
        json!({"type": "count:iteration", "config": {"maxIterations": 1 + dice.below(9)}})
    } else {
        json!({"type": "detect:graph", "config": {"maxIterations": 1 + dice.below(12)}})
    };
    let agent = json!({"version": "1.0.0", "name": "random", "displayName": "Random", "description": "",
        "runner": {"flow": {"systemPromptPath": "system.md"}, "verdict": verdict}});
    put("agent.json", agent.to_string());
    files
}

/// A gate, its transitions and its intents.
fn gate(
    dice: &mut Dice,
    id: &str,
    ending: bool,
    work: &[String],
    ends: &[String],
) -> (Value, Value, Vec<&'static str>) {
    let mut intents = vec!["complete"];
    let mut transitions = Map::new();
    let end = if ending { id.to_owned() } else { dice.pick(ends).clone() };
    transitions.insert("complete".into(), json!({"target": end}));
    for (word, odds) in [("next", if ending { 8 } else { 1 }), ("repeat", 2)] {
        if !dice.one_in(odds) {
            continue;
        }
        intents.push(word);
        let rule = if !ending && dice.one_in(5) {
            json!({"condition": "status",
                "targets": {"red": dice.pick(work), "green": dice.pick(work), "default": dice.pick(work)}})
        } else {
            json!({"target": if word == "repeat" && !ending { id.to_owned() } else { dice.pick(work).clone() }})
        };
        transitions.insert(word.into(), rule);
    }
    let mut gate = json!({"handoffFields": ["status"]});
    if !ending && dice.one_in(4) {
        intents.push("jump");
        gate["targetField"] = json!("next_action.target");
    }
    if dice.one_in(3) {
        gate["fallbackIntent"] = json!(dice.pick(&intents));
    }
    gate["allowedIntents"] = json!(intents);
    (gate, Value::Object(transitions), intents)
}

fn schema(dice: &mut Dice, id: &str, intents: &[&str], work: &[String]) -> Value {
    let mut words: Vec<&str> = intents.to_vec();
    for word in &mut words {
        *word = match *word {
            "next" if dice.one_in(2) => "continue",
            "repeat" if dice.one_in(2) => "wait",
            other => other,
        };
    }
    let action = if dice.one_in(3) { json!({"type": "string"}) } else { json!({"enum": words}) };
    let bound = if dice.one_in(2) { json!({"const": id}) } else { json!({"enum": [id, "other.step"]}) };
    json!({"type": "object", "required": ["next_action"], "properties": {
        "stepId": bound, "status": {"enum": ["red", "green", "blue"]},
        "next_action": {"type": "object", "properties": {"action": action, "target": {"enum": work}}}}})
}

/// What the agent of a step answers at its nth ask, in the older words.
fn said(seed: u64, step: &str, nth: usize) -> Value {
    const WORDS: [&str; 16] = [
        "next",
        "next",
        "continue",
        "repeat",
        "retry",
        "wait",
        "complete",
        "complete",
        "COMPLETE ",
        "jump",
        "abort",
        "escalate",
        "fly",
        "",
        "complete",
        "next",
    ];
    let of = |what: &str, bound: u64| roll(seed, &format!("{step} {nth} {what}")) % bound;
    let mut answer = json!({"stepId": step, "next_action": {"action": WORDS[of("word", 16) as usize]}});
    match of("shape", 14) {
        0 => return json!({"summary": "nothing decided"}),
        1 => answer["stepId"] = json!("other.step"),
        2 => answer["status"] = json!(7),
        _ => answer["status"] = json!(["red", "green", "blue"][of("status", 3) as usize]),
    }
    if of("target", 2) == 0 {
        let targets = ["initial.a", "continuation.a", "initial.b", "complete.a"];
        answer["next_action"]["target"] = json!(targets[of("where", 4) as usize]);
    }
    answer
}

fn respond(case: &Case<'_>, seed: u64, command: &Command) -> Completion {
    let id = command.id();
    match command {
        Command::Exec(exec) => {
            let code = (roll(seed, &format!("proof {}", answers_of(case, &exec.step))) % 2) as i32;
            let exec = ExecResult {
                exit: Exit::Code(code),
                stdout: String::new(),
                stderr: String::new(),
                duration_ms: 1,
            };
            Completion::Executed { id, exec, seen: None }
        }
        Command::Ask(ask) => {
            let output = said(seed, &ask.step, answers_of(case, &ask.step));
            let answer =
                Answer { output: Some(output), provider: "scripted".to_owned(), ..Answer::default() };
            Completion::Answered { ask: id, answer: Box::new(answer), seen: None }
        }
        Command::Probe(_) | Command::Effect(_) | Command::Read(_) => {
            unreachable!("these registries ask for none of them")
        }
    }
}

/// Runs to the end, cut before every answer when `cut`.
fn run<'f>(flow: &'f Flow, seed: u64, cut: bool) -> Case<'f> {
    let mut case = Case::new(flow);
    case.start();
    for _ in 0..DECISIONS_MAX {
        if case.ended() {
            assert!(case.run.progress.iterations <= case.run.progress.iterations_max);
            return case;
        }
        assert!(!case.unblock(), "nothing here waits");
        let pending = case.pending();
        assert_eq!(pending.len(), 1, "a run that goes on wants one thing: {:?}", case.run.progress.node);
        if cut {
            case.crash();
            assert_eq!(case.pending(), pending);
        }
        let completion = respond(&case, seed, &pending[0]);
        assert!(case.complete(completion));
    }
    panic!("seed {seed}: no end");
}

/// How a run ended.
fn end_of(case: &Case<'_>) -> EndState {
    let State::Ended { state, .. } = &case.run.state else { unreachable!("it ended") };
    *state
}

fn fell_back(case: &Case<'_>) -> bool {
    case.events.iter().flatten().any(|event| matches!(event, Event::Decided { fallback: true, .. }))
}

pub fn flow_of(files: &Project, dir: &str) -> Option<std::sync::Arc<Flow>> {
    let loaded = load(files, dir);
    if loaded.has_errors() {
        return None;
    }
    let checked = check_draft(loaded.draft);
    let sound = checked.diagnostics.iter().all(|finding| finding.severity != Severity::Error);
    checked.flow.filter(|_| sound).map(Into::into)
}

#[test]
fn every_run_ends_the_same_however_it_is_cut() {
    let mut ends = BTreeMap::<String, usize>::new();
    for seed in 0..SEEDS {
        let Some(flow) = flow_of(&random(seed), DIR) else {
            *ends.entry("unsound".to_owned()).or_default() += 1;
            continue;
        };
        for script in 0..4 {
            let seed = seed * 1_000 + script;
            let whole = run(&flow, seed, false);
            let cut = run(&flow, seed, true);
            assert_eq!(cut.records, whole.records, "seed {seed}");
            *ends.entry(format!("{:?}", end_of(&whole))).or_default() += 1;
            if fell_back(&whole) {
                *ends.entry("fallback".to_owned()).or_default() += 1;
            }
        }
    }
    for end in ["Completed", "Failed", "Aborted", "Exhausted", "fallback"] {
        assert!(ends.get(end).is_some_and(|count| *count > 10), "{end} hardly occurred: {ends:?}");
    }
}
