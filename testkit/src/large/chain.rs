//! Long chains of steps: an analysis must not recurse once per step.

use std::fmt::Write;

use serde_json::{Map, Value, json};

use super::Large;

/// The transitions of a chain.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shape {
    /// Each step leads to the next, the last to the end.
    Line,
    /// As above, and the last step may also lead to the first.
    Ring,
}

/// The agent `chain`: work steps in sequence, then a closure step. Without prompt files, built-in prompts are used.
pub fn chain_of_steps(steps: usize, shape: Shape) -> Large {
    let mut entries = Map::new();
    let step = |id: &str, kind: &str, c2: &str, schema: &str, transitions: Value| {
        let intents: Vec<&String> = transitions.as_object().into_iter().flat_map(Map::keys).collect();
        json!({"stepId": id, "name": id, "stepKind": kind, "c2": c2, "c3": "chain", "edition": "default",
            "outputSchemaRef": {"file": "s.json", "schema": schema},
            "structuredGate": {"allowedIntents": intents, "intentField": "action",
                "intentSchemaRef": "#/properties/action"},
            "transitions": transitions})
    };
    let name = |at: usize| format!("initial.c{at}");
    for at in 0..steps {
        let (schema, transitions) = match at + 1 == steps {
            false => ("next", json!({"next": {"target": name(at + 1)}})),
            true if shape == Shape::Line => ("last", json!({"handoff": {"target": "closure.chain"}})),
            true => ("ring", json!({"handoff": {"target": "closure.chain"}, "repeat": {"target": name(0)}})),
        };
        entries.insert(name(at), step(&name(at), "work", "initial", schema, transitions));
    }
    let end = json!({"closing": {"target": null}});
    entries.insert("closure.chain".to_owned(), step("closure.chain", "closure", "closure", "closing", end));
    let schema = |intents: &[&str]| json!({"type": "object", "required": ["action"], "properties": {"action": {"enum": intents}}});
    let files = [
        (
            "agent.json",
            json!({"version": "1.0.0", "name": "chain", "displayName": "Chain", "description": "A long line",
                "runner": {"flow": {"systemPromptPath": "prompts/system.md",
                    "prompts": {"registry": "steps_registry.json", "fallbackDir": "prompts"}},
                "verdict": {"type": "detect:graph", "config": {"maxIterations": steps + 10}},
                "boundaries": {"allowedTools": ["*"], "permissionMode": "acceptEdits"}}})
            .to_string(),
        ),
        (
            "steps_registry.json",
            json!({"agentId": "chain", "version": "1.0.0", "c1": "steps", "entryStep": name(0), "steps": entries})
                .to_string(),
        ),
        (
            "schemas/s.json",
            json!({"definitions": {"next": schema(&["next"]), "last": schema(&["handoff"]),
                "ring": schema(&["handoff", "repeat"]), "closing": schema(&["closing"])}})
            .to_string(),
        ),
        ("prompts/system.md", "You work.\n".to_owned()),
        ("prompts/steps/initial/chain/f_default.md", "Do the next thing.\n".to_owned()),
        ("prompts/steps/closure/chain/f_default.md", "Close.\n".to_owned()),
    ];
    let files = files.map(|(path, text)| (format!(".agent/chain/{path}"), text)).into();
    Large { path: ".agent/chain".to_owned(), files, steps: steps + 1 }
}

/// A piece of movements in sequence.
pub fn chain_of_movements(movements: usize, shape: Shape) -> Large {
    let mut text =
        format!("name: chain\nmax_iterations: {}\ninitial_movement: c0\nmovements:\n", movements + 10);
    for at in 0..movements {
        let next = if at + 1 == movements { "COMPLETE".to_owned() } else { format!("c{}", at + 1) };
        let _ = write!(
            text,
            "  - name: c{at}\n    edit: false\n    instruction_template: Do the next thing.\n    rules:\n\
             \x20     - condition: done\n        next: {next}\n"
        );
        if at + 1 == movements && shape == Shape::Ring {
            text.push_str("      - condition: again\n        next: c0\n");
        }
    }
    let path = ".takt/pieces/chain.yaml".to_owned();
    Large { files: [(path.clone(), text)].into(), path, steps: movements }
}
