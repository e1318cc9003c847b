#[cfg(test)]
pub(crate) mod random_runs;
#[cfg(test)]
pub(crate) mod unusual_records;

use cuegate_engine::{Completion, FaultClass, ResumeSettings, TreeChange, TreeState};
use cuegate_flow::model::{BlobRef, Permission};
use serde_json::json;

use super::{Liveness, RunFold, run_view};
use crate::testing::{Scene, answer, piece, registry};

fn pretty(scene: &Scene) -> String {
    serde_json::to_string_pretty(&scene.view().to_json(&|_| None)).unwrap()
}

/// One line per row.
fn rows(scene: &Scene) -> String {
    let rows = scene.view().rows.into_iter().map(|row| {
        let parent = row.parent.as_ref().map(|parent| format!(" of {parent}")).unwrap_or_default();
        let by = row.overridden_by.as_ref().map(|by| format!(" by {by}")).unwrap_or_default();
        let remedy = if row.remedy.is_some() { " remedy" } else { "" };
        format!(
            "{} {}#{}.{}{parent}{remedy}: {:?} → {:?}{by}, asks {}, files {:?}, {} ms",
            row.seq,
            row.step,
            row.visit,
            row.attempt,
            row.outcome.as_deref().unwrap_or("–"),
            row.target.as_deref().unwrap_or("–"),
            row.asks,
            row.changed_files,
            row.duration_ms(),
        )
    });
    rows.collect::<Vec<_>>().join("\n")
}

