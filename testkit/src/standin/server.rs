//! The server: one thread that accepts, one for each connection.

use std::{
    collections::{BTreeMap, HashMap},
    io,
    net::{Shutdown, SocketAddr, TcpListener, TcpStream},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    thread::{self, JoinHandle},
    time::{Duration, SystemTime},
};

use serde_json::{Value, json};

use super::{
    http::{Connection, Request},
    play::{End, Played, Response},
    scenario::{Body, Scenario},
    tools::Tool,
    wire::{Api, Asked, Event, Piece, Said, Stop},
};

/// The key that clients are given. Any key is taken, none is refused.
const KEY: &str = "standin";

/// A model API on this machine. It ends, with every connection, when it is dropped.
pub struct Standin {
    address: SocketAddr,
    shared: Arc<Shared>,
    accepting: Option<JoinHandle<()>>,
}

/// A request as a client sent it.
#[derive(Debug, Clone)]
pub struct Recorded {
    /// When it was read.
    pub at: SystemTime,
    /// The method.
    pub method: String,
    /// The path, with its query.
    pub path: String,
    /// The headers, their names in lower case.
    pub headers: BTreeMap<String, String>,
    /// The body; a text when it was not JSON, null when there was none.
    pub body: Value,
    /// Which reply of the scenario answered, counted from 0; none for probes and for what no reply fits.
    pub reply: Option<usize>,
    /// The newest user turn as it was found, empty when the request has none.
    pub user: String,
    /// The names of the tools on offer, after that of their namespace where they have one: `functions.exec`.
    pub tools: Vec<String>,
}

struct Shared {
    scenario: Scenario,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    played: Played,
    requests: Vec<Recorded>,
    /// Connections by their number, to end those that hang.
    open: HashMap<usize, TcpStream>,
    connections: usize,
    ended: bool,
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Recorded {
    /// The model that is asked for.
    pub fn model(&self) -> &str {
        self.body["model"].as_str().unwrap_or_default()
    }
}

impl Standin {
    /// Starts one on a free port of 127.0.0.1.
    ///
    /// # Panics
    /// When no port can be listened on.
    pub fn start(scenario: Scenario) -> Standin {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port of the loopback can be listened on");
        let address = listener.local_addr().expect("a listener has an address");
        let shared = Arc::new(Shared { scenario, state: Mutex::default() });
        let accepting = thread::spawn({
            let shared = Arc::clone(&shared);
            move || accept(&listener, &shared)
        });
        Standin { address, shared, accepting: Some(accepting) }
    }

    /// Where it listens, without a path.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// What clients of OpenAI's APIs take as their base.
    pub fn openai_base(&self) -> String {
        format!("{}/v1", self.url())
    }

    /// Every request so far, in the order in which they were read.
    pub fn requests(&self) -> Vec<Recorded> {
        self.shared.state().requests.clone()
    }

    /// The requests that some reply answered.
    pub fn answered(&self) -> Vec<Recorded> {
        self.requests().into_iter().filter(|request| request.reply.is_some()).collect()
    }

    /// The user turns of requests for which there was no reply.
    pub fn unmatched(&self) -> Vec<String> {
        let requests = self.requests().into_iter();
        let asked = requests.filter(|request| request.reply.is_none() && !request.user.is_empty());
        asked.map(|request| request.user).collect()
    }

    /// The environment by which Claude talks to this and to nobody else, and does not retry.
    pub fn claude_env(&self) -> Vec<(String, String)> {
        env(&[
            ("ANTHROPIC_BASE_URL", &self.url()),
            ("ANTHROPIC_API_KEY", KEY),
            ("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1"),
            ("CLAUDE_CODE_MAX_RETRIES", "0"),
            ("DISABLE_AUTOUPDATER", "1"),
            ("DISABLE_TELEMETRY", "1"),
        ])
    }

    /// The environment for codex, beside [`Standin::codex_args`].
    pub fn codex_env(&self) -> Vec<(String, String)> {
        env(&[("OPENAI_API_KEY", KEY)])
    }

    /// The arguments by which codex talks to this and to nobody else, and does not retry. They stand after `exec` (or
    /// `exec resume`).
    pub fn codex_args(&self) -> Vec<String> {
        let provider = format!(
            "model_providers.standin={{name=\"standin\",base_url=\"{}\",env_key=\"OPENAI_API_KEY\",\
             wire_api=\"responses\",request_max_retries=0,stream_max_retries=0,supports_websockets=false}}",
            self.openai_base()
        );
        let words = [
            "-c",
            "model_provider=standin",
            "-c",
            &provider,
            "--disable",
            "plugins",
            "--disable",
            "apps",
            "-c",
            "analytics.enabled=false",
            "-c",
            "check_for_update_on_startup=false",
        ];
        words.map(str::to_owned).to_vec()
    }
}

impl Drop for Standin {
    fn drop(&mut self) {
        {
            let mut state = self.shared.state();
            state.ended = true;
            for stream in state.open.values() {
                let _ = stream.shutdown(Shutdown::Both);
            }
        }
        // Wakes the thread that accepts.
        let _ = TcpStream::connect(self.address);
        if let Some(accepting) = self.accepting.take() {
            let _ = accepting.join();
        }
    }
}

fn env(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
    pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
}

fn accept(listener: &TcpListener, shared: &Arc<Shared>) {
    for stream in listener.incoming() {
        let mut state = shared.state();
        if state.ended {
            return;
        }
        let Ok(stream) = stream else { continue };
        let Ok(twin) = stream.try_clone() else { continue };
        state.connections += 1;
        let number = state.connections;
        state.open.insert(number, twin);
        drop(state);
        let shared = Arc::clone(shared);
        thread::spawn(move || {
            // A client that goes before it has all is nobody's fault here.
            let _ = serve(&shared, Connection::new(stream));
            shared.state().open.remove(&number);
        });
    }
}

fn serve(shared: &Shared, mut connection: Connection) -> io::Result<()> {
    let Some(request) = connection.read()? else { return Ok(()) };
    let text = || Value::String(String::from_utf8_lossy(&request.body).into_owned());
    let body = match request.body.is_empty() {
        true => Value::Null,
        false => serde_json::from_slice(&request.body).unwrap_or_else(|_| text()),
    };
    let api = Api::of(&request.path).filter(|_| request.method == "POST");
    let refused = api.and_then(|api| refused(api, &request, &body));
    let asked = api.map(|api| api.read(&body)).unwrap_or_default();
    let (number, due) = {
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
        (state.requests.len(), due)
    };
    let Some(api) = api else { return probe(shared, &request, connection) };
    if let Some((status, message)) = refused {
        return json_body(connection, status, &api.error(status, Some(&message)));
    }
    let Some((nth, response)) = due else {
        let message = format!("the scenario has no reply (left) for the prompt {:?}", asked.user);
        return json_body(connection, 400, &api.error(400, Some(&message)));
    };
    let reply = &shared.scenario.replies[nth];
    let said = Said {
        number,
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
    let key = bearer.or_else(|| request.header("x-api-key").filter(|_| api == Api::Messages));
    if key.is_none_or(str::is_empty) {
        return Some((401, "there is no API key in the headers".to_owned()));
    }
    if let Some(coding) = request.header("content-encoding") {
        return Some((415, format!("a body of the coding `{coding}` is not read")));
    }
    let missing = |what: &str| Some((400, format!("{what}: Field required")));
    if !body.is_object() {
        return Some((400, "the body is no JSON object".to_owned()));
    }
    if !body["model"].is_string() {
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
    env(&[("content-type", content), ("request-id", "req_standin"), ("x-request-id", "req_standin")])
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
