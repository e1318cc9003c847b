//! The registry in the newer words.

use serde_json::{Map, Value, json};

use super::super::behavior::OLDER_TYPES;
use super::super::entries::completion_type;
use super::super::kinds::{Intent, StepKind};
use super::super::step::StepDefinition;
use super::fallback::{self, First};
use super::schemas::{FILE, StepSchema};
use super::words::Words;
use super::{Migration, Source};

/// Writes the registry.
pub(super) fn migrate(
    mut registry: Value,
    schemas: &[StepSchema],
    first: Option<&First>,
    source: &Source<'_, '_, '_>,
    migration: &mut Migration,
) {
    let Value::Object(document) = &mut registry else { return };
    document.insert("agentId".into(), json!(migration.name));
    let mut put = |key: &str, value: Value| {
        document.entry(key).or_insert(value);
    };
    put("version", json!("1.0.0"));
    put("c1", json!("steps"));
    document.insert("userPromptsBase".into(), json!("prompts"));
    document.insert("schemasBase".into(), json!("schemas"));
    document.shift_remove("completionType");
    entries(document, migration);
    rename(document, "completionPatterns", "failurePatterns");
    let completions = document.shift_remove("completionSteps");
    let validations = validations(completions.as_ref());
    if !validations.is_empty() {
        document.insert("validationSteps".into(), Value::Object(validations));
    }
    let mut steps = match document.shift_remove("steps") {
        Some(Value::Object(steps)) => steps,
        _ => Map::new(),
    };
    for definition in source.registry.steps.iter().filter(|step| !step.section) {
        let Some(schema) = schemas.iter().find(|schema| schema.id == definition.id) else { continue };
        let written = steps.get(definition.id).cloned().unwrap_or_else(|| {
            of_completion(definition, completions.as_ref().and_then(|all| all.get(definition.id)))
        });
        let mut step = step(written, definition, schema, migration);
        fallback::redirect(&mut step, first);
        if let Some(first) = first.filter(|first| first.id == definition.id) {
            if let Some(copy) = &first.copy {
                let mut again = step.clone();
                again["stepId"] = json!(copy);
                steps.insert(copy.clone(), again);
            }
            step = falling_back(step, first, schema, migration);
        }
        steps.insert(definition.id.to_owned(), step);
    }
    document.insert("steps".into(), Value::Object(steps));
    migration.write("steps_registry.json", &registry);
}

fn rename(document: &mut Map<String, Value>, from: &str, to: &str) {
    if let Some(value) = document.shift_remove(from) {
        document.insert(to.to_owned(), value);
    }
}

/// Verdict types by their newer names. What is no type never began a run.
fn entries(document: &mut Map<String, Value>, migration: &mut Migration) {
    let Some(Value::Object(mapping)) = document.get_mut("entryStepMapping") else { return };
    let mut newer = Map::new();
    for (key, step) in std::mem::take(mapping) {
        match completion_type(&key) {
            Some(kind) => {
                newer.entry(kind).or_insert(step);
            }
            None => {
                let known: Vec<&str> = OLDER_TYPES.iter().map(|(older, _)| *older).collect();
                let text = format!(
                    "left out: it is no completion type ({}), so that no run began by it",
                    known.join(", ")
                );
                migration.note(format!("entryStepMapping.{key}"), text, false);
            }
        }
    }
    if newer.is_empty() {
        document.shift_remove("entryStepMapping");
    } else {
        *mapping = newer;
    }
}

/// The validations of completion steps that have conditions.
fn validations(completions: Option<&Value>) -> Map<String, Value> {
    let mut validations = Map::new();
    for (id, entry) in completions.and_then(Value::as_object).into_iter().flatten() {
        let guarded =
            entry["completionConditions"].as_array().is_some_and(|conditions| !conditions.is_empty());
        if !guarded {
            continue;
        }
        let mut validation = Map::new();
        for key in ["stepId", "name", "description", "c2", "c3", "completionConditions", "onFailure"] {
            let newer = if key == "completionConditions" { "validationConditions" } else { key };
            if let Some(value) = entry.get(key) {
                validation.insert(newer.to_owned(), value.clone());
            }
        }
        validations.insert(id.clone(), Value::Object(validation));
    }
    validations
}

/// A step that stood in `completionSteps` only.
fn of_completion(definition: &StepDefinition<'_>, entry: Option<&Value>) -> Value {
    let mut step = Map::new();
    step.insert("stepId".into(), json!(definition.id));
    step.insert("c2".into(), json!(definition.c2.map(|c2| c2.text)));
    step.insert("c3".into(), json!(definition.c3.map(|c3| c3.text)));
    const KEPT: [&str; 9] = [
        "name",
        "description",
        "edition",
        "adaptation",
        "fallbackKey",
        "uvVariables",
        "usesStdin",
        "inputs",
        "structuredGate",
    ];
    for key in KEPT {
        if let Some(value) = entry.and_then(|entry| entry.get(key)) {
            step.insert(key.to_owned(), value.clone());
        }
    }
    let transitions = entry.and_then(|entry| entry.get("transitions")).cloned();
    step.insert("transitions".into(), transitions.unwrap_or_else(|| json!({"complete": {"target": null}})));
    Value::Object(step)
}

