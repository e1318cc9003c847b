use jiff::{civil::date, tz::TimeZone};
use serde_json::json;

use super::*;
use crate::{AskKind, Cap, FaultClass, Permission, Price};

fn now() -> Zoned {
    date(2026, 11, 22).at(1, 45, 0, 0).to_zoned(TimeZone::UTC).unwrap()
}

fn request(session: Option<Session>) -> Request {
    Request {
        id: "run/1".to_owned(),
        step: "fix".to_owned(),
        subject: None,
        persona: None,
        persona_names: Vec::new(),
        readable: Vec::new(),
        kind: AskKind::Work,
        prompt: String::new(),
        system: None,
        schema: None,
        model: None,
        session,
        permission: Permission::Default,
        tools: None,
        tool_servers: Vec::new(),
        effort: None,
        work: "/work".into(),
        timeout_ms: 1,
        cap: Cap::default(),
        unattended: false,
        scratch: "/scratch".into(),
    }
}

struct Read {
    activities: Vec<Activity>,
    end: Result<Answer, Fault>,
}

fn read_with(
    settings: &ClaudeSettings,
    session: Option<Session>,
    lines: &[Value],
    ended: ProgramEnd,
    err: &str,
) -> Read {
    let mut reader = Box::new(ClaudeReader::new(settings, &request(session), now));
    let lines = lines.iter().map(Value::to_string);
    let activities = lines.flat_map(|line| reader.line(line.as_bytes())).collect();
    Read { activities, end: reader.end(ended, err.as_bytes()) }
}

fn read(lines: &[Value]) -> Read {
    read_with(&ClaudeSettings::default(), None, lines, ProgramEnd::Exit(0), "")
}

fn init() -> Value {
    json!({ "type": "system", "subtype": "init", "session_id": "s-1", "model": "claude-x" })
}

fn used(input: u64, created: u64, cached: u64, output: u64) -> Value {
    json!({
        "input_tokens": input,
        "cache_creation_input_tokens": created,
        "cache_read_input_tokens": cached,
        "output_tokens": output,
    })
}

fn said(id: &str, content: Value, usage: Value) -> Value {
    json!({
        "type": "assistant",
        "message": { "id": id, "model": "claude-x", "content": content, "usage": usage },
        "parent_tool_use_id": null,
    })
}

/// A successful result, overridden by the given fields.
fn result(more: Value) -> Value {
    let mut result = json!({
        "subtype": "success",
        "is_error": false,
        "result": "done",
        "session_id": "s-1",
        "usage": used(100, 10, 20, 25),
        "total_cost_usd": 0.5,
        "modelUsage": { "claude-x": {
            "inputTokens": 100, "outputTokens": 25, "cacheReadInputTokens": 20,
            "cacheCreationInputTokens": 10, "costUSD": 0.5,
        } },
        "type": "result",
    });
    result.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    result
}

/// An error of the service: a message of the program itself, then the result.
fn failed(message: Value, more: Value) -> Vec<Value> {
    let mut event = json!({
        "type": "assistant",
        "message": { "model": "<synthetic>", "content": [{ "type": "text", "text": "API Error" }] },
        "is_api_error_message": true,
    });
    event.as_object_mut().unwrap().extend(message.as_object().unwrap().clone());
    let mut end = result(json!({ "is_error": true, "result": "API Error", "terminal_reason": "api_error" }));
    end.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    vec![init(), event, end]
}

fn class(lines: &[Value]) -> FaultClass {
    read_with(&ClaudeSettings::default(), None, lines, ProgramEnd::Exit(1), "").end.unwrap_err().class
}

fn usage_of(input_tokens: u64, cached_input_tokens: u64, output_tokens: u64, cost_usd: Option<f64>) -> Usage {
    Usage { input_tokens, cached_input_tokens, output_tokens, cost_usd, is_estimated: false }
}

