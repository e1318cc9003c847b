//! The child process of an ask: reads a job, sends the request, and prints the answer as it arrives.

use std::{
    io::{self, BufRead, BufReader, Read, Write},
    process::ExitCode,
    time::Duration,
};

use jiff::Timestamp;
use serde_json::Value;
use ureq::{
    Body,
    http::{HeaderMap, Response, Uri},
};

use super::{
    chunk::Chunks,
    endpoint, http,
    http::Patience,
    reset::resets_in_ms,
    sse::{Events, SseError},
    wire::{Job, Line, Trouble, What},
};
use crate::redact::Redactor;

/// The maximum number of bytes read of an error response.
const ERROR_MAX: u64 = 64 << 10;
/// The maximum size of an answer without streaming, in bytes.
const DOCUMENT_MAX: u64 = 64 << 20;
/// The maximum number of characters quoted from invalid output.
const QUOTE_MAX: usize = 300;

/// The body of the hidden subcommand that [`super::OpenAiProgram`] names.
///
/// Reads a job from standard input, sends the request and prints the answer, one JSON value per line. Exits with 2 if
/// it cannot read the job and with 1 if it cannot write, after one line on standard error. An ask that fails exits
/// with 0; its last line is the fault.
pub fn openai_main() -> ExitCode {
    let mut text = Vec::new();
    let read = io::stdin().lock().read_to_end(&mut text);
    let job = match read.and_then(|_| Ok(serde_json::from_slice::<Job>(&text)?)) {
        Ok(job) => job,
        Err(error) => {
            writeln!(io::stderr(), "failed to read the job: {error}").ok();
            return ExitCode::from(2);
        }
    };
    match perform(&job, endpoint::key, &mut io::stdout().lock()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            writeln!(io::stderr(), "failed to report the answer: {error}").ok();
            ExitCode::FAILURE
        }
    }
}

/// Why the child stops early.
enum Stop {
    /// The ask failed.
    Trouble(Trouble),
    /// The reader of standard output is gone.
    Deaf(io::Error),
}

impl From<Trouble> for Stop {
    fn from(trouble: Trouble) -> Stop {
        Stop::Trouble(trouble)
    }
}

/// Performs a job. `key_in` returns the key in an environment variable.
pub(super) fn perform(
    job: &Job,
    key_in: impl Fn(&str) -> Option<String>,
    out: &mut dyn Write,
) -> io::Result<()> {
    let key = match &job.key_env {
        None => None,
        Some(name) => match key_in(name) {
            Some(key) => Some(key),
            None => return say(out, &Line::Failed(Trouble::new(What::NoKey, name))),
        },
    };
    let mut chunks = Chunks::new(Redactor::new(key.clone()));
    match ask(job, key.as_deref(), &mut chunks, out) {
        Ok(()) => Ok(()),
        Err(Stop::Deaf(error)) => Err(error),
        Err(Stop::Trouble(mut trouble)) => {
            trouble.said = chunks.redactor().clean(&trouble.said);
            say(out, &Line::Failed(trouble))
        }
    }
}

fn ask(job: &Job, key: Option<&str>, chunks: &mut Chunks, out: &mut dyn Write) -> Result<(), Stop> {
    let response = send(job, key)?;
    if !response.status().is_success() {
        return Err(refusal(response).into());
    }
    let mut stream = BufReader::new(response.into_body().into_reader());
    match first_byte(&mut stream)? {
        None => Err(Trouble::new(What::BrokeOff, "the response is empty").into()),
        // An answer without streaming, or an error.
        Some(b'{') => document(stream, chunks, out),
        Some(b'<') => {
            let page = quote(stream.buffer(), chunks);
            Err(Trouble::new(What::Garbled, format!("it is an HTML page: `{page}`")).into())
        }
        Some(_) => events(stream, chunks, out),
    }
}

fn send(job: &Job, key: Option<&str>) -> Result<Response<Body>, Trouble> {
    let unsendable = |error: &dyn std::fmt::Display| Trouble::new(What::Unsendable, error.to_string());
    let uri: Uri = job.url.parse().map_err(|error| unsendable(&error))?;
    let patience = Patience {
        connect: Duration::from_millis(job.connect_timeout_ms),
        idle: Duration::from_millis(job.idle_timeout_ms),
    };
    let agent = http::agent(&uri, patience);
    let proxied = agent.config().proxy().is_some_and(|proxy| !proxy.is_no_proxy(&uri));
    let request = agent.post(uri).content_type("application/json");
    let request = request.header("Accept", "text/event-stream, application/json");
    let request = http::with_headers(request, &job.headers, key, job.key_header.as_deref());
    request.send(job.body.to_string()).map_err(|error| http::trouble(error, proxied))
}

