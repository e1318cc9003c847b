//! Definition validators of the original program, compared with the findings of `check`.
//!
//! A case contains only the part of an agent or registry that its validator reads. The adapter adds the rest: a prompt
//! and a schema for every step, and a gate that allows its transitions. Then it checks the agent as `check` does and
//! keeps the findings that correspond to the validator.

use cuegate_flow::diagnostics::Severity;
use serde_json::{Map, Value, json};

use super::{
    compare::{Got, member},
    complete::{Leave, agent_for, complete},
    project::{Found, Project, registry_path, system_path},
};

/// The findings that correspond to a validator.
struct About {
    /// The finding codes.
    codes: &'static [&'static str],
    /// Words of which a message must contain one; empty = any finding with these codes.
    words: &'static [&'static str],
}

/// Whether a step may decide the intents that it allows.
pub(super) fn kinds(input: &Value) -> Result<Got, String> {
    let about =
        About { codes: &["intent-not-of-kind", "invalid-value"], words: &["decide", "fallbackIntent"] };
    thrown(of_registry(input, Leave::Nothing, &about))
}

/// Whether a gate declares its intent field in the schema and in the answer.
pub(super) fn intent_schema(input: &Value) -> Result<Got, String> {
    let about = About {
        codes: &["missing-key", "invalid-value", "schema-gate-mismatch"],
        words: &["intentSchemaRef", "intentField"],
    };
    thrown(of_registry(input, Leave::Nothing, &about))
}

/// Whether the metadata of a registry and its steps is valid.
pub(super) fn described(input: &Value) -> Result<Got, String> {
    let codes =
        &["missing-key", "wrong-type", "invalid-value", "unknown-key", "id-mismatch", "intent-not-of-kind"];
    thrown(of_registry(input, Leave::Keys, &About { codes, words: &[] }))
}

/// Whether every required key exists and has the right type.
pub(super) fn shaped(input: &Value) -> Result<Got, String> {
    let codes = &["missing-key", "wrong-type", "unknown-key", "duplicate-key", "id-mismatch"];
    of_registry(input, Leave::Keys, &About { codes, words: &[] })
}

/// Whether the entry exists and is a step.
pub(super) fn entries(input: &Value) -> Result<Got, String> {
    let about = About { codes: &["no-entry", "unknown-target", "missing-key"], words: &["entry"] };
    thrown(of_registry(input, Leave::Nothing, &about))
}

/// Whether every reference resolves.
pub(super) fn references(input: &Value) -> Result<Got, String> {
    let codes = &[
        "unknown-target",
        "missing-transition leads nowhere",
        "unknown-name undefined validator",
        "unknown-name pattern",
        "missing-key failurePattern",
    ];
    of_registry(input, Leave::Nothing, &About { codes, words: &[] })
}

/// Whether every step reaches an end, and no transition is forbidden.
pub(super) fn ways(input: &Value) -> Result<Got, String> {
    let codes = &[
        "no-entry",
        "no-way-to-end",
        "unreachable-step",
        "unknown-target",
        "missing-transition",
        "intent-not-of-kind",
        "unreachable-transition",
        "wrong-direction",
        "self-next",
        "invalid-value",
    ];
    of_registry(input, Leave::Nothing, &About { codes, words: &[] })
}

/// Whether other steps write the handoff values that a step reads.
pub(super) fn inputs(input: &Value) -> Result<Got, String> {
    of_registry(input, Leave::Nothing, &About { codes: &["unassigned-value", "invalid-value"], words: &[] })
}

/// Whether every declared variable of a step has a source. The adapter adds the steps that inputs reference, with their
/// handoff values: other cases test those.
pub(super) fn variables(input: &Value) -> Result<Got, String> {
    let mut input = input.clone();
    let steps = input["registry"]["steps"].as_object().into_iter().flatten();
    let read = steps.flat_map(|(_, step)| step["inputs"].as_object().into_iter().flatten());
    let sources: Vec<(String, String)> = read
        .filter_map(|(_, read)| read["from"].as_str()?.rsplit_once('.'))
        .map(|(step, key)| (step.to_owned(), key.to_owned()))
        .collect();
    for (step, key) in sources {
        let gate = json!({
            "allowedIntents": ["next"], "intentSchemaRef": "#/properties/action", "intentField": "action",
            "handoffFields": [key],
        });
        let added = json!({"stepKind": "work", "structuredGate": gate});
        let steps = input["registry"]["steps"].as_object_mut().ok_or("it has no steps")?;
        steps.entry(step).or_insert(added);
    }
    let codes = &["unknown-variable", "unassigned-value", "optional-parameter"];
    of_registry(&input, Leave::Nothing, &About { codes, words: &[] })
}

/// Whether an agent is valid. The registry that it references exists.
pub(super) fn agent(input: &Value) -> Result<Got, String> {
    let written = input.get("agentJson").map_or_else(|| member(input, "definition"), Ok)?;
    let agent = &with_flow(written);
    let mut project = Project::of(agent);
    let registry = json!({
        "agentId": agent["name"], "version": "1.0.0", "c1": "steps", "entryStep": "initial.case",
        "steps": {"initial.case": {}},
    });
    let registry = complete(&registry, Leave::Nothing, &mut project);
    project.put(registry_path(agent), registry.to_string());
    project.put(system_path(agent), "You are checked.");
    Ok(told(&project, |found| found.file == "agent.json"))
}

/// The result of a validator that throws at the first step: nothing or an error.
fn thrown(got: Result<Got, String>) -> Result<Got, String> {
    let Got::Value(found) = got? else { return Err("it has no findings".to_owned()) };
    let errors: Vec<&str> =
        found["errors"].as_array().into_iter().flatten().filter_map(|e| e["message"].as_str()).collect();
    Ok(if errors.is_empty() { Got::Value(Value::Null) } else { Got::Refused(errors.join("; ")) })
}

