//! How plain-text answers to a piece are read, and how near misses of conditions and placeholders behave.

use cuegate_engine::{AskKind, EndState, Event};
use cuegate_formats::Phases;

use crate::takt::runs::{Drive, flow, text};
use crate::takt::takt_support::broken;

const MONITOR: &str = "monitor:implement+reviewers";

/// A run in which the monitor's judge is asked.
fn watched<'f>(flow: &'f cuegate_flow::model::Flow) -> Drive<'f> {
    let mut drive = Drive::start(flow);
    drive.say("plan", "The plan stands");
    for _ in 0..2 {
        drive.say("implement", "Done").exits(0);
        drive.say("arch-review", "needs_fix").say("qa-review", "approved");
    }
    assert_eq!(drive.asked(), [MONITOR]);
    drive
}

/// A retry after a failed command does not interrupt the rounds of a monitor.
#[test]
fn a_monitor_sees_rounds_in_which_commands_fail() {
    let flow = flow(&[], |_| {});
    let mut drive = Drive::start(&flow);
    drive.say("plan", "The plan stands");
    for round in 0..2 {
        drive.say("implement", "Done");
        for _ in 0..=round {
            drive.exits(1).say("implement", "Done");
        }
        drive.exits(0).say("arch-review", "needs_fix").say("qa-review", "approved");
    }
    assert_eq!(drive.asked(), [MONITOR]);
}

/// The outcome of the last visit of a step.
fn outcome(drive: &Drive<'_>, of: &str) -> Option<String> {
    let mut decided = drive.case.events.iter().flatten().filter_map(|event| match event {
        Event::Decided { step, outcome, .. } if **step == *of => Some(outcome.to_string()),
        _ => None,
    });
    decided.next_back()
}

#[test]
fn a_monitors_judge_may_answer_in_plain_text() {
    let flow = flow(&[], |_| {});
    for (said, asked, end) in [
        ("It leads nowhere. [JUDGE:2]", &[][..], Some(EndState::Aborted)),
        ("It goes on. [JUDGE:1]", &["implement"], None),
        // The tag that the original program gives this judge.
        ("[_LOOP_JUDGE_IMPLEMENT_REVIEWERS:2]", &[], Some(EndState::Aborted)),
        ("[_loop_judge_implement_reviewers:1]", &["implement"], None),
        // The last valid tag counts; one out of range is ignored.
        ("Not [JUDGE:2], but [JUDGE:1]. [JUDGE:7]", &["implement"], None),
    ] {
        let mut drive = watched(&flow);
        drive.text(MONITOR, said);
        assert_eq!(
            (drive.asked(), drive.end()),
            (asked.iter().map(|s| (*s).to_owned()).collect(), end),
            "{said}"
        );
        assert_eq!(drive.rejected(), 0, "{said}");
    }
}

#[test]
fn a_run_fails_after_repeated_unusable_answers_of_a_monitors_judge() {
    let flow = flow(&[], |_| {});
    let mut drive = watched(&flow);
    drive.text(MONITOR, "Who knows. [IMPLEMENT:1]");
    assert_eq!(
        (drive.rejected(), drive.ask(MONITOR).kind),
        (1, AskKind::Repair),
        "another's tag is no answer"
    );
    drive.text(MONITOR, "Who knows.");
    assert_eq!(drive.end(), Some(EndState::Failed));
}

/// The judge of a monitor decides on the inner text of `ai("…")`; results show the condition as written.
#[test]
fn a_monitors_judge_decides_on_the_inner_text_of_an_ai_condition() {
    let flow = flow(&[("condition: Unproductive", "condition: ai(\"nothing changes any more\")")], |_| {});
    let mut drive = watched(&flow);
    let prompt = drive.prompt(MONITOR);
    assert!(prompt.contains("\n2. nothing changes any more\n") && !prompt.contains("ai("), "{prompt}");
    drive.say(MONITOR, "nothing changes any more");
    assert_eq!(drive.end(), Some(EndState::Aborted));
    assert_eq!(outcome(&drive, MONITOR).as_deref(), Some("ai(\"nothing changes any more\")"));
}

