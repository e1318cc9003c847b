use jiff::{civil::date, tz::TimeZone};
use serde_json::json;

use super::*;
use crate::{AskKind, Cap, Permission, Price};

fn now() -> Zoned {
    date(2026, 11, 22).at(1, 45, 0, 0).to_zoned(TimeZone::UTC).unwrap()
}

fn request() -> Request {
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
        session: None,
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
    settings: &CodexSettings,
    request: &Request,
    lines: &[Value],
    ended: ProgramEnd,
    err: &str,
) -> Read {
    let mut reader = Box::new(CodexReader::new(settings, request, now));
    let lines = lines.iter().map(Value::to_string);
    let activities = lines.flat_map(|line| reader.line(line.as_bytes())).collect();
    Read { activities, end: reader.end(ended, err.as_bytes()) }
}

fn read(lines: &[Value]) -> Read {
    read_with(&CodexSettings::default(), &request(), lines, ProgramEnd::Exit(0), "")
}

fn started() -> Value {
    json!({ "type": "thread.started", "thread_id": "t-1" })
}

fn item(kind: &str, item: Value) -> Value {
    json!({ "type": format!("item.{kind}"), "item": item })
}

fn message(text: &str) -> Value {
    item("completed", json!({ "id": "m", "type": "agent_message", "text": text }))
}

fn completed(input: u64, cached: u64, output: u64) -> Value {
    json!({ "type": "turn.completed", "usage": {
        "input_tokens": input, "cached_input_tokens": cached, "output_tokens": output } })
}

fn error(message: &str) -> Value {
    json!({ "type": "error", "message": message })
}

fn failed(message: &str) -> Value {
    json!({ "type": "turn.failed", "error": { "message": message } })
}

#[test]
fn an_answer() {
    let answer = read(&[started(), message("First."), message("Done."), completed(100, 20, 25)]).end.unwrap();
    let usage = Usage {
        input_tokens: 100,
        cached_input_tokens: 20,
        output_tokens: 25,
        cost_usd: None,
        is_estimated: false,
    };
    assert_eq!(
        answer,
        Answer {
            text: "Done.".to_owned(),
            usage,
            session: Some("t-1".to_owned()),
            totals: Some(usage),
            edited: true,
            ..Answer::default()
        }
    );
}

#[test]
fn each_activity_is_reported_once() {
    let run = |kind: &str, status: &str, exit_code: Option<i32>| {
        item(
            kind,
            json!({ "id": "i1", "type": "command_execution", "command": "ls", "status": status,
                "exit_code": exit_code, "aggregated_output": "no such file" }),
        )
    };
    let lines = [
        started(),
        item("completed", json!({ "id": "w", "type": "error", "message": "Model metadata not found." })),
        json!({ "type": "turn.started" }),
        error("Reconnecting... 1/5 (unexpected status 401 Unauthorized)"),
        item("completed", json!({ "id": "f", "type": "error", "message": "Falling back from WebSockets" })),
        run("started", "in_progress", None),
        run("completed", "completed", Some(2)),
        item(
            "completed",
            json!({ "id": "i2", "type": "file_change", "status": "completed",
            "changes": [{ "path": "/w/a", "kind": "add" }, { "path": "/w/b", "kind": "update" }] }),
        ),
        item("started", json!({ "id": "i3", "type": "mcp_tool_call", "server": "db", "tool": "ask" })),
        item(
            "completed",
            json!({ "id": "i3", "type": "mcp_tool_call", "server": "db", "tool": "ask", "status": "failed",
                "error": { "message": "no database" } }),
        ),
        item("completed", json!({ "id": "i4", "type": "web_search", "query": "why" })),
        item(
            "completed",
            json!({ "id": "i5", "type": "command_execution", "command": "rm x", "status": "declined" }),
        ),
        item("completed", json!({ "id": "i6", "type": "reasoning", "text": "hm" })),
        json!({ "type": "something.new" }),
        message("Done."),
        completed(1, 0, 1),
    ];
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
            Activity::Retry { reason: "Reconnecting... 1/5 (unexpected status 401 Unauthorized)".to_owned() },
            Activity::Retry { reason: "Falling back from WebSockets".to_owned() },
            tool("i1", "command_execution", "ls"),
            ended("i1", true, "no such file"),
            tool("i2", "file_change", "/w/a, /w/b"),
            ended("i2", false, ""),
            tool("i3", "db.ask", "ask"),
            ended("i3", true, "no database"),
            tool("i4", "web_search", "why"),
            ended("i4", false, ""),
            Activity::Denied {
                id: "i5".to_owned(),
                name: "command_execution".to_owned(),
                target: "rm x".to_owned()
            },
            Activity::Text { text: "Done.".to_owned() },
        ]
    );
}

