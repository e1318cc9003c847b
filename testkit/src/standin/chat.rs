//! OpenAI Chat Completions.

use serde_json::{Value, json};

use super::{
    tools,
    wire::{Asked, Event, Piece, Said, Stop, Turns, pieces},
};

/// Reads a request.
pub(super) fn read(body: &Value) -> Asked {
    let mut turns = Turns::default();
    for message in body["messages"].as_array().into_iter().flatten() {
        match message["role"].as_str() {
            Some("assistant") => turns.model(),
            Some("tool" | "function") => turns.result(),
            Some("user") => {
                if let Value::String(text) = &message["content"] {
                    turns.user(text);
                }
                for part in message["content"].as_array().into_iter().flatten() {
                    if let Some(text) = part["text"].as_str() {
                        turns.user(text);
                    }
                }
            }
            _ => {}
        }
    }
    let (user, results) = turns.end();
    Asked {
        user,
        results,
        tools: tools::read(&body["tools"]),
        forced: body["tool_choice"]["function"]["name"].as_str().map(str::to_owned),
        constrained: body["response_format"]["type"].as_str().is_some_and(|kind| kind.starts_with("json")),
        model: body["model"].as_str().unwrap_or_default().to_owned(),
        stream: body["stream"] == true,
        stream_usage: body["stream_options"]["include_usage"] == true,
    }
}

/// A completion as one object.
pub(super) fn whole(said: &Said) -> Value {
    let (mut text, mut refusal, mut calls) = (None::<String>, None::<String>, Vec::new());
    for (nth, piece) in said.pieces.iter().enumerate() {
        match piece {
            Piece::Text(piece) => text.get_or_insert_default().push_str(piece),
            Piece::Refusal(piece) => refusal.get_or_insert_default().push_str(piece),
            Piece::Call(of) => calls.push(call(said, nth, &of.name, &of.input.object().to_string())),
        }
    }
    let mut message = json!({"role": "assistant", "content": text, "refusal": refusal});
    if !calls.is_empty() {
        message["tool_calls"] = calls.into();
    }
    let mut completion = head(said, "chat.completion");
    completion["choices"] = json!([{"index": 0, "message": message, "finish_reason": finish(said.stop),
        "logprobs": null}]);
    completion["usage"] = usage(said);
    completion
}

/// A completion as chunks, with its usage as the last where it was asked for.
pub(super) fn events(said: &Said) -> Vec<Event> {
    let chunk = |choices: Value, usage: Value| {
        let mut chunk = head(said, "chat.completion.chunk");
        chunk["choices"] = choices;
        if said.stream_usage {
            chunk["usage"] = usage;
        }
        Event { name: None, data: chunk.to_string() }
    };
    let delta = |delta: Value| {
        chunk(json!([{"index": 0, "delta": delta, "finish_reason": null, "logprobs": null}]), Value::Null)
    };
    let mut events = vec![delta(json!({"role": "assistant", "content": "", "refusal": null}))];
    let mut calls = 0;
    for (nth, piece) in said.pieces.iter().enumerate() {
        match piece {
            Piece::Text(text) => {
                events.extend(pieces(text).into_iter().map(|text| delta(json!({"content": text}))))
            }
            Piece::Refusal(text) => {
                events.extend(pieces(text).into_iter().map(|text| delta(json!({"refusal": text}))));
            }
            Piece::Call(of) => {
                let mut begun = call(said, nth, &of.name, "");
                begun["index"] = calls.into();
                events.push(delta(json!({"tool_calls": [begun]})));
                for part in pieces(&of.input.object().to_string()) {
                    let part = json!({"index": calls, "function": {"arguments": part}});
                    events.push(delta(json!({"tool_calls": [part]})));
                }
                calls += 1;
            }
        }
    }
    let end = json!([{"index": 0, "delta": {}, "finish_reason": finish(said.stop), "logprobs": null}]);
    events.push(chunk(end, Value::Null));
    if said.stream_usage {
        events.push(chunk(json!([]), usage(said)));
    }
    events.push(Event { name: None, data: "[DONE]".to_owned() });
    events
}

fn head(said: &Said, object: &str) -> Value {
    json!({"id": format!("chatcmpl-standin{:04}", said.number), "object": object, "created": 1_700_000_000,
        "model": said.model})
}

fn usage(said: &Said) -> Value {
    let input = said.usage.input + said.usage.cached;
    json!({"prompt_tokens": input, "completion_tokens": said.usage.output,
        "total_tokens": input + said.usage.output, "prompt_tokens_details": {"cached_tokens": said.usage.cached}})
}

fn call(said: &Said, nth: usize, name: &str, arguments: &str) -> Value {
    json!({"id": format!("call_standin{:04}x{nth}", said.number), "type": "function",
        "function": {"name": name, "arguments": arguments}})
}

fn finish(stop: Stop) -> &'static str {
    match stop {
        Stop::End | Stop::Refusal => "stop",
        Stop::Tool => "tool_calls",
        Stop::Length => "length",
    }
}

pub(super) fn failed(kind: &str) -> Event {
    let error = json!({"error": {"message": "the stream failed", "type": kind, "param": null, "code": kind}});
    Event { name: None, data: error.to_string() }
}
