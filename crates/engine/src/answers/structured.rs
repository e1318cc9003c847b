//! Finds the structured answer in an agent's text.

use serde_json::Value;

/// The first JSON object in a text: the whole text, a fenced block, or an object that starts at any `{`.
///
/// Arrays and scalars are not answers.
pub fn json_in_text(text: &str) -> Option<Value> {
    json_where(text, |_| true)
}

/// Like [`json_in_text`], for the first object that `fits` accepts. Objects inside a rejected one are skipped.
pub fn json_where(text: &str, fits: impl Fn(&Value) -> bool) -> Option<Value> {
    let object = |candidate: &str| {
        let value = serde_json::from_str::<Value>(candidate.trim()).ok();
        value.filter(|value| value.is_object() && fits(value))
    };
    object(text)
        .or_else(|| find_code_blocks(text).find_map(object))
        .or_else(|| find_embedded_object(text, &fits))
}

/// The contents of fenced code blocks, in order.
fn find_code_blocks(text: &str) -> impl Iterator<Item = &str> {
    text.split("```").skip(1).step_by(2).map(|block| match block.split_once('\n') {
        // The first line is the info string if it is one word.
        Some((info, body)) if info.trim().chars().all(|c| c.is_alphanumeric() || "-_+".contains(c)) => body,
        _ => block,
    })
}

/// The maximum number of opening braces tried, so that a long listing of invalid JSON does not take quadratic time.
const STARTS_MAX: usize = 256;

/// The first object that starts at any `{`, whatever follows it.
fn find_embedded_object(text: &str, fits: impl Fn(&Value) -> bool) -> Option<Value> {
    let mut read_to = 0;
    text.match_indices('{').take(STARTS_MAX).find_map(|(at, _)| {
        if at < read_to {
            return None;
        }
        let mut values = serde_json::Deserializer::from_str(&text[at..]).into_iter::<Value>();
        let value = values.next()?.ok().filter(Value::is_object)?;
        read_to = at + values.byte_offset();
        fits(&value).then_some(value)
    })
}

#[cfg(test)]
mod tests {
    use super::{json_in_text, json_where};
    use serde_json::json;

    #[test]
    fn finds_the_first_object() {
        for (text, expected) in [
            (r#"{"a":1}"#, Some(json!({"a": 1}))),
            ("  \n{\"a\":1}\n", Some(json!({"a": 1}))),
            ("so:\n```json\n{\"a\":1}\n```\ndone", Some(json!({"a": 1}))),
            ("so:\n```\n{\"a\":1}\n```", Some(json!({"a": 1}))),
            ("```sh\nls\n```\n```json\n{\"a\":1}\n```", Some(json!({"a": 1}))),
            ("I think {this} is {\"a\":{\"b\":[]}} and {\"c\":2}", Some(json!({"a": {"b": []}}))),
            ("[1,2]", None),
            ("{broken", None),
            ("", None),
        ] {
            assert_eq!(json_in_text(text), expected, "{text}");
        }
    }

    #[test]
    fn a_rejected_object_is_skipped_with_its_content() {
        let fits = |value: &serde_json::Value| value.get("a").is_some();
        for text in [
            "```json\n{\"b\":{\"a\":0}}\n```\n```json\n{\"a\":1}\n```",
            "first {\"b\":{\"a\":0}}, then {\"a\":1}",
        ] {
            assert_eq!(json_where(text, fits), Some(json!({"a": 1})), "{text}");
        }
        assert_eq!(json_where("{\"b\":{\"a\":0}}", fits), None);
    }

    #[test]
    fn many_braces_are_parsed_quickly() {
        assert_eq!(json_in_text(&"{".repeat(200_000)), None);
    }
}