#[test]
fn waiting_for_the_network_is_a_fault_after_three_reports_in_a_row() {
    let waits = || error("Reconnecting... waiting for network (Connection failed: error sending request)");
    let mut reader = CodexReader::new(&CodexSettings::default(), &request(), now);
    let mut stuck = |lines: &[Value]| {
        lines.iter().for_each(|line| _ = reader.line(line.to_string().as_bytes()));
        reader.is_stuck()
    };
    assert!(!stuck(&[started(), waits(), waits()]));
    assert!(!stuck(&[item("completed", json!({ "id": "i", "type": "reasoning", "text": "hm" })), waits()]));
    assert!(stuck(&[waits(), waits()]));
    let fault = Box::new(reader).end(ProgramEnd::Signal(15), b"").unwrap_err();
    let message = "codex: waiting for network (Connection failed: error sending request)";
    assert_eq!((fault.class, fault.message.as_str()), (FaultClass::Network, message));
}

#[test]
fn an_ask_in_a_continued_session_has_only_its_own_usage() {
    let price = Price { input: 10.0, cached_input: Some(0.0), output: 0.0, as_of: None };
    let settings = CodexSettings {
        model: Some("gpt-x".to_owned()),
        prices: Prices([("gpt-x".to_owned(), price)].into()),
        ..CodexSettings::default()
    };
    let usage = |totals| {
        let session = Some(Session { id: "t-1".to_owned(), fork: false, totals });
        let request = Request { session, ..request() };
        let lines = [started(), message("x"), completed(300_000, 100_000, 50)];
        let answer = read_with(&settings, &request, &lines, ProgramEnd::Exit(0), "").end.unwrap();
        assert_eq!(answer.totals.unwrap().input_tokens, 300_000);
        assert_eq!(answer.model.as_deref(), Some("gpt-x"));
        let usage = answer.usage;
        (usage.input_tokens, usage.cached_input_tokens, usage.output_tokens, usage.cost_usd)
    };
    let before = Usage {
        input_tokens: 100_000,
        cached_input_tokens: 0,
        output_tokens: 20,
        cost_usd: None,
        is_estimated: false,
    };
    assert_eq!(usage(Some(before)), (200_000, 100_000, 30, Some(1.0)));
    assert_eq!(usage(Some(Usage { input_tokens: 400_000, ..before })), (300_000, 100_000, 50, Some(2.0)));
    assert_eq!(
        usage(None),
        (300_000, 100_000, 50, Some(2.0)),
        "without earlier totals the usage is overestimated"
    );
}

