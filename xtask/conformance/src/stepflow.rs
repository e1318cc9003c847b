//! Compares runs of the check flow with the original program.
//!
//! A case is a registry and the answers of the checks; the last answer repeats. The recorded registries contain only
//! what that program reads. The adapter adds what we require: valid ids, files and, for cases about reading an answer,
//! the target step.

use std::collections::{BTreeMap, BTreeSet};

use cuegate_engine::{
    Answer, AskKind, Command, Completion, EndState, Event, Run, RunStarted, Start, State, decide,
    list_pending_commands,
};
use cuegate_flow::{checks::check_draft, diagnostics::Severity, model::Flow};
use cuegate_formats::{AgentOptions, load_agent};
use serde_json::{Map, Value, json};

use super::compare::{Got, member};

/// The folder of the agent.
const DIR: &str = ".agent/case";

/// More decisions than a terminating run takes.
const DECISIONS_MAX: usize = 1_000;

/// A case in the common shape: input and result.
pub(super) fn common(written: &Value) -> Option<Value> {
    let name = written.get("case")?.as_str()?;
    let id = format!("gen1_stepflow_runner#{name}");
    let steps = written.get("steps").cloned().or_else(|| endless(name));
    let checks = written.get("checks").cloned().unwrap_or_else(|| json!(["{\"result\":\"ng\"}"]));
    let input = json!({"case": name, "steps": steps, "checks": checks});
    // A case about reading an answer leads to a missing step; the resulting end is not compared.
    let refused = written.get("error").filter(|_| !name.starts_with("parse"));
    Some(match refused {
        Some(error) => json!({"id": id, "input": input, "expectError": {"message": error}}),
        None => json!({"id": id, "input": input, "expect": written}),
    })
}

/// The two registries that are recorded only by name; their names describe them.
fn endless(name: &str) -> Option<Value> {
    let step = |id: &str, fail: Value| {
        json!({"id": id, "name": id, "prompt": {"path": "a.md"}, "check": {
            "prompt": {"path": "check.md"}, "responseFormat": {"result": "ok|ng"},
            "onPass": {"complete": true}, "onFail": fail
        }})
    };
    match name {
        "retry-unlimited" => Some(json!({"s_a": step("s_a", json!({"retry": true}))})),
        "fallback-pingpong" => Some(json!({
            "s_a": step("s_a", json!({"fallback": "s_b"})),
            "s_b": step("s_b", json!({"fallback": "s_a"}))
        })),
        _ => None,
    }
}

/// Runs a case.
pub(super) fn run(input: &Value) -> Result<Got, String> {
    let steps = member(input, "steps")?.as_object().ok_or("its `steps` are no object")?;
    let checks: Vec<&str> =
        member(input, "checks")?.as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    let reading = input["case"].as_str().is_some_and(|name| name.starts_with("parse"));
    let mut names = Names::default();
    let flow = match compiled(&mut names, steps, reading) {
        Ok(flow) => flow,
        Err(found) => return Ok(Got::Refused(found)),
    };
    let (run, events) = driven(&flow, &checks)?;
    Ok(Got::Value(told(&names, &run, &events)))
}

/// The ids of a case, and valid ids for them.
#[derive(Default)]
struct Names {
    theirs: Vec<String>,
}

impl Names {
    fn ours(&mut self, theirs: &str) -> String {
        let at = self.theirs.iter().position(|known| known == theirs).unwrap_or_else(|| {
            self.theirs.push(theirs.to_owned());
            self.theirs.len() - 1
        });
        format!("s_{at:04x}")
    }

    fn theirs<'a>(&'a self, ours: &'a str) -> &'a str {
        let at = ours.strip_prefix("s_").and_then(|digits| usize::from_str_radix(digits, 16).ok());
        at.and_then(|at| self.theirs.get(at)).map_or(ours, String::as_str)
    }
}

