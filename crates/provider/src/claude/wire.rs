//! Extracts usage and tool targets from the program's events.
//!
//! Fields are read from untyped values: the program is updated every few days, and a changed type of an unrelated
//! field must not lose an answer that was paid for.

use serde_json::Value;

use crate::{
    Usage,
    program::{read_token_count, wording::shorten_target},
};

/// The string at a JSON pointer; `""` if there is none.
pub(super) fn text_at_pointer<'a>(value: &'a Value, path: &str) -> &'a str {
    value.pointer(path).and_then(Value::as_str).unwrap_or_default()
}

/// The number at a JSON pointer; 0 if there is none.
fn number_at_pointer(value: &Value, path: &str) -> u64 {
    value.pointer(path).map(read_token_count).unwrap_or_default()
}

/// The `usage` of a message. The service counts cached tokens separately.
pub(super) fn usage_of_message(usage: &Value) -> Usage {
    let cached = number_at_pointer(usage, "/cache_read_input_tokens");
    Usage {
        input_tokens: number_at_pointer(usage, "/input_tokens")
            .saturating_add(number_at_pointer(usage, "/cache_creation_input_tokens"))
            .saturating_add(cached),
        cached_input_tokens: cached,
        output_tokens: number_at_pointer(usage, "/output_tokens"),
        cost_usd: None,
        is_estimated: false,
    }
}

/// The sum over an object with the usage of each model, helpers and subagents included.
pub(super) fn sum_model_usage(models: &Value) -> Option<Usage> {
    let mut sum = Usage { cost_usd: Some(0.0), ..Usage::default() };
    for usage in models.as_object()?.values() {
        let cached = number_at_pointer(usage, "/cacheReadInputTokens");
        let input = number_at_pointer(usage, "/inputTokens")
            .saturating_add(number_at_pointer(usage, "/cacheCreationInputTokens"))
            .saturating_add(cached);
        sum = sum.plus(&Usage {
            input_tokens: input,
            cached_input_tokens: cached,
            output_tokens: number_at_pointer(usage, "/outputTokens"),
            cost_usd: usage.get("costUSD").and_then(Value::as_f64),
            is_estimated: false,
        });
    }
    Some(sum)
}

/// An amount of a result that no service charges, in words: a negative one, or one beyond all prices.
pub(super) fn impossible_amount(result: &Value) -> Option<String> {
    /// In US dollars, for one session.
    const COST_MAX: f64 = 1e6;
    let of_models = result["modelUsage"].as_object().into_iter().flat_map(|models| models.values());
    let costs = of_models.clone().map(|usage| ("costUSD", &usage["costUSD"]));
    for (name, cost) in costs.chain([("total_cost_usd", &result["total_cost_usd"])]) {
        if cost.as_f64().is_some_and(|cost| !(0.0..=COST_MAX).contains(&cost)) {
            return Some(format!("`{name}` is {cost}"));
        }
    }
    let counts = of_models.chain([&result["usage"]]).filter_map(Value::as_object).flatten();
    counts
        .filter(|(name, _)| name.to_ascii_lowercase().ends_with("tokens"))
        .find(|(_, count)| count.as_f64().is_some_and(|count| !(0.0..=1e15).contains(&count)))
        .map(|(name, count)| format!("`{name}` is {count}"))
}

/// The target of a tool, from its input.
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
    let value = KEYS.iter().find_map(|key| input.get(key).and_then(Value::as_str));
    shorten_target(value.unwrap_or_default())
}