/// The trouble of a response with an error status.
fn refusal(response: Response<Body>) -> Trouble {
    let header = |name: &str| value(response.headers(), name);
    let resets_in_ms = resets_in_ms(header, Timestamp::now());
    let status = response.status();
    let location = header("location").filter(|_| status.is_redirection()).map(str::to_owned);
    let said = location.unwrap_or_else(|| {
        let mut bytes = Vec::new();
        // A partially read body is still useful.
        response.into_body().into_reader().take(ERROR_MAX).read_to_end(&mut bytes).ok();
        String::from_utf8_lossy(&bytes).into_owned()
    });
    Trouble { what: What::Status(status.as_u16()), said, resets_in_ms }
}

fn value<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    headers.get(name)?.to_str().ok()
}

/// The first byte after white space and a byte order mark; it stays in the stream.
fn first_byte(stream: &mut impl BufRead) -> Result<Option<u8>, Trouble> {
    loop {
        let bytes = stream.fill_buf().map_err(broken)?;
        let blank =
            bytes.iter().take_while(|byte| byte.is_ascii_whitespace() || b"\xEF\xBB\xBF".contains(byte));
        let blank = blank.count();
        match bytes.get(blank).copied() {
            None if bytes.is_empty() => return Ok(None),
            first => {
                stream.consume(blank);
                if first.is_some() {
                    return Ok(first);
                }
            }
        }
    }
}

/// Reads an answer without streaming.
fn document(stream: impl Read, chunks: &mut Chunks, out: &mut dyn Write) -> Result<(), Stop> {
    let mut bytes = Vec::new();
    stream.take(DOCUMENT_MAX).read_to_end(&mut bytes).map_err(broken)?;
    let value: Value = serde_json::from_slice(&bytes).map_err(|error| {
        let what = if error.is_eof() { What::BrokeOff } else { What::Garbled };
        Trouble::new(what, format!("{error} in `{}`", quote(&bytes, chunks)))
    })?;
    tell(chunks.read(None, &value)?, out)?;
    finish(chunks, out)
}

/// Reads a streamed answer.
fn events(stream: BufReader<impl Read>, chunks: &mut Chunks, out: &mut dyn Write) -> Result<(), Stop> {
    let beginning = quote(stream.buffer(), chunks);
    let mut events = Events::new(stream);
    let mut any = false;
    loop {
        let event = events.next().map_err(|error| match error {
            SseError::Io(error) => broken(error),
            SseError::TooLong => Trouble::new(What::Garbled, error.to_string()),
        })?;
        let Some(event) = event else {
            return Err(match any {
                true => Trouble::new(What::BrokeOff, "the stream ended before `[DONE]`"),
                false => Trouble::new(What::Garbled, format!("no event in `{beginning}`")),
            }
            .into());
        };
        any = true;
        if event.data.trim_ascii() == b"[DONE]" {
            return finish(chunks, out);
        }
        let chunk: Value = serde_json::from_slice(&event.data).map_err(|error| {
            Trouble::new(What::Garbled, format!("{error} in `{}`", quote(&event.data, chunks)))
        })?;
        tell(chunks.read(event.name.as_deref(), &chunk)?, out)?;
    }
}

fn finish(chunks: &mut Chunks, out: &mut dyn Write) -> Result<(), Stop> {
    let mut lines = Vec::new();
    chunks.rest(&mut lines);
    lines.push(Line::Done);
    tell(lines, out)
}

/// The trouble of an error while reading the response.
fn broken(error: io::Error) -> Trouble {
    http::trouble(ureq::Error::from(error), false)
}

/// The beginning of invalid output. The key is redacted before truncation, which could cut it in half.
fn quote(bytes: &[u8], chunks: &Chunks) -> String {
    let text = chunks.redactor().clean(&String::from_utf8_lossy(bytes));
    let cut: String = text.chars().take(QUOTE_MAX).collect();
    if cut.len() < text.len() { cut + "…" } else { cut }
}

fn tell(lines: Vec<Line>, out: &mut dyn Write) -> Result<(), Stop> {
    lines.iter().try_for_each(|line| say(out, line)).map_err(Stop::Deaf)
}

fn say(out: &mut dyn Write, line: &Line) -> io::Result<()> {
    let mut text = serde_json::to_vec(line)?;
    text.push(b'\n');
    out.write_all(&text)?;
    out.flush()
}

#[cfg(test)]
mod tests;
