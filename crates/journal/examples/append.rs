//! Writes runs at the same time, to measure a journal: `append DIR NAME RUNS RECORDS` makes the runs `NAME-0`, `NAME-1` …
//! with that many records each, one thread per run.
#![expect(clippy::unwrap_used, clippy::panic, reason = "a tool for measurements")]

use cuegate_journal::{
    Blob, Journal, NewRecord, Owner, RunId,
    log::{LogJournal, Options},
};

fn main() {
    let args: Vec<String> = std::env::args().collect();
    let [_, dir, name, runs, records] = args.as_slice() else { panic!("append DIR NAME RUNS RECORDS") };
    let journal = LogJournal::open(dir, Options::default()).unwrap();
    let (runs, records): (u32, u64) = (runs.parse().unwrap(), records.parse().unwrap());
    std::thread::scope(|scope| {
        for index in 0..runs {
            let run: RunId = format!("{name}-{index}").parse().unwrap();
            let journal = &journal;
            scope.spawn(move || write_run(journal, &run, records));
        }
    });
}

/// Writes records with a text each, together 2 KiB.
fn write_run(journal: &dyn Journal, run: &RunId, records: u64) {
    journal.create(run, 1).unwrap();
    let lease = journal.acquire(run, &Owner::current()).unwrap();
    let body = "x".repeat(1_100);
    for seq in 0..records {
        let blobs = [Blob::new(format!("{seq} ").repeat(150).into_bytes())];
        let record = NewRecord { at_ms: 1, body: body.as_bytes(), blobs: &blobs, consumes: &[] };
        journal.append(&lease, seq, record).unwrap();
    }
    journal.release(&lease).unwrap();
}
