//! Writes a state dir with many runs and one long run, to measure how they are watched: `large_journal DIR RUNS VISITS`.
#![expect(clippy::unwrap_used, clippy::panic, clippy::print_stdout, reason = "a tool for measurements")]

use cuegate_engine::Record;
use cuegate_journal::{
    Journal, NewRecord, Owner, RunId,
    log::{Durability, LogJournal, Options},
};
use cuegate_runner::StateDir;
use serde_json::{Value, json};

fn main() {
    let args: Vec<String> = std::env::args().collect();
    let [_, dir, runs, visits] = args.as_slice() else { panic!("large_journal DIR RUNS VISITS") };
    let home = StateDir::create(dir.as_ref()).unwrap();
    let journal = LogJournal::open(home.runs(), Options { durability: Durability::Relaxed }).unwrap();
    for index in 0..runs.parse::<i64>().unwrap() {
        write_run(&journal, &format!("run{index:05}"), 8, 1_795_262_400_000 + index * 60_000);
    }
    let records = write_run(&journal, "longlong", visits.parse().unwrap(), 1_795_862_400_000);
    println!("{records} records in the long run");
}

/// A run of two steps that follow each other; returns the number of its records.
fn write_run(journal: &LogJournal, name: &str, visits: u64, started_ms: i64) -> u64 {
    let run: RunId = name.parse().unwrap();
    journal.create(&run, started_ms).unwrap();
    let lease = journal.acquire(&run, &Owner::current()).unwrap();
    let (mut seq, mut at_ms) = (0, started_ms);
    let mut append = |events: &[Value]| {
        let body = json!({ "v": Record::VERSION, "events": events }).to_string();
        let record = NewRecord { at_ms, body: body.as_bytes(), blobs: &[], consumes: &[] };
        journal.append(&lease, seq, record).unwrap();
        at_ms += 700;
        seq += 1;
        seq - 1
    };
    let mut events = vec![json!({
        "event": "run_started", "program": "0.1.0", "flow": "large", "dialect": "takt", "path": "large.yaml",
        "sources": [], "params": {}, "provider": "scripted", "iterations_max": visits, "repairs_max": 1,
        "wait_max_ms": 60_000, "place": {"work": "/project"},
    })];
    for visit in 1..=visits {
        let (step, other) = if visit % 2 == 1 { ("write", "review") } else { ("review", "write") };
        let number = visit.div_ceil(2);
        events.push(
            json!({"event": "step_entered", "step": step, "counts": true, "visit": number, "attempt": 1,
            "iteration": visit}),
        );
        events.push(json!({"event": "ask_requested", "step": step, "kind": "work"}));
        let ask = json!({"for": "step", "seq": append(&std::mem::take(&mut events))});
        let call = |at: u64| json!({"tool": "Edit", "target": format!("src/{at}.rs"), "result": "ok", "at_ms": at * 100, "duration_ms": 80});
        let calls: Vec<Value> = (0..4).map(call).collect();
        events.push(json!({"event": "tools_used", "ask": ask, "step": step, "calls": calls}));
        events.push(
            json!({"event": "answered", "ask": ask, "step": step, "kind": "work", "provider": "scripted",
            "usage": {"input_tokens": 1000, "output_tokens": 100, "cost_usd": 0.01}, "duration_ms": 600}),
        );
        events.push(json!({"event": "decided", "step": step, "outcome": "next"}));
        let target = if visit == visits { "@completed" } else { other };
        events.push(
            json!({"event": "visit_ended", "step": step, "visit": number, "attempt": 1, "outcome": "next",
            "target": target}),
        );
    }
    events.push(json!({"event": "ended", "state": "completed", "reason": "done", "validated": true}));
    append(&events);
    journal.release(&lease).unwrap();
    seq
}