/// An agent with a prompt path.
fn with_flow(agent: &Value) -> Value {
    let mut agent = agent.clone();
    if let Some(runner) = agent.get_mut("runner").filter(|runner| runner.get("flow").is_none()) {
        runner["flow"] = json!({
            "systemPromptPath": "prompts/system.md",
            "prompts": {"registry": "steps_registry.json", "fallbackDir": "prompts"},
        });
    }
    agent
}

fn of_registry(input: &Value, leave: Leave, about: &About) -> Result<Got, String> {
    let registry = member(input, "registry")?;
    let agent = agent_for(registry, &input["agentDef"]);
    let mut project = Project::of(&agent);
    let registry = complete(registry, leave, &mut project);
    project.put(registry_path(&agent), registry.to_string());
    project.put(system_path(&agent), "You are checked.");
    Ok(told(&project, |found| {
        let said = &found.finding.message;
        // `CODE WORD` takes only those findings of the code whose message has the word.
        let is_of = |code: &&str| match code.split_once(' ') {
            Some((code, word)) => code == found.finding.code && said.contains(word),
            None => *code == found.finding.code,
        };
        about.codes.iter().any(is_of)
            && (about.words.is_empty() || about.words.iter().any(|word| said.contains(word)))
    }))
}

fn told(project: &Project, is_about: impl Fn(&Found) -> bool) -> Got {
    let found = project.check().found;
    let of = |severity| -> Vec<Value> {
        let found = found.iter().filter(|found| found.finding.severity == severity && is_about(found));
        found
            .map(|Found { finding, .. }| json!({"step": finding.step.as_deref(), "message": finding.message}))
            .collect()
    };
    Got::Value(json!({"errors": of(Severity::Error), "warnings": of(Severity::Warning)}))
}

/// Equal failures that name the same steps; a warning on both sides or none.
pub(super) fn same(input: &Value, theirs: &Value, ours: &Value) -> bool {
    let list = |from: &Value, key: &str| from[key].as_array().cloned().unwrap_or_default();
    let (errors, warnings) = (list(ours, "errors"), list(ours, "warnings"));
    let said: Vec<Value> = errors.iter().chain(&warnings).cloned().collect();
    errors.is_empty() == list(theirs, "errors").is_empty()
        && named(input, &list(theirs, "errors")).iter().all(|step| is_named(step, &errors))
        && (list(theirs, "warnings").is_empty() || !said.is_empty())
        && named(input, &list(theirs, "warnings")).iter().all(|step| is_named(step, &said))
}

/// The step named at the start of each text.
fn named(input: &Value, texts: &[Value]) -> Vec<String> {
    let empty = Map::new();
    let steps = input["registry"]["steps"].as_object().unwrap_or(&empty);
    let first = |text: &str| {
        let at = steps.keys().filter_map(|id| {
            let quoted = [format!("\"{id}\""), format!("'{id}'")];
            quoted.iter().filter_map(|quoted| text.find(quoted)).min().map(|at| (at, id))
        });
        at.min().map(|(_, id)| id.clone())
    };
    texts.iter().filter_map(Value::as_str).filter_map(first).collect()
}

fn is_named(step: &str, findings: &[Value]) -> bool {
    findings.iter().any(|finding| {
        let said = finding["message"].as_str().unwrap_or_default();
        finding["step"] == step || said.contains(&format!("`{step}`"))
    })
}

#[cfg(test)]
mod tests {
    use super::{inputs, same, ways};
    use crate::compare::Got;
    use serde_json::{Value, json};

    fn ours(run: fn(&Value) -> Result<Got, String>, input: &Value) -> Value {
        match run(input).unwrap() {
            Got::Value(found) => found,
            Got::Refused(why) => panic!("{why}"),
        }
    }

    #[test]
    fn what_a_case_leaves_out_is_added_and_what_it_says_is_found() {
        let leads = |target: &str| {
            json!({"registry": {"entryStep": "initial.a", "steps": {
                "initial.a": {"transitions": {"next": {"target": target}}},
                "continuation.b": {},
            }}})
        };
        let fine = ours(ways, &leads("continuation.b"));
        assert_eq!(fine, json!({"errors": [], "warnings": []}));
        let lost = ours(ways, &leads("continuation.c"));
        assert_eq!(lost["errors"][0]["step"], "initial.a");
        let reads = json!({"registry": {"steps": {
            "initial.a": {}, "continuation.b": {"inputs": {"x": {"from": "initial.a.plan"}}},
        }}});
        assert_eq!(ours(inputs, &reads)["errors"][0]["step"], "continuation.b");
    }

    #[test]
    fn the_same_steps_have_to_be_named() {
        let input = json!({"registry": {"steps": {"a": {}, "b": {}}}});
        let theirs = json!({"valid": false, "errors": ["Step 'a': leads to 'b'"], "warnings": []});
        let of = |step: &str| json!({"errors": [{"step": step, "message": ""}], "warnings": []});
        assert!(same(&input, &theirs, &of("a")));
        assert!(!same(&input, &theirs, &of("b")), "another step");
        let silent = json!({"errors": [], "warnings": []});
        assert!(!same(&input, &theirs, &silent));
        let warned = json!({"valid": true, "errors": [], "warnings": ["Step \"b\" is odd"]});
        assert!(!same(&input, &warned, &silent), "a warning is missing");
        assert!(!same(&input, &warned, &of("b")), "an error is more than a warning");
        assert!(same(
            &input,
            &warned,
            &json!({"errors": [], "warnings": [{"step": null, "message": "`b`"}]})
        ));
    }
}
