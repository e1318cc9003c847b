//! The program's words for what it used and what it worked on.
//!
//! Fields are picked out of values instead of read into types: the program is updated every few days, and an answer
//! that was paid for must not be lost because some other field changed its type.

use serde_json::Value;

use crate::{
    Usage,
    program::{tokens, wording::target},
};

/// A text at a path of keys, `""` when there is none.
pub(super) fn text<'a>(value: &'a Value, path: &str) -> &'a str {
    value.pointer(path).and_then(Value::as_str).unwrap_or_default()
}

/// A number at a path of keys, 0 when there is none.
fn number(value: &Value, path: &str) -> u64 {
    value.pointer(path).map(tokens).unwrap_or_default()
}

/// The `usage` of a message: the service counts cached tokens apart.
pub(super) fn usage(usage: &Value) -> Usage {
    let cached = number(usage, "/cache_read_input_tokens");
    Usage {
        input_tokens: number(usage, "/input_tokens")
            .saturating_add(number(usage, "/cache_creation_input_tokens"))
            .saturating_add(cached),
        cached_input_tokens: cached,
        output_tokens: number(usage, "/output_tokens"),
        cost_usd: None,
    }
}

/// The sum of an object that has a usage for each model, helpers and subagents included.
pub(super) fn models(models: &Value) -> Option<Usage> {
    let mut sum = Usage { cost_usd: Some(0.0), ..Usage::default() };
    for usage in models.as_object()?.values() {
        let cached = number(usage, "/cacheReadInputTokens");
        let input = number(usage, "/inputTokens")
            .saturating_add(number(usage, "/cacheCreationInputTokens"))
            .saturating_add(cached);
        sum = sum.plus(&Usage {
            input_tokens: input,
            cached_input_tokens: cached,
            output_tokens: number(usage, "/outputTokens"),
            cost_usd: usage.get("costUSD").and_then(Value::as_f64),
        });
    }
    Some(sum)
}

/// What a tool is used on, out of what it is given.
pub(super) fn tool_target(input: &Value) -> String {
    const KEYS: [&str; 10] = [
        "file_path",
        "notebook_path",
        "path",
        "command",
        "pattern",
        "url",
        "query",
        "skill",
        "description",
        "prompt",
    ];
    let said = KEYS.iter().find_map(|key| input.get(key).and_then(Value::as_str));
    target(said.unwrap_or_default())
}
