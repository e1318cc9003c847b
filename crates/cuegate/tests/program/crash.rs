//! Crashes of runs after every record and between every completion and its record, for the example and for random
//! registries. Each run must end like an uninterrupted one.

use std::collections::BTreeMap;

use cuegate::definition::{self, DiskFiles};
use cuegate_engine::{Answer, Command, Completion, ExecResult, Exit, Run, Usage};
use cuegate_flow::model::{Act, Flow, Gate, OutcomeReader};
use cuegate_testkit::world::{self, Case, answers_of, roll};
use serde_json::{Map, Value, json};

use crate::support::example;

/// A value that a schema accepts; `roll` chooses where there is a choice.
fn fitting(schema: &Value, roll: u64) -> Value {
    if let Some(value) = schema.get("const") {
        return value.clone();
    }
    if let Some(values) = schema.get("enum").and_then(Value::as_array) {
        return values[roll as usize % values.len()].clone();
    }
    match schema.get("type").and_then(Value::as_str) {
        Some("integer" | "number") => {
            json!(schema.get("minimum").and_then(Value::as_i64).unwrap_or(0).max(1))
        }
        Some("boolean") => json!(roll.is_multiple_of(2)),
        Some("array") => json!([]),
        Some("string") => json!(format!("text {}", roll % 5)),
        _ => {
            let mut object = Map::new();
            let properties = schema.get("properties").and_then(Value::as_object);
            for (index, (name, schema)) in properties.into_iter().flatten().enumerate() {
                object.insert(name.clone(), fitting(schema, roll >> (index % 48)));
            }
            Value::Object(object)
        }
    }
}

/// The world's answers: mostly valid, sometimes not.
fn respond(case: &Case<'_>, seed: u64, command: &Command) -> Completion {
    let id = command.id();
    let (step, what) = match command {
        Command::Ask(ask) => (&ask.step, "ask".to_owned()),
        Command::Exec(exec) => (&exec.step, exec.validator.name.to_string()),
        Command::Probe(_) | Command::Effect(_) | Command::Read(_) => {
            return world::respond(case, seed, command);
        }
    };
    let roll = roll(seed, &format!("{step} {what} {}", answers_of(case, step)));
    let Command::Ask(ask) = command else {
        let failed = roll.is_multiple_of(3);
        let exec = ExecResult {
            exit: Exit::Code(i32::from(failed)),
            stdout: if failed { format!("{roll}\nlines") } else { String::new() },
            stderr: String::new(),
            duration_ms: 1,
        };
        return Completion::Executed { id, exec, seen: None };
    };
    let node = case.flow.step(case.flow.find(&ask.step).unwrap());
    let Act::Ask(act) = &node.act else { panic!("it asks") };
    let mut output = fitting(case.flow.schema(act.schema.unwrap()).value(), roll);
    if let Gate::Readers(readers) = &node.gate {
        for reader in readers {
            if let OutcomeReader::Field { path, words, .. } = reader {
                // `abort` is always allowed and would end most runs early.
                let word = |turn: u64| words[((roll >> 16) + turn) as usize % words.len()].0.to_string();
                let chosen = (0..).map(word).find(|word| word != "abort" || roll.is_multiple_of(5)).unwrap();
                path.set(&mut output, json!(chosen));
            }
        }
    }
    let mut answer = Answer {
        usage: Usage { input_tokens: 3, output_tokens: 1, cost_usd: Some(0.5), ..Usage::default() },
        provider: "scripted".to_owned(),
        session: Some(format!("s{}", roll % 3)),
        ..Answer::default()
    };
    match roll % 17 {
        0 => answer.text = "prose".to_owned(),
        1 => answer.text = format!("so: ```json\n{output}\n```"),
        2 => answer.output = Some(json!({"other": 1})),
        _ => answer.output = Some(output),
    }
    Completion::Answered { ask: id, answer: Box::new(answer), seen: None }
}

/// Runs to the end; with `cut`, everything that is not in the journal is lost before every step.
fn run(flow: &Flow, seed: u64, cut: bool) -> Vec<String> {
    let mut case = Case::new(flow);
    case.start();
    for _ in 0..400 {
        let folded = Run::fold(case.events.iter().map(Vec::as_slice));
        assert_eq!(folded, case.run);
        if case.ended() {
            return case.records;
        }
        if case.unblock() {
            continue;
        }
        let pending = case.pending();
        assert!(!pending.is_empty(), "a run that goes on wants something");
        let completion = respond(&case, seed, &pending[0]);
        if cut {
            case.crash();
            assert_eq!(case.pending(), pending);
            let again = respond(&case, seed, &pending[0]);
            assert_eq!(again, completion);
        }
        assert!(case.complete(completion.clone()));
        if cut {
            assert!(!case.complete(completion), "a repeated completion is no decision");
        }
    }
    panic!("seed {seed}: no end");
}