#[test]
fn run_json_of_a_remedied_run() {
    insta::assert_snapshot!(pretty(&Scene::remedied()), @r#"
    {
      "schema": "cuegate/run/v1",
      "run": "r1",
      "flow": "iterator",
      "dialect": "registry-closing",
      "task": null,
      "state": "completed",
      "standing": "completed",
      "proof": "`cargo test` passes (2nd try), `git status --porcelain` passes",
      "proved": true,
      "reviewed": false,
      "summary": null,
      "reason": "`closure.fix` completed the workflow",
      "exit_code": 0,
      "waiting": null,
      "next": [],
      "provider": "scripted",
      "model": "stand-in-1",
      "place": {
        "work": "/work/project",
        "branch": null
      },
      "iterations": 5,
      "iterations_max": 8,
      "final_step": "closure.fix",
      "completion_reason": "`closure.fix` completed the workflow",
      "validated": true,
      "steps": [
        {
          "seq": 1,
          "step": "initial.fix",
          "visit": 1,
          "attempt": 1,
          "outcome": "next",
          "target": "continuation.fix",
          "session": "s-1",
          "agent": "scripted",
          "model": "stand-in-1",
          "asks": 1,
          "tokens": {
            "input": 1200,
            "output": 300
          },
          "cost_usd": 0.012,
          "changed_files": [
            "src/a.txt"
          ],
          "violations": [],
          "duration_ms": 1200
        },
        {
          "seq": 3,
          "step": "continuation.fix",
          "visit": 1,
          "attempt": 1,
          "outcome": "handoff",
          "target": "closure.fix",
          "session": "s-1",
          "agent": "scripted",
          "model": "stand-in-1",
          "asks": 2,
          "tokens": {
            "input": 2400,
            "output": 600
          },
          "cost_usd": 0.024,
          "changed_files": [
            "src/a.txt",
            "src/b.txt"
          ],
          "violations": [],
          "duration_ms": 2400
        },
        {
          "seq": 5,
          "step": "closure.fix",
          "visit": 1,
          "attempt": 1,
          "outcome": "closing",
          "target": "continuation.fix",
          "session": "s-1",
          "agent": "scripted",
          "model": "stand-in-1",
          "asks": 1,
          "tokens": {
            "input": 1200,
            "output": 300
          },
          "cost_usd": 0.012,
          "changed_files": [],
          "violations": [],
          "duration_ms": 1400
        },
        {
          "seq": 7,
          "step": "continuation.fix",
          "visit": 2,
          "attempt": 1,
          "remedy": true,
          "outcome": "handoff",
          "target": "closure.fix",
          "session": "s-1",
          "agent": "scripted",
          "model": "stand-in-1",
          "asks": 1,
          "tokens": {
            "input": 1210,
            "output": 300
          },
          "cost_usd": 0.012,
          "changed_files": [
            "src/b.txt"
          ],
          "violations": [],
          "duration_ms": 1250
        },
        {
          "seq": 10,
          "step": "closure.fix",
          "visit": 2,
          "attempt": 1,
          "outcome": "closing",
          "target": "@completed",
          "session": "s-1",
          "agent": "scripted",
          "model": "stand-in-1",
          "asks": 1,
          "tokens": {
            "input": 1200,
            "output": 300
          },
          "cost_usd": 0.012,
          "changed_files": [],
          "violations": [],
          "duration_ms": 1600
        }
      ],
      "reports": [],
      "asks": {
        "work": 4,
        "report": 0,
        "judge": 0,
        "check": 0,
        "repair": 1,
        "remedy": 1
      },
      "tokens": {
        "input": 7210,
        "output": 1800
      },
      "cost_usd": 0.072,
      "unknown_asks": 1,
      "budget": {
        "usd": null,
        "tokens": null,
        "asks": null,
        "minutes": null
      },
      "changed_files": [
        "src/a.txt",
        "src/b.txt"
      ],
      "changed_by_commands": [],
      "tools": {
        "calls": 0,
        "failed": 0,
        "used": {},
        "denied": []
      },
      "faults": [
        {
          "step": "continuation.fix",
          "visit": 2,
          "class": "rate_limited",
          "agent": "scripted",
          "message": "slow down",
          "at": "2026-11-21T12:00:05.050Z"
        }
      ],
      "effects": [],
      "worked_ms": 7850,
      "started_at": "2026-11-21T12:00:00.000Z",
      "ended_at": "2026-11-21T12:00:07.850Z"
    }
    "#);
}

#[test]
fn members_and_monitors_have_their_own_rows() {
    let scene = Scene::reviewed();
    insta::assert_snapshot!(rows(&scene), @r#"
    1 plan#1.1: "ready" → "reviewers", asks 1, files [], 1200 ms
    2 style#1.1 of reviewers: "needs_fix" → "–", asks 1, files [], 900 ms
    3 security#1.1 of reviewers: "approved" → "–", asks 1, files [], 1800 ms
    3 reviewers#1.1: "any(\"needs_fix\")" → "fix", asks 0, files [], 1800 ms
    4 fix#1.1: "done" → "reviewers", asks 1, files ["src/a.txt"], 1200 ms
    5 style#2.1 of reviewers: "needs_fix" → "–", asks 1, files [], 900 ms
    6 security#2.1 of reviewers: "approved" → "–", asks 1, files [], 1800 ms
    6 reviewers#2.1: "any(\"needs_fix\")" → "fix", asks 0, files [], 1800 ms
    8 monitor:reviewers+fix#1.1: "healthy" → "reviewers", asks 1, files [], 1200 ms
    8 fix#2.1: "done" → "reviewers" by monitor:reviewers+fix, asks 1, files ["src/a.txt"], 2400 ms
    9 security#3.1 of reviewers: "approved" → "–", asks 1, files [], 900 ms
    10 style#3.1 of reviewers: "approved" → "–", asks 1, files [], 1800 ms
    10 reviewers#3.1: "all(\"approved\")" → "@completed", asks 0, files [], 1800 ms
    "#);
    let view = scene.view();
    let (asks, tokens) = view
        .rows
        .iter()
        .fold((0, 0), |(asks, tokens), row| (asks + row.asks, tokens + row.usage.input_tokens));
    assert_eq!((asks, tokens), (view.asks.total(), view.usage.input_tokens), "rows add up to the totals");
}

#[test]
fn an_incremental_fold_equals_a_fold_of_all_records() {
    for scene in [Scene::remedied(), Scene::reviewed()] {
        let mut fold = RunFold::new("r1");
        for end in 0..scene.records.len() {
            fold.apply(&scene.records[end]);
            let whole = run_view("r1", &scene.records[..=end], Liveness::Alive);
            assert_eq!(fold.view(Liveness::Alive), whole, "after record {end}");
        }
    }
}

#[test]
fn the_fold_agrees_with_the_engine() {
    for scene in [Scene::remedied(), Scene::reviewed()] {
        let (view, run) = (scene.view(), &scene.run);
        assert_eq!(
            (view.iterations, view.iterations_max),
            (run.progress.iterations, run.progress.iterations_max)
        );
        assert_eq!((view.usage, view.records), (run.spending.usage, run.seq));
        let visits = view.rows.iter().filter(|row| row.iteration.is_some()).count();
        assert_eq!(visits as u32, run.progress.finished);
    }
}

#[test]
fn waiting_for_a_person() {
    let mut scene = Scene::start(piece());
    scene.says(json!({"action": "unclear"}));
    let json = scene.view().to_json(&|_| None);
    assert_eq!(
        json["waiting"],
        json!({"kind": "person", "until": null,
        "detail": "`plan` said:\n> {\"action\":\"unclear\"}\n\nWhat is meant?\nSay more."})
    );
    assert_eq!(
        (&json["state"], &json["exit_code"], &json["steps"]),
        (&json!("suspended"), &json!(3), &json!([]))
    );
    assert_eq!((&json["validated"], &json["ended_at"]), (&json!(null), &json!(null)));
    scene.person_says("the second");
    assert_eq!(
        rows(&scene),
        r#"2 plan#1.1: "ready" → "plan", asks 1, files [], 6200 ms"#.replace("ready", "unclear")
    );
}

#[test]
fn waiting_for_a_rate_limit() {
    let mut scene = Scene::start(registry());
    scene.faults(FaultClass::RateLimited, "come back", Some(3_600_000));
    let json = scene.view().to_json(&|_| None);
    assert_eq!(
        json["waiting"],
        json!({"kind": "quota", "detail": "rate limit: come back", "until": "2026-11-21T13:00:00.050Z"})
    );
    assert_eq!(json["exit_code"], 3);
    assert_eq!(
        json["faults"],
        json!([{"step": "initial.fix", "visit": 1, "class": "rate_limited", "agent": "scripted", "message": "come back",
            "at": "2026-11-21T12:00:00.050Z"}])
    );
    assert_eq!((&json["cost_usd"], &json["tokens"]), (&json!(null), &json!({"input": 10, "output": 0})));
}

#[test]
fn exit_codes_of_every_end() {
    let code = |scene: &Scene| scene.view().exit_code();
    let mut scene = Scene::start(registry());
    assert_eq!(code(&scene), None);
    scene.faults(FaultClass::Auth, "no key", None);
    assert_eq!(code(&scene), Some(4));
    scene.happens(Completion::Resumed(Box::default())).happens(Completion::Interrupted { seen: None });
    assert_eq!(code(&scene), Some(130));
    scene.happens(Completion::Cancelled { seen: None });
    assert_eq!(code(&scene), Some(1));
    assert_eq!(rows(&scene), r#"4 initial.fix#1.1: "–" → "@cancelled", asks 0, files [], 15050 ms"#);
    let mut scene = Scene::start(registry());
    scene.says(json!({"action": "abort", "reason": "no way"}));
    assert_eq!((scene.view().state.as_str(), code(&scene)), ("aborted", Some(1)));
}

#[test]
fn an_exhausted_run_continues_with_a_higher_limit() {
    let mut scene = Scene::start(registry());
    for _ in 0..8 {
        scene.says(json!({"action": "repeat"}));
    }
    let view = scene.view();
    assert_eq!((view.state.as_str(), view.rows.len(), view.iterations), ("exhausted", 8, 8));
    assert_eq!(view.rows[7].target.as_deref(), Some("@exhausted"));
    let resume = ResumeSettings {
        iterations_max: Some(10),
        provider: Some("claude".into()),
        ..ResumeSettings::default()
    };
    scene.happens(Completion::Resumed(Box::new(resume)));
    let view = scene.view();
    assert_eq!((view.state.as_str(), view.iterations_max, view.provider.as_str()), ("running", 10, "claude"));
    assert_eq!((view.ended_ms, view.validated, view.reason), (None, None, None));
    assert_eq!(view.rows[7].target.as_deref(), Some("@exhausted"), "the old row keeps its target");
    assert_eq!(view.open.map(|open| open.visit), Some(9));
}

#[test]
fn a_judge_belongs_to_the_row_it_judges() {
    let mut scene = Scene::start(piece());
    scene
        .says(json!({"action": "ready"}))
        .member_says(0, json!({"action": "needs_fix"}))
        .member_says(1, json!({"action": "needs_fix"}))
        .says(json!({"prose": "I did it"}))
        .says(json!({"action": "done"}));
    let view = scene.view();
    let row = view.rows.last().unwrap();
    assert_eq!((&*row.step, row.asks, view.asks.judge), ("fix", 2, 1));
    assert_eq!(row.outcome.as_deref(), Some("done"));
}

#[test]
fn live_false_only_for_a_running_run_with_a_dead_process() {
    let scene = Scene::start(registry());
    assert_eq!(scene.view_as(Liveness::Dead).to_json(&|_| None)["live"], json!(false));
    assert!(scene.view_as(Liveness::None).to_json(&|_| None).get("live").is_none());
    assert!(scene.view_as(Liveness::Alive).to_json(&|_| None).get("live").is_none());
    assert!(Scene::remedied().view_as(Liveness::Dead).to_json(&|_| None).get("live").is_none());
}

#[test]
fn violations_are_in_their_row() {
    let mut scene = Scene::start(registry());
    scene.says(json!({"action": "next"})).says(json!({"action": "handoff"}));
    let seen = TreeChange {
        tree: TreeState {
            tree: "t9".into(),
            head: Some("c0".into()),
            refs: "r0".into(),
            ..TreeState::default()
        },
        changed: vec!["src/evil.txt".into()],
        ..TreeChange::default()
    };
    let ask = cuegate_engine::list_pending_commands(&scene.flow, &scene.run)[0].id();
    let answer = Box::new(answer(json!({"action": "closing"})));
    scene.happens(Completion::Answered { ask, answer, seen: Some(seen) });
    let view = scene.view();
    assert_eq!(
        (view.state.as_str(), &*view.rows[2].violations),
        ("failed", &["src/evil.txt".to_owned()][..])
    );
}

#[test]
fn blocked_members_retry_in_the_same_visit() {
    let mut scene = Scene::start(piece());
    scene.says(json!({"action": "ready"}));
    for member in 0..2 {
        let ask = cuegate_engine::list_pending_commands(&scene.flow, &scene.run)[0].id();
        assert_eq!(ask.member(), Some(member));
        let mut answer = answer(json!({}));
        answer.blocked = Some("no access".into());
        scene.happens(Completion::Answered { ask, answer: Box::new(answer), seen: None });
    }
    scene.person_says("now you have");
    scene.member_says(0, json!({"action": "approved"})).member_says(1, json!({"action": "approved"}));
    insta::assert_snapshot!(rows(&scene), @r#"
    1 plan#1.1: "ready" → "reviewers", asks 1, files [], 1200 ms
    2 security#1.1 of reviewers: "–" → "–", asks 1, files [], 5000 ms
    3 style#1.1 of reviewers: "–" → "–", asks 1, files [], 10000 ms
    5 security#1.1 of reviewers: "approved" → "–", asks 1, files [], 900 ms
    6 style#1.1 of reviewers: "approved" → "–", asks 1, files [], 1800 ms
    6 reviewers#1.1: "all(\"approved\")" → "@completed", asks 0, files [], 16800 ms
    "#);
}

#[test]
fn the_summary_is_that_of_the_work_not_of_its_review() {
    let mut flow = piece();
    for step in flow.steps.iter_mut().filter(|step| &*step.name == "fix") {
        step.boundary.permission = Permission::Plan;
    }
    let mut scene = Scene::start(flow);
    scene
        .says(json!({"action": "ready", "summary": "moved the parser"}))
        .member_says(0, json!({"action": "needs_fix"}))
        .member_says(1, json!({"action": "needs_fix"}))
        .says(json!({"action": "done", "summary": "Good."}))
        .member_says(0, json!({"action": "approved"}))
        .member_says(1, json!({"action": "approved"}));
    let texts = |blob: &BlobRef| scene.text(blob);
    assert_eq!(scene.view().summary_text(&texts).as_deref(), Some("moved the parser"));
}

#[test]
fn what_was_denied_is_counted() {
    let mut view = Scene::start(piece()).view();
    view.denied_hosts = [("evil.example:443".into(), 2)].into();
    assert_eq!(view.list_denied(), [("evil.example:443".to_owned(), 2)]);
    assert_eq!(crate::review::describe_denied(&view).as_deref(), Some("2 uses: evil.example:443 (2 times)"));
}

#[test]
fn the_time_in_which_nobody_drove_a_run_is_no_work() {
    let mut scene = Scene::start(registry());
    scene.says(json!({"action": "next"}));
    let worked = scene.view().elapsed_ms();
    // Its process died, and somebody resumes it an hour later.
    scene.now_ms += 3_600_000;
    scene.happens(Completion::Resumed(Box::<ResumeSettings>::default()));
    scene.says(json!({"action": "abort"}));
    let ended = scene.view();
    assert!(ended.elapsed_ms() < worked + 60_000, "{} after {worked}", ended.elapsed_ms());
    // Nor is the hour in which it has ended.
    let later = ended.ended_ms.unwrap() + 3_600_000;
    assert_eq!(ended.elapsed_until(later), ended.elapsed_ms());
}
