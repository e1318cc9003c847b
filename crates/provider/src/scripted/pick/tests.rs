use std::sync::Arc;

use super::{Pool, Reservation, Script};
use crate::{AskKind, FaultClass, Permission, Request};

/// `step kind persona`, the latter two optional.
fn ask(words: &str) -> Request {
    let mut words = words.split(' ');
    let step = words.next().unwrap_or_default().to_owned();
    let kind = words.next().map_or(AskKind::Work, |kind| serde_json::from_value(kind.into()).unwrap());
    Request {
        id: "run/1".to_owned(),
        step,
        subject: None,
        persona: words.next().map(str::to_owned),
        persona_names: words.map(str::to_owned).collect(),
        readable: Vec::new(),
        kind,
        prompt: String::new(),
        system: None,
        schema: None,
        model: None,
        session: None,
        permission: Permission::AcceptEdits,
        tools: None,
        tool_servers: Vec::new(),
        effort: None,
        work: ".".into(),
        timeout_ms: 1000,
        cap: crate::Cap::default(),
        unattended: false,
        scratch: ".".into(),
    }
}

fn pool(text: &str) -> Arc<Pool> {
    Pool::new(Script::parse(text, "s.yaml").unwrap())
}

fn reserve(pool: &Arc<Pool>, words: &str) -> Option<Reservation> {
    pool.reserve(&ask(words)).ok()
}

/// Takes an entry and uses it up; its number from 0 and its receipt.
fn take(pool: &Arc<Pool>, words: &str) -> Option<(usize, String)> {
    let reservation = reserve(pool, words)?;
    let (index, receipt) = (reservation.index, reservation.receipt());
    reservation.settle(&receipt);
    Some((index, receipt))
}

fn taken(pool: &Arc<Pool>, asks: &[&str]) -> Vec<Option<usize>> {
    asks.iter().map(|words| take(pool, words).map(|(index, _)| index)).collect()
}

#[test]
fn all_conditions_must_match() {
    let cases = [
        ("{}", "a work", true),
        ("{}", "b judge p", true),
        ("{step: a}", "a", true),
        ("{step: a}", "a.b", false),
        ("{step: [a, b]}", "b", true),
        ("{step: [a, b]}", "c", false),
        ("{step: []}", "a", false),
        ("{step: a, kind: report}", "a report", true),
        ("{step: a, kind: report}", "a work", false),
        ("{step: a, kind: report}", "b report", false),
        ("{persona: p}", "a work p", true),
        ("{persona: p}", "a work q", false),
        ("{persona: p}", "a work", false),
        ("{persona: p}", "a work ../personas/p.md", true),
        ("{persona: p}", "a work q p", true),
        ("{persona: p, step: a, kind: work}", "a work p", true),
        ("{persona: p, step: a, kind: work}", "a repair p", false),
    ];
    for (entry, words, expected) in cases {
        let pool = pool(&format!("answers: [{entry}]"));
        assert_eq!(reserve(&pool, words).is_some(), expected, "{entry} for {words}");
    }
    for kind in ["work", "report", "judge", "check", "repair", "remedy"] {
        let pool = pool(&format!("answers: [{{kind: {kind}}}]"));
        assert!(reserve(&pool, &format!("a {kind}")).is_some(), "{kind}");
    }
}

#[test]
fn the_first_unused_entry_answers() {
    let pool = pool("answers: [{step: a}, {}, {step: a, times: 2}, {step: b, times: 0}]");
    assert_eq!(
        taken(&pool, &["b", "a", "a", "a", "a", "b", "b", "b"]),
        [Some(1), Some(0), Some(2), Some(2), None, Some(3), Some(3), Some(3)]
    );
}

#[test]
fn reservations_are_in_order_and_can_be_freed() {
    let pool = pool("answers: [{text: x, times: 2}, {text: y}]");
    let held: Vec<_> = (0..3).filter_map(|_| reserve(&pool, "a")).collect();
    assert_eq!(held.iter().map(|held| held.index).collect::<Vec<_>>(), [0, 0, 1]);
    assert!(reserve(&pool, "a").is_none(), "all are reserved");

    let mut held = held.into_iter();
    drop(held.next());
    let again = reserve(&pool, "a").unwrap();
    assert_eq!(again.index, 0, "an interrupted ask frees its entry");
    let receipt = again.receipt();
    again.settle(&receipt);
    assert!(reserve(&pool, "a").is_none(), "a used entry stays used");
    drop(held);
    assert_eq!(taken(&pool, &["a", "a", "a"]), [Some(0), Some(1), None]);
}

