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
    chunk::ChunkParser,
    endpoint, http,
    http::ClientTimeouts,
    reset::resets_in_ms,
    sse::{SseError, SseReader},
    wire::{OpenAiJob, OpenAiLine, RequestTrouble, TroubleKind},
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
    let job = match read.and_then(|_| Ok(serde_json::from_slice::<OpenAiJob>(&text)?)) {
        Ok(job) => job,
        Err(error) => {
            writeln!(io::stderr(), "failed to read the job: {error}").ok();
            return ExitCode::from(2);
        }
    };
    match perform_job(&job, endpoint::read_key_variable, &mut io::stdout().lock()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            writeln!(io::stderr(), "failed to report the answer: {error}").ok();
            ExitCode::FAILURE
        }
    }
}

/// Why the child stops early.
enum EarlyStop {
    /// The ask failed.
    Trouble(RequestTrouble),
    /// The reader of standard output is gone.
    Deaf(io::Error),
}

impl From<RequestTrouble> for EarlyStop {
    fn from(trouble: RequestTrouble) -> EarlyStop {
        EarlyStop::Trouble(trouble)
    }
}

/// Performs a job. `key_in` returns the key in an environment variable.
pub(super) fn perform_job(
    job: &OpenAiJob,
    key_in: impl Fn(&str) -> Option<String>,
    out: &mut dyn Write,
) -> io::Result<()> {
    let key = match &job.key_env {
        None => None,
        Some(name) => match key_in(name) {
            Some(key) => Some(key),
            None => {
                return write_line(out, &OpenAiLine::Failed(RequestTrouble::new(TroubleKind::NoKey, name)));
            }
        },
    };
    let mut chunks = ChunkParser::new(Redactor::new(key.clone()));
    match ask_service(job, key.as_deref(), &mut chunks, out) {
        Ok(()) => Ok(()),
        Err(EarlyStop::Deaf(error)) => Err(error),
        Err(EarlyStop::Trouble(mut trouble)) => {
            trouble.said = chunks.redactor().clean(&trouble.said);
            write_line(out, &OpenAiLine::Failed(trouble))
        }
    }
}

fn ask_service(
    job: &OpenAiJob,
    key: Option<&str>,
    chunks: &mut ChunkParser,
    out: &mut dyn Write,
) -> Result<(), EarlyStop> {
    let response = send_request(job, key)?;
    if !response.status().is_success() {
        return Err(trouble_of_response(response).into());
    }
    let mut stream = BufReader::new(response.into_body().into_reader());
    match first_byte(&mut stream)? {
        None => Err(RequestTrouble::new(TroubleKind::BrokeOff, "the response is empty").into()),
        // An answer without streaming, or an error.
        Some(b'{') => read_whole_answer(stream, chunks, out),
        Some(b'<') => {
            let page = quote_redacted_output(stream.buffer(), chunks);
            Err(RequestTrouble::new(TroubleKind::Garbled, format!("it is an HTML page: `{page}`")).into())
        }
        Some(_) => read_streamed_answer(stream, chunks, out),
    }
}

fn send_request(job: &OpenAiJob, key: Option<&str>) -> Result<Response<Body>, RequestTrouble> {
    let unsendable =
        |error: &dyn std::fmt::Display| RequestTrouble::new(TroubleKind::Unsendable, error.to_string());
    let uri: Uri = job.url.parse().map_err(|error| unsendable(&error))?;
    let patience = ClientTimeouts {
        connect: Duration::from_millis(job.connect_timeout_ms),
        idle: Duration::from_millis(job.idle_timeout_ms),
    };
    let agent = http::build_http_client(&uri, patience);
    let proxied = agent.config().proxy().is_some_and(|proxy| !proxy.is_no_proxy(&uri));
    let request = agent.post(uri).content_type("application/json");
    let request = request.header("Accept", "text/event-stream, application/json");
    let request = http::with_headers(request, &job.headers, key, job.key_header.as_deref());
    request.send(job.body.to_string()).map_err(|error| http::trouble_of_client_error(error, proxied))
}

