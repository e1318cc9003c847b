//! Recorded journals stay readable. After a release the files are never edited; a new format adds a folder.
#![expect(clippy::disallowed_methods, reason = "the journals are files")]

use std::{fs, path::Path};

use cuegate_engine::{Record, Run, State, UnreadableRecord, list_pending_commands};
use cuegate_testkit::flows;

/// Each journal folds to the end in its name, `FLOW-STATE-ITERATIONS.jsonl`, and has pending commands only while it runs.
#[test]
fn recorded_journals_are_read() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/journals");
    let mut read = 0;
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let records: Vec<Record> = fs::read_to_string(&path)
            .unwrap()
            .lines()
            .map(|line| Record::parse(line.as_bytes()).unwrap())
            .collect();
        let run = Run::fold(records.iter().map(|record| record.events.as_slice()));
        let name = path.file_stem().unwrap().to_str().unwrap().to_owned();
        let state = match &run.state {
            State::Ended { state, .. } => format!("{state:?}").to_lowercase(),
            State::Suspended(_) => "suspended".to_owned(),
            State::New | State::Running => "running".to_owned(),
        };
        let flow = flows::all().into_iter().find(|flow| flow.name == run.started().flow).unwrap();
        assert_eq!(name, format!("{}-{state}-{}", flow.name, run.progress.iterations));
        assert_eq!(list_pending_commands(&flow, &run).is_empty(), state != "running", "{name}");
        read += 1;
    }
    assert!(read >= 20, "only {read} journals");
}

#[test]
fn records_of_a_newer_format_are_rejected() {
    let newer = br#"{"v":2,"events":[{"event":"something_else"}]}"#;
    assert!(matches!(Record::parse(newer), Err(UnreadableRecord::Newer { found: 2, known: 1 })));
    assert!(matches!(Record::parse(b"{}"), Err(UnreadableRecord::Damaged(_))));
}