fn step(
    written: Value,
    definition: &StepDefinition<'_>,
    schema: &StepSchema,
    migration: &mut Migration,
) -> Value {
    let Value::Object(mut step) = written else { return written };
    let kind = definition.kind.unwrap_or(StepKind::Work);
    step.insert("stepKind".into(), json!(kind.as_str()));
    step.insert("outputSchemaRef".into(), json!({"file": FILE, "schema": definition.id}));
    let gate = step.shift_remove("structuredGate");
    step.insert("structuredGate".into(), self::gate(gate, definition, schema, migration));
    let transitions = step.shift_remove("transitions");
    step.insert("transitions".into(), self::transitions(transitions, definition, &schema.words, migration));
    Value::Object(step)
}

fn gate(
    written: Option<Value>,
    definition: &StepDefinition<'_>,
    schema: &StepSchema,
    migration: &mut Migration,
) -> Value {
    let mut gate = match written {
        Some(Value::Object(gate)) => gate,
        _ => Map::new(),
    };
    let id = definition.id;
    let mut allowed: Vec<&str> = schema.words.intents().into_iter().map(Intent::as_str).collect();
    for (intent, _) in definition.gate.iter().flat_map(|gate| &gate.intents) {
        if schema.words.get(*intent).is_some() {
            continue;
        }
        if *intent == Intent::Abort {
            allowed.push("abort");
            continue;
        }
        let (word, kind) = (intent.as_str(), definition.kind);
        let refused = kind == Some(StepKind::Closure) && matches!(intent, Intent::Next | Intent::Jump);
        let text = if refused {
            format!("`{word}` left out: a closure step decides `closing` and one `repeat` only")
        } else {
            format!("`{word}` left out: the schema lists no word for it, so that no agent could decide it")
        };
        migration.note(format!("steps.{id}"), text, refused);
    }
    let repeats = definition.gate.iter().flat_map(|gate| &gate.intents).any(|(i, _)| *i == Intent::Repeat);
    if schema.words.get(Intent::Next) == Some(Intent::Repeat) && !repeats {
        let text =
            "`next` is `repeat` now, so that an answer of `repeat`, a bad one before, leads back as well";
        migration.note(format!("steps.{id}"), text, true);
    }
    gate.insert("allowedIntents".into(), json!(allowed));
    gate.insert("intentField".into(), json!(schema.words.field.to_string()));
    gate.insert("intentSchemaRef".into(), json!(schema.pointer));
    // Where it acts it is put back. Elsewhere it never acted: it did so in the first iteration only.
    gate.shift_remove("fallbackIntent");
    if !allowed.contains(&"jump") {
        gate.shift_remove("targetField");
        gate.shift_remove("targetMode");
    }
    Value::Object(gate)
}

/// The same step with the fallback that acts there.
fn falling_back(mut step: Value, first: &First, schema: &StepSchema, migration: &mut Migration) -> Value {
    match schema.words.get(first.intent) {
        Some(newer) => {
            let gate = &mut step["structuredGate"];
            gate["failFast"] = json!(false);
            gate["fallbackIntent"] = json!(newer.as_str());
            fallback::note(first, migration);
        }
        None => {
            let text = format!(
                "`fallbackIntent` `{}` left out: no agent of this step can decide it any more, so that a first answer \
                 without an intent ends the run",
                first.intent.as_str()
            );
            migration.note(format!("steps.{}", first.id), text, true);
        }
    }
    step
}

fn transitions(
    written: Option<Value>,
    definition: &StepDefinition<'_>,
    words: &Words,
    migration: &mut Migration,
) -> Value {
    let mut transitions = Map::new();
    let Some(Value::Object(written)) = written else { return Value::Object(transitions) };
    for (word, rule) in written {
        let Some(intent) = Intent::parse(&word) else { continue };
        if intent == Intent::Abort {
            if !rule["target"].is_null() {
                let text = "the target of `abort` left out: it gives the run up and leads nowhere";
                migration.note(format!("steps.{}", definition.id), text, false);
            }
            transitions.insert(word, json!({"target": null}));
            continue;
        }
        let Some(newer) = words.get(intent) else { continue };
        let rule = if newer == Intent::Closing { json!({"target": null}) } else { rule };
        transitions.entry(newer.as_str()).or_insert(rule);
    }
    Value::Object(transitions)
}
