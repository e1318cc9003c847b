//! Converts a stand-in's scenario to a script.

use cuegate_provider::scripted::Script;
use cuegate_testkit::standin::{Act, Reply, Scenario};
use serde_json::{Map, Value, json};

/// A script with one entry per reply, in the same order.
pub fn of(scenario: &Scenario) -> Script {
    let answers: Vec<Value> = scenario.replies.iter().map(|reply| entry(scenario, reply)).collect();
    let script = json!({ "answers": answers }).to_string();
    Script::parse(&script, "scenario").unwrap_or_else(|error| panic!("{error}: {script}"))
}

fn entry(scenario: &Scenario, reply: &Reply) -> Value {
    let tokens = reply.usage.unwrap_or(scenario.usage);
    let mut entry = Map::new();
    entry.insert("times".to_owned(), json!(reply.times));
    entry.insert(
        "usage".to_owned(),
        json!({
            "input_tokens": tokens.input + tokens.cached,
            "output_tokens": tokens.output,
            "cost_usd": 0.5,
        }),
    );
    for act in &reply.acts {
        match act {
            Act::Text(text) => drop(entry.insert("text".to_owned(), json!(text))),
            Act::Json(answer) => drop(entry.insert("output".to_owned(), answer.clone())),
            Act::Shell(command) => drop(entry.insert("runs".to_owned(), json!([command]))),
            Act::Write { path, content } => {
                entry.insert("writes".to_owned(), json!([{ "path": path, "content": content }]));
            }
            Act::Status { code, headers, .. } => {
                entry.insert("error".to_owned(), json!(status(*code)));
                if let Some(seconds) = headers.get("retry-after") {
                    entry.insert("resets_in_ms".to_owned(), json!(seconds.parse::<u64>().unwrap() * 1_000));
                }
            }
            Act::Refuse(_) => drop(entry.insert("error".to_owned(), json!("refused"))),
            Act::ContextOverflow => drop(entry.insert("error".to_owned(), json!("context_overflow"))),
            Act::Hang | Act::HangMidStream => drop(entry.insert("error".to_owned(), json!("hang"))),
            Act::Garbage | Act::DropMidStream => drop(entry.insert("error".to_owned(), json!("malformed"))),
            other => panic!("a script cannot say {other:?}"),
        }
    }
    Value::Object(entry)
}

fn status(code: u16) -> &'static str {
    match code {
        401 | 403 => "auth",
        429 => "rate_limited",
        500.. => "overloaded",
        _ => panic!("a script cannot say status {code}"),
    }
}
