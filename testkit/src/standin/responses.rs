//! OpenAI Responses.

use serde_json::{Value, json};

use super::{
    tools,
    wire::{Asked, Call, Event, Input, Piece, Said, Stop, Turns, pieces},
};

/// Reads a request. Its input is a text or a list of items; a call's result is an item of its own.
pub(super) fn read(body: &Value) -> Asked {
    let mut turns = Turns::default();
    let mut tools = tools::read(&body["tools"]);
    if let Value::String(text) = &body["input"] {
        turns.user(text);
    }
    for item in body["input"].as_array().into_iter().flatten() {
        let kind = item["type"].as_str().unwrap_or("message");
        match (kind, item["role"].as_str()) {
            ("message", Some("user")) => {
                if let Value::String(text) = &item["content"] {
                    turns.user(text);
                }
                for part in item["content"].as_array().into_iter().flatten() {
                    if let Some(text) = part["text"].as_str() {
                        turns.user(text);
                    }
                }
            }
            ("message", Some("assistant")) => turns.model(),
            ("message", _) => {}
            // Codex offers its tools in the conversation to models that take them there.
            ("additional_tools", _) => tools.extend(tools::read(&item["tools"])),
            (kind, _) if kind.ends_with("_output") => turns.result(),
            _ => turns.model(),
        }
    }
    let (user, results) = turns.end();
    let choice = &body["tool_choice"];
    Asked {
        user,
        results,
        tools,
        forced: choice["name"].as_str().map(str::to_owned),
        constrained: body["text"]["format"]["type"].as_str().is_some_and(|kind| kind.starts_with("json")),
        model: body["model"].as_str().unwrap_or_default().to_owned(),
        stream: body["stream"] == true,
        stream_usage: true,
    }
}

/// A response as one object.
pub(super) fn whole(said: &Said) -> Value {
    let mut response = head(said, if said.stop == Stop::Length { "incomplete" } else { "completed" });
    if said.stop == Stop::Length {
        response["incomplete_details"] = json!({"reason": "max_output_tokens"});
    }
    let items = said.pieces.iter().enumerate();
    response["output"] = items.map(|(nth, piece)| item(said, nth, piece)).collect();
    let usage = said.usage;
    let input = usage.input + usage.cached;
    response["usage"] = json!({
        "input_tokens": input,
        "input_tokens_details": {"cached_tokens": usage.cached},
        "output_tokens": usage.output,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": input + usage.output,
    });
    response
}

/// A response as events.
pub(super) fn events(said: &Said) -> Vec<Event> {
    let mut events = Numbered::default();
    events.push("response.created", json!({"type": "", "response": head(said, "in_progress")}));
    events.push("response.in_progress", json!({"type": "", "response": head(said, "in_progress")}));
    for (nth, piece) in said.pieces.iter().enumerate() {
        streamed(&mut events, said, nth, piece);
    }
    let end = if said.stop == Stop::Length { "response.incomplete" } else { "response.completed" };
    events.push(end, json!({"type": "", "response": whole(said)}));
    events.0
}

/// Events carry their number.
#[derive(Default)]
struct Numbered(Vec<Event>);

impl Numbered {
    fn push(&mut self, name: &'static str, mut data: Value) {
        data["sequence_number"] = self.0.len().into();
        self.0.push(Event::named(name, data));
    }
}

