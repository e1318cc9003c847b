//! Google's `generateContent`.

use serde_json::{Value, json};

use super::{
    tools,
    wire::{Asked, Event, Piece, Said, Stop, Turns, pieces},
};

/// Reads a request. Its model and whether it streams are in its path.
pub(super) fn read(body: &Value) -> Asked {
    let mut turns = Turns::default();
    for message in body["contents"].as_array().into_iter().flatten() {
        let is_model = message["role"] == "model";
        for part in message["parts"].as_array().into_iter().flatten() {
            if part["functionResponse"].is_object() {
                turns.result();
            } else if is_model {
                turns.model();
            } else if let Some(text) = part["text"].as_str() {
                turns.user(text);
            }
        }
    }
    let (user, results) = turns.end();
    let declared = body["tools"].as_array().into_iter().flatten();
    let declared = declared.filter_map(|tools| tools["functionDeclarations"].as_array()).flatten();
    let functions: Vec<Value> = declared
        .map(|tool| {
            let schemas = [&tool["parametersJsonSchema"], &tool["parameters"]];
            let schema = schemas.into_iter().find(|schema| schema.is_object()).unwrap_or(&Value::Null);
            json!({ "name": tool["name"], "parameters": schema })
        })
        .collect();
    Asked {
        user,
        results,
        tools: tools::read(&functions.into()),
        constrained: body["generationConfig"]["responseMimeType"] == "application/json",
        stream_usage: true,
        ..Asked::default()
    }
}

/// A message as one object.
pub(super) fn whole(said: &Said) -> Value {
    let parts: Vec<Value> = said
        .pieces
        .iter()
        .map(|piece| match piece {
            Piece::Text(text) | Piece::Refusal(text) => json!({ "text": text }),
            Piece::Call(call) => {
                json!({ "functionCall": { "name": call.name, "args": call.input.object() } })
            }
        })
        .collect();
    chunk(said, &parts, Some(said.stop))
}

/// A message as events.
pub(super) fn events(said: &Said) -> Vec<Event> {
    let mut events = Vec::new();
    for piece in &said.pieces {
        match piece {
            Piece::Text(text) | Piece::Refusal(text) => {
                events.extend(
                    pieces(text).into_iter().map(|text| chunk(said, &[json!({ "text": text })], None)),
                );
            }
            Piece::Call(call) => {
                let part = json!({ "functionCall": { "name": call.name, "args": call.input.object() } });
                events.push(chunk(said, &[part], None));
            }
        }
    }
    events.push(chunk(said, &[json!({ "text": "" })], Some(said.stop)));
    events.into_iter().map(|data| Event { name: None, data: data.to_string() }).collect()
}

fn chunk(said: &Said, parts: &[Value], stop: Option<Stop>) -> Value {
    let input = said.usage.input + said.usage.cached;
    let mut candidate = json!({ "index": 0, "content": { "role": "model", "parts": parts } });
    if let Some(stop) = stop {
        candidate["finishReason"] = match stop {
            Stop::Length => "MAX_TOKENS".into(),
            Stop::Refusal => "SAFETY".into(),
            Stop::End | Stop::Tool => "STOP".into(),
        };
    }
    json!({
        "candidates": [candidate],
        "usageMetadata": {
            "promptTokenCount": input, "candidatesTokenCount": said.usage.output,
            "cachedContentTokenCount": said.usage.cached, "totalTokenCount": input + said.usage.output,
        },
        "modelVersion": "standin",
    })
}

/// The body of a failure.
pub(super) fn error(status: u16, message: Option<&str>) -> Value {
    let name = match status {
        401 => "UNAUTHENTICATED",
        403 => "PERMISSION_DENIED",
        404 => "NOT_FOUND",
        429 => "RESOURCE_EXHAUSTED",
        500.. => "UNAVAILABLE",
        _ => "INVALID_ARGUMENT",
    };
    json!({ "error": { "code": status, "message": message.unwrap_or("as scripted"), "status": name } })
}

/// The event by which a stream tells that it failed.
pub(super) fn failed(kind: &str) -> Event {
    Event { name: None, data: error(500, Some(kind)).to_string() }
}