#[test]
fn receipts_restore_the_position() {
    let text = "answers: [{times: 2}, {step: b}, {text: last}]";
    let first = pool(text);
    let receipts: Vec<String> = ["a", "b", "b"].iter().map(|words| take(&first, words).unwrap().1).collect();
    let digest = Script::parse(text, "").unwrap().digest().to_owned();
    assert_eq!(digest.len(), 12);
    for (receipt, index) in receipts.iter().zip([0, 0, 1]) {
        assert!(receipt.starts_with(&format!("{digest}:{index}:")), "{receipt}");
    }

    let resumed = pool(text);
    resumed.restore(&receipts);
    assert_eq!(taken(&resumed, &["a", "a"]), [Some(2), None]);

    let other = pool("answers: [{}]");
    other.restore(&receipts);
    other.restore(&["", ":", "x", &format!("{}:9", other.script.digest()), "claude:1:2"].map(str::to_owned));
    assert_eq!(taken(&other, &["a", "a"]), [Some(0), None], "receipts of other scripts are ignored");
    let short = pool("answers: [{}]");
    short.restore(&[format!("{}:0", short.script.digest())]);
    assert_eq!(taken(&short, &["a"]), [None]);
}

#[test]
fn an_adopted_answer_counts_for_its_own_entry() {
    let pool = pool("answers: [{text: x}, {text: y}]");
    let receipt = pool.reserve(&ask("a")).unwrap().receipt().replace(":0:", ":1:");
    let reservation = reserve(&pool, "a").unwrap();
    reservation.settle(&receipt);
    assert_eq!(taken(&pool, &["a", "a"]), [Some(0), None]);
}

#[test]
fn an_exhausted_script_reports_the_ask() {
    let pool = pool("answers: [{step: a}, {step: b}]");
    assert_eq!(taken(&pool, &["a"]), [Some(0)]);
    let fault = |words: &str| pool.reserve(&ask(words)).err().unwrap();
    assert_eq!(fault("a").class, FaultClass::ScriptExhausted);
    insta::assert_snapshot!(fault("a work coder"), @r##"no scripted answer left for step `a` (kind work, persona coder): 2 entries, 1 used; hint: 1 would match and had their `times`; add one, or set `on_exhausted: repeat_last`"##);
    insta::assert_snapshot!(fault("c judge"), @"no scripted answer left for step `c` (kind judge): 2 entries, 1 used; hint: no entry matches this call");
}

#[test]
fn repeat_last_repeats_the_last_entry_of_the_group() {
    let text = "answers: [{step: a}, {kind: work}, {}]\non_exhausted: repeat_last";
    let first = pool(text);
    let (_, receipt) = take(&first, "a").unwrap();
    assert_eq!(taken(&first, &["b", "c judge"]), [Some(1), Some(2)]);
    assert_eq!(
        taken(&first, &["a", "b", "c judge"]),
        [Some(0), Some(1), Some(2)],
        "the last entry of the group"
    );
    assert_eq!(taken(&first, &["d"]), [Some(2)], "otherwise the last matching entry");

    let resumed = pool(text);
    let used = |index: usize| format!("{}:{index}", resumed.script.digest());
    resumed.restore(&[receipt, used(1), used(2)]);
    assert_eq!(taken(&resumed, &["a", "d"]), [Some(0), Some(2)], "the same after a resume");

    let none = pool("answers: [{step: a}]\non_exhausted: repeat_last");
    assert_eq!(taken(&none, &["b", "a", "a"]), [None, Some(0), Some(0)]);
}

#[test]
fn in_a_scenario_the_conductor_judges() {
    let pool = pool(
        r#"[{"persona": "coder", "content": "1"}, {"persona": "coder", "content": "2"},
            {"persona": "conductor", "content": "3"}, {"content": "4"}]"#,
    );
    assert_eq!(
        taken(&pool, &["a work coder", "a judge coder", "b work coder", "b work coder", "b judge coder"]),
        [Some(0), Some(2), Some(1), Some(3), None]
    );
    assert_eq!(taken(&self::pool(r#"[{"persona": "boss", "content": "1"}]"#), &["a judge boss"]), [Some(0)]);
}
