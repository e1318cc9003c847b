//! What differs in the settings of the project.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::Path;

use serde_json::Value;

use super::difference::{Change, compare_lists, plain_change};
use crate::config::Config;
use crate::{Failure, text_file};

/// Settings that change what a run costs, how long it waits or what is kept, and nothing of what agents, commands and this
/// program may do. All others may widen that: a key that is not known here counts as one.
const HARMLESS: [&str; 16] = [
    "budget.",
    "finalize.",
    "models.",
    "prices.",
    "retention.",
    "run.baseline",
    "run.call_timeout",
    "run.idle_warning",
    "run.quality_gate_retries",
    "run.repairs_max",
    "run.same_answers_max",
    "run.same_files_max",
    "run.wait_max",
    "run.width",
    "takt.phases",
    "verdict.",
];
/// Settings that hold back: also what takes one away may widen.
const HOLDING: [&str; 2] = ["boundary.", "sandbox."];
/// Lists in `[sandbox]` that only give.
const GIVING: [(&str, &str); 4] = [
    ("sandbox.hosts", "may reach"),
    ("sandbox.caches", "may write"),
    ("sandbox.readable", "may read"),
    ("sandbox.environment", "get the variable"),
];
/// The longest value that is told, in characters.
const VALUE_MAX: usize = 80;

/// The settings that differ, by key.
pub(super) fn compare_settings(before: &Config, after: &Config) -> Vec<Change> {
    let (old, new) = (read_settings(before), read_settings(after));
    let mut changes = Vec::new();
    for (key, what) in GIVING {
        let list = |settings: &BTreeMap<String, Value>| -> BTreeSet<String> {
            let words = settings.get(key).and_then(Value::as_array).into_iter().flatten();
            words.map(|word| word.as_str().map_or_else(|| word.to_string(), str::to_owned)).collect()
        };
        let (more, less) = (format!("agents {what}"), format!("no longer: agents {what}"));
        changes.extend(compare_lists(&more, &less, &list(&old), &list(&new)));
    }
    let keys: BTreeSet<&String> = old.keys().chain(new.keys()).collect();
    for key in keys.into_iter().filter(|key| !GIVING.iter().any(|(giving, _)| giving == key)) {
        if old.get(key) == new.get(key) {
            continue;
        }
        let is_under = |begins: &[&str]| begins.iter().any(|begin| key.starts_with(begin));
        let takes_away = matches!(new.get(key), None | Some(Value::Bool(false)));
        let text = format!(
            "setting `{key}`: {}, was {}",
            show_value(key, new.get(key)),
            show_value(key, old.get(key))
        );
        changes.push(match is_under(&HARMLESS) || (takes_away && !is_under(&HOLDING)) {
            true => plain_change(text),
            false => Change { text, widens: true },
        });
    }
    changes
}

/// Files of TAKT with settings. What they say of workflows is compared there; whatever else differs in them may widen.
const TAKT_FILES: [&str; 2] = [".takt/config.yaml", ".takt/runtime.yaml"];

/// The files of TAKT that differ. `is_explained`: whether a workflow has other agents, servers or conditions for it.
///
/// # Errors
/// When one cannot be read.
pub(super) fn compare_takt_files(
    before: &Path,
    after: &Path,
    is_explained: bool,
) -> Result<Vec<Change>, Failure> {
    let mut changes = Vec::new();
    for name in TAKT_FILES {
        let read = |folder: &Path| match text_file::read_text(&folder.join(name)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            read => read.map(Some).map_err(|error| {
                let hint = text_file::hint_for_unread(&error, "make the file readable");
                Failure::usage(format!("failed to read `{name}`: {error}"), hint)
            }),
        };
        let (old, new) = (read(before)?, read(after)?);
        if old == new {
            continue;
        }
        let value = |text: &Option<String>| -> Option<Value> {
            text.as_deref().map_or(Some(Value::Null), |text| serde_saphyr::from_str(text).ok())
        };
        let is_same = value(&old).is_some() && value(&old) == value(&new);
        changes.push(match is_same {
            true => plain_change(format!("`{name}` differs in its layout or comments")),
            false => Change { text: format!("`{name}` differs"), widens: !is_explained },
        });
    }
    Ok(changes)
}

/// The settings by their keys, as `sandbox.hosts`.
fn read_settings(config: &Config) -> BTreeMap<String, Value> {
    let mut settings = BTreeMap::new();
    let source = serde_json::from_str(&config.source).unwrap_or_default();
    flatten_value(String::new(), source, &mut settings);
    settings
}

fn flatten_value(key: String, value: Value, into: &mut BTreeMap<String, Value>) {
    match value {
        Value::Object(entries) => {
            for (name, value) in entries {
                let key = if key.is_empty() { name } else { format!("{key}.{name}") };
                flatten_value(key, value, into);
            }
        }
        Value::Null => {}
        value => {
            into.insert(key, value);
        }
    }
}

/// A value for a reader; one that may be a secret is not told.
fn show_value(key: &str, value: Option<&Value>) -> String {
    let key = key.to_ascii_lowercase();
    let is_secret =
        ["header", "key", "password", "secret", "token", "webhook"].iter().any(|word| key.contains(word));
    match value {
        None => "unset".to_owned(),
        Some(value @ (Value::Bool(_) | Value::Number(_))) => value.to_string(),
        Some(_) if is_secret => "another one".to_owned(),
        // An address may hold a password.
        Some(Value::String(text)) if text.contains("://") && text.contains('@') => "another one".to_owned(),
        Some(value) => cuegate_view::shorten_end(&value.to_string(), VALUE_MAX),
    }
}
