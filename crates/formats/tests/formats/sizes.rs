//! Definitions whose size lies in one place: many of one kind of thing at one step. None of it is compared in pairs, which
//! would take minutes here.

use std::collections::BTreeMap;
use std::fmt::Write;

use cuegate_formats::{AgentOptions, LoadedDefinition, TaktOptions, load_agent, load_takt_workflow};
use cuegate_testkit::large::{Flaw, registry};
use serde_json::{Value, json};

const FILE: &str = ".takt/pieces/p.yaml";

fn piece(text: &str) -> LoadedDefinition {
    let text = format!("name: p\ndescription: d\nmax_iterations: 9\ninitial_movement: a\n{text}");
    let files = BTreeMap::from([(FILE.to_owned(), text.into_bytes())]);
    load_takt_workflow(&files, &TaktOptions { file: FILE.to_owned(), ..TaktOptions::default() })
}

/// How often each kind of finding is there.
fn codes(loaded: &LoadedDefinition) -> BTreeMap<&'static str, usize> {
    let mut codes = BTreeMap::new();
    loaded.diagnostics.iter().for_each(|finding| *codes.entry(finding.code).or_default() += 1);
    codes
}

const ASKS: &str = "    edit: false\n    instruction_template: do it\n";

#[test]
fn rules_of_one_movement_are_not_compared_in_pairs() {
    let mut text = format!("movements:\n  - name: a\n{ASKS}    rules:\n");
    for at in 0..20_000 {
        let _ = write!(text, "      - condition: rule {at}\n        next: COMPLETE\n");
    }
    text.push_str("      - condition: Rule 7\n        next: ABORT\n");
    assert_eq!(codes(&piece(&text)), BTreeMap::from([("duplicate-item", 1)]));
}

#[test]
fn commands_of_one_movement_share_its_prompt() {
    let mut text = format!(
        "movements:\n  - name: a\n{ASKS}    rules:\n      - condition: done\n        next: COMPLETE\n    quality_gates:\n"
    );
    for at in 0..300 {
        let _ = writeln!(text, "      - command: \"test {at}\"");
    }
    let loaded = piece(&text);
    assert_eq!(codes(&loaded), BTreeMap::from([("weak-permission", 1)]));
    // Each remedy has the prompt, which names all commands: only a text that is shared is the same place in memory.
    let texts: Vec<*const u8> = loaded
        .draft
        .steps
        .iter()
        .flat_map(|step| &step.edges)
        .filter_map(|edge| edge.remedy.as_ref())
        .flat_map(|remedy| &remedy.pieces)
        .filter_map(|piece| match piece {
            cuegate_flow::model::Piece::Text(text)
                if text.contains("test 299") && text.contains("test 0") =>
            {
                Some(text.as_ptr())
            }
            _ => None,
        })
        .collect();
    assert!(texts.len() >= 300 && texts.iter().all(|text| *text == texts[0]));
}

/// A registry of a stage, of which one file is changed.
fn changed(file: &str, change: impl FnOnce(&mut Value)) -> (BTreeMap<String, Vec<u8>>, String) {
    let made = registry(10, Flaw::None);
    let mut files = made.bytes();
    let path = files.keys().find(|path| path.ends_with(file)).expect("it is there").clone();
    let mut value = serde_json::from_slice(&files[&path]).expect("it is JSON");
    change(&mut value);
    files.insert(path, serde_json::to_vec(&value).expect("JSON"));
    (files, made.path)
}

#[test]
fn parameters_are_not_compared_in_pairs() {
    let (files, agent_dir) = changed("agent.json", |agent| {
        for at in 0..15_000 {
            let param = json!({"type": "string", "description": "one", "cli": format!("--p{at}")});
            agent["parameters"][format!("p{at}")] = param;
        }
        agent["parameters"]["aB"] = json!({"type": "string", "description": "one", "cli": "--p7"});
        agent["parameters"]["a-b"] = json!({"type": "string", "description": "one", "cli": "--a"});
    });
    let found = codes(&load_agent(&files, &AgentOptions { agent_dir, ..AgentOptions::default() }));
    assert_eq!(found["duplicate-key"], 2, "{found:?}");
    assert!(found["unused-variable"] >= 15_000);
}

#[test]
fn what_one_step_leaves_and_another_one_reads_is_not_compared_in_pairs() {
    const COUNT: usize = 6_000;
    let mut own = String::new();
    let (mut files, agent_dir) = changed("steps_registry.json", |registry| {
        let steps = registry["steps"].as_object_mut().expect("steps");
        let (first, last) = (steps.keys().next().cloned(), steps.keys().next_back().cloned());
        let (first, last) = (first.expect("a step"), last.expect("a step"));
        for at in 0..COUNT {
            let left = steps[&first]["structuredGate"]["handoffFields"].as_array_mut().expect("a list");
            left.push(json!(format!("field{at}")));
        }
        let reader = &mut steps[&last];
        let part = |key: &str| reader[key].as_str().unwrap_or_default().to_owned();
        own = format!("/{}/{}/", part("c2"), part("c3"));
        for at in 0..COUNT {
            reader["inputs"][format!("field{at}")] = json!({"from": format!("{first}.field{at}")});
        }
        if !reader["uvVariables"].is_array() {
            reader["uvVariables"] = json!([]);
        }
        let listed = reader["uvVariables"].as_array_mut().expect("a list");
        (0..COUNT).for_each(|at| listed.push(json!(format!("field{at}"))));
    });
    let reads: String = (0..COUNT).map(|at| format!("{{uv-field{at}}}\n")).collect();
    for (path, text) in &mut files {
        if path.contains(&own) && path.ends_with(".md") {
            text.extend(reads.as_bytes());
        }
    }
    let loaded = load_agent(&files, &AgentOptions { agent_dir, ..AgentOptions::default() });
    let reader = loaded.draft.steps.iter().find(|step| step.inputs.len() >= COUNT).expect("one reads them");
    assert!(reader.inputs.iter().filter(|input| input.key.starts_with("field")).count() == COUNT);
}