fn streamed(events: &mut Numbered, said: &Said, nth: usize, piece: &Piece) {
    let done = item(said, nth, piece);
    let mut begun = done.clone();
    begun["status"] = "in_progress".into();
    let id = done["id"].clone();
    let (delta, end, key, text) = match piece {
        Piece::Text(text) => {
            begun["content"] = json!([]);
            ("response.output_text.delta", "response.output_text.done", "text", text.clone())
        }
        Piece::Refusal(text) => {
            begun["content"] = json!([]);
            ("response.refusal.delta", "response.refusal.done", "refusal", text.clone())
        }
        Piece::Call(call) => {
            let (delta, done, key) = match call.input {
                Input::Object(_) => (
                    "response.function_call_arguments.delta",
                    "response.function_call_arguments.done",
                    "arguments",
                ),
                Input::Text(_) => {
                    ("response.custom_tool_call_input.delta", "response.custom_tool_call_input.done", "input")
                }
            };
            begun[key] = "".into();
            (delta, done, key, call.input.text())
        }
    };
    let mut at = json!({"type": "", "item_id": id, "output_index": nth});
    let is_message = !matches!(piece, Piece::Call(_));
    events.push("response.output_item.added", json!({"type": "", "output_index": nth, "item": begun}));
    if is_message {
        at["content_index"] = 0.into();
        let mut part = done["content"][0].clone();
        part[key] = "".into();
        events.push("response.content_part.added", with(&at, "part", part));
    }
    for piece in pieces(&text) {
        events.push(delta, with(&at, "delta", piece.into()));
    }
    events.push(end, with(&at, key, text.into()));
    if is_message {
        events.push("response.content_part.done", with(&at, "part", done["content"][0].clone()));
    }
    events.push("response.output_item.done", json!({"type": "", "output_index": nth, "item": done}));
}

fn with(at: &Value, key: &str, value: Value) -> Value {
    let mut data = at.clone();
    data[key] = value;
    data
}

fn head(said: &Said, status: &str) -> Value {
    json!({
        "id": format!("resp_standin{:04}", said.number),
        "object": "response",
        "created_at": 1_700_000_000,
        "status": status,
        "error": null,
        "incomplete_details": null,
        "model": said.model,
        "output": [],
        "usage": null,
    })
}

fn item(said: &Said, nth: usize, piece: &Piece) -> Value {
    let message = |content: Value| {
        json!({"type": "message", "id": format!("msg_standin{:04}x{nth}", said.number), "status": "completed",
            "role": "assistant", "content": [content]})
    };
    match piece {
        Piece::Text(text) => message(json!({"type": "output_text", "text": text, "annotations": []})),
        Piece::Refusal(text) => message(json!({"type": "refusal", "refusal": text})),
        Piece::Call(of) => call(of, &format!("standin{:04}x{nth}", said.number)),
    }
}

fn call(call: &Call, id: &str) -> Value {
    let (kind, begin, key) = match call.input {
        Input::Object(_) => ("function_call", "fc", "arguments"),
        Input::Text(_) => ("custom_tool_call", "ctc", "input"),
    };
    let mut item = json!({"type": kind, "id": format!("{begin}_{id}"), "call_id": format!("call_{id}"),
        "status": "completed", "name": call.name, key: call.input.text()});
    if let Some(namespace) = &call.namespace {
        item["namespace"] = namespace.as_str().into();
    }
    item
}

/// The body of a failure, with the words that the API uses for its status. Chat Completions has the same.
pub(super) fn error(status: u16, message: Option<&str>) -> Value {
    let (kind, code, usual) = match status {
        401 => ("invalid_request_error", Some("invalid_api_key"), "Incorrect API key provided: standin."),
        402 => ("insufficient_quota", Some("insufficient_quota"), "You exceeded your current quota."),
        403 => ("permission_error", None, "your API key may not use this resource"),
        404 => ("invalid_request_error", Some("model_not_found"), "not found"),
        429 => ("requests", Some("rate_limit_exceeded"), "Rate limit reached. Please try again later."),
        400..=499 => ("invalid_request_error", None, "the request is not valid"),
        _ => ("server_error", None, "The server had an error while processing your request."),
    };
    json!({"error": {"message": message.unwrap_or(usual), "type": kind, "param": null, "code": code}})
}

/// What is said of a request that is too long.
pub(super) const OVERFLOW: &str =
    "Your input exceeds the context window of this model. Please adjust your input and try again.";

pub(super) fn overflow() -> Value {
    let mut body = error(400, Some(OVERFLOW));
    body["error"]["code"] = "context_length_exceeded".into();
    body
}

pub(super) fn failed(code: &str) -> Event {
    let message = if code == "context_length_exceeded" { OVERFLOW } else { "the stream failed" };
    Event::named(
        "response.failed",
        json!({"type": "", "response": {"id": "resp_standin", "object": "response", "status": "failed",
            "error": {"code": code, "message": message}, "output": [], "usage": null}}),
    )
}
