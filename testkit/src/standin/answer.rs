//! What a request is answered with.

use std::{
    collections::BTreeMap,
    io,
    sync::atomic::{AtomicUsize, Ordering},
    thread,
    time::{Duration, SystemTime},
};

use serde_json::{Value, json};

use super::{
    http::{Connection, Request},
    play::{End, Response},
    scenario::{Body, Scenario},
    server::{Recorded, Shared, pairs},
    tools::Tool,
    wire::{Api, Asked, Event, Piece, Said, Stop},
};

/// The status for a prompt without a reply: clients show it with its message, and none takes it for a reason to ask
/// again, as they do with 400.
const UNMATCHED: u16 = 418;

/// The number of the next message of this process. Claude asks again when a call's id stands in the history of its
/// session already, and sessions outlive stand-ins.
static NUMBER: AtomicUsize = AtomicUsize::new(1);

/// Reads the request of a connection and answers it.
pub(super) fn serve(shared: &Shared, mut connection: Connection) -> io::Result<()> {
    let Some(request) = connection.read()? else { return Ok(()) };
    let text = || Value::String(String::from_utf8_lossy(&request.body).into_owned());
    let body = match request.body.is_empty() {
        true => Value::Null,
        false => serde_json::from_slice(&request.body).unwrap_or_else(|_| text()),
    };
    let api = Api::of(&request.path).filter(|_| request.method == "POST");
    let refused = api.and_then(|api| refused(api, &request, &body));
    let mut asked = api.map(|api| api.read(&body)).unwrap_or_default();
    if api == Some(Api::Gemini) {
        asked.stream = request.path.contains(":streamGenerateContent");
        let name = request.path.rsplit('/').next().and_then(|last| last.split(':').next());
        asked.model = name.unwrap_or_default().to_owned();
    }
    let due = {
        let mut state = shared.state();
        let due = match (api, &refused) {
            (Some(_), None) => state.played.next(&shared.scenario, &asked),
            _ => None,
        };
        state.requests.push(Recorded {
            at: SystemTime::now(),
            method: request.method.clone(),
            path: request.path.clone(),
            headers: request.headers.iter().cloned().collect(),
            body,
            reply: due.as_ref().map(|(nth, _)| *nth),
            user: asked.user.clone(),
            tools: asked.tools.iter().map(Tool::full_name).collect(),
        });
        due
    };
    let Some(api) = api else { return probe(shared, &request, connection) };
    if let Some((status, message)) = refused {
        return json_body(connection, status, &api.error(status, Some(&message)));
    }
    let Some((nth, response)) = due else {
        let message = format!("the scenario has no reply (left) for the prompt {:?}", asked.user);
        return json_body(connection, UNMATCHED, &api.error(UNMATCHED, Some(&message)));
    };
    let reply = &shared.scenario.replies[nth];
    let said = Said {
        number: NUMBER.fetch_add(1, Ordering::Relaxed),
        model: reply.model.clone().unwrap_or_else(|| asked.model.clone()),
        pieces: response.pieces.clone(),
        stop: match response.end {
            End::Said(stop) => stop,
            _ => Stop::End,
        },
        usage: reply.usage.unwrap_or(shared.scenario.usage),
        stream_usage: asked.stream_usage,
    };
    respond(connection, api, &asked, response, said)
}

/// Why the real API would not take a request, whatever it asks.
fn refused(api: Api, request: &Request, body: &Value) -> Option<(u16, String)> {
    let bearer = request.header("authorization").and_then(|value| value.strip_prefix("Bearer "));
    let key = bearer
        .or_else(|| request.header("x-api-key").filter(|_| api == Api::Messages))
        .or_else(|| request.header("x-goog-api-key").filter(|_| api == Api::Gemini));
    if key.is_none_or(str::is_empty) {
        return Some((401, "the headers have no API key".to_owned()));
    }
    if let Some(coding) = request.header("content-encoding") {
        return Some((415, format!("a body of the coding `{coding}` is not read")));
    }
    let missing = |what: &str| Some((400, format!("{what}: Field required")));
    if !body.is_object() {
        return Some((400, "the body is no JSON object".to_owned()));
    }
    if api != Api::Gemini && !body["model"].is_string() {
        return missing("model");
    }
    match api {
        Api::Messages if request.header("anthropic-version").is_none() => missing("anthropic-version"),
        Api::Messages if !body["max_tokens"].is_u64() => missing("max_tokens"),
        Api::Messages | Api::Chat if !body["messages"].is_array() => missing("messages"),
        Api::Responses if !body["input"].is_array() && !body["input"].is_string() => missing("input"),
        _ => None,
    }
}

