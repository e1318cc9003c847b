//! Hand-made records that the flows of these tests do not produce.

use cuegate_engine::{AskContext, AskKind, AskRequest, EndState, Event, RowEnd, Usage};
use serde_json::json;

use crate::summary::{Liveness, run_view};
use crate::{
    stamped::StampedRecord,
    testing::{START_MS, registry, started},
};

/// Records that today's engine does not write, but a journal may contain.
#[test]
fn records_of_other_versions() {
    let check =
        |step: &str, events: Vec<Event>| StampedRecord { seq: step.len() as u64, at_ms: START_MS, events };
    let late = Usage { input_tokens: 5, output_tokens: 5, cost_usd: Some(0.1), ..Usage::default() };
    let ask = cuegate_engine::CommandId::Step { seq: 3 };
    let end = RowEnd { outcome: None, target: Some("@failed".into()), overridden_by: None };
    let records = [
        check("a", vec![Event::AnsweredLate { ask, usage: late }]),
        check("bb", vec![Event::StepLeft { step: "gone".into(), end: end.clone() }]),
        check(
            "ccc",
            vec![
                Event::VisitEnded {
                    step: "never.entered".into(),
                    visit: 2,
                    attempt: 1,
                    end,
                    changed_files: vec!["x".into()],
                },
                Event::Ended {
                    state: EndState::Failed,
                    reason: "why".into(),
                    validated: false,
                    hold: None,
                    stays: false,
                },
            ],
        ),
    ];
    let view = run_view("r9", &records, Liveness::None);
    assert_eq!((view.rows.len(), view.rows[0].visit, view.usage.cost_usd), (1, 2, Some(0.1)));
    assert_eq!((view.changed_files, view.asks.total()), (vec!["x".to_owned()], 0));
    assert_eq!(run_view("r0", &[], Liveness::None).to_json(&|_| None)["state"], "running");
}

#[test]
fn the_check_flow_names_its_transitions() {
    let entered = |step: &str, counts| Event::StepEntered {
        step: step.into(),
        counts,
        visit: 1,
        attempt: 1,
        iteration: 1,
        remedy: None,
    };
    let asks = |step: &str, kind| {
        Event::AskRequested(AskRequest {
            step: step.into(),
            member: None,
            kind,
            not_before_ms: None,
            waited_ms: 0,
            follow: None,
            agent: None,
            context: AskContext::Own,
        })
    };
    let answered = |seq, step: &str, kind: &str| -> Event {
        serde_json::from_value(json!({
            "event": "answered", "ask": {"for": "step", "seq": seq}, "step": step, "kind": kind,
            "usage": {"input_tokens": 1, "output_tokens": 1}, "provider": "scripted"
        }))
        .unwrap()
    };
    let transition_of = |result: &str, target: &str| {
        let mut begin = started(&registry());
        begin.dialect = "registry-check".into();
        let (step, check) = ("s_a8f3", "s_a8f3/check");
        let decided = Event::Decided {
            step: check.into(),
            outcome: result.into(),
            reason: Some("because".into()),
            fallback: false,
            way: None,
        };
        let end = RowEnd { outcome: Some("done".into()), target: Some(target.into()), overridden_by: None };
        let ended =
            Event::VisitEnded { step: step.into(), visit: 1, attempt: 1, end, changed_files: Vec::new() };
        let records = [
            vec![Event::RunStarted(Box::new(begin)), entered(step, true), asks(step, AskKind::Work)],
            vec![answered(0, step, "work"), entered(check, false), asks(check, AskKind::Check)],
            vec![answered(1, check, "check"), decided, ended],
        ];
        let records: Vec<StampedRecord> = records
            .into_iter()
            .enumerate()
            .map(|(seq, events)| StampedRecord { seq: seq as u64, at_ms: START_MS, events })
            .collect();
        let json = run_view("r1", &records, Liveness::None).to_json(&|_| None);
        assert_eq!(json["steps"].as_array().map(Vec::len), Some(1));
        let row = &json["steps"][0];
        assert_eq!(row["check"], json!({"result": result, "message": "because"}));
        assert_eq!((&row["asks"], &json["asks"]["check"]), (&json!(2), &json!(1)));
        row["transition"].as_str().unwrap_or("–").to_owned()
    };
    for (result, target, transition) in [
        ("ok", "s_b2c1", "next"),
        ("ok", "@completed", "complete"),
        ("ng", "s_a8f3", "retry"),
        ("ng", "s_b2c1", "fallback"),
        ("ng", "@failed", "fail"),
        ("ng", "@exhausted", "–"),
    ] {
        assert_eq!(transition_of(result, target), transition, "{result} {target}");
    }
}
