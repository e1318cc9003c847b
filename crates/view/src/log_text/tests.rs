use cuegate_engine::{Completion, FaultClass, ResumeSettings};
use jiff::tz::{TimeZone, offset};
use serde_json::json;

use super::{Timeline, render_timeline};
use crate::testing::{Scene, answer, piece, registry};

fn lines_of(scene: &Scene) -> String {
    render_timeline(&scene.records, &TimeZone::UTC).join("\n")
}

#[test]
fn validators_and_a_remedy() {
    insta::assert_snapshot!(lines_of(&Scene::remedied()), @"
    12:00:00  run                    started iterator with scripted on 2026-11-21 → initial.fix
    12:00:01  initial.fix #1         answered in 1.2 s, 1,500 tokens, $0.01 → next → continuation.fix
    12:00:02  continuation.fix #1    answered in 1.2 s, 1,500 tokens, $0.01
    12:00:02  continuation.fix #1    answer rejected: `action` is `finish`, allowed are `next`,… → retry
    12:00:03  continuation.fix #1    repair in 1.2 s, 1,500 tokens, $0.01 → handoff → closure.fix
    12:00:04  closure.fix #1         answered in 1.2 s, 1,500 tokens, $0.01 → closing
    12:00:05  closure.fix #1         `cargo test`: failed, exit 1 (0.2 s) → retry: continuation.fix
    12:00:05  continuation.fix #2    rate limit: slow down → retry in 2.0 s
    12:00:06  continuation.fix #2    retry in 1.2 s, 1,500 tokens, $0.01 → handoff → closure.fix
    12:00:07  closure.fix #2         answered in 1.2 s, 1,500 tokens, $0.01 → closing
    12:00:07  closure.fix #2         `cargo test`: passed (0.2 s)
    12:00:07  closure.fix #2         `git status --porcelain`: passed (0.2 s)
    12:00:07  run                    completed: `closure.fix` completed the workflow
    ");
}

#[test]
fn members_and_monitors() {
    insta::assert_snapshot!(lines_of(&Scene::reviewed()), @r#"
    12:00:00  run                    started review with scripted on 2026-11-21 → plan
    12:00:01  plan #1                answered in 1.2 s, 1,500 tokens, $0.01 → ready → reviewers
    12:00:02  style #1               answered in 1.2 s, 1,500 tokens, $0.01 → needs_fix
    12:00:03  security #1            answered in 1.2 s, 1,500 tokens, $0.01 → approved
    12:00:03  reviewers #1           all members done → any("needs_fix") → fix
    12:00:04  fix #1                 answered in 1.2 s, 1,500 tokens, $0.01 → done → reviewers
    12:00:05  style #2               answered in 1.2 s, 1,500 tokens, $0.01 → needs_fix
    12:00:06  security #2            answered in 1.2 s, 1,500 tokens, $0.01 → approved
    12:00:06  reviewers #2           all members done → any("needs_fix") → fix
    12:00:07  fix #2                 answered in 1.2 s, 1,500 tokens, $0.01 → done
    12:00:07  monitor:reviewers+fix  fired after 2 rounds
    12:00:08  monitor:reviewers+fix  judge in 1.2 s, 1,500 tokens, $0.01 → healthy → reviewers
    12:00:09  security #3            answered in 1.2 s, 1,500 tokens, $0.01 → approved
    12:00:10  style #3               answered in 1.2 s, 1,500 tokens, $0.01 → approved
    12:00:10  reviewers #3           all members done → all("approved")
    12:00:10  run                    completed: `reviewers` completed the workflow
    "#);
}

#[test]
fn waiting_and_interruptions() {
    let mut scene = Scene::start(piece());
    scene
        .says(json!({"action": "unclear"}))
        .person_says("this")
        .faults(FaultClass::RateLimited, "slow down", Some(7_200_000))
        .happens(Completion::Resumed(Box::new(ResumeSettings {
            iterations_max: Some(20),
            provider: Some("claude".into()),
            ..ResumeSettings::default()
        })))
        .happens(Completion::Interrupted { seen: None })
        .happens(Completion::Resumed(Box::default()))
        .faults(
            FaultClass::Auth,
            "the key is not accepted\nand this line is long enough to be cut somewhere",
            None,
        )
        .happens(Completion::Cancelled { seen: None });
    insta::assert_snapshot!(lines_of(&scene), @r#"
    12:00:00  run                    started review with scripted on 2026-11-21 → plan
    12:00:01  plan #1                answered in 1.2 s, 1,500 tokens, $0.01 → unclear
    12:00:01  run                    asks you: `plan` said: > {"action":"unclear"} What is meant? Say m…
    12:00:06  plan #1                a person answered → answered → plan
    12:00:06  plan #2                rate limit: slow down
    12:00:06  run                    paused until 14:01: rate limit: slow down
    12:00:11  run                    resumed, at most 20 iterations, with claude
    12:00:16  run                    interrupted
    12:00:21  run                    resumed
    12:00:21  plan #2                login rejected: the key is not accepted and this line is long enou…
    12:00:21  run                    needs fixing: login rejected: the key is not accepted and this lin…
    12:00:26  run                    cancelled
    "#);
}

#[test]
fn bad_answers_and_exhausted_remedies() {
    let mut scene = Scene::start(registry());
    scene.says(json!({"action": "next"})).says(json!({"action": "handoff"}));
    for _ in 0..2 {
        scene.says(json!({"action": "closing"})).exits(101, "no").says(json!({"action": "handoff"}));
    }
    scene.says(json!({"action": "closing"})).exits(101, "no");
    insta::assert_snapshot!(lines_of(&scene), @"
    12:00:00  run                    started iterator with scripted on 2026-11-21 → initial.fix
    12:00:01  initial.fix #1         answered in 1.2 s, 1,500 tokens, $0.01 → next → continuation.fix
    12:00:02  continuation.fix #1    answered in 1.2 s, 1,500 tokens, $0.01 → handoff → closure.fix
    12:00:03  closure.fix #1         answered in 1.2 s, 1,500 tokens, $0.01 → closing
    12:00:03  closure.fix #1         `cargo test`: failed, exit 101 (0.2 s) → retry: continuation.fix
    12:00:05  continuation.fix #2    retry in 1.2 s, 1,500 tokens, $0.01 → handoff → closure.fix
    12:00:06  closure.fix #2         answered in 1.2 s, 1,500 tokens, $0.01 → closing
    12:00:06  closure.fix #2         `cargo test`: failed, exit 101 (0.2 s) → retry: continuation.fix
    12:00:07  continuation.fix #3    retry in 1.2 s, 1,500 tokens, $0.01 → handoff → closure.fix
    12:00:08  closure.fix #3         answered in 1.2 s, 1,500 tokens, $0.01 → closing
    12:00:09  closure.fix #3         `cargo test`: failed, exit 101 (0.2 s)
    12:00:09  run                    failed: validators of `closure.fix` failed
    ");
    let mut scene = Scene::start(registry());
    scene.says(json!({"nothing": 1})).says(json!({"nothing": 2}));
    insta::assert_snapshot!(lines_of(&scene), @"
    12:00:00  run                    started iterator with scripted on 2026-11-21 → initial.fix
    12:00:01  initial.fix #1         answered in 1.2 s, 1,500 tokens, $0.01
    12:00:01  initial.fix #1         answer rejected: the answer has no value at `action` → retry
    12:00:02  initial.fix #1         repair in 1.2 s, 1,500 tokens, $0.01
    12:00:02  initial.fix #1         answer rejected: the answer has no value at `action`
    12:00:02  run                    failed: the answer of `initial.fix` cannot be used: the answer has…
    ");
}

#[test]
fn blocked_members() {
    let mut scene = Scene::start(piece());
    scene.says(json!({"action": "ready"}));
    let ask = cuegate_engine::list_pending_commands(&scene.flow, &scene.run)[0].id();
    let mut blocked = answer(json!({}));
    blocked.blocked = Some("no access to the \u{1b}[31mserver".into());
    scene.happens(Completion::Answered { ask, answer: Box::new(blocked), seen: None });
    for _ in 0..3 {
        scene.faults(FaultClass::Crashed, "exit 9", None);
    }
    insta::assert_snapshot!(lines_of(&scene), @"
    12:00:00  run                    started review with scripted on 2026-11-21 → plan
    12:00:01  plan #1                answered in 1.2 s, 1,500 tokens, $0.01 → ready → reviewers
    12:00:06  security #1            answered in 1.2 s, 1,500 tokens, $0.01
    12:00:06  security #1            cannot proceed: no access to the server → no outcome
    12:00:06  style #1               agent crashed: exit 9 → retry in 1.0 s
    12:00:06  style #1               agent crashed: as before (2 times in a row) → retry in 2.0 s
    12:00:06  style #1               agent crashed: as before (3 times in a row) → no outcome
    12:00:06  run                    asks you: no rule of `reviewers` matched: `security` blocked, `sty…
    ");
}

#[test]
fn live_lines_equal_the_lines_of_the_finished_run() {
    for scene in [Scene::remedied(), Scene::reviewed()] {
        let zone = TimeZone::fixed(offset(9));
        let mut live = Timeline::new(zone.clone());
        let lines: Vec<String> = scene.records.iter().flat_map(|record| live.line(record)).collect();
        assert_eq!(lines, render_timeline(&scene.records, &zone));
        for line in &lines {
            assert!(crate::text::count_columns(line) <= 100, "{line}");
        }
    }
}

#[test]
fn a_judge_decides() {
    let mut scene = Scene::start(piece());
    scene
        .says(json!({"action": "ready"}))
        .member_says(0, json!({"action": "needs_fix"}))
        .member_says(1, json!({"action": "needs_fix"}))
        .says(json!({"prose": "I did it"}))
        .says(json!({"action": "done"}));
    let lines = lines_of(&scene);
    let last: Vec<&str> = lines.lines().rev().take(2).collect();
    insta::assert_snapshot!(last.join("\n"), @"
    12:00:05  fix #1                 judge in 1.2 s, 1,500 tokens, $0.01 → done → reviewers
    12:00:04  fix #1                 answered in 1.2 s, 1,500 tokens, $0.01 → a judge decides
    ");
}

#[test]
fn a_new_day_has_a_line() {
    let mut scene = Scene::start(registry());
    scene.now_ms += 86_400_000;
    scene.says(json!({"action": "abort"}));
    insta::assert_snapshot!(lines_of(&scene), @"
    12:00:00  run                    started iterator with scripted on 2026-11-21 → initial.fix
    2026-11-22
    12:00:01  initial.fix #1         answered in 1.2 s, 1,500 tokens, $0.01 → abort
    12:00:01  run                    aborted: `initial.fix` gave up
    ");
}

#[test]
fn pending_commands() {
    let mut scene = Scene::start(piece());
    scene.says(json!({"action": "ready"}));
    let mut live = Timeline::new(TimeZone::UTC);
    for record in &scene.records {
        live.line(record);
    }
    insta::assert_snapshot!(live.doing(scene.now_ms + 12_000).join("\n"), @"
    security (work), 12.0 s
    style (work), 12.0 s
    ");
    scene.faults(FaultClass::Overloaded, "busy", None);
    live.line(&scene.records[2]);
    insta::assert_snapshot!(live.doing(scene.now_ms).join("\n"), @"
    retrying security (work) in 1.0 s
    style (work), 50 ms
    ");
}
