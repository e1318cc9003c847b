use std::num::NonZeroU32;

use serde_json::json;

use super::*;
use crate::{AskKind, Cap, McpServer, Session};

fn request() -> Request {
    Request {
        id: "run/1".to_owned(),
        step: "fix".to_owned(),
        subject: None,
        persona: None,
        persona_names: Vec::new(),
        readable: Vec::new(),
        kind: AskKind::Work,
        prompt: "fix it".to_owned(),
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

fn args(settings: &ClaudeSettings, request: &Request) -> Vec<String> {
    build_launch(settings, request).args.into_iter().map(|arg| arg.into_string().unwrap()).collect()
}

/// The arguments that differ from those of a plain ask.
fn more(change: impl FnOnce(&mut Request)) -> Vec<String> {
    let mut changed = request();
    change(&mut changed);
    let plain = args(&ClaudeSettings::default(), &request());
    let mut args = args(&ClaudeSettings::default(), &changed);
    args.retain(|arg| !plain.contains(arg));
    args
}

#[test]
fn a_plain_ask() {
    insta::assert_snapshot!(args(&ClaudeSettings::default(), &request()).join("\n"), @"
    -p
    --output-format=stream-json
    --verbose
    --include-partial-messages
    --permission-mode=dontAsk
    --setting-sources=project
    --system-prompt-snapshot=off
    ");
    let launch = build_launch(&ClaudeSettings::default(), &request());
    assert_eq!(launch.program, Path::new("claude"));
    assert_eq!(launch.stdin, b"fix it");
    assert!(launch.env.contains(&("CLAUDE_CODE_MAX_RETRIES".into(), "0".into())));
    assert!(launch.env.contains(&("CLAUDE_CODE_DISABLE_FILE_MENTIONS".into(), "1".into())));
    assert!(!launch.env.iter().any(|(name, _)| name == "IS_SANDBOX"), "Cuegate never sets IS_SANDBOX");
}

#[test]
fn settings_of_the_user() {
    let settings = ClaudeSettings {
        program: "/opt/claude".into(),
        model: Some("sonnet".to_owned()),
        max_turns: NonZeroU32::new(7),
        setting_sources: Vec::new(),
        env: vec![("CLAUDE_CODE_MAX_RETRIES".to_owned(), "2".to_owned())],
        args: vec!["--effort=high".to_owned()],
        ..ClaudeSettings::default()
    };
    insta::assert_snapshot!(args(&settings, &request()).join("\n"), @"
    -p
    --output-format=stream-json
    --verbose
    --include-partial-messages
    --permission-mode=dontAsk
    --setting-sources=
    --strict-mcp-config
    --model=sonnet
    --max-turns=7
    --system-prompt-snapshot=off
    --effort=high
    ");
    assert_eq!(
        build_launch(&settings, &request()).env.last(),
        Some(&("CLAUDE_CODE_MAX_RETRIES".into(), "2".into()))
    );
    let asked = Request { model: Some("opus".to_owned()), ..request() };
    assert!(
        args(&settings, &asked).contains(&"--model=opus".to_owned()),
        "the ask's model overrides the settings"
    );
}

#[test]
fn permissions() {
    assert_eq!(more(|ask| ask.permission = Permission::Plan), [""; 0], "as with the default permission");
    for (permission, mode) in
        [(Permission::AcceptEdits, "acceptEdits"), (Permission::BypassPermissions, "bypassPermissions")]
    {
        assert_eq!(more(|ask| ask.permission = permission), [format!("--permission-mode={mode}")]);
    }
}

#[test]
fn a_list_of_tools_restricts_and_approves() {
    let tools = |names: &[&str], permission| {
        let names = Some(names.iter().map(|name| (*name).to_owned()).collect());
        let mut args = more(|ask| (ask.tools, ask.permission) = (names, permission));
        args.retain(|arg| !arg.starts_with("--permission-mode"));
        args
    };
    let edits = Permission::AcceptEdits;
    assert_eq!(
        tools(&["Read", "Bash(git *)", "Bash(ls *)", "mcp__db__ask", "Write"], edits),
        ["--tools=Read,Bash,Write", "--allowedTools=Read,Bash(git *),Bash(ls *),mcp__db__ask"]
    );
    let all = Permission::BypassPermissions;
    assert_eq!(tools(&["Read", "Write"], all), ["--tools=Read,Write", "--allowedTools=Read,Write"]);
    assert_eq!(tools(&["Read", "Write"], Permission::Default), ["--tools=Read,Write", "--allowedTools=Read"]);
    assert_eq!(tools(&[], edits), ["--tools="]);
    assert_eq!(tools(&["--settings=x"], edits), ["--tools=--settings=x", "--allowedTools=--settings=x"]);
}

#[test]
fn a_session_is_resumed_or_forked() {
    let session = |fork| Some(Session { id: "s-1".to_owned(), fork, totals: None });
    assert_eq!(more(|ask| ask.session = session(false)), ["--resume=s-1"]);
    assert_eq!(more(|ask| ask.session = session(true)), ["--resume=s-1", "--fork-session"]);
}

#[test]
fn a_system_prompt_is_passed_as_a_file() {
    assert_eq!(
        more(|ask| ask.system = Some("be kind".to_owned())),
        ["--append-system-prompt-file=/scratch/system.md"]
    );
    let ask = Request { system: Some("be kind".to_owned()), ..request() };
    assert_eq!(
        build_launch(&ClaudeSettings::default(), &ask).files,
        [("system.md".to_owned(), b"be kind".to_vec())]
    );
}

#[test]
fn a_schema_is_passed_on_when_its_root_is_an_object() {
    let schema =
        json!({ "$schema": "http://json-schema.org/draft-04/schema#", "$id": "x", "type": "object" });
    assert_eq!(more(|ask| ask.schema = Some(schema)), [r#"--json-schema={"type":"object"}"#]);
    for schema in [
        json!({ "type": "array" }),
        json!({ "anyOf": [] }),
        json!(true),
        json!({ "type": "object", "description": "x".repeat(ARGUMENT_MAX) }),
    ] {
        assert!(more(|ask| ask.schema = Some(schema.clone())).is_empty());
        assert!(encode_native_schema(&schema).is_none());
    }
}

#[test]
fn an_effort_of_a_call_follows_that_of_all_calls() {
    let settings = ClaudeSettings { args: vec!["--effort=low".to_owned()], ..ClaudeSettings::default() };
    let launch = build_launch(&settings, &Request { effort: Some("high".to_owned()), ..request() });
    assert_eq!(launch.args[launch.args.len() - 2..], ["--effort=low", "--effort=high"]);
}

#[test]
fn servers_are_in_a_file_without_their_keys() {
    let transport = json!({ "command": "x", "env": { "KEY": "${PATH}" } });
    let server = McpServer { name: "a".to_owned(), transport: serde_json::from_value(transport).unwrap() };
    let asked = Request { tool_servers: vec![server], ..request() };
    let launch = build_launch(&ClaudeSettings::default(), &asked);
    let (name, text) = &launch.files[0];
    let text = String::from_utf8(text.clone()).unwrap();
    assert_eq!(name, "mcp.json");
    assert_eq!(text, r#"{"mcpServers":{"a":{"type":"stdio","command":"x","env":{"KEY":"${PATH}"}}}}"#);
    assert!(launch.env.contains(&("PATH".into(), std::env::var_os("PATH").unwrap())));
    assert!(launch.args.contains(&"--allowedTools=mcp__a".into()), "{:?}", launch.args);
}

#[test]
fn caps() {
    assert_eq!(more(|ask| ask.cap.usd = Some(0.25)), ["--max-budget-usd=0.25"]);
    assert_eq!(more(|ask| ask.cap.usd = Some(1e-7)), ["--max-budget-usd=0.0000001"]);
    assert!(more(|ask| ask.cap.tokens = Some(5)).is_empty(), "the caller enforces the token limit");
}

#[test]
fn a_prompt_is_never_a_slash_command() {
    let told = |prompt: &str| {
        build_launch(&ClaudeSettings::default(), &Request { prompt: prompt.to_owned(), ..request() }).stdin
    };
    assert_eq!(told("/compact now"), b"\n/compact now");
    assert_eq!(told(" /compact"), b" /compact");
}

#[test]
fn an_unattended_ask_has_no_question_tool() {
    assert_eq!(more(|ask| ask.unattended = true), ["--disallowedTools=AskUserQuestion"]);
    let both = more(|ask| {
        ask.unattended = true;
        ask.tools = Some(vec!["Read".to_owned(), "AskUserQuestion".to_owned()]);
    });
    assert!(both.contains(&"--disallowedTools=AskUserQuestion".to_owned()), "{both:?}");
}