#[test]
fn an_answer() {
    let answer = read(&[
        init(),
        said("m1", json!([{ "type": "text", "text": "Hello." }]), used(100, 10, 20, 1)),
        result(json!({ "structured_output": { "ok": true }, "result": "{\"ok\":true}" })),
    ])
    .end
    .unwrap();
    let usage = usage_of(130, 20, 25, Some(0.5));
    assert_eq!(
        answer,
        Answer {
            output: Some(json!({ "ok": true })),
            text: "{\"ok\":true}".to_owned(),
            usage,
            session: Some("s-1".to_owned()),
            totals: Some(usage),
            model: Some("claude-x".to_owned()),
            edited: true,
            ..Answer::default()
        }
    );
}

#[test]
fn an_answer_without_structured_output_has_its_text() {
    let answer = read(&[init(), result(json!({ "result": "I refuse to call the tool" }))]).end.unwrap();
    assert_eq!((answer.output, answer.text.as_str()), (None, "I refuse to call the tool"));

    let gave_up = json!({
        "subtype": "error_max_structured_output_retries",
        "is_error": true,
        "result": null,
        "errors": ["Failed to provide valid structured output after 5 attempts"],
    });
    let lines = [
        init(),
        said("m1", json!([{ "type": "text", "text": "Here is it." }]), used(1, 0, 0, 1)),
        said(
            "m1",
            json!([{ "type": "tool_use", "name": "StructuredOutput", "input": { "ok": 1 } }]),
            json!({}),
        ),
        result(gave_up),
    ];
    let answer = read_with(&ClaudeSettings::default(), None, &lines, ProgramEnd::Exit(1), "").end.unwrap();
    assert_eq!((answer.output, answer.text.as_str()), (None, r#"{"ok":1}"#), "the last structured answer");
    assert_eq!(answer.usage.input_tokens, 130);
}

#[test]
fn activities_are_reported_as_they_happen() {
    let delta = |usage| json!({ "type": "stream_event", "api_message_id": "m1", "event": { "type": "message_delta", "usage": usage } });
    let lines = [
        init(),
        json!({ "type": "stream_event", "event": {
            "type": "message_start", "message": { "id": "m1", "usage": used(100, 10, 20, 1) } } }),
        json!({ "type": "stream_event", "event": { "type": "content_block_delta", "delta": { "text": "I" } } }),
        said("m1", json!([{ "type": "text", "text": "I write." }]), used(100, 10, 20, 1)),
        said(
            "m1",
            json!([{ "type": "tool_use", "id": "t1", "name": "Write", "input": { "file_path": "/w/a", "content": "x" } }]),
            used(100, 10, 20, 1),
        ),
        delta(json!({ "output_tokens": 25 })),
        said(
            "m2",
            json!([{ "type": "tool_use", "id": "t2", "name": "Bash", "input": { "command": "ls\nls" } }]),
            json!({}),
        ),
        json!({ "type": "user", "message": { "role": "user", "content": [
            { "type": "tool_result", "tool_use_id": "t2", "is_error": true,
                "content": [{ "type": "text", "text": "Exit code 2" }, { "type": "text", "text": "no" }] },
        ] } }),
        json!({ "type": "user", "message": { "role": "user", "content": [
            { "type": "tool_result", "tool_use_id": "t1", "content": "File created" },
        ] } }),
        said("m2", json!([{ "type": "tool_use", "name": "StructuredOutput", "input": {} }]), json!({})),
        json!({ "type": "something_new" }),
        result(json!({})),
    ];
    let usage = |input_tokens, cached_input_tokens, output_tokens| {
        Activity::Usage(usage_of(input_tokens, cached_input_tokens, output_tokens, None))
    };
    let tool = |id: &str, name: &str, target: &str| Activity::Tool {
        id: id.to_owned(),
        name: name.to_owned(),
        target: target.to_owned(),
    };
    let ended = |id: &str, failed, output: &str| Activity::ToolEnded {
        id: id.to_owned(),
        failed,
        output: output.to_owned(),
    };
    assert_eq!(
        read(&lines).activities,
        [
            usage(130, 20, 1),
            Activity::Text { text: "I write.".to_owned() },
            tool("t1", "Write", "/w/a"),
            usage(0, 0, 24),
            tool("t2", "Bash", "ls…"),
            ended("t2", true, "Exit code 2\nno"),
            ended("t1", false, "File created"),
        ]
    );
}

#[test]
fn stream_events_of_subagents_belong_to_their_messages() {
    let start = |parent: Value, id: &str| {
        json!({ "type": "stream_event", "parent_tool_use_id": parent, "event": {
            "type": "message_start", "message": { "id": id, "usage": { "input_tokens": 10 } } } })
    };
    let delta = |parent: Value, output: u64| {
        json!({ "type": "stream_event", "parent_tool_use_id": parent, "event": {
            "type": "message_delta", "usage": { "output_tokens": output } } })
    };
    let lines = [
        start(json!(null), "m1"),
        start(json!("t1"), "m2"),
        delta(json!(null), 5),
        delta(json!("t1"), 7),
        delta(json!(null), 6),
    ];
    let read = read_with(&ClaudeSettings::default(), None, &lines, ProgramEnd::Signal(9), "");
    let fault = read.end.unwrap_err();
    assert_eq!((fault.usage.input_tokens, fault.usage.output_tokens), (20, 13));
}

#[test]
fn usage_activities_have_a_cost_if_prices_are_known() {
    let price = Price { input: 10.0, cached_input: None, output: 0.0, as_of: None };
    let settings = ClaudeSettings {
        prices: Prices([("claude-x".to_owned(), price)].into()),
        ..ClaudeSettings::default()
    };
    let lines = [init(), said("m1", json!([]), used(100_000, 0, 0, 0))];
    let read = read_with(&settings, None, &lines, ProgramEnd::Exit(143), "");
    let [Activity::Usage(usage)] = read.activities[..] else { panic!("a usage") };
    assert_eq!(usage.cost_usd, Some(1.0));
    let fault = read.end.unwrap_err();
    assert_eq!((fault.class, fault.usage.cost_usd), (FaultClass::Crashed, Some(1.0)));
}

#[test]
fn an_ask_in_a_continued_session_has_only_its_own_usage() {
    let before = usage_of(30, 20, 5, Some(0.375));
    let session = |totals| Some(Session { id: "s-0".to_owned(), fork: true, totals });
    let usage = |session, more| {
        let lines = [init(), result(more)];
        let answer =
            read_with(&ClaudeSettings::default(), session, &lines, ProgramEnd::Exit(0), "").end.unwrap();
        let usage = answer.usage;
        assert_eq!(answer.totals.unwrap().cost_usd, Some(0.5), "the whole session");
        (usage.input_tokens, usage.cached_input_tokens, usage.output_tokens, usage.cost_usd)
    };
    assert_eq!(usage(session(Some(before)), json!({})), (100, 0, 20, Some(0.125)));
    // The earlier cost is unknown: tokens are known, the cost is not.
    assert_eq!(usage(session(None), json!({})), (130, 20, 25, None));
    // The program has restarted its count.
    let more = Usage { input_tokens: 1_000, output_tokens: 1_000, ..before };
    assert_eq!(usage(session(Some(more)), json!({})), (130, 20, 25, Some(0.5)));
    // Newer versions report the usage of the ask.
    let own =
        json!({ "model_usage_since_last_result": { "claude-x": { "inputTokens": 7, "costUSD": 0.25 } } });
    assert_eq!(usage(session(None), own.clone()), (7, 0, 0, Some(0.25)));
    assert_eq!(usage(session(Some(before)), own), (7, 0, 0, Some(0.25)));
}

#[test]
fn an_error_is_classified_regardless_of_its_subtype() {
    let status = |status: u64| failed(json!({}), json!({ "api_error_status": status }));
    assert_eq!(class(&status(400)), FaultClass::Refused);
    assert_eq!(class(&status(401)), FaultClass::Auth);
    assert_eq!(class(&status(403)), FaultClass::Auth);
    assert_eq!(class(&status(404)), FaultClass::UnknownModel);
    assert_eq!(class(&status(413)), FaultClass::ContextOverflow);
    assert_eq!(class(&status(429)), FaultClass::RateLimited);
    assert_eq!(class(&status(500)), FaultClass::Overloaded);
    assert_eq!(class(&status(529)), FaultClass::Overloaded);
    let said = |said: &str| failed(json!({}), json!({ "api_error_status": 400, "result": said }));
    assert_eq!(class(&said("API Error: 400 model: nope-1")), FaultClass::UnknownModel);
    assert_eq!(
        class(&said("Prompt is too long · the request is ~210000 tokens")),
        FaultClass::ContextOverflow
    );
    let code = |code: &str| failed(json!({ "error": code }), json!({ "api_error_status": 400 }));
    assert_eq!(class(&code("billing_error")), FaultClass::Auth);
    assert_eq!(class(&code("authentication_failed")), FaultClass::Auth);
    assert_eq!(class(&code("model_not_found")), FaultClass::UnknownModel);
    assert_eq!(class(&code("server_error")), FaultClass::Overloaded);
    assert_eq!(
        class(&failed(json!({}), json!({ "terminal_reason": "prompt_too_long" }))),
        FaultClass::ContextOverflow
    );
    assert_eq!(class(&failed(json!({}), json!({ "api_error": "connection_failed" }))), FaultClass::Network);
    assert_eq!(class(&failed(json!({}), json!({ "stop_reason": "refusal" }))), FaultClass::Refused);
    assert_eq!(class(&failed(json!({}), json!({}))), FaultClass::Crashed);
    let cut = |cut: &str| {
        failed(json!({ "error": "max_output_tokens", "api_error_params": { "cut": cut } }), json!({}))
    };
    assert_eq!(class(&cut("output_limit")), FaultClass::OverCap);
    assert_eq!(class(&cut("context_window")), FaultClass::ContextOverflow);
}

#[test]
fn a_refusal_without_a_fallback_model_is_a_refusal() {
    let mut lines = failed(json!({ "error": "invalid_request" }), json!({}));
    lines.insert(1, json!({ "type": "system", "subtype": "model_refusal_no_fallback" }));
    assert_eq!(class(&lines), FaultClass::Refused);
}

#[test]
fn limits_of_the_program_are_over_cap() {
    for (subtype, said) in [
        ("error_max_turns", "Reached maximum number of turns (2)"),
        ("error_max_budget_usd", "Reached maximum budget ($0.002)"),
    ] {
        let end = result(json!({ "subtype": subtype, "is_error": true, "result": null, "errors": [said] }));
        let fault = read(&[init(), end]).end.unwrap_err();
        assert_eq!((fault.class, fault.message), (FaultClass::OverCap, format!("claude: {said}")));
        assert_eq!(fault.usage.cost_usd, Some(0.5), "the usage of the failed ask");
    }
}

#[test]
fn a_rate_limit_has_its_reset_time() {
    let resets = |lines: &[Value]| read(lines).end.unwrap_err().resets_in_ms;
    let limited =
        |message: Value, said: &str| failed(message, json!({ "api_error_status": 429, "result": said }));
    let epoch = now().timestamp().as_second() + 60;
    let params = json!({ "api_error_params": { "rate_limit_info": { "resetsAt": epoch } } });
    assert_eq!(resets(&limited(params, "You've hit your limit")), Some(60_000));
    let mut reported_before = limited(json!({}), "You've hit your limit");
    let info = json!({ "status": "rejected", "resetsAt": epoch });
    reported_before.insert(1, json!({ "type": "rate_limit_event", "rate_limit_info": info }));
    assert_eq!(resets(&reported_before), Some(60_000));
    let by_words = limited(json!({}), "You've hit your 5-hour limit · resets 2:45am (UTC)");
    assert_eq!(resets(&by_words), Some(3_660_000), "the minute ends");
    assert_eq!(resets(&limited(json!({}), "API Error: Request rejected (429)")), None);
    let mut allowed = limited(json!({}), "API Error: Request rejected (429)");
    let info = json!({ "status": "allowed", "resetsAt": epoch });
    allowed.insert(1, json!({ "type": "rate_limit_event", "rate_limit_info": info }));
    assert_eq!(resets(&allowed), None, "an allowed window is not a limit");
}

#[test]
fn denials_are_reported_once() {
    let lines = [
        init(),
        json!({ "type": "system", "subtype": "permission_denied", "tool_name": "Write", "tool_use_id": "t1",
            "message": "Claude requested permissions to write" }),
        json!({ "type": "user", "message": { "role": "user", "content": [
            { "type": "tool_result", "tool_use_id": "t0", "is_error": true,
                "content": "<tool_use_error>Error: No such tool available: Edit. It is disabled.</tool_use_error>" },
        ] } }),
        result(json!({ "permission_denials": [
            { "tool_name": "Write", "tool_use_id": "t1", "tool_input": { "file_path": "/w/a" } },
            { "tool_name": "Bash", "tool_use_id": "t2", "tool_input": { "command": "rm x" } },
        ] })),
    ];
    let read = read(&lines);
    let denied = |id: &str, name: &str, target: &str| Activity::Denied {
        id: id.to_owned(),
        name: name.to_owned(),
        target: target.to_owned(),
    };
    assert_eq!(
        read.activities,
        [
            denied("t1", "Write", "Claude requested permissions to write"),
            denied("t0", "Edit", "not in the list of tools"),
            denied("t2", "Bash", "rm x"),
        ]
    );
    assert!(read.end.is_ok());
}

#[test]
fn retries_of_the_program_are_reported() {
    let retry =
        json!({ "type": "system", "subtype": "api_retry", "error": "rate_limit", "error_status": 429 });
    assert_eq!(read(&[retry]).activities, [Activity::Retry { reason: "rate_limit (429)".to_owned() }]);
}

#[test]
fn an_ask_that_fails_after_work_is_charged_what_was_reported() {
    let end = |lines: &[Value], ended| {
        let fault = read_with(&ClaudeSettings::default(), None, lines, ended, "").end.unwrap_err();
        assert!(fault.usage.input_tokens == 0 || fault.usage.cost_usd.is_some_and(|cost| cost > 0.0));
        (fault.usage.input_tokens, fault.usage_unknown)
    };
    let limited = |more: Value| {
        let nothing = json!({ "api_error_status": 429, "usage": used(0, 0, 0, 0), "modelUsage": {} });
        let mut lines = failed(json!({}), nothing);
        lines[2].as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        lines
    };
    assert_eq!(end(&limited(json!({})), ProgramEnd::Exit(1)), (0, false), "the service had not started");
    assert_eq!(end(&limited(json!({ "usage": null, "modelUsage": null })), ProgramEnd::Exit(1)), (0, false));
    assert_eq!(end(&[init()], ProgramEnd::Exit(1)), (0, false));

    let work = said("m1", json!([{ "type": "text", "text": "half" }]), used(50, 0, 0, 1));
    let part = json!({ "type": "stream_event", "event": {
        "type": "message_start", "message": { "id": "m1", "usage": used(50, 0, 0, 1) } } });
    for work in [work, part] {
        let with = |mut lines: Vec<Value>| {
            lines.insert(1, work.clone());
            end(&lines, ProgramEnd::Exit(1))
        };
        assert_eq!(with(limited(json!({}))), (50, false), "the result omits it");
        assert_eq!(with(limited(json!({ "usage": null, "modelUsage": null }))), (50, false));
        let own = json!({ "m": { "inputTokens": 60, "outputTokens": 2 } });
        assert_eq!(with(limited(json!({ "modelUsage": own }))), (60, false), "reported usage is known");
        assert_eq!(end(&[init(), work.clone()], ProgramEnd::Signal(9)), (50, false));
        assert!(!end(std::slice::from_ref(&work), ProgramEnd::NotStarted("no".to_owned())).1);
    }
}

/// A stream of one message that begins with `input` tokens and is cut off after `text`.
fn cut_message(input: u64, text: &str) -> Vec<Value> {
    let part = |event: Value| json!({ "type": "stream_event", "event": event, "parent_tool_use_id": null });
    vec![
        init(),
        part(json!({ "type": "message_start",
            "message": { "id": "m1", "model": "claude-sonnet-4-5", "usage": used(input, 0, 0, 1) } })),
        part(json!({ "type": "content_block_delta", "delta": { "type": "text_delta", "text": text } })),
    ]
}

#[test]
fn a_message_that_was_cut_off_is_estimated_by_its_size() {
    let cut = |lines: &[Value]| {
        let mut reader = ClaudeReader::new(&ClaudeSettings::default(), &request(None), now);
        lines.iter().for_each(|line| drop(reader.line(line.to_string().as_bytes())));
        reader.cut_usage()
    };
    assert_eq!(
        cut(&[init()]),
        CutUsage { usage: Usage { cost_usd: Some(0.0), ..Usage::default() }, unknown: false }
    );
    let CutUsage { usage, unknown } = cut(&cut_message(1_000, &"word ".repeat(80)));
    assert_eq!((usage.input_tokens, usage.output_tokens, unknown), (1_000, 100, false));
    let by_list = (1_000.0 * 3.0 + 100.0 * 15.0) / 1e6;
    assert!((usage.cost_usd.unwrap() - by_list).abs() < 1e-12, "{usage:?}");
    let mut ended = cut_message(1_000, &"word ".repeat(80));
    ended.push(json!({ "type": "stream_event", "event": { "type": "message_delta", "usage": { "output_tokens": 70 } } }));
    assert_eq!(cut(&ended).usage.output_tokens, 70, "the service counted it");
}

#[test]
fn plain_lines_are_classified_like_results() {
    let fault = |stdout: &str, stderr: &str| {
        let mut reader = Box::new(ClaudeReader::new(&ClaudeSettings::default(), &request(None), now));
        stdout.lines().for_each(|line| drop(reader.line(line.as_bytes())));
        let fault = reader.end(ProgramEnd::Exit(1), stderr.as_bytes()).unwrap_err();
        assert_eq!((fault.usage.input_tokens, fault.usage_unknown), (0, false));
        (fault.class, fault.resets_in_ms)
    };
    for (said, expected) in [
        ("You've hit your limit · resets 2:45am (UTC)", (FaultClass::RateLimited, Some(3_660_000))),
        ("You've hit your weekly limit", (FaultClass::RateLimited, None)),
        ("Claude AI usage limit reached|1795312800", (FaultClass::RateLimited, None)),
        ("Invalid API key · Please run /login", (FaultClass::Auth, None)),
        ("Credit balance is too low", (FaultClass::Auth, None)),
        ("No conversation found with session ID: x", (FaultClass::SessionLost, None)),
        ("Prompt is too long", (FaultClass::ContextOverflow, None)),
        ("API Error: 500 boom", (FaultClass::Overloaded, None)),
        ("Error: Cannot find module 'x'", (FaultClass::Crashed, None)),
        ("connect ECONNREFUSED 127.0.0.1:1", (FaultClass::Crashed, None)),
    ] {
        for end in [fault(said, ""), fault("", said)] {
            assert_eq!(end.0, expected.0, "{said}");
            assert!(expected.1.is_none() || end.1 == expected.1, "{said}: {end:?}");
        }
    }
}

#[test]
fn an_answer_that_was_cut_off_or_is_an_error_of_the_service_is_none() {
    let said = said("m1", json!([{ "type": "text", "text": "half" }]), used(50, 0, 0, 9));
    let no_answers = [
        json!({ "stop_reason": "max_tokens", "result": "half of it" }),
        json!({ "result": "API Error: 500 {\"type\":\"error\",\"error\":{\"type\":\"api_error\"}}" }),
        json!({ "result": "API Error: Claude's response exceeded the 32000 output token maximum." }),
    ];
    for more in no_answers {
        let lines = [init(), said.clone(), result(more.clone())];
        let end = read_with(&ClaudeSettings::default(), None, &lines, ProgramEnd::Exit(0), "").end;
        let fault = end.expect_err(&more.to_string());
        assert_eq!(fault.usage.output_tokens, 25, "{more}: its usage is reported");
    }
    // A structured answer is whole: the program checked it.
    let whole = json!({ "stop_reason": "max_tokens", "structured_output": { "a": 1 } });
    assert!(read(&[init(), said.clone(), result(whole)]).end.is_ok());
    assert!(read(&[init(), said, result(json!({ "result": "I fixed the API Error." }))]).end.is_ok());
}

#[test]
fn impossible_amounts_are_a_fault_and_what_streamed_counts() {
    let said = said("m1", json!([{ "type": "text", "text": "half" }]), used(50, 0, 0, 9));
    let forged = [
        json!({ "total_cost_usd": -100 }),
        json!({ "total_cost_usd": 1e308 }),
        json!({ "usage": { "input_tokens": -5, "output_tokens": 1 } }),
        json!({ "modelUsage": { "claude-x": { "inputTokens": 1, "outputTokens": 1, "costUSD": -1 } } }),
        json!({ "usage": used(0, 0, 0, 0), "modelUsage": {} }),
    ];
    for more in forged {
        let lines = [init(), said.clone(), result(more.clone())];
        let end = read_with(&ClaudeSettings::default(), None, &lines, ProgramEnd::Exit(0), "").end;
        let fault = end.expect_err(&more.to_string());
        assert_eq!(fault.class, FaultClass::Malformed, "{more}");
        assert_eq!((fault.usage.input_tokens, fault.usage.output_tokens), (50, 9), "{more}");
    }
}

#[test]
fn output_without_a_result_is_a_crash() {
    let end = |lines: &[Value], ended, stderr: &str| {
        let fault = read_with(&ClaudeSettings::default(), None, lines, ended, stderr).end.unwrap_err();
        (fault.class, fault.message)
    };
    assert_eq!(
        end(&[init()], ProgramEnd::Exit(143), ""),
        (FaultClass::Crashed, "no answer from claude: exited with code 143 without a result".to_owned())
    );
    assert_eq!(end(&[init()], ProgramEnd::Signal(9), "").0, FaultClass::Crashed);
    assert_eq!(end(&[init()], ProgramEnd::TimedOut, "").0, FaultClass::Timeout);
    assert_eq!(end(&[init()], ProgramEnd::Exit(0), "").0, FaultClass::Malformed);
    assert_eq!(
        end(&[result(json!({}))], ProgramEnd::NotStarted("no".to_owned()), "").0,
        FaultClass::MissingProgram
    );
    let (class, message) = end(
        &[],
        ProgramEnd::Exit(1),
        "--dangerously-skip-permissions cannot be used with root/sudo privileges",
    );
    assert_eq!(class, FaultClass::Refused);
    assert!(message.contains("IS_SANDBOX=1"), "{message}");
    assert_eq!(end(&[], ProgramEnd::Exit(1), "error: unknown option '--x'").0, FaultClass::MissingProgram);
}

#[test]
fn an_answer_counts_whatever_the_exit_status() {
    for ended in
        [ProgramEnd::TimedOut, ProgramEnd::Signal(15), ProgramEnd::Exit(143), ProgramEnd::TooMuchOutput]
    {
        assert!(read_with(&ClaudeSettings::default(), None, &[result(json!({}))], ended, "").end.is_ok());
    }
}

#[test]
fn invalid_lines_are_skipped_and_quoted_in_the_fault() {
    let with = |after: &[u8]| {
        let mut reader = Box::new(ClaudeReader::new(&ClaudeSettings::default(), &request(None), now));
        reader.line(b"warning: something");
        reader.line(b"");
        reader.line(b"[1, 2]");
        reader.line(b"\"text\"");
        reader.line(br#"{"type":"assistant","message":7}"#);
        reader.line(b"\xff\xfe");
        reader.line(after);
        reader.end(ProgramEnd::Exit(0), b"")
    };
    assert!(with(result(json!({})).to_string().as_bytes()).is_ok());
    let fault = with(&result(json!({})).to_string().as_bytes()[..100]).unwrap_err();
    assert_eq!(fault.class, FaultClass::Malformed);
    assert!(fault.message.ends_with("invalid output: warning: something"), "{}", fault.message);
}

#[test]
fn a_huge_line_is_read() {
    let text = "x".repeat(8 << 20);
    let answer = read(&[result(json!({ "result": text }))]).end.unwrap();
    assert_eq!(answer.text.len(), 8 << 20);
}