fn compiled(names: &mut Names, steps: &Map<String, Value>, reading: bool) -> Result<Flow, String> {
    let entry = steps.keys().next().map(|id| names.ours(id));
    let mut completed: Map<String, Value> =
        steps.iter().map(|(id, step)| (names.ours(id), renamed(step, names))).collect();
    let missing: BTreeSet<String> =
        names.theirs.iter().filter(|id| !steps.contains_key(*id)).cloned().collect();
    for id in missing.into_iter().filter(|_| reading) {
        let ours = names.ours(&id);
        let step = json!({"id": ours, "name": id, "prompt": {"path": "a.md"}, "check": {
            "prompt": {"path": "check.md"}, "onPass": {"complete": true},
            "onFail": {"retry": true, "maxRetries": 1}
        }});
        completed.insert(ours, step);
    }
    let registry = json!({"version": "2.0.0", "basePath": "prompts", "entryStep": entry, "steps": completed});
    let agent = json!({"name": "case", "displayName": "Case", "behavior": {
        "systemPromptPath": "prompts/system.md", "completionType": "stepFlow"}});
    let file = |path: &str, text: String| (format!("{DIR}/{path}"), text.into_bytes());
    let files: BTreeMap<String, Vec<u8>> = [
        file("agent.json", agent.to_string()),
        file("steps_registry.json", registry.to_string()),
        file("prompts/system.md", "a case".to_owned()),
        file("prompts/a.md", "a case".to_owned()),
        file("prompts/check.md", "a check".to_owned()),
    ]
    .into();
    let loaded = load_agent(&files, &AgentOptions { agent_dir: DIR.to_owned(), ..AgentOptions::default() });
    let mut found = loaded.diagnostics;
    let checked = check_draft(loaded.draft);
    found.extend(checked.diagnostics);
    let errors: Vec<&str> = found
        .iter()
        .filter(|finding| finding.severity == Severity::Error)
        .map(|finding| finding.message.as_str())
        .collect();
    checked.flow.filter(|_| errors.is_empty()).ok_or_else(|| errors.join("; "))
}

/// A step with valid ids.
fn renamed(value: &Value, names: &mut Names) -> Value {
    match value {
        Value::String(text) if text.starts_with("s_") => json!(names.ours(text)),
        Value::Object(map) => {
            Value::Object(map.iter().map(|(key, value)| (key.clone(), renamed(value, names))).collect())
        }
        other => other.clone(),
    }
}

/// Work succeeds, and checks answer in turn; the last answer repeats.
fn driven(flow: &Flow, checks: &[&str]) -> Result<(Run, Vec<Event>), String> {
    let started = RunStarted {
        flow: flow.name.clone(),
        dialect: flow.dialect.to_owned(),
        provider: "recorded".to_owned(),
        iterations_max: flow.limits.iterations_max,
        ..RunStarted::default()
    };
    let (mut run, mut events) = (Run::default(), Vec::new());
    let mut completion = Completion::Start(Box::new(Start { started }));
    let mut asked = 0;
    for _ in 0..DECISIONS_MAX {
        let decision = decide(flow, &run, 0, completion);
        run.apply_record(&decision.events);
        events.extend(decision.events);
        let Some(Command::Ask(ask)) = list_pending_commands(flow, &run).into_iter().next() else {
            return Ok((run, events));
        };
        let text = match ask.kind {
            AskKind::Check => {
                asked += 1;
                checks.get(asked - 1).or(checks.last()).copied().unwrap_or_default()
            }
            _ => "done",
        };
        let answer = Box::new(Answer { text: text.to_owned(), ..Answer::default() });
        completion = Completion::Answered { ask: ask.id, answer, seen: None };
    }
    Err(format!("no end after {DECISIONS_MAX} decisions"))
}

/// The result of a run, in the terms of the cases.
fn told(names: &Names, run: &Run, events: &[Event]) -> Value {
    let mut history: Vec<String> = Vec::new();
    let (mut last, mut nth, mut said) = (String::new(), 0, String::new());
    for event in events {
        match event {
            Event::StepEntered { step, counts: true, .. } => {
                nth = if *last == **step { nth + 1 } else { 1 };
                last = step.to_string();
                said.clear();
            }
            Event::Decided { way: Some(way), outcome, .. } => said = format!("{way}:{outcome}"),
            Event::VisitEnded { step, .. } => {
                history.push(format!("{}:{nth}:{said}", names.theirs(step)));
            }
            _ => {}
        }
    }
    let completed = matches!(run.state, State::Ended { state: EndState::Completed, .. });
    json!({
        "success": completed,
        "finalStepId": names.theirs(&last),
        "total": run.progress.iterations,
        "history": history,
    })
}

/// Equal ends after equal executions. For cases about reading an answer, only the decision and its target are compared.
pub(super) fn same(input: &Value, theirs: &Value, ours: &Value) -> bool {
    if input["case"].as_str().is_some_and(|name| name.starts_with("parse")) {
        return theirs["history"][0] == ours["history"][0];
    }
    ["success", "finalStepId", "total", "history"].iter().all(|key| theirs[key] == ours[key])
}
