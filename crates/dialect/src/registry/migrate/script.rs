//! Scripts of stand-in agents in the newer words.

use serde_json::{Map, Value, json};

use super::MigrationNote;
use super::answers::{Answers, OlderAnswers, Said, Speaking};

/// A script in the newer words.
#[derive(Debug)]
pub struct MigratedScript {
    /// The script, as JSON.
    pub text: String,
    /// Entries that had to be left as they are.
    pub notes: Vec<MigrationNote>,
}

/// Says in the newer words what the entries of a script answer. Each entry stays one, at its place: an entry for several
/// steps that say different things now names what it says at which of them.
///
/// # Errors
/// When it is neither YAML nor JSON, with the reader's reason, or no script.
pub fn migrate_script(
    script: &str,
    answers: &Answers,
    older: &dyn OlderAnswers,
) -> Result<MigratedScript, String> {
    let document: Value = serde_saphyr::from_str(script).map_err(|error| error.to_string())?;
    let mut notes = Vec::new();
    let mut document = match document {
        Value::Array(scenes) => {
            Map::from_iter([("answers".to_owned(), scenes.into_iter().map(entry_of).collect())])
        }
        Value::Object(map) => map,
        _ => return Err("a mapping with `answers`, or a list of scenario entries, belongs here".to_owned()),
    };
    let entries = document.get_mut("answers").and_then(Value::as_array_mut);
    for (index, entry) in entries.into_iter().flatten().enumerate() {
        let Value::Object(entry) = entry else { continue };
        if let Some(text) = migrate_entry(entry, answers, older) {
            notes.push(MigrationNote { place: format!("answers[{index}]"), text, changes_runs: true });
        }
    }
    if answers.has_copies() && document.get("on_exhausted") == Some(&json!("repeat_last")) {
        let text = "an ask repeats the last entry of its own step: the copies of a step repeat each its own";
        notes.push(MigrationNote { place: "on_exhausted".into(), text: text.into(), changes_runs: true });
    }
    let mut text = serde_json::to_string_pretty(&Value::Object(document)).unwrap_or_default();
    text.push('\n');
    Ok(MigratedScript { text, notes })
}

/// An entry of a mock scenario as an answer.
fn entry_of(scene: Value) -> Value {
    let Value::Object(mut scene) = scene else { return scene };
    let mut entry = Map::new();
    let persona = scene.shift_remove("persona");
    match persona {
        Some(persona) if persona == "conductor" => entry.insert("kind".into(), json!("judge")),
        Some(persona) => entry.insert("persona".into(), persona),
        None => None,
    };
    let content = scene.shift_remove("content");
    if scene.shift_remove("status") == Some(json!("blocked")) {
        entry.extend(content.clone().map(|content| ("blocked".to_owned(), content)));
    }
    entry.extend(scene.shift_remove("structured_output").map(|output| ("output".to_owned(), output)));
    entry.extend(content.map(|content| ("text".to_owned(), content)));
    Value::Object(entry)
}

/// Changes an entry; why it stays as it is where it should not.
fn migrate_entry(
    entry: &mut Map<String, Value>,
    answers: &Answers,
    older: &dyn OlderAnswers,
) -> Option<String> {
    let named: Option<Vec<String>> = match entry.get("step") {
        None | Some(Value::Null) => None,
        Some(Value::String(step)) => Some(vec![step.clone()]),
        Some(Value::Array(steps)) => {
            Some(steps.iter().filter_map(Value::as_str).map(str::to_owned).collect())
        }
        Some(_) => return Some("left as it is: its `step` is no name".to_owned()),
    };
    let kind = entry.get("kind").and_then(Value::as_str).map(str::to_owned);
    let meant = |step: &&Speaking| {
        named.as_ref().is_none_or(|names| names.contains(&step.of)) && step.is_asked(kind.as_deref())
    };
    let meant: Vec<&Speaking> = answers.steps.iter().filter(meant).collect();
    if meant.is_empty() {
        // It never answered anything, and does not now.
        return None;
    }
    let by_kind = answers.has_checks() && kind.is_some();
    if named.is_some() || by_kind {
        let ids: Vec<&str> = meant.iter().map(|step| &*step.id).collect();
        let steps = if let [only] = ids[..] { json!(only) } else { json!(ids) };
        put_first(entry, "step", steps);
    }
    if by_kind {
        entry.insert("kind".into(), json!("work"));
    }
    // What comes instead of an answer has no words of its own.
    if !["error", "blocked", "asks_user"].iter().any(|key| entry.contains_key(*key)) {
        say(entry, &meant, older);
    }
    None
}

/// Says what an entry says at each of its steps: what most of them say, and what others say instead.
fn say(entry: &mut Map<String, Value>, steps: &[&Speaking], older: &dyn OlderAnswers) {
    let before = said_in(&Value::Object(entry.clone()));
    let at = entry.shift_remove("at").unwrap_or_default();
    let said: Vec<(&str, Said)> = steps
        .iter()
        .map(|step| {
            let own = at.get(&step.of).map_or_else(|| before.clone(), said_in);
            (&*step.id, step.said(&own, older))
        })
        .collect();
    let count = |wanted: &Said| said.iter().filter(|(_, said)| said == wanted).count();
    let Some(usual) = said.iter().rev().map(|(_, said)| said).max_by_key(|said| count(said)).cloned() else {
        return;
    };
    write(entry, &usual);
    let mut others = Map::new();
    for (id, said) in said.into_iter().filter(|(_, said)| *said != usual) {
        let mut other = Map::new();
        write(&mut other, &said);
        others.insert(id.to_owned(), Value::Object(other));
    }
    if !others.is_empty() {
        entry.insert("at".into(), Value::Object(others));
    }
}

fn said_in(entry: &Value) -> Said {
    Said {
        output: entry.get("output").filter(|output| !output.is_null()).cloned(),
        text: entry.get("text").and_then(Value::as_str).map(str::to_owned),
    }
}

fn write(entry: &mut Map<String, Value>, said: &Said) {
    match &said.output {
        Some(output) => entry.insert("output".into(), output.clone()),
        None => entry.shift_remove("output"),
    };
    match &said.text {
        Some(text) => entry.insert("text".into(), json!(text)),
        None => entry.shift_remove("text"),
    };
}

/// Puts a key where it was, else before all others.
fn put_first(entry: &mut Map<String, Value>, key: &str, value: Value) {
    if let Some(place) = entry.get_mut(key) {
        *place = value;
        return;
    }
    let others = std::mem::take(entry);
    entry.insert(key.to_owned(), value);
    entry.extend(others);
}
