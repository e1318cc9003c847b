//! Hand-made runs with unknown costs, maximal counts, and caps that are not limits of the run.

use cuegate_engine::{Budget, CommandId, Event, FaultClass, Share, Usage};
use jiff::tz::TimeZone;
use serde_json::json;

use crate::log_text::{Timeline, render_timeline};
use crate::report::render_report;
use crate::run_end::render_run_end;
use crate::stamped::StampedRecord;
use crate::status::render_status;
use crate::summary::{Liveness, RunView, run_view};
use crate::testing::{START_MS, Scene, registry, started};

const STEP: &str = "initial.fix";

fn start_events(budget: Budget) -> Vec<Event> {
    let mut start = started(&registry());
    start.budget = budget;
    vec![Event::RunStarted(Box::new(start))]
}

fn faulted(seq: u64, class: FaultClass, message: &str, usage: Usage) -> Event {
    Event::Faulted {
        ask: CommandId::Step { seq },
        step: STEP.into(),
        class,
        agent: None,
        message: message.into(),
        usage_unknown: matches!(class, FaultClass::Timeout | FaultClass::Crashed),
        spoilt: None,
        usage,
        receipt: None,
        changed_files: Vec::new(),
        tree: None,
    }
}

fn cut(seq: u64) -> Event {
    let usage = Usage::default();
    Event::AskCut {
        ask: CommandId::Step { seq },
        step: STEP.into(),
        usage,
        usage_unknown: true,
        spoilt: None,
    }
}

fn answered(seq: u64, usage: serde_json::Value) -> Event {
    serde_json::from_value(json!({
        "event": "answered", "ask": {"for": "step", "seq": seq}, "step": STEP, "kind": "work",
        "usage": usage, "provider": "scripted"
    }))
    .unwrap()
}

fn exhausted(reason: &str) -> Event {
    serde_json::from_value(json!({
        "event": "ended", "state": "exhausted", "reason": reason, "validated": false, "stays": true
    }))
    .unwrap()
}

fn stamped(records: Vec<Vec<Event>>) -> Vec<StampedRecord> {
    let stamp =
        |(seq, events)| StampedRecord { seq: seq as u64, at_ms: START_MS + 1_000 * seq as i64, events };
    records.into_iter().enumerate().map(stamp).collect()
}

fn view(records: Vec<Vec<Event>>) -> RunView {
    run_view("r1", &stamped(records), Liveness::None)
}

/// The cost lines of the status, the end lines and the report.
fn cost_lines(view: &RunView) -> [String; 3] {
    let line = |page: &str, label: &str| {
        page.lines().find(|line| line.starts_with(label)).unwrap_or_default()[label.len()..].trim().to_owned()
    };
    [
        line(&render_status(view, &|_| None, START_MS, &TimeZone::UTC), "cost "),
        line(&render_run_end(view, &|_| None, &TimeZone::UTC, None).join("\n"), "used "),
        line(&render_report(view, &|_| None, &TimeZone::UTC), "- Cost: "),
    ]
}

fn reserved(seq: u64) -> Event {
    let share = Share { usd_micro: Some(5_000_000), tokens: None };
    Event::Reserved { ask: CommandId::Step { seq }, share }
}

#[test]
fn cut_off_and_failed_asks_have_an_unknown_cost() {
    let budget = Budget { usd_micro: Some(20_000_000), ..Budget::default() };
    let used = Usage::default();
    let view = view(vec![
        start_events(budget),
        vec![reserved(1), cut(1)],
        vec![reserved(2), faulted(2, FaultClass::Timeout, "no answer", used)],
        vec![reserved(3), faulted(3, FaultClass::Crashed, "gone", used)],
    ]);
    assert_eq!(view.ledger.spent.usd_micro, 15_000_000);
    let unknown = "unknown: 3 calls were cut off or failed";
    assert_eq!(cost_lines(&view), [unknown.to_owned(), format!("{unknown}, in 3.0 s"), unknown.to_owned()]);
    let table = crate::runs_table(&[crate::RunRow::of(&view)], START_MS);
    assert!(table.contains("unknown"), "{table}");
    let json = view.to_json(&|_| None);
    assert_eq!((&json["unknown_asks"], &json["cut_asks"]), (&json!(3), &json!(1)));
}

#[test]
fn known_and_unknown_costs_are_shown_together() {
    let paid = json!({"input_tokens": 3, "output_tokens": 4, "cost_usd": 0.25});
    let one = view(vec![start_events(Budget::default()), vec![answered(1, paid.clone()), cut(2), cut(3)]]);
    let more = ", plus an unknown amount for 2 calls that were cut off or failed";
    let sum = format!("$0.25{more}");
    assert_eq!(
        cost_lines(&one),
        [sum.clone(), format!("3 calls (2 cut off), 7 tokens, $0.25 in 1.0 s{more}"), sum]
    );
    let unpriced = answered(4, json!({"input_tokens": 1, "output_tokens": 1}));
    let two = view(vec![start_events(Budget::default()), vec![answered(1, paid), unpriced.clone(), cut(2)]]);
    assert_eq!(
        cost_lines(&two)[0],
        "$0.25, plus an unknown amount for 1 call and 1 call that was cut off or failed"
    );
    let three = view(vec![start_events(Budget::default()), vec![unpriced, cut(2)]]);
    assert_eq!(
        cost_lines(&three)[..2],
        [
            "unknown: the agent reports no cost and no price is configured; 1 call was cut off or failed",
            "2 calls (1 cut off), 2 tokens, unknown cost in 1.0 s"
        ]
    );
}

