//! Members with gate commands.

use cuegate_engine::{AskKind, Command, Completion, EndState, ExecCommand, ExecResult, Exit};

use crate::takt::runs::{Drive, flow, text};
use crate::takt::takt_support::broken;

/// Both reviewers have gate commands, the first one two of them, and may change files to pass.
const GATES: [(&str, &str); 3] = [
    (
        "        edit: false\n        pass_previous_response",
        "        edit: true\n        pass_previous_response",
    ),
    (
        "        edit: false\n        instruction_template: Review the architecture.\n",
        "        edit: true\n        instruction_template: Review the architecture.\n        quality_gates: [Be kind, { command: make a, timeout_ms: 7000 }, { command: make b }]\n",
    ),
    (
        "        instruction_template: Review the tests.\n",
        "        instruction_template: Review the tests.\n        quality_gates: [{ command: make c }]\n",
    ),
];

fn reviewing<'f>(flow: &'f cuegate_flow::model::Flow) -> Drive<'f> {
    let mut drive = Drive::start(flow);
    drive.say("plan", "The plan stands").say("implement", "Done").exits(0);
    drive
}

fn commands(drive: &Drive<'_>) -> Vec<ExecCommand> {
    let commands = drive.case.pending().into_iter().filter_map(|command| match command {
        Command::Exec(exec) => Some(*exec),
        _ => None,
    });
    commands.collect()
}

/// Everything that is pending.
fn wanted(drive: &Drive<'_>) -> Vec<String> {
    let what = |command: Command| match command {
        Command::Ask(ask) => format!("{} {}", ask.kind.as_str(), ask.step),
        Command::Exec(exec) => format!("{} of {}", exec.validator.name, exec.step),
        other => format!("{other:?}"),
    };
    drive.case.pending().into_iter().map(what).collect()
}

/// Completes the command of this name with an exit code.
fn ends(drive: &mut Drive<'_>, command: &str, code: i32) {
    let id = commands(drive).into_iter().find(|exec| &*exec.validator.name == command).unwrap().id;
    let stdout = format!("{command} says {code}");
    let exec = ExecResult { exit: Exit::Code(code), stdout, stderr: String::new(), duration_ms: 1 };
    assert!(drive.case.complete(Completion::Executed { id, exec: exec.clone(), seen: None }));
    assert!(!drive.case.complete(Completion::Executed { id, exec, seen: None }), "it counts once");
}

#[test]
fn commands_of_members_run_in_parallel_and_decide_the_outcome() {
    assert_eq!(broken(&GATES), "");
    let flow = flow(&GATES, |_| {});
    let mut drive = reviewing(&flow);
    assert!(drive.prompt("arch-review").contains("- Be kind\n- `make a` exits with 0."));
    drive.say("arch-review", "approved");
    assert_eq!(wanted(&drive), ["make a of arch-review", "work qa-review"]);
    assert_eq!(commands(&drive)[0].validator.timeout_ms, 7_000);
    ends(&mut drive, "make a", 0);
    assert_eq!(wanted(&drive), ["make b of arch-review", "work qa-review"]);
    // The outcome may come from a tag or from a judge.
    drive.text("qa-review", "Fine. [QA-REVIEW:1]");
    assert_eq!(wanted(&drive), ["make b of arch-review", "make c of qa-review"]);
    ends(&mut drive, "make c", 0);
    assert_eq!((drive.end(), wanted(&drive)), (None, vec!["make b of arch-review".to_owned()]));
    ends(&mut drive, "make b", 0);
    assert_eq!(drive.end(), Some(EndState::Completed));
}

#[test]
fn only_the_member_of_a_failed_command_is_retried() {
    let flow = flow(&GATES, |_| {});
    let mut drive = reviewing(&flow);
    drive.say("arch-review", "approved").say("qa-review", "approved");
    ends(&mut drive, "make c", 2);
    let mends = drive.ask("qa-review");
    assert_eq!((mends.kind, mends.schema.is_some()), (AskKind::Remedy, true));
    let told = text(&mends.prompt);
    assert!(told.contains("    make c\n") && told.contains("Mend the cause"), "{told}");
    assert!(
        told.contains("make c says 2") && !told.contains("Review the tests."),
        "its conversation knows the rest: {told}"
    );
    assert!(text(&mends.without_session).contains("Review the tests."), "who has no conversation is told it");
    drive.case.crash();
    assert_eq!(wanted(&drive), ["make a of arch-review", "remedy qa-review"]);
    drive.say("qa-review", "needs_fix");
    ends(&mut drive, "make c", 0);
    ends(&mut drive, "make a", 0);
    ends(&mut drive, "make b", 0);
    assert_eq!(drive.asked(), ["implement"], "what it says after mending counts");
}

#[test]
fn a_member_fails_when_its_retries_are_used_up() {
    let flow = flow(&GATES, |options| options.quality_gate_retries = 1);
    let mut drive = reviewing(&flow);
    drive.say("qa-review", "approved");
    ends(&mut drive, "make c", 1);
    drive.say("qa-review", "approved");
    ends(&mut drive, "make c", 1);
    assert_eq!(wanted(&drive), ["work arch-review"], "the others finish");
    drive.say("arch-review", "approved");
    ends(&mut drive, "make a", 0);
    ends(&mut drive, "make b", 0);
    // The failed member matches neither `all` nor `any`, so the parent's judge is asked.
    assert_eq!(drive.asked(), ["reviewers@ai"]);
    drive.say("reviewers@ai", "none");
    assert_eq!(drive.end(), Some(EndState::Failed));
}

/// Commands and asks share the width; the price includes the retries.
#[test]
fn commands_of_members_count_towards_width_and_price() {
    let narrow = flow(&GATES, |options| options.width = 1);
    let mut drive = reviewing(&narrow);
    drive.say("arch-review", "approved");
    assert_eq!(wanted(&drive), ["make a of arch-review"]);
    let asks = |edits: &[(&str, &str)], retries: u32| {
        let flow = flow(edits, |options| options.quality_gate_retries = retries);
        let terms = cuegate_flow::analysis::cost_bound::Terms {
            iterations_max: flow.limits.iterations_max,
            ..Default::default()
        };
        cuegate_flow::analysis::cost_bound::price_flow(&flow, &terms).asks
    };
    assert_eq!(asks(&GATES, 0), asks(&[], 0));
    assert!(asks(&GATES, 2) > asks(&[], 2));
}
