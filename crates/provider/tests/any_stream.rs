//! The readers of agents take any output: they neither panic nor grow, and what they return is bounded by what they read.

use cuegate_provider::{AskKind, Cap, Permission, PreparedAsk, ProgramEnd, Provider, Request, claude, codex};
use cuegate_testkit::fuzz::{Mutator, executions};
use serde_json::json;

const CLAUDE: [&[u8]; 8] = [
    br#"{"type":"system","subtype":"init","session_id":"s1","model":"m","tools":["Read"],"apiKeySource":"none"}"#,
    br#"{"type":"assistant","message":{"id":"m1","content":[{"type":"text","text":"Fine."},{"type":"tool_use","id":"t1","name":"Bash","input":{"command":"ls"}}],"usage":{"input_tokens":3,"output_tokens":5}}}"#,
    br#"{"type":"user","message":{"content":[{"type":"tool_result","tool_use_id":"t1","is_error":true,"content":"denied"}]}}"#,
    br#"{"type":"result","subtype":"success","is_error":false,"session_id":"s1","result":"{\"a\":\"x\"}","structured_output":{"a":"x"},"usage":{"input_tokens":10,"output_tokens":20},"total_cost_usd":0.5}"#,
    br#"{"type":"result","subtype":"error_max_turns","is_error":true,"session_id":"s1","permission_denials":[{"tool_name":"Write","tool_input":{"file_path":"/x"}}]}"#,
    br#"{"type":"rate_limit_event","rate_limit_info":{"status":"rejected","resetsAt":1790000000,"rateLimitType":"five_hour"}}"#,
    br#"{"type":"system","subtype":"api_retry","attempt":1,"max_retries":10,"retry_delay_ms":500,"error_status":529,"error":"overloaded"}"#,
    b"API Error: 401 {\"type\":\"error\",\"error\":{\"type\":\"authentication_error\"}}",
];

const CODEX: [&[u8]; 8] = [
    br#"{"type":"thread.started","thread_id":"t1"}"#,
    br#"{"type":"turn.started"}"#,
    br#"{"type":"item.started","item":{"id":"i1","type":"command_execution","command":"ls","status":"in_progress"}}"#,
    br#"{"type":"item.completed","item":{"id":"i1","type":"command_execution","command":"ls","aggregated_output":"a","exit_code":0,"status":"completed"}}"#,
    br#"{"type":"item.completed","item":{"id":"i2","type":"file_change","changes":[{"path":"a","kind":"add"}],"status":"failed"}}"#,
    br#"{"type":"item.completed","item":{"id":"m","type":"agent_message","text":"{\"a\":\"x\"}"}}"#,
    br#"{"type":"turn.completed","usage":{"input_tokens":1,"cached_input_tokens":0,"output_tokens":9}}"#,
    br#"{"type":"turn.failed","error":{"message":"You've hit your usage limit. Try again at 3:04 PM."}}"#,
];

const WORDS: [&[u8]; 22] = [
    b"null",
    b"{}",
    b"[]",
    b"\"\"",
    b"-1",
    b"1e999",
    b"18446744073709551616",
    b"true",
    b",",
    b":",
    b"\"",
    b"\\",
    b"\\u0000",
    b"\\ud800",
    b"\xff",
    b"\0",
    b"{\"type\":",
    b"\"text\"",
    b"\"usage\"",
    b"[[[[[[[[[[[[[[[[",
    b"\"session_id\"",
    b"99999999999999999999",
];

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
        schema: Some(json!({"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]})),
        model: None,
        session: None,
        permission: Permission::Plan,
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

/// Feeds streams of a few lines to the reader of a provider.
fn survives(provider: &dyn Provider, seeds: &[&[u8]]) {
    let mut mutator = Mutator::new(seeds, &WORDS);
    let mut left = executions(100_000);
    let mut answers = 0;
    while left > 0 {
        let PreparedAsk::Process { mut reader, .. } =
            provider.prepare(&request()).expect("the request is valid")
        else {
            panic!("it is a program");
        };
        let (mut read, mut shown) = (0, 0);
        for _ in 0..=mutator.below(8) {
            // Every other line is as it should be, so that the changed ones meet a reader in any state.
            let line = match mutator.below(2) {
                0 => seeds[mutator.below(seeds.len())].to_vec(),
                _ => mutator.input(),
            };
            read += line.len();
            shown += format!("{:?}", reader.line(&line)).len();
            left = left.saturating_sub(1);
        }
        let ended = if mutator.below(2) == 0 { ProgramEnd::Exit(0) } else { ProgramEnd::Exit(1) };
        let end = reader.end(ended, &mutator.input());
        answers += u32::from(end.is_ok());
        shown += format!("{end:?}").len();
        assert!(shown < 20 * read + 20_000, "{shown} bytes of {read}");
    }
    assert!(answers > 10, "{answers} answers");
}

#[test]
fn of_claude() {
    survives(&claude::Claude::new(claude::ClaudeSettings::default()), &CLAUDE);
}

#[test]
fn of_codex() {
    survives(&codex::Codex::new(codex::CodexSettings::default()), &CODEX);
}
