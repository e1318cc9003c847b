//! Candidate texts for a schema.

use std::borrow::Cow;

use cuegate_flow::model::Schema;
use serde_json::{Map, Value, json};

use super::pattern::{text_for, text_of};

/// How many texts are tried for each pattern.
const OTHERS_MAX: usize = 16;

/// The length limit of a generated text.
const LENGTH_MAX: usize = 1_000_000;

/// Candidates for a schema with restrictions.
pub(super) const TEXTS: [&str; 34] = [
    "as simulated",
    "a",
    "1",
    "a-1",
    "A",
    "main",
    "simulated",
    "src/a.rs",
    "1.0.0",
    "#1",
    "2020-01-01",
    "2020-01-01T00:00:00Z",
    "https://localhost/a",
    "a@localhost.example",
    "0123456789abcdef0123456789abcdef01234567",
    "00000000-0000-4000-8000-000000000000",
    "00:00:00Z",
    "P1D",
    "127.0.0.1",
    "::1",
    "/a",
    // Alternatives of each form, in case the first one equals a case.
    "b",
    "2",
    "b-2",
    "2021-12-31",
    "2021-12-31T23:59:59Z",
    "https://localhost/b",
    "b@localhost.example",
    "00000000-0000-4000-8000-000000000001",
    "23:59:59Z",
    "P2D",
    "127.0.0.2",
    "::2",
    "/b",
];

/// Whether a schema restricts its texts.
pub(super) fn is_particular(schema: &Map<String, Value>) -> bool {
    ["pattern", "format", "minLength", "maxLength", "not", "allOf"]
        .iter()
        .any(|key| schema.contains_key(*key))
}

/// Texts that may fit a schema. The caller validates them.
pub(super) fn generate_texts(
    schema: &Map<String, Value>,
    variant: usize,
) -> impl Iterator<Item = Cow<'static, str>> {
    let length = |key: &str| schema.get(key).and_then(Value::as_u64);
    let least = length("minLength").unwrap_or(0).min(LENGTH_MAX as u64) as usize;
    let most = length("maxLength").map_or(LENGTH_MAX, |most| most.min(LENGTH_MAX as u64) as usize);
    let long: String = "as simulated, ".chars().cycle().take(least).collect();
    let short: String = TEXTS[0].chars().take(most).collect();
    let beside = schema.get("allOf").and_then(Value::as_array).into_iter().flatten();
    let patterns = schema.get("pattern").into_iter().chain(beside.filter_map(|part| part.get("pattern")));
    let patterns: Vec<String> = patterns.filter_map(Value::as_str).map(str::to_owned).collect();
    let made = patterns.into_iter().flat_map(move |pattern| {
        let short = (0..OTHERS_MAX).filter_map({
            let pattern = pattern.clone();
            move |more| text_for(&pattern, variant + more)
        });
        // Reach the minimum length by additional repetitions.
        let longer = move |fewer: usize| text_of(&pattern, variant, least.saturating_sub(fewer));
        short.chain((0..if least > 0 { 4 } else { 0 }).filter_map(longer)).collect::<Vec<_>>()
    });
    let plain = TEXTS.into_iter().map(Cow::Borrowed);
    plain.chain([Cow::Owned(long), Cow::Owned(short)]).chain(made.map(Cow::Owned))
}

/// Up to `many` different property names that fit a rule.
pub(super) fn names_for(rule: Option<&Map<String, Value>>, many: usize) -> Vec<String> {
    let plain = (0..many * 2).map(|at| format!("simulated{at}"));
    let Some(rule) = rule else { return plain.collect() };
    let Ok(schema) = Schema::new(Value::Object(rule.clone())) else { return Vec::new() };
    let listed = rule.get("enum").and_then(Value::as_array).into_iter().flatten().chain(rule.get("const"));
    let listed = listed.filter_map(Value::as_str).map(str::to_owned);
    let like = rule.get("pattern").and_then(Value::as_str).map(|pattern| names_like(pattern, many));
    let letters = ('a'..='z').map(String::from);
    let texts = generate_texts(rule, 0).map(Cow::into_owned);
    let mut found: Vec<String> = Vec::new();
    for name in listed.chain(like.into_iter().flatten()).chain(plain).chain(letters).chain(texts) {
        if !found.contains(&name) && schema.problems(&Value::from(&*name)).is_empty() {
            found.push(name);
        }
    }
    found
}

/// Property names that match a pattern.
pub(super) fn names_like(pattern: &str, many: usize) -> Vec<String> {
    let Ok(rule) = Schema::new(json!({"type": "string", "pattern": pattern})) else { return Vec::new() };
    let made = (0..many * 2).filter_map(|at| text_for(pattern, at));
    // A pattern for a prefix allows any suffix.
    let longer = (0..many).filter_map(|at| Some(format!("{}{at}", text_for(pattern, 0)?)));
    let repeated = (1..=many).filter_map(|more| text_of(pattern, 0, more));
    let mut found: Vec<String> = Vec::new();
    for name in made.chain(longer).chain(repeated) {
        if !found.contains(&name) && rule.problems(&Value::from(&*name)).is_empty() {
            found.push(name);
        }
    }
    found
}