#[test]
fn a_structured_answer_is_the_last_text() {
    let schema = json!({
        "type": "object",
        "required": ["verdict"],
        "properties": { "verdict": { "type": "string" }, "note": { "type": "string" } },
    });
    let output = |schema: &Value, text: &str| {
        let request = Request { schema: Some(schema.clone()), ..request() };
        let lines = [started(), message(text), completed(1, 0, 1)];
        read_with(&CodexSettings::default(), &request, &lines, ProgramEnd::Exit(0), "").end.unwrap().output
    };
    assert_eq!(output(&schema, r#"{"verdict":"ok","note":null}"#), Some(json!({ "verdict": "ok" })));
    assert_eq!(output(&schema, r#"{"verdict":1}"#), Some(json!({ "verdict": 1 })), "the caller validates");
    assert_eq!(output(&schema, "I would rather not"), None);
    assert_eq!(
        output(&json!({ "type": "object" }), r#"{"a":1}"#),
        None,
        "the service did not enforce the schema"
    );
}

#[test]
fn a_turn_without_a_message_is_an_empty_answer() {
    let answer = read(&[started(), completed(1, 0, 1)]).end.unwrap();
    assert_eq!((answer.text.as_str(), answer.output), ("", None));
}

#[test]
fn a_failed_turn() {
    let message = "rate limit exceeded: Rate limit reached. Please try again in 11.054s.";
    let lines = [started(), error(message), failed(message)];
    let fault =
        read_with(&CodexSettings::default(), &request(), &lines, ProgramEnd::Exit(1), "").end.unwrap_err();
    assert_eq!((fault.class, fault.resets_in_ms), (FaultClass::RateLimited, Some(11_054)));
    let fault = read_with(&CodexSettings::default(), &request(), &lines[..2], ProgramEnd::Exit(1), "")
        .end
        .unwrap_err();
    assert_eq!(fault.class, FaultClass::RateLimited, "an error that nothing followed");
}

#[test]
fn a_turn_that_fails_after_work_has_unknown_usage() {
    let end = |lines: &[Value], ended| {
        let fault = read_with(&CodexSettings::default(), &request(), lines, ended, "").end.unwrap_err();
        (fault.usage.input_tokens, fault.usage_unknown)
    };
    let limit = "rate limit exceeded";
    let turn = json!({ "type": "turn.started" });
    let warning = item("completed", json!({ "id": "w", "type": "error", "message": "No metadata." }));
    let turned_away = [started(), warning, turn.clone(), error(limit), failed(limit)];
    assert_eq!(end(&turned_away, ProgramEnd::Exit(1)), (0, false), "nothing had begun");
    assert_eq!(end(&[], ProgramEnd::Exit(1)), (0, false));
    let ran = item("started", json!({ "id": "i", "type": "command_execution", "command": "ls" }));
    for work in [message("half"), ran] {
        assert_eq!(
            end(&[started(), turn.clone(), work.clone(), failed(limit)], ProgramEnd::Exit(1)),
            (0, true)
        );
        assert_eq!(
            end(&[started(), turn.clone(), work.clone(), error(limit)], ProgramEnd::Exit(1)),
            (0, true)
        );
        assert_eq!(end(&[started(), turn.clone(), work.clone()], ProgramEnd::Signal(9)), (0, true));
        assert_eq!(end(&[work], ProgramEnd::NotStarted("no".to_owned())), (0, false));
    }
    let told = [started(), message("x"), completed(7, 0, 1), failed(limit)];
    assert_eq!(end(&told, ProgramEnd::Exit(1)), (7, false), "reported usage is known");
    let more = [started(), message("x"), completed(7, 0, 1), message("y"), failed(limit)];
    assert_eq!(end(&more, ProgramEnd::Exit(1)), (7, true));
}

#[test]
fn output_without_a_completed_turn_is_a_crash() {
    let end = |lines: &[Value], ended, stderr: &str| {
        let fault = read_with(&CodexSettings::default(), &request(), lines, ended, stderr).end.unwrap_err();
        (fault.class, fault.message)
    };
    let said = "Error: thread/resume failed: no rollout found for thread id t-1";
    assert_eq!(end(&[], ProgramEnd::Exit(1), said), (FaultClass::SessionLost, format!("codex: {said}")));
    let working = [started(), message("half")];
    assert_eq!(end(&working, ProgramEnd::Exit(0), "").0, FaultClass::Malformed);
    assert_eq!(end(&working, ProgramEnd::Signal(9), "").0, FaultClass::Crashed);
    assert_eq!(end(&working, ProgramEnd::TimedOut, "").0, FaultClass::Timeout);
    assert_eq!(
        end(&[started(), error("429 Too Many Requests")], ProgramEnd::Signal(9), "").0,
        FaultClass::Crashed
    );
    assert_eq!(
        end(&[], ProgramEnd::Exit(2), "error: unexpected argument '--x' found").0,
        FaultClass::MissingProgram
    );
    assert_eq!(end(&[], ProgramEnd::Exit(1), "Error loading config.toml: x").0, FaultClass::MissingProgram);
    let done = [started(), message("x"), completed(1, 0, 1)];
    assert_eq!(end(&done, ProgramEnd::NotStarted("no".to_owned()), "").0, FaultClass::MissingProgram);
}

#[test]
fn an_answer_counts_whatever_the_exit_status() {
    for ended in [ProgramEnd::TimedOut, ProgramEnd::Signal(15), ProgramEnd::Exit(1)] {
        let lines = [started(), message("x"), completed(1, 0, 1)];
        assert!(read_with(&CodexSettings::default(), &request(), &lines, ended, "").end.is_ok());
    }
}

#[test]
fn invalid_lines_are_skipped_and_quoted_in_the_fault() {
    let with = |after: &[u8]| {
        let mut reader = Box::new(CodexReader::new(&CodexSettings::default(), &request(), now));
        for line in
            [&b"warning: something"[..], b"", b"[1]", br#"{"type":"item.completed","item":3}"#, b"\xff"]
        {
            reader.line(line);
        }
        reader.line(after);
        reader.end(ProgramEnd::Exit(0), b"")
    };
    assert!(with(completed(1, 0, 1).to_string().as_bytes()).is_ok());
    let fault = with(&completed(1, 0, 1).to_string().as_bytes()[..30]).unwrap_err();
    assert_eq!(fault.class, FaultClass::Malformed);
    assert!(fault.message.ends_with("invalid output: warning: something"), "{}", fault.message);
}
