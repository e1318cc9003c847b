//! What the APIs have in common: a request as it is read, a message as it is said, an event as it is sent.

use serde_json::{Value, json};

use super::{chat, gemini, messages, responses, scenario::Tokens, tools::Tool};

/// One of the APIs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Api {
    /// `POST /v1/messages`
    Messages,
    /// `POST /v1/responses`
    Responses,
    /// `POST /v1/chat/completions`
    Chat,
    /// `POST /v1beta/models/MODEL:generateContent`, or `:streamGenerateContent`
    Gemini,
}

/// What a request says, of all that stands in it.
#[derive(Debug, Clone, Default)]
pub(super) struct Asked {
    /// The newest user turn, its texts in order, apart from what the client added on its own.
    pub user: String,
    /// Tool results since that turn.
    pub results: usize,
    /// The tools on offer.
    pub tools: Vec<Tool>,
    /// The tool that has to be called.
    pub forced: Option<String>,
    /// Whether all of the answer has to be JSON of a schema.
    pub constrained: bool,
    /// The model.
    pub model: String,
    /// Whether the response is to be streamed.
    pub stream: bool,
    /// Whether a stream tells its usage; asked for in Chat Completions, always so in the others.
    pub stream_usage: bool,
}

/// One message of the model.
#[derive(Debug, Clone)]
pub(super) struct Said {
    /// A number that no other message of this process has; ids are made of it.
    pub number: usize,
    /// The model.
    pub model: String,
    /// What it is made of.
    pub pieces: Vec<Piece>,
    /// Why it ends.
    pub stop: Stop,
    /// What it costs.
    pub usage: Tokens,
    /// Whether a stream tells its usage.
    pub stream_usage: bool,
}

/// A part of a message.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Piece {
    /// Text.
    Text(String),
    /// A call of a tool.
    Call(Call),
    /// What a model says that declines.
    Refusal(String),
}

/// A call of a tool.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Call {
    pub name: String,
    /// The group of the tool; only codex has them.
    pub namespace: Option<String>,
    pub input: Input,
}

/// What a tool is given.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Input {
    Object(Value),
    /// A text as it is; only codex has such tools.
    Text(String),
}

impl Input {
    /// As text: that of an object is JSON.
    pub(super) fn text(&self) -> String {
        match self {
            Input::Object(input) => input.to_string(),
            Input::Text(text) => text.clone(),
        }
    }

    /// As an object.
    pub(super) fn object(&self) -> Value {
        match self {
            Input::Object(input) => input.clone(),
            Input::Text(text) => json!({"input": text}),
        }
    }
}

/// Why a message ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stop {
    End,
    Tool,
    Refusal,
    Length,
}

/// One server-sent event.
#[derive(Debug, Clone)]
pub(super) struct Event {
    /// Its name; Chat Completions has none.
    pub name: Option<&'static str>,
    /// What it carries.
    pub data: String,
}

impl Event {
    /// An event with its name, which stands in its data, too.
    pub(super) fn named(name: &'static str, mut data: Value) -> Event {
        data["type"] = name.into();
        Event { name: Some(name), data: data.to_string() }
    }

    /// As it goes over the wire.
    pub(super) fn text(&self) -> String {
        match self.name {
            Some(name) => format!("event: {name}\ndata: {}\n\n", self.data),
            None => format!("data: {}\n\n", self.data),
        }
    }
}

impl Api {
    /// The API of a path, with or without a query.
    pub(super) fn of(path: &str) -> Option<Api> {
        match path.split('?').next()?.trim_end_matches('/') {
            "/v1/messages" => Some(Api::Messages),
            "/v1/responses" => Some(Api::Responses),
            "/v1/chat/completions" => Some(Api::Chat),
            path if path.ends_with(":generateContent") || path.ends_with(":streamGenerateContent") => {
                Some(Api::Gemini)
            }
            _ => None,
        }
    }

    /// Reads a request.
    pub(super) fn read(self, body: &Value) -> Asked {
        match self {
            Api::Messages => messages::read(body),
            Api::Responses => responses::read(body),
            Api::Chat => chat::read(body),
            Api::Gemini => gemini::read(body),
        }
    }

    /// A message as one object.
    pub(super) fn whole(self, said: &Said) -> Value {
        match self {
            Api::Messages => messages::whole(said),
            Api::Responses => responses::whole(said),
            Api::Chat => chat::whole(said),
            Api::Gemini => gemini::whole(said),
        }
    }

    /// A message as events.
    pub(super) fn events(self, said: &Said) -> Vec<Event> {
        match self {
            Api::Messages => messages::events(said),
            Api::Responses => responses::events(said),
            Api::Chat => chat::events(said),
            Api::Gemini => gemini::events(said),
        }
    }

    /// The body of a failure.
    pub(super) fn error(self, status: u16, message: Option<&str>) -> Value {
        match self {
            Api::Messages => messages::error(status, message),
            Api::Responses | Api::Chat => responses::error(status, message),
            Api::Gemini => gemini::error(status, message),
        }
    }

    /// The status and the body for a request that is too long.
    pub(super) fn overflow(self) -> (u16, Value) {
        match self {
            Api::Messages => (400, messages::overflow()),
            Api::Responses | Api::Chat => (400, responses::overflow()),
            Api::Gemini => {
                (400, gemini::error(400, Some("The input token count exceeds the maximum context length")))
            }
        }
    }

    /// The event by which a stream tells that it failed.
    pub(super) fn failed(self, kind: &str) -> Event {
        match self {
            Api::Messages => messages::failed(kind),
            Api::Responses => responses::failed(kind),
            Api::Chat => chat::failed(kind),
            Api::Gemini => gemini::failed(kind),
        }
    }
}

/// Texts in the pieces in which a model streams them: a few characters each, never a part of one.
pub(super) fn pieces(text: &str) -> Vec<String> {
    let chars: Vec<char> = text.chars().collect();
    chars.chunks(12).map(|chunk| chunk.iter().collect()).collect()
}

/// Begins of texts in which clients tell the model about its surroundings.
const ADDED: [&str; 2] = ["<system-reminder>", "<environment_context>"];
/// Begins of texts by which Claude bids the model go on: it owes the structured answer, or was cut short.
const NUDGES: [&str; 2] = ["[structured-output-enforce]", "Output token limit hit."];

/// Follows a conversation and finds its newest user turn.
#[derive(Debug, Default)]
pub(super) struct Turns {
    user: Vec<String>,
    results: usize,
    /// Whether a text begins a turn: nobody but users spoke since the last one did.
    over: bool,
}

impl Turns {
    /// A text of a user. What clients add about themselves is no turn; that they bid the model go on counts as a
    /// result.
    pub(super) fn user(&mut self, text: &str) {
        let begins = |marks: &[&str]| marks.iter().any(|mark| text.trim_start().starts_with(mark));
        if begins(&ADDED) {
            return;
        }
        if begins(&NUDGES) {
            return self.result();
        }
        if self.over {
            self.user.clear();
        }
        self.over = false;
        self.results = 0;
        self.user.push(text.to_owned());
    }

    /// A tool's result.
    pub(super) fn result(&mut self) {
        self.results += 1;
        self.over = true;
    }

    /// Something the model said or did.
    pub(super) fn model(&mut self) {
        self.over = true;
    }

    /// The newest turn and the results since.
    pub(super) fn end(self) -> (String, usize) {
        (self.user.join("\n"), self.results)
    }
}
