//! The request body of an ask.

use std::borrow::Cow;

use serde_json::{Map, Value, json};

use super::{
    settings::{OpenAiSettings, SchemaMode},
    strict,
};
use crate::{AskLimit, Fault, FaultClass, Request, program::estimate_tokens};

/// Fields that other settings or the ask determine, so [`OpenAiSettings::extra`] must not name them.
pub(super) const OWN_FIELDS: [&str; 12] = [
    "model",
    "messages",
    "stream",
    "stream_options",
    "response_format",
    "max_tokens",
    "max_completion_tokens",
    "temperature",
    "n",
    "tools",
    "tool_choice",
    "functions",
];
/// The maximum length of a schema's name.
const NAME_MAX: usize = 64;

/// The limit of output tokens and its source.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct OutputLimit {
    pub tokens: u64,
    /// The limit of the ask that it follows from; `None` = the settings.
    pub cap: Option<AskLimit>,
}

/// The body of the request for a model.
pub(super) fn build_body(
    settings: &OpenAiSettings,
    request: &Request,
    model: &str,
    bound: Option<OutputLimit>,
) -> Value {
    let mut messages = Vec::new();
    if let Some(system) = &request.system {
        messages.push(json!({"role": "system", "content": system}));
    }
    messages.push(json!({"role": "user", "content": build_prompt_with_schema(settings, request)}));
    let mut body = Map::new();
    body.insert("model".to_owned(), json!(model));
    body.insert("messages".to_owned(), json!(messages));
    body.insert("stream".to_owned(), json!(true));
    body.insert("stream_options".to_owned(), json!({"include_usage": true}));
    if let Some(format) = response_format(settings, request) {
        body.insert("response_format".to_owned(), format);
    }
    if let Some(bound) = bound {
        body.insert(settings.token_field.name().to_owned(), json!(bound.tokens));
    }
    if let Some(temperature) = settings.temperature {
        body.insert("temperature".to_owned(), json!(temperature));
    }
    body.extend(settings.extra.clone());
    Value::Object(body)
}

/// The prompt. In JSON object mode the instructions about JSON are added here, because the caller's allow text beside
/// the JSON, which the service rejects.
fn build_prompt_with_schema<'a>(settings: &OpenAiSettings, request: &'a Request) -> Cow<'a, str> {
    match (&request.schema, settings.schema) {
        (Some(schema), SchemaMode::JsonObject) => Cow::Owned(format!(
            "{}\n\nAnswer with one JSON object and nothing else. It has to be valid by this JSON Schema:\n\n{schema}\n",
            request.prompt
        )),
        _ => Cow::Borrowed(&request.prompt),
    }
}

fn response_format(settings: &OpenAiSettings, request: &Request) -> Option<Value> {
    let schema = request.schema.as_ref()?;
    match settings.schema {
        SchemaMode::JsonSchema => Some(json!({
            "type": "json_schema",
            "json_schema": {"name": schema_name_of_step(&request.step), "strict": strict::is_strict(schema), "schema": schema},
        })),
        SchemaMode::JsonObject => Some(json!({"type": "json_object"})),
        SchemaMode::None => None,
    }
}

/// The step's name with only the characters allowed in a schema's name.
fn schema_name_of_step(step: &str) -> String {
    let allowed = |c: char| if c.is_ascii_alphanumeric() || c == '_' || c == '-' { c } else { '_' };
    let name: String = step.chars().take(NAME_MAX).map(allowed).collect();
    if name.is_empty() { "answer".to_owned() } else { name }
}

pub(super) fn estimate_input_tokens(request: &Request) -> u64 {
    let schema = request.schema.as_ref().map_or(0, |schema| schema.to_string().len());
    let system = request.system.as_ref().map_or(0, String::len);
    estimate_tokens((request.prompt.len() + system + schema) as u64)
}

/// The limit of output tokens that keeps the ask within its cap, assuming the estimated input.
///
/// # Errors
/// Returns a fault if the cap leaves no tokens for the answer.
pub(super) fn compute_output_limit(
    settings: &OpenAiSettings,
    request: &Request,
    model: &str,
) -> Result<Option<OutputLimit>, Fault> {
    let input = estimate_input_tokens(request);
    let by_tokens = request.cap.tokens.map(|tokens| tokens.saturating_sub(input));
    let price = settings.prices.0.get(model).filter(|price| price.output > 0.0);
    let by_money = request.cap.usd.zip(price).map(|(usd, price)| {
        let left = usd - input as f64 * price.input / 1e6;
        // The cast saturates at 0 and at `u64::MAX`.
        (left / price.output * 1e6).floor() as u64
    });
    let cap = by_tokens.into_iter().chain(by_money).min();
    let limit = if by_tokens.is_some() && by_tokens == cap { AskLimit::Tokens } else { AskLimit::Usd };
    if cap == Some(0) {
        let cap = match (request.cap.tokens, request.cap.usd) {
            (Some(tokens), _) if by_tokens == Some(0) => format!("{tokens} tokens"),
            (_, usd) => format!("{} USD", usd.unwrap_or_default()),
        };
        let message =
            format!("the request is about {input} tokens; its limit of {cap} leaves nothing for an answer");
        return Err(Fault { limit: Some(limit), ..Fault::new(FaultClass::OverCap, message) });
    }
    Ok(match (cap, settings.max_output_tokens) {
        (Some(cap), Some(max)) if max < cap => Some(OutputLimit { tokens: max, cap: None }),
        (Some(tokens), _) => Some(OutputLimit { tokens, cap: Some(limit) }),
        (None, Some(tokens)) => Some(OutputLimit { tokens, cap: None }),
        (None, None) => None,
    })
}
