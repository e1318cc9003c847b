use cuegate_engine::{Completion, FaultClass};
use serde_json::json;

use super::{SpanKind, Spans};
use crate::testing::{Scene, piece};

/// A line per span: what is in what, and how it ended.
fn lines(spans: &Spans) -> String {
    let line = |span: &super::Span| {
        let depth = std::iter::successors(span.parent, |parent| spans.all()[*parent].parent).count();
        let mut line = format!("{}{} {}", "  ".repeat(depth), span.kind.as_str(), span.name);
        if span.visit > 0 {
            line.push_str(&format!(" #{}", span.visit));
        }
        if !span.detail.is_empty() {
            line.push_str(&format!(" ({})", span.detail));
        }
        let took = span.to_ms.map(|to_ms| format!("{} ms", to_ms - span.from_ms));
        line.push_str(&format!(": {} {}", span.state.as_str(), took.unwrap_or_default()));
        for more in [&span.outcome, &span.target].into_iter().flatten() {
            line.push_str(&format!(" {more}"));
        }
        line
    };
    spans.all().iter().map(line).collect::<Vec<_>>().join("\n")
}

#[test]
fn validators_and_a_remedy() {
    insta::assert_snapshot!(lines(&Spans::of_records(&Scene::remedied().records)), @"
    visit initial.fix #1: ok 1200 ms next continuation.fix
      ask initial.fix (work): ok 1200 ms
    visit continuation.fix #1: ok 2400 ms handoff closure.fix
      ask continuation.fix (work): ok 1200 ms
      ask continuation.fix (repair): ok 1200 ms
    visit closure.fix #1: ok 1400 ms closing continuation.fix
      ask closure.fix (work): ok 1200 ms
    visit closure.fix/validators #1 (cargo test): failed 200 ms failed continuation.fix
      validator cargo test (cargo test): failed 200 ms exit 1
    visit continuation.fix #2: ok 1250 ms handoff closure.fix
      ask continuation.fix (remedy): failed 50 ms rate_limited: slow down
      ask continuation.fix (remedy): ok 0 ms
    visit closure.fix #2: ok 1600 ms closing @completed
      ask closure.fix (work): ok 1200 ms
    visit closure.fix/validators #2 (cargo test): ok 400 ms passed @completed
      validator cargo test (cargo test): ok 200 ms exit 0
      validator git status --porcelain (git status --porcelain): ok 200 ms exit 0
    ");
}

#[test]
fn members_and_monitors() {
    let spans = Spans::of_records(&Scene::reviewed().records);
    insta::assert_snapshot!(lines(&spans), @r#"
    visit plan #1: ok 1200 ms ready reviewers
      ask plan (work): ok 1200 ms
    visit reviewers #1: ok 1800 ms any("needs_fix") fix
      ask security (work): ok 1800 ms
      ask style (work): ok 900 ms
    visit fix #1: ok 1200 ms done reviewers
      ask fix (work): ok 1200 ms
    visit reviewers #2: ok 1800 ms any("needs_fix") fix
      ask security (work): ok 1800 ms
      ask style (work): ok 900 ms
    visit fix #2: ok 2400 ms done (by monitor:reviewers+fix) reviewers
      ask fix (work): ok 1200 ms
    visit monitor:reviewers+fix #1: ok 1200 ms healthy reviewers
      ask monitor:reviewers+fix (judge): ok 1200 ms
    visit reviewers #3: ok 1800 ms all("approved") @completed
      ask security (work): ok 900 ms
      ask style (work): ok 1800 ms
    "#);
    let edges: Vec<String> =
        spans.edges().map(|edge| format!("{} → {} {}", edge.from, edge.to, edge.count)).collect();
    insta::assert_snapshot!(edges.join("\n"), @"
    fix → monitor:reviewers+fix 1
    fix → reviewers 1
    monitor:reviewers+fix → reviewers 1
    plan → reviewers 1
    reviewers → @completed 1
    reviewers → fix 2
    ");
    let counts: Vec<String> = spans.counts().map(|(step, count)| format!("{step} {count}")).collect();
    assert_eq!(
        counts,
        ["fix 2", "monitor:reviewers+fix 1", "plan 1", "reviewers 3", "security 3", "style 3"]
    );
    let last = spans.spend().last().unwrap();
    assert_eq!((last.tokens, last.reserved_usd), (15_000, 0.0));
}

#[test]
fn waits_are_spans() {
    let mut scene = Scene::start(piece());
    scene
        .says(json!({"action": "unclear"}))
        .person_says("this")
        .faults(FaultClass::RateLimited, "slow down", Some(7_200_000))
        .happens(Completion::Resumed(Box::default()));
    insta::assert_snapshot!(lines(&Spans::of_records(&scene.records)), @r#"
    visit plan #1: ok 6200 ms unclear plan
      ask plan (work): ok 1200 ms
    visit ask_user #1: ok 5000 ms answered plan
    wait person (`plan` said: > {"action":"unclear"} What is meant? Say more.): ok 5000 ms
    visit plan #2: open 
      ask plan (work): failed 50 ms rate_limited: slow down
    wait quota (rate limit: slow down): ok 5000 ms
      ask plan (work): open
    "#);
}

/// Whether the records come one by one or all at once makes no difference, and no span is missing on a page.
#[test]
fn live_spans_equal_those_of_the_finished_run() {
    for scene in [Scene::remedied(), Scene::reviewed()] {
        let mut live = Spans::default();
        for (index, record) in scene.records.iter().enumerate() {
            live.apply(record);
            let changed = live.take_changed();
            let whole = Spans::of_records(&scene.records[..=index]);
            assert_eq!(live.all(), whole.all());
            assert_eq!(live.to_json("r", 0, usize::MAX), whole.to_json("r", 0, usize::MAX));
            // What is before the first changed span is as it was.
            let before = Spans::of_records(&scene.records[..index]);
            let same = changed.unwrap_or(live.all().len()).min(before.all().len());
            assert_eq!(live.all()[..same], before.all()[..same]);
        }
        let paged: Vec<usize> =
            (0..live.visits()).flat_map(|visit| live.page(visit, 1)).map(|span| span.id).collect();
        assert_eq!(paged, (0..live.all().len()).collect::<Vec<_>>());
        assert!(
            live.all()
                .iter()
                .any(|span| span.kind == SpanKind::Validator || span.name.starts_with("monitor"))
        );
    }
}