/// The trouble of a response with an error status.
fn trouble_of_response(response: Response<Body>) -> RequestTrouble {
    let header = |name: &str| read_header(response.headers(), name);
    let resets_in_ms = resets_in_ms(header, Timestamp::now());
    let status = response.status();
    let location = header("location").filter(|_| status.is_redirection()).map(str::to_owned);
    let said = location.unwrap_or_else(|| {
        let mut bytes = Vec::new();
        // A partially read body is still useful.
        response.into_body().into_reader().take(ERROR_MAX).read_to_end(&mut bytes).ok();
        String::from_utf8_lossy(&bytes).into_owned()
    });
    RequestTrouble { what: TroubleKind::Status(status.as_u16()), said, resets_in_ms }
}

fn read_header<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    headers.get(name)?.to_str().ok()
}

/// The first byte after white space and a byte order mark; it stays in the stream.
fn first_byte(stream: &mut impl BufRead) -> Result<Option<u8>, RequestTrouble> {
    loop {
        let bytes = stream.fill_buf().map_err(trouble_of_read_error)?;
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
fn read_whole_answer(
    stream: impl Read,
    chunks: &mut ChunkParser,
    out: &mut dyn Write,
) -> Result<(), EarlyStop> {
    let mut bytes = Vec::new();
    stream.take(DOCUMENT_MAX).read_to_end(&mut bytes).map_err(trouble_of_read_error)?;
    let value: Value = serde_json::from_slice(&bytes).map_err(|error| {
        let what = if error.is_eof() { TroubleKind::BrokeOff } else { TroubleKind::Garbled };
        RequestTrouble::new(what, format!("{error} in `{}`", quote_redacted_output(&bytes, chunks)))
    })?;
    write_lines(chunks.read(None, &value)?, out)?;
    write_last_lines(chunks, out)
}

fn read_streamed_answer(
    stream: BufReader<impl Read>,
    chunks: &mut ChunkParser,
    out: &mut dyn Write,
) -> Result<(), EarlyStop> {
    let beginning = quote_redacted_output(stream.buffer(), chunks);
    let mut events = SseReader::new(stream);
    let mut any = false;
    loop {
        let event = events.next().map_err(|error| match error {
            SseError::Io(error) => trouble_of_read_error(error),
            SseError::TooLong => RequestTrouble::new(TroubleKind::Garbled, error.to_string()),
        })?;
        let Some(event) = event else {
            return Err(match any {
                true => RequestTrouble::new(TroubleKind::BrokeOff, "the stream ended before `[DONE]`"),
                false => RequestTrouble::new(TroubleKind::Garbled, format!("no event in `{beginning}`")),
            }
            .into());
        };
        any = true;
        if event.data.trim_ascii() == b"[DONE]" {
            return write_last_lines(chunks, out);
        }
        let chunk: Value = serde_json::from_slice(&event.data).map_err(|error| {
            RequestTrouble::new(
                TroubleKind::Garbled,
                format!("{error} in `{}`", quote_redacted_output(&event.data, chunks)),
            )
        })?;
        write_lines(chunks.read(event.name.as_deref(), &chunk)?, out)?;
    }
}

fn write_last_lines(chunks: &mut ChunkParser, out: &mut dyn Write) -> Result<(), EarlyStop> {
    let mut lines = Vec::new();
    chunks.rest(&mut lines);
    lines.push(OpenAiLine::Done);
    write_lines(lines, out)
}

/// The trouble of an error while reading the response.
fn trouble_of_read_error(error: io::Error) -> RequestTrouble {
    http::trouble_of_client_error(ureq::Error::from(error), false)
}

/// The beginning of invalid output. The key is redacted before truncation, which could cut it in half.
fn quote_redacted_output(bytes: &[u8], chunks: &ChunkParser) -> String {
    let text = chunks.redactor().clean(&String::from_utf8_lossy(bytes));
    let cut: String = text.chars().take(QUOTE_MAX).collect();
    if cut.len() < text.len() { cut + "…" } else { cut }
}

fn write_lines(lines: Vec<OpenAiLine>, out: &mut dyn Write) -> Result<(), EarlyStop> {
    lines.iter().try_for_each(|line| write_line(out, line)).map_err(EarlyStop::Deaf)
}

fn write_line(out: &mut dyn Write, line: &OpenAiLine) -> io::Result<()> {
    let mut text = serde_json::to_vec(line)?;
    text.push(b'\n');
    out.write_all(&text)?;
    out.flush()
}

#[cfg(test)]
mod tests;
