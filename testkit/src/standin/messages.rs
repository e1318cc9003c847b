//! Anthropic Messages.

use serde_json::{Value, json};

use super::{
    tools,
    wire::{Asked, Event, Piece, Said, Stop, Turns, pieces},
};

/// Reads a request. Claude keeps results and texts in messages of the user, also both in one.
pub(super) fn read(body: &Value) -> Asked {
    let mut turns = Turns::default();
    for message in body["messages"].as_array().into_iter().flatten() {
        match (message["role"].as_str(), &message["content"]) {
            (Some("assistant"), _) => turns.model(),
            (Some("user"), Value::String(text)) => turns.user(text),
            (Some("user"), content) => {
                for block in content.as_array().into_iter().flatten() {
                    match block["type"].as_str() {
                        Some("tool_result") => turns.result(),
                        Some("text") => turns.user(block["text"].as_str().unwrap_or_default()),
                        _ => {}
                    }
                }
            }
            _ => {}
        }
    }
    let (user, results) = turns.end();
    let choice = &body["tool_choice"];
    Asked {
        user,
        results,
        tools: tools::read(&body["tools"]),
        forced: choice["name"].as_str().filter(|_| choice["type"] == "tool").map(str::to_owned),
        constrained: body["output_config"]["format"].is_object() || body["output_format"].is_object(),
        model: body["model"].as_str().unwrap_or_default().to_owned(),
        stream: body["stream"] == true,
        stream_usage: true,
    }
}

/// A message as one object.
pub(super) fn whole(said: &Said) -> Value {
    let mut message = head(said);
    let content = said.pieces.iter().enumerate();
    message["content"] = content.filter_map(|(nth, piece)| block(said, nth, piece)).collect();
    message["stop_reason"] = stop(said.stop).into();
    message["usage"]["output_tokens"] = said.usage.output.into();
    message
}

/// A message as events.
pub(super) fn events(said: &Said) -> Vec<Event> {
    let mut events = vec![
        Event::named("message_start", json!({"type": "", "message": head(said)})),
        Event::named("ping", json!({"type": ""})),
    ];
    let blocks = said.pieces.iter().enumerate();
    let blocks = blocks.filter_map(|(nth, piece)| Some((piece, block(said, nth, piece)?)));
    for (index, (piece, mut block)) in blocks.enumerate() {
        let (kind, key, text) = match piece {
            Piece::Call(call) => ("input_json_delta", "partial_json", call.input.object().to_string()),
            Piece::Text(text) | Piece::Refusal(text) => ("text_delta", "text", text.clone()),
        };
        if block["type"] == "tool_use" {
            block["input"] = json!({});
        } else {
            block["text"] = "".into();
        }
        let start = json!({"type": "", "index": index, "content_block": block});
        events.push(Event::named("content_block_start", start));
        for piece in pieces(&text) {
            let delta = json!({"type": "", "index": index, "delta": {"type": kind, key: piece}});
            events.push(Event::named("content_block_delta", delta));
        }
        events.push(Event::named("content_block_stop", json!({"type": "", "index": index})));
    }
    let end = json!({"type": "", "delta": {"stop_reason": stop(said.stop), "stop_sequence": null},
        "usage": {"output_tokens": said.usage.output}});
    events.push(Event::named("message_delta", end));
    events.push(Event::named("message_stop", json!({"type": ""})));
    events
}

fn head(said: &Said) -> Value {
    json!({
        "id": format!("msg_standin{:04}", said.number),
        "type": "message",
        "role": "assistant",
        "model": said.model,
        "content": [],
        "stop_reason": null,
        "stop_sequence": null,
        "usage": {
            "input_tokens": said.usage.input,
            "cache_creation_input_tokens": 0,
            "cache_read_input_tokens": said.usage.cached,
            "output_tokens": 1,
        },
    })
}

/// A refusal has no words in this API: its reason is all.
fn block(said: &Said, nth: usize, piece: &Piece) -> Option<Value> {
    match piece {
        Piece::Text(text) => Some(json!({"type": "text", "text": text})),
        Piece::Call(call) => {
            let id = format!("toolu_standin{:04}x{nth}", said.number);
            Some(json!({"type": "tool_use", "id": id, "name": call.name, "input": call.input.object()}))
        }
        Piece::Refusal(_) => None,
    }
}

fn stop(stop: Stop) -> &'static str {
    match stop {
        Stop::End => "end_turn",
        Stop::Tool => "tool_use",
        Stop::Refusal => "refusal",
        Stop::Length => "max_tokens",
    }
}

/// The body of a failure, with the words that the API uses for its status.
pub(super) fn error(status: u16, message: Option<&str>) -> Value {
    let (kind, usual) = match status {
        401 => ("authentication_error", "invalid x-api-key"),
        402 => ("billing_error", "Your credit balance is too low to access the Anthropic API."),
        403 => ("permission_error", "your API key may not use this resource"),
        404 => ("not_found_error", "not found"),
        413 => ("request_too_large", "Request exceeds the maximum size"),
        429 => (
            "rate_limit_error",
            "This request would exceed your account's rate limit. Please try again later.",
        ),
        504 => ("timeout_error", "the request took too long"),
        529 => ("overloaded_error", "Overloaded"),
        400..=499 => ("invalid_request_error", "the request is not valid"),
        _ => ("api_error", "Internal server error"),
    };
    json!({"type": "error", "error": {"type": kind, "message": message.unwrap_or(usual)},
        "request_id": "req_standin"})
}

pub(super) fn overflow() -> Value {
    error(400, Some("prompt is too long: 1000001 tokens > 1000000 maximum"))
}

pub(super) fn failed(kind: &str) -> Event {
    Event::named("error", json!({"type": "", "error": {"type": kind, "message": "the stream failed"}}))
}
