//! The configuration of the tool that found prompts for the original program. Prompts are found without it here; one
//! that is there and does not know a step is out of date, and the step would have had no prompt of its own.

use cuegate_flow::diagnostics::{Diagnostic, Span};
use serde_json::Value;

use crate::climpt::lower::Definition;
use crate::lints;
use crate::source::loader::Page;
use crate::source::suggest::list;

/// Reports steps whose `c2` or `c3` a configuration beside the agent does not list.
pub(crate) fn check_breakdown(definition: &Definition<'_, '_, '_>) {
    for name in &definition.places.names {
        for part in ["", "-app", "-user"] {
            check_file(&format!(".agent/climpt/config/{name}-steps{part}.yml"), definition);
        }
    }
}

fn check_file(path: &str, definition: &Definition<'_, '_, '_>) {
    let Definition { registry, desk, .. } = definition;
    let Page::Text { file, text } = desk.page(path) else { return };
    let Ok(config) = serde_saphyr::from_str::<Value>(&text) else {
        let message = format!("`{path}` is no YAML");
        desk.found.push(
            Diagnostic::warning(lints::BREAKDOWN_CONFIG, Span::start_of(file), message)
                .hint("correct it, or remove it: prompts are found without it"),
        );
        return;
    };
    let steps = registry.steps.iter().filter(|step| !step.section);
    for (key, of) in [
        ("directiveType", steps.clone().filter_map(|step| step.c2).collect::<Vec<_>>()),
        ("layerType", steps.filter_map(|step| step.c3).collect()),
    ] {
        let Some(known) = find(&config, key).and_then(alternatives) else { continue };
        let mut missing: Vec<&str> =
            of.iter().map(|part| part.text).filter(|part| !known.contains(part)).collect();
        missing.sort_unstable();
        missing.dedup();
        if !missing.is_empty() {
            let message = format!("`{key}` of `{path}` does not list {}", list(&missing));
            desk.found.push(
                Diagnostic::warning(lints::BREAKDOWN_CONFIG, Span::start_of(file), message)
                    .hint("add them there; here prompts are found all the same"),
            );
        }
    }
}

/// The value of a key, wherever it stands.
fn find<'v>(config: &'v Value, key: &str) -> Option<&'v Value> {
    match config {
        Value::Object(map) => map.get(key).or_else(|| map.values().find_map(|value| find(value, key))),
        Value::Array(items) => items.iter().find_map(|item| find(item, key)),
        _ => None,
    }
}

/// The words that a pattern like `^(initial|complete)$` allows; nothing of a pattern that says more than words.
fn alternatives(value: &Value) -> Option<Vec<&str>> {
    if let Value::Array(items) = value {
        return Some(items.iter().filter_map(Value::as_str).collect());
    }
    let pattern = value.get("pattern").unwrap_or(value).as_str()?;
    let inner = pattern.strip_prefix('^').unwrap_or(pattern);
    let inner = inner.strip_suffix('$').unwrap_or(inner);
    let inner = inner.strip_prefix('(').and_then(|rest| rest.strip_suffix(')')).unwrap_or(inner);
    let inner = inner.strip_prefix("?:").unwrap_or(inner);
    let plain =
        |word: &str| !word.is_empty() && word.chars().all(|c| c.is_alphanumeric() || "-_".contains(c));
    let words: Vec<&str> = inner.split('|').collect();
    words.iter().all(|word| plain(word)).then_some(words)
}

#[cfg(test)]
mod tests {
    use super::alternatives;
    use serde_json::json;

    #[test]
    fn patterns_of_words_are_read_and_others_left_alone() {
        assert_eq!(
            alternatives(&json!({"pattern": "^(initial|complete)$"})),
            Some(vec!["initial", "complete"])
        );
        assert_eq!(alternatives(&json!("issue")), Some(vec!["issue"]));
        assert_eq!(alternatives(&json!(["a", "b"])), Some(vec!["a", "b"]));
        assert_eq!(alternatives(&json!({"pattern": "^[a-z]+$"})), None);
        assert_eq!(alternatives(&json!({"other": 1})), None);
    }
}
