use cuegate_engine::{Budget, CommandId, Event, Ledger};
use cuegate_provider::{ProgramEnd, Provider as _, claude};
use serde_json::{Value, json};

use super::*;

/// A stream of an agent that works through messages of these input tokens, each with a text of `size` bytes in pieces.
fn stream(inputs: &[u64], size: usize) -> Vec<Value> {
    let part = |event: Value| json!({ "type": "stream_event", "event": event, "parent_tool_use_id": null });
    let mut lines =
        vec![json!({ "type": "system", "subtype": "init", "session_id": "s", "model": "claude-sonnet-4-5" })];
    for (nth, input) in inputs.iter().enumerate() {
        let usage = json!({ "input_tokens": input, "output_tokens": 1 });
        let message = json!({ "id": format!("m{nth}"), "model": "claude-sonnet-4-5", "usage": usage });
        lines.push(part(json!({ "type": "message_start", "message": message })));
        for _ in 0..4 {
            let delta = json!({ "type": "text_delta", "text": "x".repeat(size / 4) });
            lines.push(part(json!({ "type": "content_block_delta", "delta": delta })));
        }
        lines.push(part(json!({ "type": "message_delta", "usage": { "output_tokens": size / 4 } })));
        lines.push(part(json!({ "type": "message_stop" })));
    }
    lines
}

/// What a stream reports up to a cut, and the size of the message that is open there, in tokens.
fn reported(lines: &[Value]) -> (u64, u64) {
    let (mut sum, mut open) = (0, 0);
    for line in lines {
        let event = &line["event"];
        match event["type"].as_str() {
            Some("message_start") => {
                sum += event["message"]["usage"]["input_tokens"].as_u64().unwrap_or_default()
            }
            Some("content_block_delta") => open += event["delta"]["text"].as_str().map_or(0, str::len) as u64,
            Some("message_delta") => {
                sum += event["usage"]["output_tokens"].as_u64().unwrap_or_default();
                open = 0;
            }
            _ => {}
        }
    }
    (sum, open.div_ceil(4).max(1))
}

fn request(cap: provider::Cap) -> provider::Request {
    provider::Request {
        id: "run/1".to_owned(),
        step: "fix".to_owned(),
        subject: None,
        persona: None,
        persona_names: Vec::new(),
        kind: provider::AskKind::Work,
        prompt: String::new(),
        system: None,
        schema: None,
        model: None,
        session: None,
        permission: provider::Permission::Plan,
        tools: None,
        tool_servers: Vec::new(),
        effort: None,
        work: "/work".into(),
        readable: Vec::new(),
        timeout_ms: 1,
        cap,
        unattended: false,
        scratch: "/scratch".into(),
    }
}

#[test]
fn a_cut_costs_what_was_reported_and_the_sum_over_resumes_stays_in_the_budget() {
    let lines = stream(&[400, 900, 1_700], 400);
    let claude = claude::Claude::new(claude::ClaudeSettings::default());
    for cut_at in 0..=lines.len() {
        let budget = Budget { tokens: Some(9_000), usd_micro: Some(20_000), ..Budget::default() };
        let mut ledger = Ledger { budget, ..Ledger::default() };
        let mut cuts = 0;
        while let Ok(share) = ledger.share(1) {
            let cap =
                provider::Cap { usd: share.usd_micro.map(|micro| micro as f64 / 1e6), tokens: share.tokens };
            let Ok(PreparedAsk::Process { mut reader, .. }) = claude.prepare(&request(cap)) else { break };
            let mut meter = UsageMeter::new(cap);
            let text: Vec<String> = lines[..cut_at].iter().map(Value::to_string).collect();
            let mut read = 0;
            while read < cut_at && meter.excess().is_none() {
                reader.line(text[read].as_bytes()).iter().for_each(|activity| meter.add(activity));
                read += 1;
            }
            let cut = read_cut(reader, b"", 0, cap, &mut ToolLog::default());
            let (sum, open) = reported(&lines[..read]);
            let charged = cut.usage.input_tokens + cut.usage.output_tokens;
            assert!(!cut.unknown && charged <= sum + open, "cut at {cut_at}: {charged} of {sum} + {open}");
            assert!(
                charged >= sum.min(cap.tokens.unwrap_or(u64::MAX)),
                "cut at {cut_at}: nothing is forgotten"
            );
            let ask = CommandId::Step { seq: cuts };
            ledger.apply(&Event::Reserved { ask, share });
            let usage = translate::normalize_cost(cut.usage);
            ledger.apply(&Event::AskCut {
                ask,
                step: "fix".into(),
                usage,
                usage_unknown: false,
                spoilt: None,
            });
            assert!(ledger.spent.tokens <= 9_000 && ledger.spent.usd_micro <= 20_000, "cut at {cut_at}");
            cuts += 1;
            if cuts > 40 {
                assert_eq!(sum, 0, "cut at {cut_at}: only calls that never began are free");
                break;
            }
        }
        assert!(cuts > 2, "cut at {cut_at}: {cuts} cuts used the budget up");
    }
    let Ok(PreparedAsk::Process { reader, .. }) = claude.prepare(&request(provider::Cap::default())) else {
        panic!("it is a program")
    };
    let fault = reader.end(ProgramEnd::Exit(1), b"Error: Cannot find module 'x'").unwrap_err();
    assert_eq!((fault.usage.cost_usd, fault.usage_unknown), (Some(0.0), false), "it never began");
}
