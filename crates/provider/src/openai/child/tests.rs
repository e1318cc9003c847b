use std::{net::TcpListener, thread};

use serde_json::json;

use super::*;
use crate::{
    FaultClass, Usage,
    openai::{
        OpenAiSettings,
        testing::{
            DONE, KEY, Service, ask, ask_of, events, finishes, ok, prepare, request, says, status, used,
        },
    },
};

/// The outcome of a response in these pieces.
fn told(pieces: &[impl AsRef<[u8]>]) -> String {
    let (base, asked) = ask_of(pieces);
    asked.describe(&base)
}

/// The outcome of this stream.
fn streamed(chunks: &[Value], end: &str) -> String {
    told(&[ok(&(events(chunks) + end))])
}

#[test]
fn an_answer_comes_in_pieces() {
    let body =
        ": hello\n\n".to_owned() + &events(&[says("Grün"), says(" …"), finishes("stop"), used(9, 4)]) + DONE;
    let whole = ok(&body);
    for pieces in [
        vec![whole.clone().into_bytes()],
        // One byte at a time, which splits characters.
        whole.bytes().map(|byte| vec![byte]).collect(),
        vec![ok(&body.replace('\n', "\r\n")).into_bytes()],
        vec![ok(&body.replace("data: ", "data:")).into_bytes()],
        vec![ok(&format!("\u{feff}{body}")).into_bytes()],
    ] {
        let (_, asked) = ask_of(&pieces);
        let answer = asked.outcome.unwrap();
        assert_eq!(answer.text, "Grün …");
        assert_eq!((answer.usage.input_tokens, answer.usage.output_tokens), (9, 4));
        assert_eq!(
            (answer.model.as_deref(), answer.receipt.as_deref()),
            (Some("m-2026"), Some("chatcmpl-7"))
        );
        assert!(!answer.edited && answer.session.is_none());
    }
}