/// What clients ask beside the model: whether anybody is there, which models there are, how long a prompt is.
fn probe(shared: &Shared, request: &Request, connection: Connection) -> io::Result<()> {
    let path = request.path.split('?').next().unwrap_or_default();
    match (request.method.as_str(), path) {
        ("GET" | "HEAD", "/" | "/v1") => json_body(connection, 200, &json!({})),
        ("GET" | "HEAD", "/v1/models") => json_body(connection, 200, &models(&shared.scenario)),
        ("POST", "/v1/messages/count_tokens") => {
            json_body(connection, 200, &json!({"input_tokens": shared.scenario.usage.input}))
        }
        _ => json_body(connection, 404, &Api::Messages.error(404, None)),
    }
}

fn models(scenario: &Scenario) -> Value {
    let named = scenario.replies.iter().filter_map(|reply| reply.model.as_deref());
    let models = named.chain(["standin"]).map(|id| {
        json!({"id": id, "object": "model", "type": "model", "display_name": id, "owned_by": "standin",
            "created": 1_700_000_000, "created_at": "2023-11-14T22:13:20Z"})
    });
    json!({"object": "list", "data": models.collect::<Vec<_>>(), "has_more": false})
}

fn json_body(connection: Connection, status: u16, body: &Value) -> io::Result<()> {
    let body = body.to_string();
    connection.whole(status, &head("application/json"), body.as_bytes(), body.len())
}

fn head(content: &str) -> Vec<(String, String)> {
    pairs(&[("content-type", content), ("request-id", "req_standin"), ("x-request-id", "req_standin")])
}

/// Sends what is due.
fn respond(connection: Connection, api: Api, asked: &Asked, due: Response, mut said: Said) -> io::Result<()> {
    thread::sleep(Duration::from_millis(due.delay_ms));
    match due.end {
        End::Status { code, body, headers } => return status(connection, api, code, body, headers),
        End::Overflow if api == Api::Responses && asked.stream => {
            let mut stream = connection.stream(&head("text/event-stream"))?;
            stream.send(&api.failed("context_length_exceeded").text(), None)?;
            return stream.end();
        }
        End::Overflow => {
            let (code, body) = api.overflow();
            return json_body(connection, code, &body);
        }
        End::Hang => return connection.hang(),
        End::Drop => return connection.close(),
        _ => {}
    }
    if !matches!(due.end, End::Said(_)) && said.pieces.is_empty() {
        said.pieces.push(Piece::Text("This is the beginning of an answer that does not end.".to_owned()));
    }
    if asked.stream { streamed(connection, api, &said, &due) } else { whole(connection, api, &said, &due) }
}

fn status(
    connection: Connection,
    api: Api,
    code: u16,
    body: Body,
    headers: BTreeMap<String, String>,
) -> io::Result<()> {
    let (content, body) = match body {
        Body::Api => ("application/json", api.error(code, None).to_string()),
        Body::Message(message) => ("application/json", api.error(code, Some(&message)).to_string()),
        Body::Json(body) => ("application/json", body.to_string()),
        Body::Html(page) => ("text/html", page),
        Body::Empty => ("text/plain", String::new()),
    };
    let mut all = head(content);
    all.extend(headers);
    connection.whole(code, &all, body.as_bytes(), body.len())
}

fn whole(connection: Connection, api: Api, said: &Said, due: &Response) -> io::Result<()> {
    let body = api.whole(said).to_string();
    let head = head("application/json");
    match &due.end {
        End::FailMidStream(kind) => json_body(connection, 500, &api.error(500, Some(kind))),
        End::Garbage => {
            let garbage = &body.as_bytes()[..body.len() / 2];
            connection.whole(200, &head, garbage, garbage.len())
        }
        End::DropMidStream => connection.whole(200, &head, body.as_bytes(), body.len() / 2),
        End::HangMidStream => connection.hang(),
        _ => connection.whole(200, &head, body.as_bytes(), body.len()),
    }
}

fn streamed(connection: Connection, api: Api, said: &Said, due: &Response) -> io::Result<()> {
    let mut stream = connection.stream(&head("text/event-stream"))?;
    let events = api.events(said);
    let is_whole = matches!(due.end, End::Said(_));
    let sent = if is_whole { events.len() } else { events.len() / 2 };
    for event in &events[..sent] {
        stream.send(&event.text(), due.slow_ms)?;
    }
    match &due.end {
        End::FailMidStream(kind) => stream.send(&api.failed(kind).text(), None)?,
        End::Garbage => {
            let event = &events[sent];
            let data = event.data.chars().take(event.data.chars().count() / 2).collect();
            stream.send(&Event { name: event.name, data }.text(), None)?;
        }
        End::HangMidStream => return stream.broken().hang(),
        End::DropMidStream => return stream.broken().close(),
        _ => {}
    }
    stream.end()
}