/// The records without the time of looks, which take place later in a run that was cut.
fn untimed(records: &[String]) -> Vec<Value> {
    let untimed = |record: &String| {
        let mut record: Value = serde_json::from_str(record).unwrap();
        for event in record["events"].as_array_mut().unwrap() {
            event.as_object_mut().unwrap().remove("at_ms");
        }
        record
    };
    records.iter().map(untimed).collect()
}

fn check(flow: &Flow, seed: u64, ends: &mut BTreeMap<String, usize>) {
    let whole = untimed(&run(flow, seed, false));
    assert_eq!(untimed(&run(flow, seed, true)), whole, "seed {seed}");
    let last = whole.last().unwrap();
    let ended = last["events"].as_array().unwrap().last().unwrap()["state"].as_str().unwrap().to_owned();
    *ends.entry(ended).or_default() += 1;
}

#[test]
fn the_example_ends_the_same_after_a_kill_at_any_record() {
    let files = DiskFiles::new(&example().join("agent")).unwrap();
    let definition = definition::compile_definition(&files, "", None, &[], &Default::default());
    let flow = definition.flow.unwrap();
    let mut ends = BTreeMap::new();
    for seed in 0..300 {
        check(&flow, seed, &mut ends);
    }
    for state in ["completed", "failed", "exhausted", "aborted"] {
        assert!(ends.contains_key(state), "no run ended {state}: {ends:?}");
    }
}

/// A verdict of any type; composite ones combine up to three others, two levels deep.
fn random_verdict(dice: &mut impl FnMut(u64) -> u64, depth: u32) -> Value {
    let (kind, mut config) = match dice(if depth < 2 { 10 } else { 8 }) {
        0 => ("count:iteration", json!({"maxIterations": 3 + dice(6)})),
        1 => ("count:check", json!({"maxChecks": 1 + dice(4)})),
        2 => ("detect:keyword", json!({"verdictKeyword": format!("text {}", dice(5))})),
        3 => ("detect:structured", json!({"signalType": "over", "requiredFields": ["status"]})),
        4 => ("detect:graph", json!({})),
        5 => ("poll:state", json!({"resourceType": "file", "targetState": "exists"})),
        6 => ("poll:state", json!({"resourceType": "api", "targetState": {"status": "done"}})),
        7 => ("meta:custom", json!({"handlerPath": "verdict.sh"})),
        _ => {
            let operator = ["and", "or", "first"][dice(3) as usize];
            let parts: Vec<Value> = (0..2 + dice(2)).map(|_| random_verdict(dice, depth + 1)).collect();
            ("meta:composite", json!({"operator": operator, "conditions": parts}))
        }
    };
    // The limit of a whole verdict is its own; a counted part has one where it stands.
    if depth == 0 && kind != "count:iteration" {
        config["maxIterations"] = json!(12);
    }
    json!({"type": kind, "config": config})
}

