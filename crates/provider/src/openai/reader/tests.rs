use serde_json::json;

use super::*;
use crate::{
    Cap, Price, Prices, Request, Usage,
    openai::{
        OpenAiSettings, SchemaMode,
        testing::{prepare, request},
    },
};

fn settings() -> OpenAiSettings {
    let price = Price { input: 1.0, cached_input: None, output: 10.0, as_of: None };
    OpenAiSettings {
        prices: Prices([("m".to_owned(), price)].into()),
        ..OpenAiSettings::new("http://localhost:1/v1")
    }
}

/// Parses these lines of output.
fn read(
    settings: OpenAiSettings,
    request: &Request,
    lines: &[&str],
    ended: ProgramEnd,
) -> (Vec<Activity>, Result<Answer, Fault>) {
    let (_, mut reader) = prepare(settings, request).unwrap();
    let activities = lines.iter().flat_map(|line| reader.line(line.as_bytes())).collect();
    (activities, reader.end(ended, b""))
}

const USED: &str = r#"{"used":{"input":100,"cached":0,"output":20}}"#;
const STOP: &str = r#"{"finish":"stop"}"#;
const DONE: &str = r#""done""#;

#[test]
fn text_is_reported_by_line_and_usage_as_it_grows() {
    let long = "w".repeat(300);
    let lines = [
        r#"{"head":{"id":"c","model":"m-1"}}"#,
        r#"{"text":"one "}"#,
        r#"{"text":"line\nand"}"#,
        r#"{"thought":100}"#,
        &format!(r#"{{"text":"{long}"}}"#),
        r#"{"text":" end"}"#,
        STOP,
        USED,
        DONE,
    ];
    let (activities, answer) = read(settings(), &request(), &lines, ProgramEnd::Exit(0));
    let mut told = Vec::new();
    let mut sum = Usage { cost_usd: Some(0.0), ..Usage::default() };
    for activity in activities {
        match activity {
            Activity::Text { text } => told.push(text),
            Activity::Usage(usage) => {
                sum.input_tokens += usage.input_tokens;
                sum.output_tokens += usage.output_tokens;
                sum.cost_usd = sum.cost_usd.zip(usage.cost_usd).map(|(sum, more)| sum + more);
            }
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(told, ["one line".to_owned(), format!("and{long}"), " end".to_owned()]);
    let answer = answer.unwrap();
    assert_eq!(answer.text, format!("one line\nand{long} end"));
    assert_eq!((answer.usage.input_tokens, answer.usage.output_tokens), (100, 20));
    assert!((answer.usage.cost_usd.unwrap() - 0.0003).abs() < 1e-12);
    // The reported estimate exceeds the final usage; it is not corrected.
    assert_eq!((sum.input_tokens, sum.output_tokens > 20), (100, true));
}

#[test]
fn a_structured_answer_is_the_whole_text() {
    let ask = Request { schema: Some(json!({"type": "object"})), ..request() };
    let output = |settings, ask: &Request, text: &str| {
        let line = json!({ "text": text }).to_string();
        read(settings, ask, &[&line, STOP, DONE], ProgramEnd::Exit(0)).1.unwrap().output
    };
    assert_eq!(output(settings(), &ask, " {\"a\": 1}\n"), Some(json!({"a": 1})));
    assert_eq!(output(settings(), &ask, "so: {\"a\": 1}"), None);
    assert_eq!(output(settings(), &request(), "{}"), None);
    let mode = |schema| OpenAiSettings { schema, ..settings() };
    assert_eq!(output(mode(SchemaMode::JsonObject), &ask, "{}"), Some(json!({})));
    assert_eq!(output(mode(SchemaMode::None), &ask, "{}"), None);
}

#[test]
fn a_truncated_answer_is_a_fault() {
    let long = |settings, cap, used: &str| {
        let ask = Request { cap, ..request() };
        let lines = [r#"{"text":"half"}"#, r#"{"finish":"length"}"#, used, DONE];
        let fault = read(settings, &ask, &lines, ProgramEnd::Exit(0)).1.unwrap_err();
        format!("{:?}: {fault} ({} tokens)", fault.class, fault.usage.output_tokens)
    };
    let by_cap = Cap { tokens: Some(23), usd: None };
    let bounded = OpenAiSettings { max_output_tokens: Some(20), ..settings() };
    let less = r#"{"used":{"input":100,"cached":0,"output":19}}"#;
    let told = [
        long(settings(), by_cap, USED),
        long(settings(), by_cap, ""),
        long(settings(), by_cap, less),
        long(bounded, Cap::default(), USED),
        long(settings(), Cap::default(), USED),
    ];
    insta::assert_snapshot!(told.join("\n"), @"
    OverCap: the answer reached the limit of 20 tokens that the limit of the call leaves (20 tokens)
    OverCap: the answer reached the limit of 20 tokens that the limit of the call leaves (1 tokens)
    ContextOverflow: the answer of http://localhost:1/v1 was truncated: it reached the context window of `m` or of the server (19 tokens)
    ContextOverflow: the answer is longer than 20 tokens: raise `max_output_tokens` (20 tokens)
    ContextOverflow: the answer of http://localhost:1/v1 was truncated: it reached the context window of `m` or of the server (20 tokens)
    ");
}

#[test]
fn every_exit_is_classified() {
    let failed = r#"{"failed":{"what":"tls","said":"bad","resets_in_ms":null}}"#;
    let text = r#"{"text":"12345678"}"#;
    let not_started = ProgramEnd::NotStarted("no such file".to_owned());
    let cases: [(&[&str], ProgramEnd); 12] = [
        (&[text, STOP, USED, "", DONE, ""], ProgramEnd::Exit(0)),
        (&[failed], ProgramEnd::Exit(0)),
        (&[], ProgramEnd::Exit(0)),
        (&[text, STOP], ProgramEnd::Exit(0)),
        (&[text, STOP, DONE, text], ProgramEnd::Exit(0)),
        (&["hello", text, STOP, DONE], ProgramEnd::Exit(0)),
        (&[r#"{"future":1}"#], ProgramEnd::Exit(0)),
        (&[text, STOP, DONE], ProgramEnd::Exit(3)),
        (&[text, STOP, DONE], ProgramEnd::Signal(9)),
        (&[text], ProgramEnd::TimedOut),
        (&[text, STOP, USED, DONE], ProgramEnd::TooMuchOutput),
        (&[], not_started),
    ];
    let mut told = String::new();
    for (lines, ended) in cases {
        let end = match read(settings(), &request(), lines, ended.clone()).1 {
            Ok(answer) => format!("Ok: {}", answer.text),
            Err(fault) => format!("{:?}: {fault} ({} tokens)", fault.class, fault.usage.output_tokens),
        };
        told += &format!("{} lines, {ended:?} -> {end}\n", lines.len());
    }
    insta::assert_snapshot!(told, @r#"
    6 lines, Exit(0) -> Ok: 12345678
    1 lines, Exit(0) -> MissingProgram: TLS connection to http://localhost:1/v1 failed: bad (start `base_url` with `http://` if the service has no TLS; set `SSL_CERT_FILE` to trust more certificates) (0 tokens)
    0 lines, Exit(0) -> Malformed: the request process exited without a result (0 tokens)
    2 lines, Exit(0) -> Malformed: the request process exited without a result (2 tokens)
    4 lines, Exit(0) -> Malformed: the request process printed invalid output: `{"text":"12345678"}` (2 tokens)
    4 lines, Exit(0) -> Malformed: the request process printed invalid output: `hello` (2 tokens)
    1 lines, Exit(0) -> Malformed: the request process printed invalid output: `{"future":1}` (0 tokens)
    3 lines, Exit(3) -> Crashed: the request process exited with code 3 (2 tokens)
    3 lines, Signal(9) -> Crashed: the request process was killed by signal 9 (2 tokens)
    1 lines, TimedOut -> Timeout: http://localhost:1/v1 timed out (2 tokens)
    4 lines, TooMuchOutput -> Malformed: http://localhost:1/v1 exceeded the output limit (20 tokens)
    0 lines, NotStarted("no such file") -> MissingProgram: failed to start `/bin/cuegate`: no such file (0 tokens)
    "#);
}

#[test]
fn standard_error_is_quoted_in_the_fault() {
    let (_, reader) = prepare(settings(), &request()).unwrap();
    let fault = reader.end(ProgramEnd::Exit(101), b"thread 'main' panicked\n").unwrap_err();
    assert_eq!(fault.message, "the request process exited with code 101; stderr: thread 'main' panicked");
}

#[test]
fn an_interrupted_answer_is_charged_what_was_read_and_written() {
    let end = |lines: &[&str], ended| {
        let fault = read(settings(), &request(), lines, ended).1.unwrap_err();
        assert!(!fault.usage_unknown);
        (fault.class, fault.usage.input_tokens > 0)
    };
    let failed =
        |what: &str| format!(r#"{{"failed":{{"what":{what},"said":"overloaded","resets_in_ms":null}}}}"#);
    let head = r#"{"head":{"id":"c","model":"m-1"}}"#;
    let text = r#"{"text":"half"}"#;
    let reported = failed(r#""reported""#);
    for (status, class) in [
        (401, FaultClass::Auth),
        (429, FaultClass::RateLimited),
        (400, FaultClass::Refused),
        (503, FaultClass::Overloaded),
    ] {
        let turned_away = failed(&format!(r#"{{"status":{status}}}"#));
        assert_eq!(end(&[&turned_away], ProgramEnd::Exit(0)), (class, false));
    }
    assert!(!end(&[&failed(r#""connection_refused""#)], ProgramEnd::Exit(0)).1);
    assert!(!end(&[&reported], ProgramEnd::Exit(0)).1, "the service had not started");
    assert!(!end(&[], ProgramEnd::NotStarted("no".to_owned())).1);
    assert!(end(&[head, &reported], ProgramEnd::Exit(0)).1);
    assert!(end(&[text, &reported], ProgramEnd::Exit(0)).1);
    assert!(end(&[text], ProgramEnd::Signal(9)).1);
    let filter = r#"{"finish":"content_filter"}"#;
    assert_eq!(end(&[head, text, filter, DONE], ProgramEnd::Exit(0)), (FaultClass::Refused, true));
    assert_eq!(end(&[head, text, filter, USED, DONE], ProgramEnd::Exit(0)), (FaultClass::Refused, true));
    let output = |lines: &[&str]| {
        let end = read(settings(), &request(), lines, ProgramEnd::Exit(0)).1;
        end.unwrap_err().usage.output_tokens
    };
    let before = output(&[head, text, USED, &reported]);
    assert_eq!(output(&[head, USED, text, &reported]), before + 1, "the reported usage was not final");
}
