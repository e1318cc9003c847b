//! Scripts of stand-in agents in the newer words.

use serde_json::Value;

use super::words::Words;
use super::{Answers, MigrationNote};

/// A script in the newer words.
#[derive(Debug)]
pub struct MigratedScript {
    /// The script, as JSON.
    pub text: String,
    /// Entries that had to be left as they are.
    pub notes: Vec<MigrationNote>,
}

/// Says in the newer words what the entries of a script answer.
///
/// # Errors
/// When it is neither YAML nor JSON, with the reader's reason.
pub fn migrate_script(script: &str, answers: &Answers) -> Result<MigratedScript, String> {
    let mut document: Value = serde_saphyr::from_str(script).map_err(|error| error.to_string())?;
    let mut notes = Vec::new();
    let entries = match &mut document {
        Value::Array(entries) => Some(entries),
        Value::Object(map) => map.get_mut("answers").and_then(Value::as_array_mut),
        _ => None,
    };
    for (index, entry) in entries.into_iter().flatten().enumerate() {
        if let Some(text) = migrate_entry(entry, answers) {
            notes.push(MigrationNote { place: format!("answers[{index}]"), text, changes_runs: true });
        }
    }
    let mut text = serde_json::to_string_pretty(&document).unwrap_or_default();
    text.push('\n');
    Ok(MigratedScript { text, notes })
}

/// Changes an entry; why it stays as it is where it should not.
fn migrate_entry(entry: &mut Value, answers: &Answers) -> Option<String> {
    let step = entry.get("step").and_then(Value::as_str).map(str::to_owned);
    let of = |id: &str| answers.0.iter().find(|(known, _)| known == id).map(|(_, words)| words);
    let mut stays = None;
    for key in ["output", "structured_output"] {
        let Some(output) = entry.get_mut(key) else { continue };
        match step.as_deref().and_then(of) {
            Some(words) => say(output, words),
            None => stays = stays.or_else(|| ambiguous(output, answers)),
        }
    }
    for key in ["text", "content"] {
        let Some(Value::String(text)) = entry.get_mut(key) else { continue };
        // Only a text that is an answer as a whole is one; in prose nobody can tell.
        let Ok(mut output) = serde_json::from_str::<Value>(text) else { continue };
        let before = output.clone();
        match step.as_deref().and_then(of) {
            Some(words) => say(&mut output, words),
            None => stays = stays.or_else(|| ambiguous(&output, answers)),
        }
        if output != before {
            *text = output.to_string();
        }
    }
    stays
}

fn say(output: &mut Value, words: &Words) {
    let said = words.field.get(output).and_then(|value| words.said(value));
    if let Some(newer) = said {
        words.field.set(output, Value::from(newer));
    }
}

/// An answer for any step whose word has become different ones.
fn ambiguous(output: &Value, answers: &Answers) -> Option<String> {
    let mut newer: Vec<&str> =
        answers.0.iter().filter_map(|(_, words)| words.said(words.field.get(output)?)).collect();
    newer.sort_unstable();
    newer.dedup();
    (!newer.is_empty())
        .then(|| format!("left as it is: it names no step, and its word is now {}", newer.join(" or ")))
}