#[test]
fn rejected_asks_cost_nothing() {
    let away = |usage| {
        view(vec![
            start_events(Budget::default()),
            vec![faulted(1, FaultClass::RateLimited, "slow down", usage)],
        ])
    };
    assert_eq!(cost_lines(&away(Usage::default()))[..2], ["nothing", "0 calls, 0 tokens, nothing in 1.0 s"]);
    assert_eq!(away(Usage::default()).to_json(&|_| None)["unknown_asks"], json!(null));
    let read = Usage { input_tokens: 10, ..Usage::default() };
    assert_eq!(cost_lines(&away(read))[0], "unknown: 1 call was cut off or failed");
    let ask = CommandId::Step { seq: 1 };
    let late = view(vec![start_events(Budget::default()), vec![Event::AnsweredLate { ask, usage: read }]]);
    assert_eq!(cost_lines(&late)[0], "unknown: the agent reports no cost and no price is configured");
}

#[test]
fn maximal_counts_do_not_overflow() {
    let usage = json!({"input_tokens": u64::MAX, "output_tokens": u64::MAX, "cost_usd": 0.5});
    let most: Usage = serde_json::from_value(usage.clone()).unwrap();
    let ask = CommandId::Step { seq: 9 };
    let reason = "the budget is used up";
    let budget = Budget { tokens: Some(u64::MAX), ask_tokens: Some(u64::MAX), ..Budget::default() };
    let entered: Event = serde_json::from_value(json!({
        "event": "step_entered", "step": STEP, "counts": true, "visit": 1, "attempt": 1, "iteration": 1
    }))
    .unwrap();
    let left: Event = serde_json::from_value(json!({
        "event": "visit_ended", "step": STEP, "visit": 1, "attempt": 1,
        "end": {"outcome": "next", "target": "closure.fix"}, "changed_files": []
    }))
    .unwrap();
    let records = stamped(vec![
        [start_events(budget), vec![entered]].concat(),
        vec![answered(1, usage.clone()), answered(2, usage), faulted(3, FaultClass::Crashed, "gone", most)],
        vec![Event::AnsweredLate { ask, usage: most }, left, exhausted(reason)],
    ]);
    let view = run_view("r1", &records, Liveness::None);
    assert_eq!(view.rows.len(), 1);
    cost_lines(&view);
    let all = json!({"input": u64::MAX, "output": u64::MAX});
    assert_eq!(
        (&view.to_json(&|_| None)["tokens"], &view.to_json(&|_| None)["steps"][0]["tokens"]),
        (&all, &all)
    );
    assert_eq!(
        crate::suggest_continue_commands(&view),
        [format!("cuegate resume r1 --budget-tokens {}", u64::MAX)]
    );
    assert!(
        render_timeline(&records, &TimeZone::UTC).join("\n").contains("18,446,744,073,709,551,615 tokens")
    );
    let mut live = Timeline::new(TimeZone::UTC);
    records.iter().for_each(|record| drop(live.line(record)));
    assert_eq!(live.money(), "$2.00");
}

/// The line that continues a run whose ask stopped at a cap.
fn continue_line(budget: Budget, message: &str) -> String {
    let mut scene = Scene::start_within(registry(), budget);
    scene.faults(FaultClass::OverCap, message, None);
    let view = scene.view_as(Liveness::None);
    let lines = render_status(&view, &|_| None, START_MS, &TimeZone::UTC);
    let line = lines.lines().find(|line| line.starts_with("continue ")).unwrap_or_default().to_owned();
    assert!(render_run_end(&view, &|_| None, &TimeZone::UTC, None).contains(&line), "{line}");
    assert!(!crate::suggest_continue_commands(&view)[0].contains("after"), "a hint is a bare command");
    line
}

#[test]
fn a_cap_outside_the_limits_of_the_run() {
    let bare = "continue    cuegate resume r1  after raising the limit named in the reason";
    let money = Budget { usd_micro: Some(40_000_000), ..Budget::default() };
    assert_eq!(continue_line(Budget::default(), "Reached maximum number of turns (3)"), bare);
    assert_eq!(continue_line(money, "Reached maximum number of turns (3)"), bare);
    assert_eq!(continue_line(money, "Incomplete response returned, reason: max_output_tokens"), bare);
}

#[test]
fn an_ask_over_its_share_without_a_parallel_step() {
    let budget = Budget { ask_tokens: Some(1_000), ..Budget::default() };
    let mut scene = Scene::start_within(registry(), budget);
    scene.says(json!({"action": "next"}));
    insta::assert_snapshot!(render_timeline(&scene.records, &TimeZone::UTC).join("\n"), @"
    12:00:00  run                    started iterator with scripted on 2026-11-21 → initial.fix
    12:00:01  initial.fix #1         answered in 1.2 s, 1,500 tokens, $0.01 → next → continuation.fix
    12:00:01  run                    over its limit: a call of `initial.fix` used 1500 of at most 1000…
    12:00:01  run                    stopped at a limit: a call of `initial.fix` used 1500 of at most 1…
    ");
}