/// A registry with work, verification and closure steps wired at random, as files.
fn random_registry(seed: u64) -> BTreeMap<String, Vec<u8>> {
    let mut turn = 0;
    let mut dice = |sides: u64| {
        turn += 1;
        roll(seed, &format!("registry {turn}")) % sides
    };
    let kinds: Vec<&str> = (0..2 + dice(4))
        .map(|index| if index > 0 && dice(4) == 0 { "verification" } else { "work" })
        .collect();
    let names: Vec<String> =
        kinds.iter().enumerate().map(|(index, kind)| format!("{kind}.{index}")).collect();
    let (mut steps, mut schemas, mut files) = (Map::new(), Map::new(), BTreeMap::new());
    let mut add = |name: &str, kind: &str, intents: Vec<&str>, transitions: Value| {
        let gate = json!({"allowedIntents": intents, "intentField": "next.action",
            "intentSchemaRef": "#/properties/next/properties/action", "targetField": "next.to",
            "handoffFields": ["status"]});
        let (c2, c3) = name.split_once('.').unwrap();
        steps.insert(
            name.to_owned(),
            json!({"stepId": name, "name": name, "stepKind": kind, "c2": c2, "c3": c3,
            "edition": "default", "outputSchemaRef": {"file": "s.json", "schema": name},
            "structuredGate": gate, "transitions": transitions}),
        );
        schemas.insert(
            name.to_owned(),
            json!({"type": "object", "required": ["next", "status"], "properties": {
            "next": {"type": "object", "required": ["action"], "properties": {
                "action": {"type": "string", "enum": intents}, "to": {"type": "string", "enum": names}}},
            "status": {"enum": ["ready", "blocked", true]}, "summary": {"type": "string"},
            "signal": {"enum": ["on", "on", "on", "over"]}}}),
        );
        files.insert(format!("prompts/steps/{c2}/{c3}/f_default.md"), b"Work on {input_text}.\n".to_vec());
    };
    for (index, (name, kind)) in names.iter().zip(&kinds).enumerate() {
        let to = names[dice(names.len() as u64) as usize].clone();
        let next = if dice(3) == 0 {
            json!({"condition": "status", "targets": {"ready": to, "true": names[0], "default": names[names.len() - 1]}})
        } else {
            json!({"target": to})
        };
        let mut transitions = json!({"next": next, "repeat": {"target": name}});
        let mut intents = vec!["next", "repeat"];
        if *kind == "work" && (index == 0 || dice(2) == 0) {
            intents.push("handoff");
            transitions["handoff"] = json!({"target": "closure.end"});
        }
        if *kind == "verification" {
            intents.push("escalate");
            transitions["escalate"] = json!({"target": names[0]});
        }
        if dice(2) == 0 {
            intents.push("jump");
        }
        add(name, kind, intents, transitions);
    }
    add(
        "closure.end",
        "closure",
        vec!["closing", "repeat"],
        json!({"closing": {"target": null}, "repeat": {"target": "closure.end"}}),
    );
    let action = ["retry", "retry", "abort", "skip"][dice(4) as usize];
    let mut registry = json!({"agentId": "random", "version": "1.0.0", "c1": "steps", "entryStep": names[0],
        "steps": steps});
    if dice(4) > 0 {
        registry["validators"] = json!({"test": {"type": "command", "command": "true", "successWhen": "exitCode:0",
            "failurePattern": "bad", "extractParams": {"output": "stdout"}}});
        registry["failurePatterns"] =
            json!({"bad": {"description": "bad", "edition": "failed", "params": ["output"]}});
        registry["validationSteps"] = json!({"closure.end": {"stepId": "closure.end", "name": "v", "c2": "retry",
            "c3": "it", "validationConditions": [{"validator": "test"}, {"validator": "test"}],
            "onFailure": {"action": action, "maxAttempts": dice(3)}}});
        files.insert("prompts/steps/retry/it/f_failed.md".to_owned(), b"Mend {{output}}\n".to_vec());
    }
    let agent = json!({"version": "1.0.0", "name": "random", "displayName": "Random", "description": "at random",
        "parameters": {
            "file": {"type": "string", "description": "f", "default": "out/done", "cli": "--file"},
            "url": {"type": "string", "description": "u", "default": "http://127.0.0.1:9/", "cli": "--url"}},
        "runner": {"flow": {"systemPromptPath": "prompts/system.md", "prompts": {"registry": "steps_registry.json",
            "fallbackDir": "prompts"}}, "verdict": random_verdict(&mut dice, 0),
        "boundaries": {"allowedTools": ["*"], "permissionMode": "acceptEdits"}}});
    files.insert("agent.json".to_owned(), agent.to_string().into_bytes());
    files.insert("steps_registry.json".to_owned(), registry.to_string().into_bytes());
    files.insert("schemas/s.json".to_owned(), json!({"definitions": schemas}).to_string().into_bytes());
    files.insert("verdict.sh".to_owned(), b"exit 1\n".to_vec());
    files.insert("prompts/system.md".to_owned(), b"You work.\n".to_vec());
    files
}

#[test]
fn random_registries_end_the_same_after_a_kill_at_any_record() {
    let mut ends = BTreeMap::new();
    let mut sound = 0;
    for seed in 0..600 {
        let definition =
            definition::compile_definition(&random_registry(seed), "", None, &[], &Default::default());
        let Some(flow) = definition.flow else {
            // Wired at random, some have traps; nothing else may be wrong with them.
            let codes: Vec<&str> = definition
                .diagnostics
                .iter()
                .filter(|finding| finding.severity == cuegate_flow::diagnostics::Severity::Error)
                .map(|finding| finding.code)
                .collect();
            assert!(codes.iter().all(|code| *code == "no-way-to-end"), "seed {seed}: {codes:?}");
            continue;
        };
        sound += 1;
        check(&flow, seed, &mut ends);
    }
    assert!(sound > 300, "only {sound} are sound");
    for state in ["completed", "failed", "exhausted", "aborted"] {
        assert!(ends.contains_key(state), "no run ended {state}: {ends:?}");
    }
}
