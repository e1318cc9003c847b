//! The journal takes any bytes: a record is read as it was written, or refused.

use cuegate_engine::{Record, Run};
use cuegate_testkit::fuzz::{Mutator, executions};

const RECORDS: [&[u8]; 5] = [
    br#"{"v":1,"events":[{"event":"step_entered","step":"fix","counts":true,"visit":1,"attempt":1,"iteration":1}]}"#,
    br#"{"v":1,"events":[{"event":"run_started","program":"0.1.0","flow":"f","dialect":"piece","path":"f","sources":[{"path":"f.yaml","blob":"877ef4bb2ee4b587abbc81ac8113453a4c40585b4eafd35cf4e689171d45508b"}],"params":{},"provider":"claude","iterations_max":3,"repairs_max":1,"wait_max_ms":0,"sandboxed":true,"programs":{"git":"/usr/bin/git"},"place":{"work":"/w","owned":false,"dirty":false}}]}"#,
    br#"{"v":1,"events":[{"event":"sandbox_denied","by":{"for":"step","seq":3},"step":"fix","to":"a.com:443","why":"it is not allowed"},{"event":"resumed","unsandboxed":true,"retry":"fix"}]}"#,
    br#"{"v":1,"events":[{"event":"ended","state":"completed","reason":"done","validated":true}]}"#,
    br#"{"v":2,"events":[]}"#,
];

const WORDS: [&[u8]; 14] = [
    b"null",
    b"{}",
    b"[]",
    b"\"\"",
    b"-1",
    b"1e400",
    b"18446744073709551616",
    b",",
    b"\"",
    b"\\ud800",
    b"\xff",
    b"\0",
    b"{\"event\":\"resumed\"}",
    b"\"v\":1,",
];

#[test]
fn is_read_or_refused() {
    let mut mutator = Mutator::new(&RECORDS, &WORDS);
    let mut read = 0;
    for _ in 0..executions(300_000) {
        let Ok(record) = Record::parse(&mutator.input()) else { continue };
        read += 1;
        let written = serde_json::to_vec(&record).unwrap();
        let again = Record::parse(&written).unwrap();
        assert_eq!(again, record);
        // Whatever is in it, a run can be told from it.
        if record.events.first().is_some_and(|event| matches!(event, cuegate_engine::Event::RunStarted(_))) {
            Run::fold(std::iter::once(record.events.as_slice()));
        }
    }
    assert!(read > 1_000, "{read}");
}