#[test]
fn http_chunks_do_not_split_events() {
    let body = events(&[says("a"), finishes("stop")]) + DONE;
    let (begin, end) = body.split_at(17);
    let chunk = |text: &str| format!("{:x}\r\n{text}\r\n", text.len());
    let head = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
    assert_eq!(told(&[head, &chunk(begin), &chunk(end), "0\r\n\r\n"]), r#"Ok: "a""#);
    // It ends after `[DONE]`, even if the connection stays open.
    let service = Service::silent_after(&[head, &chunk(begin), &chunk(end)]);
    assert_eq!(ask(OpenAiSettings::new(&service.base), &request()).outcome.unwrap().text, "a");
    // The connection ends inside a chunk.
    let (base, asked) = ask_of(&[head, "ffff\r\n", begin]);
    let fault = asked.outcome.unwrap_err();
    assert_eq!(fault.class, FaultClass::Crashed, "{fault} {base}");
}

#[test]
fn incomplete_and_invalid_answers_are_faults() {
    let half = events(&[says("half")]);
    let lines = [
        ("nothing", told(&[ok("")])),
        ("no http", told(&["hello\r\n\r\n"])),
        ("hung up", told(&[""])),
        ("half a stream", streamed(&[says("half")], "")),
        ("whole without an end", streamed(&[says("half"), finishes("stop")], "")),
        ("half an event", told(&[ok(&half), "data: {\"choi".to_owned()])),
        ("an event that is no json", streamed(&[says("a")], "data: {oops}\n\n")),
        (
            "an event that is not utf-8",
            told(&[&ok("data: \"")[..], "\"\n\n"].map(str::as_bytes).map(|piece| [piece, b"\xff"].concat())),
        ),
        ("no events", told(&[ok("Internal problem\n")])),
        ("a page", told(&[ok("<!DOCTYPE html><title>Welcome</title>")])),
        ("half a document", told(&[ok(r#"{"choices": [{"mess"#)])),
        ("lines of json", told(&[ok("{\"a\": 1}\n{\"b\": 2}\n")])),
        ("no choices", streamed(&[json!({"id": "x", "choices": []})], DONE)),
        ("no reason to end", streamed(&[says("a")], DONE)),
        ("empty", streamed(&[finishes("stop")], DONE)),
        (
            "only thoughts",
            streamed(&[json!({"choices": [{"delta": {"reasoning_content": "hm"}}]}), finishes("stop")], DONE),
        ),
        (
            "a tool",
            streamed(
                &[
                    json!({"choices": [{"delta": {"tool_calls": [{"function": {"name": "ls"}}]}}]}),
                    finishes("tool_calls"),
                ],
                DONE,
            ),
        ),
        (
            "a tool and stop",
            streamed(
                &[
                    json!({"choices": [{"delta": {"tool_calls": [{"function": {"name": "ls"}}]}}]}),
                    finishes("stop"),
                ],
                DONE,
            ),
        ),
        ("an unknown reason", streamed(&[says("a"), finishes("error")], DONE)),
        ("cut off by a limit", streamed(&[says("a"), finishes("length")], DONE)),
        ("filtered", streamed(&[says("a"), finishes("content_filter")], DONE)),
        (
            "refused",
            streamed(&[json!({"choices": [{"delta": {"refusal": "I will not"}}]}), finishes("stop")], DONE),
        ),
        (
            "an error in place of an answer",
            told(&[ok(
                r#"{"error": {"message": "The model is overloaded", "type": "server_error", "code": 503}}"#,
            )]),
        ),
        (
            "an error in the stream",
            streamed(&[says("a"), json!({"error": {"message": "boom", "type": "server_error"}})], ""),
        ),
        (
            "an event of an error",
            told(&[ok("event: error\ndata: {\"message\": \"slow down\", \"code\": 429}\n\n")]),
        ),
        ("an error without a word", streamed(&[json!({"error": {}})], "")),
    ];
    let text: String = lines.iter().map(|(name, line)| format!("{name} -> {line}\n")).collect();
    insta::assert_snapshot!(text, @r#"
    nothing -> Crashed: the answer of BASE was interrupted: the response is empty
    no http -> Malformed: BASE sent an invalid response: protocol: http parse fail: invalid HTTP version
    hung up -> Crashed: the answer of BASE was interrupted: io: Peer disconnected
    half a stream -> Crashed: the answer of BASE was interrupted: the stream ended before `[DONE]`
    whole without an end -> Crashed: the answer of BASE was interrupted: the stream ended before `[DONE]`
    half an event -> Crashed: the answer of BASE was interrupted: the stream ended before `[DONE]`
    an event that is no json -> Malformed: BASE sent an invalid response: key must be a string at line 1 column 2 in `{oops}`
    an event that is not utf-8 -> Malformed: BASE sent an invalid response: invalid unicode code point at line 1 column 2 in `"�"`
    no events -> Malformed: BASE sent an invalid response: no event in `Internal problem `
    a page -> Malformed: BASE sent an invalid response: it is an HTML page: `<!DOCTYPE html><title>Welcome</title>`
    half a document -> Crashed: the answer of BASE was interrupted: EOF while parsing a string at line 1 column 19 in `{"choices": [{"mess`
    lines of json -> Malformed: BASE sent an invalid response: trailing characters at line 2 column 1 in `{"a": 1} {"b": 2} `
    no choices -> Malformed: the answer of BASE has no finish reason
    no reason to end -> Malformed: the answer of BASE has no finish reason
    empty -> Malformed: the answer of BASE is empty
    only thoughts -> Malformed: the answer of BASE is empty
    a tool -> Malformed: the model of BASE called the tool `ls`, but it has no tools
    a tool and stop -> Malformed: the model of BASE called the tool `ls`, but it has no tools
    an unknown reason -> Malformed: the answer of BASE has an unknown finish reason: `error`
    cut off by a limit -> ContextOverflow: the answer of BASE was truncated: it reached the context window of `m` or of the server
    filtered -> Refused: a content filter of BASE stopped the answer
    refused -> Refused: BASE refused: I will not
    an error in place of an answer -> Overloaded: BASE answered 503: The model is overloaded
    an error in the stream -> Overloaded: BASE answered: boom
    an event of an error -> RateLimited: BASE answered 429: slow down
    an error without a word -> Crashed: BASE answered: {"error":{}}
    "#);
}

#[test]
fn an_answer_without_streaming_is_read() {
    let answer = json!({
        "id": "chatcmpl-8", "object": "chat.completion", "model": "local",
        "choices": [{"index": 0, "message": {"role": "assistant", "content": "yes", "refusal": null}, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 5, "completion_tokens": 1},
    });
    let pretty = serde_json::to_string_pretty(&answer).unwrap();
    for body in [answer.to_string(), format!("\n  {pretty}\n")] {
        let (_, asked) = ask_of(&[status("200 OK", "Content-Type: application/json\r\n", &body)]);
        let answer = asked.outcome.unwrap();
        assert_eq!((answer.text.as_str(), answer.usage.input_tokens), ("yes", 5));
    }
}

#[test]
fn very_long_events_are_read() {
    let long = "x".repeat(3_000_000);
    let (_, asked) = ask_of(&[ok(&(events(&[says(&long), finishes("stop")]) + DONE))]);
    assert_eq!(asked.outcome.unwrap().text.len(), long.len());
}

#[test]
fn a_stream_without_usage_is_estimated() {
    let (_, asked) = ask_of(&[ok(&(events(&[says("123456789"), finishes("stop")]) + DONE))]);
    // `Is it good?` is eleven bytes long.
    let usage = Usage { input_tokens: 3, output_tokens: 3, is_estimated: true, ..Usage::default() };
    assert_eq!(asked.outcome.unwrap().usage, usage);
}

#[test]
fn error_statuses_are_reported_with_the_service_s_message() {
    let refused = |line: &str, headers: &str, body: &str| told(&[status(line, headers, body)]);
    let lines = [
        refused(
            "401 Unauthorized",
            "",
            r#"{"error": {"message": "Incorrect key", "code": "invalid_api_key"}}"#,
        ),
        refused(
            "429 Too Many Requests",
            "Retry-After: 7\r\n",
            r#"{"error": {"message": "Rate limit reached"}}"#,
        ),
        refused("429 Too Many Requests", "x-ratelimit-reset-tokens: 6m0s\r\n", ""),
        refused("429 Too Many Requests", "", "slow down"),
        refused(
            "429 Too Many Requests",
            "Retry-After: 7\r\n",
            r#"{"error": {"message": "You exceeded your current quota", "code": "insufficient_quota"}}"#,
        ),
        refused("503 Service Unavailable", "Retry-After: 2\r\n", "<html>busy</html>"),
        refused("302 Found", "Location: https://elsewhere.example/v1\r\n", ""),
        refused("404 Not Found", "", "404 page not found"),
    ];
    insta::assert_snapshot!(lines.join("\n"), @"
    Auth: BASE answered 401: Incorrect key (set `key_env` to the variable with the key)
    RateLimited, again in 7000 ms: BASE answered 429: Rate limit reached
    RateLimited, again in 360000 ms: BASE answered 429: no message
    RateLimited: BASE answered 429: slow down
    Auth: BASE answered 429: You exceeded your current quota (the account needs payment)
    Overloaded, again in 2000 ms: BASE answered 503: <html>busy</html>
    MissingProgram: BASE answered 302: https://elsewhere.example/v1 (correct `base_url`: redirects are not followed, because they would receive the key)
    MissingProgram: BASE answered 404: 404 page not found (correct `base_url`, which usually ends with `/v1`)
    ");
}

#[test]
fn nothing_is_sent_after_a_redirect() {
    let elsewhere = TcpListener::bind("127.0.0.1:0").unwrap();
    elsewhere.set_nonblocking(true).unwrap();
    let headers = format!("Location: http://{}/v1\r\n", elsewhere.local_addr().unwrap());
    for line in ["301 Moved", "302 Found", "307 Temporary Redirect", "308 Permanent Redirect"] {
        let (_, asked) = ask_of(&[status(line, &headers, "")]);
        assert_eq!(asked.outcome.unwrap_err().class, FaultClass::MissingProgram);
        assert!(elsewhere.accept().is_err(), "{line}");
    }
}

#[test]
fn a_missing_server_is_reported_with_a_hint() {
    // Nothing listens on port 1.
    let base = "http://127.0.0.1:1/v1";
    insta::assert_snapshot!(ask(OpenAiSettings::new(base), &request()).describe(base), @"MissingProgram: no server is running at BASE: io: Connection refused (os error 111) (start the server, or correct `base_url`)");
}

#[test]
fn https_to_a_plain_http_server_is_a_tls_error() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let base = format!("https://{}/v1", listener.local_addr().unwrap());
    let server = thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        stream.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n").unwrap();
        stream.read_to_end(&mut Vec::new()).ok();
    });
    let fault = ask(OpenAiSettings::new(&base), &request()).outcome.unwrap_err();
    assert_eq!(fault.class, FaultClass::MissingProgram);
    assert!(fault.message.starts_with(&format!("TLS connection to {base} failed: ")), "{fault}");
    server.join().unwrap();
}

#[test]
fn a_silent_service_times_out() {
    let impatient =
        |service: &Service| OpenAiSettings { idle_timeout_ms: 50, ..OpenAiSettings::new(&service.base) };
    for pieces in [vec![], vec![ok(&events(&[says("a")]))]] {
        let service = Service::silent_after(&pieces);
        let asked = ask(impatient(&service), &request());
        let fault = asked.outcome.unwrap_err();
        assert_eq!(fault.class, FaultClass::Timeout, "{fault}");
    }
}

#[test]
fn the_request_follows_the_api() {
    let service = Service::new(&[ok(DONE)]);
    let mut settings = OpenAiSettings::new(format!("{}/", service.base));
    settings.key_env = Some("PATH".to_owned());
    settings.headers.insert("X-Team".to_owned(), "a b".to_owned());
    ask(settings, &request());
    let request = service.request();
    let (head, body) = request.split_once("\r\n\r\n").unwrap();
    let mut head: Vec<String> =
        head.lines().map(str::to_lowercase).filter(|line| !line.starts_with("host: ")).collect();
    head.sort();
    insta::assert_snapshot!(head.join("\n"), @"
    accept: text/event-stream, application/json
    authorization: bearer sk-0123456789abcdef
    content-length: 120
    content-type: application/json
    post /v1/chat/completions http/1.1
    user-agent: cuegate/0.1.0
    x-team: a b
    ");
    insta::assert_snapshot!(body, @r#"{"model":"m","messages":[{"role":"user","content":"Is it good?"}],"stream":true,"stream_options":{"include_usage":true}}"#);
}

#[test]
fn the_key_header_can_be_configured() {
    let service = Service::new(&[ok(DONE)]);
    let mut settings = OpenAiSettings::new(&service.base);
    settings.key_env = Some("PATH".to_owned());
    settings.key_header = Some("api-key".to_owned());
    ask(settings, &request());
    let request = service.request().to_lowercase();
    assert!(
        request.contains(&format!("api-key: {KEY}\r\n")) && !request.contains("authorization"),
        "{request}"
    );
}

#[test]
fn the_key_is_redacted_everywhere() {
    let echo = format!(r#"{{"error": {{"message": "Incorrect API key provided: {KEY}", "code": "{KEY}"}}}}"#);
    let mut bodies = vec![
        status("401 Unauthorized", "", &echo),
        status("302 Found", &format!("Location: http://x/?k={KEY}\r\n"), ""),
        ok(&echo),
        ok(&format!("Bearer {KEY}")),
        ok(&format!("<p>{KEY}")),
        ok(&format!("{{{KEY}")),
        ok(&format!("data: {{{KEY}\n\n")),
        ok(&(events(&[says(&KEY[..9]), says(&KEY[9..]), finishes(KEY), used(1, 1)]) + DONE)),
        ok(&format!(
            "data: {}\n\n",
            json!({"id": KEY, "model": KEY, "choices": [{"delta": {"refusal": KEY, "tool_calls": [{"function": {"name": KEY}}]}}]})
        )),
    ];
    // A truncated quotation must not contain half a key.
    bodies.extend((0..KEY.len()).map(|shift| ok(&format!("x{}{KEY}", "y".repeat(QUOTE_MAX - shift)))));
    for body in bodies {
        let service = Service::new(&[&body]);
        let mut settings = OpenAiSettings::new(&service.base);
        settings.key_env = Some("PATH".to_owned());
        let (job, _) = prepare(settings.clone(), &request()).unwrap();
        assert!(!serde_json::to_string(&job).unwrap().contains(KEY));
        let asked = ask(settings, &request());
        let all = format!("{} {:?} {:?}", asked.printed, asked.activities, asked.outcome);
        assert!(service.request().contains(KEY), "it was sent");
        assert!(!all.contains(&KEY[..8]), "{all}");
    }
}

#[test]
fn nothing_is_sent_without_the_key() {
    let mut settings = OpenAiSettings::new("http://127.0.0.1:1/v1");
    settings.key_env = Some("PATH".to_owned());
    let (job, _) = prepare(settings, &request()).unwrap();
    let mut printed = Vec::new();
    perform_job(&job, |_| None, &mut printed).unwrap();
    let line = r#"{"failed":{"what":"no_key","said":"PATH","resets_in_ms":null}}"#;
    assert_eq!(String::from_utf8(printed).unwrap().trim_end(), line);
}

#[test]
fn the_child_stops_when_its_reader_is_gone() {
    struct Deaf;
    impl Write for Deaf {
        fn write(&mut self, _: &[u8]) -> io::Result<usize> {
            Err(io::ErrorKind::BrokenPipe.into())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    let service = Service::silent_after(&[ok(&events(&[says("a")]))]);
    let (job, _) = prepare(OpenAiSettings::new(&service.base), &request()).unwrap();
    assert_eq!(perform_job(&job, |_| None, &mut Deaf).unwrap_err().kind(), io::ErrorKind::BrokenPipe);
}
