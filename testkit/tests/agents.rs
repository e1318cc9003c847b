//! The real agents, talking to a stand-in in a namespace without a network.
#![expect(clippy::unwrap_used, reason = "in a test a panic is the message")]

use std::{
    fs,
    path::Path,
    process::{Command, Output, Stdio},
};

use cuegate_testkit::{
    offline,
    standin::{Body, Reply, Scenario, Standin},
};
use serde_json::{Value, json};

/// Runs Claude with more arguments, the prompt from its standard input apart; says its result.
fn claude(standin: &Standin, dir: &Path, args: &[&str]) -> Value {
    let mut command = Command::new(offline::agents().claude);
    command.args(["-p", "--output-format", "stream-json", "--verbose"]).args(args);
    let output = run(command.envs(standin.claude_env()), dir);
    let result = lines(&output).into_iter().find(|line| line["type"] == "result");
    result.unwrap_or_else(|| panic!("no result: {output:?}"))
}

/// Runs codex with more arguments; says its events.
fn codex(standin: &Standin, dir: &Path, args: &[&str]) -> Vec<Value> {
    codex_by(&["exec"], standin, dir, args)
}

fn codex_by(words: &[&str], standin: &Standin, dir: &Path, args: &[&str]) -> Vec<Value> {
    let mut command = Command::new(offline::agents().codex);
    command.args(words).args(["--json", "--skip-git-repo-check"]).args(standin.codex_args()).args(args);
    let output = run(command.envs(standin.codex_env()), dir);
    assert!(!output.stdout.is_empty(), "{output:?}");
    lines(&output)
}

fn run(command: &mut Command, dir: &Path) -> Output {
    command.current_dir(dir).stdin(Stdio::null()).output().unwrap()
}

fn lines(output: &Output) -> Vec<Value> {
    let text = String::from_utf8_lossy(&output.stdout);
    text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
}

/// The text of codex' last message.
fn last_message(events: &[Value]) -> &str {
    let mut messages = events.iter().filter(|event| event["item"]["type"] == "agent_message");
    messages
        .next_back()
        .and_then(|event| event["item"]["text"].as_str())
        .unwrap_or_else(|| panic!("{events:#?}"))
}

fn schema() -> Value {
    json!({"type": "object", "properties": {"verdict": {"type": "string"}}, "required": ["verdict"],
        "additionalProperties": false})
}

#[test]
fn claude_says_a_text() {
    if !offline::inside() {
        return;
    }
    let standin =
        Standin::start(Scenario::new().usage(70, 30, 9).reply(Reply::to("Greet").text("Hällo, world.")));
    let dir = tempfile::tempdir().unwrap();
    let result = claude(&standin, dir.path(), &["Greet the world."]);
    assert_eq!(result["result"], "Hällo, world.", "{result:#}");
    assert_eq!(result["is_error"], false);
    assert_eq!(result["usage"]["input_tokens"], 70);
    assert_eq!(result["usage"]["cache_read_input_tokens"], 30);
    assert_eq!(result["usage"]["output_tokens"], 9);
    assert_eq!(standin.unmatched(), [""; 0]);
}

#[test]
fn claude_gives_a_structured_answer() {
    if !offline::inside() {
        return;
    }
    let answer = json!({"verdict": "approved"});
    let standin = Standin::start(Scenario::new().reply(Reply::to("Review").json(answer.clone())));
    let dir = tempfile::tempdir().unwrap();
    let result = claude(&standin, dir.path(), &["--json-schema", &schema().to_string(), "Review it."]);
    assert_eq!(result["structured_output"], answer, "{result:#}");
    assert!(standin.answered()[0].tools.iter().any(|tool| tool == "StructuredOutput"));
}

#[test]
fn claude_works_with_its_tools() {
    if !offline::inside() {
        return;
    }
    let reply =
        Reply::to("Work").text("Writing.").write("a.txt", "a'b\n").shell("cp a.txt b.txt").text("Done.");
    let standin = Standin::start(Scenario::new().reply(reply));
    let dir = tempfile::tempdir().unwrap();
    let mode = ["--permission-mode", "acceptEdits", "--allowedTools", "Bash"];
    let result = claude(&standin, dir.path(), &[&mode[..], &["--", "Work."]].concat());
    assert_eq!(result["result"], "Done.", "{result:#}\n{:#?}", standin.requests().last());
    assert_eq!(fs::read_to_string(dir.path().join("b.txt")).unwrap(), "a'b\n");
    assert_eq!(standin.answered().len(), 3);
}

/// Reminded of the answer that it owes, it is still at the same turn.
#[test]
fn claude_is_reminded_of_its_answer() {
    if !offline::inside() {
        return;
    }
    let standin = Standin::start(
        Scenario::new()
            .reply(Reply::to("Review").text("It is good."))
            .reply(Reply::to("Review").json(json!({"verdict": "approved"}))),
    );
    let dir = tempfile::tempdir().unwrap();
    let result = claude(&standin, dir.path(), &["--json-schema", &schema().to_string(), "Review it."]);
    assert_eq!(result["structured_output"]["verdict"], "approved", "{result:#}");
    assert_eq!(standin.answered().len(), 2);
}

