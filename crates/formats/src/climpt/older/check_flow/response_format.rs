//! Reads `responseFormat`: the schema of a check's answer, and the words that mean passed or failed.

use cuegate_flow::{Str, diagnostics::Diagnostic, model::Outcome};
use serde_json::{Map, Value, json};

use crate::codes;
use crate::suggest::{find_nearest_name, quote_names};
use crate::values::json::{Fields, Text};

/// The default answer field of the result.
pub(crate) const RESULT: &str = "result";

/// The default answer field of the reason.
pub(super) const MESSAGE: &str = "message";

/// Words that mean passed.
const GOOD: [&str; 3] = ["ok", "pass", "true"];

/// Words that mean failed.
const BAD: [&str; 3] = ["ng", "fail", "false"];

/// The required format of an answer.
#[derive(Debug)]
pub(crate) struct ResponseFormat {
    pub(crate) schema: Value,
}

/// The outcome of a check that passed.
pub(super) fn outcome_of_pass() -> Outcome {
    Outcome::Named("ok".into())
}

/// The outcome of one that did not.
pub(super) fn outcome_of_failure() -> Outcome {
    Outcome::Named("ng".into())
}

/// All recognized words, whatever the format requests.
pub(super) fn list_result_words() -> Vec<(Str, Outcome)> {
    let good = GOOD.iter().map(|word| ((*word).into(), outcome_of_pass()));
    good.chain(BAD.iter().map(|word| ((*word).into(), outcome_of_failure()))).collect()
}

/// Reads a format; the default one if none is written.
pub(super) fn read_response_format(fields: Option<Fields<'_, '_>>) -> ResponseFormat {
    let mut properties = Map::new();
    match fields {
        None => {
            properties.insert(RESULT.to_owned(), build_result_schema("ok|ng").unwrap_or_default());
            properties.insert(MESSAGE.to_owned(), json!({ "type": "string" }));
        }
        Some(fields) => {
            let result_at = fields.nullable(RESULT);
            let is_result = |key: &str| result_at.is_none() && find_nearest_name(key, [RESULT]).is_some();
            if let Some((misspelt, _)) = fields.others().into_iter().find(|(entry, _)| is_result(&entry.key))
            {
                let message = format!("unknown key `{}` in `responseFormat`", misspelt.key);
                let finding = Diagnostic::error(codes::UNKNOWN_KEY, misspelt.key_span, message);
                fields.push(finding.did_you_mean(RESULT));
            } else if let Some(text) = fields.required(RESULT) {
                let good = build_result_schema(text.text);
                if good.is_none() {
                    let hint = "write `ok|ng`, `pass|fail`, `boolean` or `string`";
                    fields.invalid(text.span, why_unreadable(text.text), hint);
                }
                properties.insert(RESULT.to_owned(), good.unwrap_or_else(|| json!({})));
            }
            for (entry, text) in fields.others() {
                let key: &str = &entry.key;
                let near =
                    find_nearest_name(key, [RESULT, MESSAGE]).filter(|near| *near != key && !is_result(key));
                if let Some(near) = near {
                    let message = format!("nothing reads `{key}` of an answer");
                    let finding = Diagnostic::warning(codes::UNKNOWN_KEY, entry.key_span, message);
                    fields.push(finding.hint(format!("did you mean `{near}`?")));
                }
                properties.insert(key.to_owned(), build_field_schema(key, text, &fields));
            }
        }
    }
    ResponseFormat { schema: json!({ "type": "object", "properties": properties, "required": [RESULT] }) }
}

/// The schema of the result: the words that the agent should use. Every passing word is recorded as `ok`, every failing
/// one as `ng`.
fn build_result_schema(format: &str) -> Option<Value> {
    match format {
        "boolean" => return Some(json!({ "enum": [true, false, "ok", "ng"] })),
        // Any text is accepted: a word without a known meaning counts as failed.
        "string" => return Some(json!({ "type": "string" })),
        _ => {}
    }
    let mut allowed: Vec<&str> = format.split('|').map(str::trim).collect();
    let both = allowed.iter().any(|word| is_one(GOOD, word)) && allowed.iter().any(|word| is_one(BAD, word));
    if !both || !allowed.iter().all(|word| is_one(GOOD, word) || is_one(BAD, word)) {
        return None;
    }
    for noted in ["ok", "ng"] {
        if !allowed.contains(&noted) {
            allowed.push(noted);
        }
    }
    Some(json!({ "type": "string", "enum": allowed }))
}

/// Whether a word is in a list, ignoring case.
fn is_one(words: [&str; 3], word: &str) -> bool {
    words.contains(&&*word.to_lowercase())
}

/// What an unusable result format lacks.
fn why_unreadable(format: &str) -> String {
    let words = || format.split('|').map(str::trim);
    let unknown: Vec<&str> = words().filter(|word| !is_one(GOOD, word) && !is_one(BAD, word)).collect();
    match (unknown.is_empty(), words().any(|word| is_one(GOOD, word)), words().any(|word| is_one(BAD, word)))
    {
        (true, true, _) => format!("`{format}` does not say what is not well"),
        (true, false, _) => format!("`{format}` does not say what is well"),
        (false, false, false) => format!("`{format}` says neither what is well nor what is not"),
        (false, ..) => {
            format!(
                "{} of `{format}` means neither that it is well nor that it is not",
                quote_names(&unknown)
            )
        }
    }
}

/// The schema of another field.
fn build_field_schema(key: &str, text: Text<'_>, fields: &Fields<'_, '_>) -> Value {
    const TYPES: [&str; 3] = ["string", "number", "boolean"];
    match text.text {
        // An optional field is a text that may be omitted, as may everything but the result.
        "optional" => json!({ "type": "string" }),
        kind if TYPES.contains(&kind) => json!({ "type": kind }),
        words if words.contains('|') => {
            let words: Vec<&str> = words.split('|').map(str::trim).collect();
            json!({ "type": "string", "enum": words })
        }
        other => {
            let message = format!("`{other}` in `{key}` is not a kind of value");
            let hint = format!("use one of {}, or words separated by `|`", quote_names(&TYPES));
            fields.invalid(text.span, message, &hint);
            json!({})
        }
    }
}
