//! Whether a verdict holds, by counts and answers.

use cuegate_engine::{has_keyword, has_reached_max, has_signal};
use cuegate_flow::model::{Field, Signal};
use serde_json::{Value, json};

use super::compare::{Got, member, text};

/// How a missing value is recorded.
const UNDEFINED: &str = "__undefined__";

/// Whether a count has reached its maximum.
pub(super) fn counted(input: &Value, count: &str, max: &str) -> Result<Got, String> {
    let state = member(input, "state")?;
    let number = |key: &str| {
        let number = member(state, key)?.as_u64().and_then(|number| u32::try_from(number).ok());
        number.ok_or_else(|| format!("its `{key}` is no number"))
    };
    Ok(Got::Value(json!(has_reached_max(number(count)?, number(max)?))))
}

/// Whether an answer contains the keyword.
pub(super) fn keyword(input: &Value) -> Result<Got, String> {
    let state = member(input, "state")?;
    let keyword = text(state, "verdictKeyword")?;
    Ok(Got::Value(json!(answer(state).is_some_and(|(output, said)| has_keyword(
        keyword,
        output,
        &said,
        &[]
    )))))
}

/// Whether an answer contains the signal.
pub(super) fn signal(input: &Value) -> Result<Got, String> {
    let state = member(input, "state")?;
    let required = match &state["requiredFields"] {
        Value::Object(fields) => fields
            .iter()
            .map(|(name, value)| Field { name: name.as_str().into(), value: Some(value.clone()) })
            .collect(),
        Value::Array(names) => {
            let names = names.iter().filter_map(Value::as_str);
            names.map(|name| Field { name: name.into(), value: None }).collect()
        }
        _ => Vec::new(),
    };
    let signal = Signal { kind: text(state, "signalType")?.into(), marker: "json".into(), required };
    Ok(Got::Value(json!(answer(state).is_some_and(|(output, said)| has_signal(&signal, output, &said)))))
}

/// The structured answer and the text.
fn answer(state: &Value) -> Option<(Option<&Value>, String)> {
    let summary = state.get("summary").filter(|summary| summary.is_object())?;
    let output = summary.get("structuredOutput").filter(|output| **output != UNDEFINED);
    let said = summary["assistantResponses"].as_array().into_iter().flatten().filter_map(Value::as_str);
    Some((output, said.collect::<Vec<_>>().join("\n")))
}