/// The ids of a stand-in differ from those of the one before: Claude would ask twice where it meets one again.
#[test]
fn claude_goes_on_in_a_session() {
    if !offline::inside() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let id = "00000000-0000-4000-8000-000000000001";
    let first = Standin::start(Scenario::new().reply(Reply::to("Look").shell("true").text("Seen.")));
    claude(&first, dir.path(), &["--session-id", id, "--allowedTools=Bash", "Look."]);
    let second = Standin::start(Scenario::new().reply(Reply::to("again").shell("true").text("Seen again.")));
    let result = claude(&second, dir.path(), &["--resume", id, "--allowedTools=Bash", "Look again."]);
    assert_eq!(result["result"], "Seen again.", "{result:#}");
    assert_eq!(second.answered().len(), 2);
    assert!(second.answered()[0].body["messages"].to_string().contains("Look."));
}

#[test]
fn codex_goes_on_in_a_session() {
    if !offline::inside() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let first = Standin::start(Scenario::new().reply(Reply::to("Look").shell("true").text("Seen.")));
    let events = codex(&first, dir.path(), &["Look."]);
    let id = events[0]["thread_id"].as_str().unwrap();
    let second = Standin::start(Scenario::new().reply(Reply::to("again").shell("true").text("Seen again.")));
    let events = codex_by(&["exec", "resume"], &second, dir.path(), &[id, "Look again."]);
    assert_eq!(last_message(&events), "Seen again.");
    assert_eq!(second.answered().len(), 2);
    assert!(second.answered()[0].body["input"].to_string().contains("Seen."));
}

#[test]
fn a_rate_limit_reaches_claude_and_codex() {
    if !offline::inside() {
        return;
    }
    let limited = Reply::any().status_with(429, Body::Api, &[("retry-after", "3600")]).for_ever();
    let standin = Standin::start(Scenario::new().reply(limited));
    let dir = tempfile::tempdir().unwrap();
    let result = claude(&standin, dir.path(), &["Work."]);
    assert_eq!((&result["is_error"], &result["api_error_status"]), (&json!(true), &json!(429)));
    let events = codex(&standin, dir.path(), &["Work."]);
    let message = events.last().unwrap()["error"]["message"].as_str().unwrap().to_owned();
    assert!(message.contains("429 Too Many Requests"), "{message}");
    // Neither tries again.
    assert_eq!(standin.requests().len(), 2);
}

#[test]
fn codex_says_a_text() {
    if !offline::inside() {
        return;
    }
    let standin =
        Standin::start(Scenario::new().usage(70, 30, 9).reply(Reply::to("Greet").text("Hällo, world.")));
    let dir = tempfile::tempdir().unwrap();
    let events = codex(&standin, dir.path(), &["Greet the world."]);
    assert_eq!(last_message(&events), "Hällo, world.");
    let end = events.last().unwrap();
    assert_eq!(end["type"], "turn.completed");
    assert_eq!(end["usage"]["input_tokens"], 100);
    assert_eq!(end["usage"]["cached_input_tokens"], 30);
    assert_eq!(end["usage"]["output_tokens"], 9);
    assert_eq!(standin.unmatched(), [""; 0]);
}

#[test]
fn codex_gives_a_structured_answer() {
    if !offline::inside() {
        return;
    }
    let answer = json!({"verdict": "approved"});
    let standin = Standin::start(Scenario::new().reply(Reply::to("Review").text("So.").json(answer.clone())));
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("schema.json"), schema().to_string()).unwrap();
    let events = codex(&standin, dir.path(), &["--output-schema", "schema.json", "Review it."]);
    assert_eq!(serde_json::from_str::<Value>(last_message(&events)).unwrap(), answer);
    assert_eq!(standin.answered()[0].body["text"]["format"]["schema"], schema());
}

/// Newer models write their calls as programs, older ones one by one.
#[test]
fn codex_works_with_its_tools() {
    if !offline::inside() {
        return;
    }
    for model in [&[][..], &["-m", "gpt-5.1-codex"]] {
        let reply =
            Reply::to("Work").text("Writing.").write("a.txt", "a'b\n").shell("cp a.txt b.txt").text("Done.");
        let standin = Standin::start(Scenario::new().reply(reply));
        let dir = tempfile::tempdir().unwrap();
        let events = codex(&standin, dir.path(), &[model, &["-s", "workspace-write", "Work."]].concat());
        assert_eq!(last_message(&events), "Done.");
        let written = fs::read_to_string(dir.path().join("b.txt"));
        assert_eq!(written.unwrap_or_else(|error| panic!("{error}: {events:#?}")), "a'b\n");
        assert_eq!(standin.answered().len(), 3);
    }
}
