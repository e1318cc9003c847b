//! A fake service with one response, and helpers that perform an ask without a child process.

use std::{
    io::{Read as _, Write as _},
    net::{TcpListener, TcpStream},
    thread::{self, JoinHandle},
};

use serde_json::{Value, json};

use super::{OpenAiProgram, OpenAiProvider, OpenAiSettings, child, wire::OpenAiJob};
use crate::{
    Activity, Answer, AnswerReader, AskKind, Cap, Fault, Permission, PreparedAsk, ProgramEnd, Provider as _,
    Request,
};

/// The API key in tests.
pub(super) const KEY: &str = "sk-0123456789abcdef";

/// A service on this machine that answers one request with these bytes, sent piece by piece.
pub(super) struct Service {
    pub base: String,
    thread: JoinHandle<String>,
}

impl Service {
    pub fn new(pieces: &[impl AsRef<[u8]>]) -> Service {
        Service::with(pieces, false)
    }

    /// A service that keeps the connection open after its response.
    pub fn silent_after(pieces: &[impl AsRef<[u8]>]) -> Service {
        Service::with(pieces, true)
    }

    fn with(pieces: &[impl AsRef<[u8]>], hold: bool) -> Service {
        let pieces: Vec<Vec<u8>> = pieces.iter().map(|piece| piece.as_ref().to_owned()).collect();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let base = format!("http://{}/v1", listener.local_addr().unwrap());
        let thread = thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            stream.set_nodelay(true).unwrap();
            let request = request_of(&mut stream);
            for piece in pieces {
                // The client may have disconnected.
                let _ = stream.write_all(&piece);
            }
            while hold && stream.read(&mut [0]).is_ok_and(|read| read > 0) {}
            request
        });
        Service { base, thread }
    }

    /// The request that it received.
    pub fn request(self) -> String {
        self.thread.join().unwrap()
    }
}

fn request_of(stream: &mut TcpStream) -> String {
    let mut bytes = Vec::new();
    loop {
        let text = String::from_utf8_lossy(&bytes).into_owned();
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let head = head.to_lowercase();
            let length =
                head.split_once("content-length: ").map_or("0", |(_, rest)| rest.lines().next().unwrap());
            if body.len() >= length.parse().unwrap() {
                return text;
            }
        }
        let mut piece = [0; 4096];
        let read = stream.read(&mut piece).unwrap();
        if read == 0 {
            return text;
        }
        bytes.extend_from_slice(&piece[..read]);
    }
}

/// A response that ends with the connection.
pub(super) fn ok(body: &str) -> String {
    format!("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n{body}")
}

/// A response with a status and further headers, each of which ends with `\r\n`.
pub(super) fn status(status: &str, headers: &str, body: &str) -> String {
    let length = body.len();
    format!("HTTP/1.1 {status}\r\nContent-Length: {length}\r\nConnection: close\r\n{headers}\r\n{body}")
}

/// The events of these chunks.
pub(super) fn events(chunks: &[Value]) -> String {
    chunks.iter().map(|chunk| format!("data: {chunk}\n\n")).collect()
}

/// A chunk with text.
pub(super) fn says(text: &str) -> Value {
    json!({"id": "chatcmpl-7", "model": "m-2026", "choices": [{"index": 0, "delta": {"content": text}, "finish_reason": null}]})
}

/// A chunk with a finish reason.
pub(super) fn finishes(reason: &str) -> Value {
    json!({"choices": [{"index": 0, "delta": {}, "finish_reason": reason}]})
}

/// The chunk with the usage.
pub(super) fn used(input: u64, output: u64) -> Value {
    json!({"choices": [], "usage": {"prompt_tokens": input, "completion_tokens": output}})
}

pub(super) const DONE: &str = "data: [DONE]\n\n";

pub(super) fn request() -> Request {
    Request {
        id: "run/1".to_owned(),
        step: "judge".to_owned(),
        subject: None,
        persona: None,
        persona_names: Vec::new(),
        readable: Vec::new(),
        kind: AskKind::Judge,
        prompt: "Is it good?".to_owned(),
        system: None,
        schema: None,
        model: Some("m".to_owned()),
        session: None,
        permission: Permission::Plan,
        tools: None,
        tool_servers: Vec::new(),
        effort: None,
        work: ".".into(),
        timeout_ms: 60_000,
        cap: Cap::default(),
        unattended: false,
        scratch: ".".into(),
    }
}

pub(super) fn provider(settings: OpenAiSettings) -> OpenAiProvider {
    OpenAiProvider::new(settings, OpenAiProgram { exe: "/bin/cuegate".into(), args: vec!["__openai".into()] })
}

/// The job of an ask and the reader of its output.
pub(super) fn prepare(
    settings: OpenAiSettings,
    request: &Request,
) -> Result<(OpenAiJob, Box<dyn AnswerReader>), Fault> {
    let PreparedAsk::Process { launch, reader } = provider(settings).prepare(request)? else {
        panic!("a program")
    };
    Ok((serde_json::from_slice(&launch.stdin).unwrap(), reader))
}

/// The result of an ask.
pub(super) struct Asked {
    pub activities: Vec<Activity>,
    pub outcome: Result<Answer, Fault>,
    /// All output of the child.
    pub printed: String,
}

impl Asked {
    /// The outcome on one line, with `BASE` for the URL.
    pub fn describe(&self, base: &str) -> String {
        let told = match &self.outcome {
            Ok(answer) => format!("Ok: {:?}", answer.text),
            Err(fault) => {
                let resets = fault.resets_in_ms.map(|ms| format!(", again in {ms} ms")).unwrap_or_default();
                format!("{:?}{resets}: {fault}", fault.class)
            }
        };
        told.replace(base, "BASE")
    }
}

/// Performs an ask. The key is [`KEY`] if the settings name a variable.
pub(super) fn ask(settings: OpenAiSettings, request: &Request) -> Asked {
    let (job, mut reader) = prepare(settings, request).unwrap();
    let mut printed = Vec::new();
    child::perform_job(&job, |_| Some(KEY.to_owned()), &mut printed).unwrap();
    let activities = printed.split(|byte| *byte == b'\n').flat_map(|line| reader.line(line)).collect();
    let outcome = reader.end(ProgramEnd::Exit(0), b"");
    Asked { activities, outcome, printed: String::from_utf8(printed).unwrap() }
}

/// Performs an ask of a service that answers with these pieces.
pub(super) fn ask_of(pieces: &[impl AsRef<[u8]>]) -> (String, Asked) {
    let service = Service::new(pieces);
    let base = service.base.clone();
    let asked = ask(OpenAiSettings::new(&base), &request());
    (base, asked)
}