/// A near miss of a call is plain text: it has a warning, and a judge decides whether it holds.
#[test]
fn a_near_miss_of_a_call_is_a_judged_text() {
    let edits = [("all(\"approved\")", "ALL(\"approved\")")];
    insta::assert_snapshot!(broken(&edits), @r#"sound.yaml:83:20 warning[invalid-condition]: `ALL("approved")` is a text as any other, and no `all(…)`"#);
    let flow = flow(&edits, |_| {});
    let mut drive = Drive::start(&flow);
    drive.say("plan", "The plan stands").say("implement", "Done").exits(0);
    drive.say("arch-review", "approved").say("qa-review", "approved");
    assert_eq!(drive.asked(), ["reviewers@ai"], "no rule about the members holds");
    drive.say("reviewers@ai", "none");
    assert!(drive.prompt("reviewers@judge").contains("\n1. ALL(\"approved\")\n"));
    drive.say("reviewers@judge", "ALL(\"approved\")");
    assert_eq!(drive.end(), Some(EndState::Completed));
}

/// Braces are plain text. A near miss of a placeholder stays text, and the warning names the nearest placeholder.
#[test]
fn a_near_miss_of_a_placeholder_stays_text() {
    let words = "Plan { task }, {taks}, {reprot:00-plan.md} and {Report: 00-plan.md}. {item}, {port:80}, {\"task\": 1}";
    let edits = [("Plan {task}.", words)];
    insta::assert_snapshot!(broken(&edits), @"
    sound.yaml:26:12 warning[unknown-placeholder]: `{ task }` is not replaced
    sound.yaml:26:22 warning[unknown-placeholder]: `{taks}` is not replaced
    sound.yaml:26:30 warning[unknown-placeholder]: `{reprot:00-plan.md}` is not replaced
    sound.yaml:26:54 warning[unknown-placeholder]: `{Report: 00-plan.md}` is not replaced
    ");
    let flow = flow(&edits, |_| {});
    let drive = Drive::start(&flow);
    let prompt = drive.prompt("plan");
    assert!(prompt.contains(words), "{prompt}");
}

#[test]
fn equal_conditions_are_distinguished_by_number() {
    let edits =
        [("condition: Cannot proceed\n        next: ABORT", "condition: Done\n        next: COMPLETE")];
    insta::assert_snapshot!(broken(&edits), @"sound.yaml:64:20 warning[duplicate-item]: duplicate condition `Done` with different targets");
    let flow = flow(&edits, |_| {});
    let led = |answer: &dyn Fn(&mut Drive<'_>)| {
        let mut drive = Drive::start(&flow);
        drive.say("plan", "The plan stands");
        answer(&mut drive);
        while drive.asked() == ["implement"] {
            drive.text("implement", "# A report");
        }
        drive.exits(0);
        (outcome(&drive, "implement"), drive.end())
    };
    let first = (Some("Done (1)".to_owned()), None);
    let second = (Some("Done (2)".to_owned()), Some(EndState::Completed));
    assert_eq!(led(&|drive| _ = drive.say("implement", "Done (1)")), first);
    assert_eq!(led(&|drive| _ = drive.say("implement", "Done (2)")), second);
    assert_eq!(led(&|drive| _ = drive.text("implement", "[IMPLEMENT:1]")), first);
    assert_eq!(led(&|drive| _ = drive.text("implement", "[IMPLEMENT:2]")), second);
    // The text without a number selects neither of them.
    let mut drive = Drive::start(&flow);
    drive.say("plan", "The plan stands").say("implement", "Done");
    assert_eq!(drive.rejected(), 1);
}

/// A member without rules is `done` after any answer, and rules over members can refer to `done`.
#[test]
fn a_member_without_rules_is_done_when_it_has_answered() {
    let rules = "        rules:\n          - condition: approved\n          - condition: needs_fix\n";
    let edits = [
        (&*format!("{rules}      - name: qa"), "      - name: qa"),
        (&*format!("{rules}    rules:"), "    rules:"),
        ("all(\"approved\")", "all(\"done\")"),
        ("any(\"needs_fix\")", "any(\"done\")"),
    ];
    assert_eq!(broken(&edits), "");
    let flow = flow(&edits, |_| {});
    let start = || {
        let mut drive = Drive::start(&flow);
        drive.say("plan", "The plan stands").say("implement", "Done").exits(0);
        drive
    };
    let mut drive = start();
    let answer = serde_json::json!({"response": "looked"});
    drive.answer("arch-review", cuegate_engine::Answer { output: Some(answer), ..Default::default() });
    drive.text("qa-review", "It is fine. [QA-REVIEW:2]");
    assert_eq!(drive.end(), Some(EndState::Completed));
    // A blocked member is not done, so `all` is false and `any` selects the target.
    let mut drive = start();
    drive.text("arch-review", "[BLOCKED] no access").text("qa-review", "It is fine.");
    assert_eq!(drive.asked(), ["implement"]);
}

/// In separate phases, an agent that is blocked starts its answer with the tag; a quoted tag later does not block.
#[test]
fn only_a_leading_blocked_tag_blocks_in_separate_phases() {
    let flow = flow(&[], |options| options.phases = Phases::Separate);
    let mut drive = Drive::start(&flow);
    assert!(drive.prompt("plan").contains("answer with `[BLOCKED]`"), "{}", drive.prompt("plan"));
    drive.text("plan", "  [BLOCKED] There is no network.");
    let question = drive.question().unwrap_or_default();
    assert!(question.contains("There is no network."), "{question}");
    let answered = cuegate_engine::Completion::PersonAnswered { text: "it is back".to_owned(), found: None };
    assert!(drive.case.complete(answered));
    let ask = drive.ask("plan");
    assert_eq!((ask.kind, drive.rejected()), (AskKind::Work, 0), "the same movement again");
    assert!(text(&ask.prompt).contains("What people answered so far"), "{}", text(&ask.prompt));
    drive.text("plan", "The log says [BLOCKED] somewhere. [PLAN:1]");
    assert_eq!((drive.question(), drive.ask("plan").kind), (None, AskKind::Report));
}

/// In a headless run a rule for persons is inactive, but the numbers of later rules include it.
#[test]
fn a_hidden_rule_keeps_its_number() {
    let edits = [("ai(\"the task is impossible\")", "It is impossible")];
    assert_eq!(broken(&edits), "");
    let led = |tag: &str| {
        let flow = flow(&edits, |_| {});
        let mut drive = Drive::start(&flow);
        drive.text("plan", &format!("So it is. {tag}")).text("plan", "# It");
        (drive.end(), drive.asked().join(" "))
    };
    for tag in ["[PLAN:3]", "[plan:3]", "[STEP:2]"] {
        assert_eq!(led(tag), (Some(EndState::Aborted), String::new()), "the third rule: {tag}");
    }
    for tag in ["[PLAN:2]", "[STEP:1]", "[PLAN:4]"] {
        assert_eq!(led(tag), (None, "plan@judge".to_owned()), "{tag} means nothing");
    }
    assert_eq!(led("[PLAN:1]"), (None, "implement".to_owned()));
    // A judge uses the same numbers as tags.
    let flow = flow(&edits, |_| {});
    let mut drive = Drive::start(&flow);
    drive.text("plan", "So it is.").text("plan", "# It");
    let prompt = drive.prompt("plan@judge");
    assert!(prompt.contains("\n3. It is impossible\n") && !prompt.contains("\n2. "), "{prompt}");
    drive.text("plan@judge", "[PLAN:3]");
    assert_eq!(drive.end(), Some(EndState::Aborted));
}

/// An agent that is blocked during a report ask reports that too, and no report is written.
#[test]
fn a_blocked_report_ask_writes_no_report() {
    let flow = flow(&[], |options| options.phases = Phases::Separate);
    let mut drive = Drive::start(&flow);
    drive.text("plan", "I looked.");
    assert_eq!(drive.ask("plan").kind, AskKind::Report);
    drive.text("plan", "[BLOCKED] The folder is gone.");
    let question = drive.question().unwrap_or_default();
    assert!(question.contains("The folder is gone."), "{question}");
    let written = |event: &&Event| matches!(event, Event::ReportWritten { .. });
    assert_eq!(drive.case.events.iter().flatten().filter(written).count(), 0);
    let answered = cuegate_engine::Completion::PersonAnswered { text: "it is back".to_owned(), found: None };
    assert!(drive.case.complete(answered));
    assert_eq!(drive.ask("plan").kind, AskKind::Work, "the same movement again");
    // A tag quoted in a report has no effect.
    drive.text("plan", "I looked.").text("plan", "# Plan\n[BLOCKED] {\"blocked\": \"x\"}");
    assert_eq!(drive.question(), None);
    assert_eq!(drive.case.events.iter().flatten().filter(written).count(), 1);
}
