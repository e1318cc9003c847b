//! Replays of journals in which something is another thing than was decided.
#![expect(clippy::unwrap_used, reason = "in a test a panic is the message")]

use std::{ops::ControlFlow, sync::Arc};

use cuegate_engine::{Answer, Completion, RunStarted, Start, list_pending_commands};
use cuegate_flow::model::{Flow, Role};
use cuegate_journal::{Blob, Journal, NewRecord, Owner, Record, RunId, memory::MemoryJournal};
use cuegate_runner::{
    RunWriter,
    replay::{Divergence, replay_run},
};
use cuegate_testkit::{Builder, flows};
use serde_json::{Value, json};

fn id() -> RunId {
    "abcdefgh".parse().unwrap()
}

fn flow() -> Arc<Flow> {
    let draft = Builder::new("f", "test", "a").ask("a", Role::Work, &["done", "more"]);
    let draft = draft.to("done", "@completed").to("more", "a");
    draft.flow()
}

/// A run that answers `more` twice and then `done`, with a text that is too long for a record.
fn recorded(flow: &Arc<Flow>) -> Arc<dyn Journal> {
    let journal: Arc<dyn Journal> = Arc::new(MemoryJournal::default());
    let started = RunStarted { iterations_max: 9, provider: "test".to_owned(), ..RunStarted::default() };
    let (mut writer, _) =
        RunWriter::begin(journal.clone(), &id(), flow.clone(), Start { started }, Vec::new(), None).unwrap();
    for outcome in ["more", "more", "done"] {
        let ask = list_pending_commands(flow, writer.run())[0].id();
        let answer = Answer {
            output: Some(json!({"action": outcome, "$text": "mine"})),
            text: format!("[{outcome}] {}", "long ".repeat(60)),
            ..Answer::default()
        };
        let completion = Completion::Answered { ask, answer: Box::new(answer), seen: None };
        writer.commit(completion, Vec::new(), &[]).unwrap();
    }
    drop(writer);
    journal
}

/// The same journal with one record as `change` makes it; all its texts but for those that `drops` names.
fn changed(
    journal: &dyn Journal,
    seq: u64,
    change: impl Fn(&mut Value),
    drops: &dyn Fn(&str) -> bool,
) -> MemoryJournal {
    let copy = MemoryJournal::default();
    copy.create(&id(), 0).unwrap();
    let lease = copy.acquire(&id(), &Owner::current()).unwrap();
    let mut records = Vec::new();
    let mut keep = |record: Record| {
        records.push(record);
        ControlFlow::Continue(())
    };
    journal.read_each(&id(), 0, &mut keep).unwrap();
    for Record { seq: at, at_ms, body } in records {
        let mut json: Value = serde_json::from_slice(&body).unwrap();
        let mut texts = Vec::new();
        find_digests(&json, &mut texts);
        if at == seq {
            change(&mut json);
        }
        let texts = texts.into_iter().filter(|digest| !drops(digest));
        let texts = texts.filter_map(|digest| journal.blob(&id(), &digest.parse().ok()?).unwrap());
        let blobs: Vec<Blob> = texts.map(Blob::new).collect();
        let body = serde_json::to_vec(&json).unwrap();
        copy.append(&lease, at, NewRecord { at_ms, body: &body, blobs: &blobs, consumes: &[] }).unwrap();
    }
    copy
}

fn find_digests(json: &Value, found: &mut Vec<String>) {
    match json {
        Value::String(text) if text.len() == 64 => found.push(text.clone()),
        Value::Array(list) => list.iter().for_each(|value| find_digests(value, found)),
        Value::Object(object) => object.values().for_each(|value| find_digests(value, found)),
        _ => {}
    }
}

fn replay(
    journal: &dyn Journal,
    flow: &Arc<Flow>,
) -> Result<(u64, Option<Box<Divergence>>), cuegate_runner::Error> {
    replay_run(journal, &id(), flow, &mut |_| None)
}

#[test]
fn a_record_that_was_decided_otherwise_is_found() {
    let flow = flow();
    let journal = recorded(&flow);
    assert_eq!(replay(&*journal, &flow).unwrap(), (4, None));
    for seq in 0..4 {
        // One event more.
        let more = |json: &mut Value| {
            let events = json["events"].as_array_mut().unwrap();
            let last = events.last().unwrap().clone();
            events.push(last);
        };
        let copy = changed(&*journal, seq, more, &|_| false);
        let (same, divergence) = replay(&copy, &flow).unwrap();
        let divergence = divergence.unwrap();
        assert_eq!((same, divergence.seq), (seq, seq));
        assert!(divergence.decided.is_none() && divergence.recorded.is_some());
        // One value is another one.
        let other = |json: &mut Value| {
            let events = json["events"].as_array_mut().unwrap();
            let named = events.iter_mut().find(|event| event.get("step").is_some()).unwrap();
            named["step"] = json!("b");
        };
        let copy = changed(&*journal, seq, other, &|_| false);
        let divergence = replay(&copy, &flow).unwrap().1.unwrap();
        assert_eq!(divergence.seq, seq);
        assert_ne!(divergence.decided, divergence.recorded);
    }
}

#[test]
fn an_answer_that_is_another_one_is_found() {
    let flow = flow();
    let journal = recorded(&flow);
    let other = |json: &mut Value| json["completion"]["answered"]["answer"]["duration_ms"] = json!(77);
    let copy = changed(&*journal, 2, other, &|_| false);
    let (same, divergence) = replay(&copy, &flow).unwrap();
    assert_eq!((same, divergence.unwrap().seq), (2, 2));
}

#[test]
fn what_cannot_be_replayed_is_an_error() {
    let flow = flow();
    let journal = recorded(&flow);
    let forget = |json: &mut Value| _ = json.as_object_mut().unwrap().remove("completion");
    let copy = changed(&*journal, 1, forget, &|_| false);
    let error = replay(&copy, &flow).unwrap_err();
    assert_eq!(error.to_string(), "failed to read record 1 of run `abcdefgh`");
    let copy = changed(&*journal, 9, |_| {}, &|_| true);
    assert!(replay(&copy, &flow).unwrap_err().to_string().starts_with("the journal lacks the text"));
}

#[test]
fn a_journal_of_another_flow_diverges() {
    // A journal of one flow, replayed with another: a divergence, never a panic.
    let journal = recorded(&flow());
    for other in flows::all() {
        let (_, divergence) = replay(&*journal, &other).unwrap();
        assert_eq!(divergence.unwrap().seq, 0, "{}", other.name);
    }
}
