//! What is found in the flow that definitions come down to: each case changes a sound definition.

use std::fmt::Write as _;

use cuegate_flow::model::{Act, SessionRule};
use cuegate_formats::{LoadedDefinition, PieceOptions, load_piece};

use crate::disk;
use crate::older::check_flow;
use crate::piece::piece_support::{self, changed};
use crate::support::{self, Case, Project, edit, lines, load};

/// What of these codes is found in each case.
fn of(codes: &[&str], cases: &[Case<'_>], load: impl Fn(&[(&str, &str)]) -> LoadedDefinition) -> String {
    let mut text = String::new();
    for (name, edits) in cases {
        let found = lines(load(edits), |code| codes.contains(&code));
        writeln!(text, "# {name}").unwrap();
        text.push_str(if found.is_empty() { "nothing\n" } else { &found });
    }
    text
}

fn edited(files: Project, edits: &[(&str, &str)]) -> Project {
    edits.iter().fold(files, |files, (from, to)| edit(&files, from, to))
}

fn of_registry(codes: &[&str], cases: &[Case<'_>]) -> String {
    of(codes, cases, |edits| load(&edited(support::sound(), edits), support::DIR))
}

fn of_check_flow(codes: &[&str], cases: &[Case<'_>]) -> String {
    of(codes, cases, |edits| load(&edited(check_flow::sound(), edits), check_flow::DIR))
}

fn of_piece(codes: &[&str], cases: &[Case<'_>]) -> String {
    of(codes, cases, |edits| piece_support::load(&changed(edits), |_| {}))
}

const LIMITED: &str = "\"verdict\": { \"type\": \"detect:graph\" }";

#[test]
fn what_only_the_limit_ends() {
    insta::assert_snapshot!(of_registry(&["unbounded-cycle"], &[
        ("as it is", &[]),
        ("by a keyword", &[(LIMITED,
            r#""verdict": { "type": "detect:keyword", "config": { "verdictKeyword": "DONE" } }"#)]),
    ]), @"
    # as it is
    nothing
    # by a keyword
    nothing
    ");
    insta::assert_snapshot!(of_check_flow(&["unbounded-cycle"], &[
        ("as it is", &[]),
        ("without a fallback", &[("{ \"fallback\": \"s_a8f3\" }", "{ \"retry\": true, \"maxRetries\": 1 }")]),
        ("a retry without a number", &[
            ("{ \"fallback\": \"s_a8f3\" }", "{ \"retry\": true, \"maxRetries\": 1 }"),
            ("{ \"retry\": true, \"maxRetries\": 2 }", "{ \"retry\": true }")]),
    ]), @"
    # as it is
    steps_registry.json:24:16 note[unbounded-cycle]: nothing but the limit of 100 iterations ends the cycle of `s_a8f3`, `s_b2c1de`
    # without a fallback
    nothing
    # a retry without a number
    steps_registry.json:12:16 note[unbounded-cycle]: nothing but the limit of 100 iterations ends how often `s_a8f3` is done over again
    ");
    insta::assert_snapshot!(of_piece(&["unbounded-cycle"], &[
        ("as it is", &[]),
        ("with the watched cycle only", &[
            ("      - condition: ai(\"the reviewers contradict each other\")\n        next: plan\n", "")]),
        ("and not watched", &[
            ("      - condition: ai(\"the reviewers contradict each other\")\n        next: plan\n", ""),
            ("cycle: [implement, reviewers]", "cycle: [plan, implement]")]),
        ("a person in it", &[
            ("contradict each other\")\n        next: plan\n",
             "contradict each other\")\n        next: plan\n        requires_user_input: true\n")]),
    ]), @"
    # as it is
    sound.yaml:87:9 note[unbounded-cycle]: nothing but the limit of 12 iterations ends the cycle of `plan`, `implement`, `reviewers`
    # with the watched cycle only
    nothing
    # and not watched
    sound.yaml:85:9 note[unbounded-cycle]: nothing but the limit of 12 iterations ends the cycle of `implement`, `reviewers`
    # a person in it
    nothing
    ");
}

#[test]
fn limits_that_are_too_low() {
    let limit = |max: u32| {
        format!("\"verdict\": {{ \"type\": \"detect:graph\", \"config\": {{ \"maxIterations\": {max} }} }}")
    };
    let counted = |max: u32| {
        format!(
            "\"verdict\": {{ \"type\": \"count:iteration\", \"config\": {{ \"maxIterations\": {max} }} }}"
        )
    };
    let codes = &["limit-too-low", "bound-never-hit"];
    insta::assert_snapshot!(of_registry(codes, &[
        ("2 iterations", &[(LIMITED, &limit(2))]),
        ("3 iterations", &[(LIMITED, &limit(3))]),
        ("enough for both remedies", &[(LIMITED, &limit(7))]),
        ("a verdict that comes first", &[(LIMITED, &counted(2))]),
    ]), @"
    # 2 iterations
    agent.json:16:71 warning[limit-too-low]: no run can complete: the shortest way to an end takes 3 iterations, and the limit is 2
    # 3 iterations
    steps_registry.json:25:56 warning[bound-never-hit]: `closure.fix` never reaches its limit of 2 retries: that takes 7 iterations at least, and the limit is 3
    # enough for both remedies
    nothing
    # a verdict that comes first
    agent.json:16:74 warning[limit-too-low]: no run comes to the end at `closure.fix@validators`: the shortest way takes 3 iterations, and the verdict completes each run after 2
    ");
    insta::assert_snapshot!(of_check_flow(codes, &[
        ("as it is", &[]),
        ("more executions than there are", &[("\"min\": 2, \"max\": 5", "\"min\": 100, \"max\": 100")]),
        ("retries that do not fit", &[("\"maxRetries\": 2", "\"maxRetries\": 120")]),
    ]), @"
    # as it is
    nothing
    # more executions than there are
    agent.json:8:23 warning[limit-too-low]: no run can complete: the shortest way to an end takes 101 iterations, and the limit is 100
    # retries that do not fit
    steps_registry.json:16:50 warning[bound-never-hit]: `s_a8f3/check` on `ng` never reaches its limit of 120 retries: that takes 121 iterations at least, and the limit is 100
    ");
    insta::assert_snapshot!(of_piece(codes, &[
        ("as it is", &[]),
        ("2 iterations", &[("max_iterations: 12", "max_iterations: 2")]),
        ("rounds that do not fit", &[("threshold: 2", "threshold: 6")]),
        ("rounds that just do", &[("threshold: 2", "threshold: 5")]),
    ]), @"
    # as it is
    nothing
    # 2 iterations
    sound.yaml:3:17 warning[limit-too-low]: no run can complete: the shortest way to an end takes 3 iterations, and the limit is 2
    # rounds that do not fit
    sound.yaml:91:16 warning[bound-never-hit]: `monitor:implement+reviewers` never acts: 6 rounds of 2 steps are done after 13 iterations, and the limit is 12
    # rounds that just do
    nothing
    ");
}

#[test]
fn rules_over_members_that_leave_something_open() {
    let codes = &["unmatched-join", "ambiguous-join", "join-never-fires"];
    let judged = "      - condition: ai(\"the reviewers contradict each other\")\n        next: plan\n";
    insta::assert_snapshot!(of_piece(codes, &[
        ("as it is", &[]),
        ("without a judge", &[(judged, "")]),
        ("and without the worse", &[
            (judged, ""), ("      - condition: any(\"needs_fix\")\n        next: implement\n", "")]),
        ("with a judge all is taken", &[("      - condition: any(\"needs_fix\")\n        next: implement\n", "")]),
        ("the milder one first", &[("all(\"approved\")", "any(\"approved\")")]),
    ]), @r#"
    # as it is
    nothing
    # without a judge
    nothing
    # and without the worse
    sound.yaml:66:11 warning[unmatched-join]: no rule of `reviewers` fits when `arch-review` says `needs_fix`, `qa-review` says `approved`
    # with a judge all is taken
    nothing
    # the milder one first
    sound.yaml:83:9 note[ambiguous-join]: `any("approved")` and `any("needs_fix")` of `reviewers` both fit when `arch-review` says `approved`, `qa-review` says `needs_fix`: the first counts
    "#);
}

#[test]
fn reports_that_are_not_there_yet() {
    let codes = &["unwritten-report", "unwritten-report"];
    insta::assert_snapshot!(of_piece(codes, &[
        ("as it is", &[]),
        ("read by who writes it", &[("Plan {task}.", "Plan {task}. Before: {report:00-plan.md}")]),
        ("read before", &[("Plan {task}.", "Plan {task}. See {report:01-scope.md}")]),
        ("written by nobody", &[("Plan {task}.", "Plan {task}. See {report:02-scope.md}")]),
        ("read before, and no way back", &[
            ("Plan {task}.", "Plan {task}. See {report:01-scope.md}"),
            ("contradict each other\")\n        next: plan\n", "contradict each other\")\n        next: ABORT\n")]),
    ]), @"
    # as it is
    nothing
    # read by who writes it
    nothing
    # read before
    nothing
    # written by nobody
    sound.yaml:26:24 warning[unwritten-report]: no step writes the report `02-scope.md`
    # read before, and no way back
    sound.yaml:18:11 warning[unwritten-report]: `plan` reads the report `01-scope.md`, which no path writes before
    ");
}

#[test]
fn what_is_read_as_something_else() {
    let codes = &["type-mismatch", "undeclared-variable"];
    insta::assert_snapshot!(of_registry(codes, &[
        ("as it is", &[]),
        ("items of a text", &[("\"parseChangedFiles\"", "\"stdout\"")]),
        ("a field of a text", &[("{{#each changedFiles}} {{this}}{{/each}}",
            "{{#each changedFiles}} {{this.file}}{{/each}}")]),
    ]), @"
    # as it is
    nothing
    # items of a text
    f_failed_git-dirty.md:1:28 warning[type-mismatch]: `changedFiles` of validator `git-clean` is text, and has no items: nothing is shown
    # a field of a text
    f_failed_git-dirty.md:1:51 warning[type-mismatch]: the items of `changedFiles` are texts, and have no `file`
    ");
}

#[test]
fn a_failure_prompt_that_is_the_step_s_own() {
    let codes = &["retry-without-change"];
    let own = &[
        (
            "\"edition\": \"failed\", \"adaptation\": \"git-dirty\",\n      \"params\": [\"changedFiles\"]",
            "\"edition\": \"default\"",
        ),
        ("\"c2\": \"retry\", \"c3\": \"fix\",\n", "\"c2\": \"continuation\", \"c3\": \"fix\",\n"),
        ("\"extractParams\": { \"changedFiles\": \"parseChangedFiles\" }", "\"extractParams\": {}"),
    ];
    insta::assert_snapshot!(of_registry(codes, &[("as it is", &[]), ("its own", own)]), @"
    # as it is
    nothing
    # its own
    steps_registry.json:21:5 warning[retry-without-change]: after `fail(0)` of `closure.fix@validators`, `continuation.fix` is asked with its own prompt again, which does not say what failed
    ");
}

#[test]
fn ends_that_pass_nobody_who_proves_the_work() {
    let codes = &["closure-skipped", "closure-skipped"];
    let verified = "\"name\": \"Fix\", \"stepKind\": \"verification\", \"c2\"";
    insta::assert_snapshot!(of_registry(codes, &[
        ("as it is", &[]),
        ("a keyword", &[(LIMITED,
            r#""verdict": { "type": "detect:keyword", "config": { "verdictKeyword": "DONE" } }"#)]),
        ("a verification that work goes around", &[
            ("\"name\": \"Fix\", \"c2\"", verified),
            ("\"allowedIntents\": [\"repeat\", \"handoff\"]", "\"allowedIntents\": [\"repeat\", \"next\"]"),
            ("\"enum\": [\"repeat\", \"handoff\"]", "\"enum\": [\"repeat\", \"next\"]"),
            ("\"handoff\": { \"target\": \"closure.fix\" }", "\"next\": { \"target\": \"initial.fix\" }"),
            ("\"allowedIntents\": [\"next\", \"repeat\"]", "\"allowedIntents\": [\"next\", \"repeat\", \"handoff\"]"),
            ("\"enum\": [\"next\", \"repeat\"]", "\"enum\": [\"next\", \"repeat\", \"handoff\"]"),
            ("\"next\": { \"target\": \"continuation.fix\" }",
             "\"next\": { \"target\": \"continuation.fix\" }, \"handoff\": { \"target\": \"closure.fix\" }")]),
    ]), @"
    # as it is
    nothing
    # a keyword
    steps_registry.json:22:5 warning[closure-skipped]: `detect:keyword` can complete the run before its validators have passed
    # a verification that work goes around
    steps_registry.json:22:5 warning[closure-skipped]: a run can complete at `closure.fix@validators` without passing any of the verification steps (`continuation.fix`)
    ");
}

/// Every real definition that goes round with nothing but its limit to end it.
#[test]
fn real_definitions_that_only_their_limit_ends() {
    let (Some(pieces), Some(agents)) = (disk::shared("corpora/takt"), disk::shared("corpora/climpt")) else {
        return;
    };
    let (pieces, agents) = (disk::files_below(&pieces), disk::files_below(&agents));
    let mut text = String::new();
    for name in ["default", "magi", "minimal", "review-only"] {
        let options = PieceOptions { file: format!("en/pieces/{name}.yaml"), ..PieceOptions::default() };
        text.push_str(&lines(load_piece(&pieces, &options), |code| code == "unbounded-cycle"));
    }
    text.push_str(&lines(load(&agents, "closing/iterator"), |code| code == "unbounded-cycle"));
    insta::assert_snapshot!(text, @"
    default.yaml:201:9 note[unbounded-cycle]: nothing but the limit of 30 iterations ends the cycle of `ai_fix`, `ai_no_fix`
    minimal.yaml:143:9 note[unbounded-cycle]: nothing but the limit of 20 iterations ends the cycle of `reviewers`, `fix_both`
    ");
}

/// A transition for an intent that is not allowed is one mistake, and is said once.
#[test]
fn a_transition_that_nothing_takes_is_said_once() {
    insta::assert_snapshot!(support::table(&[("a transition too many", &[(
        "\"next\": { \"target\": \"continuation.fix\" }, ",
        "\"next\": { \"target\": \"continuation.fix\" }, \"jump\": { \"target\": \"continuation.fix\" }, ")])]), @"
    # a transition too many
    steps_registry.json:39:66 error[unreachable-transition]: `initial.fix` has a transition for `jump`, which it does not allow
    ");
}

/// What members say does not get between each other: each has a conversation of its own, whoever they are.
#[test]
fn members_share_no_conversation() {
    let files =
        changed(&[("      - name: qa-review\n", "      - name: qa-review\n        persona: reviewer\n")]);
    let draft = piece_support::load(&files, |_| {}).draft;
    let sessions: Vec<&SessionRule> = ["arch-review", "qa-review"]
        .iter()
        .map(|member| match &piece_support::step(&draft, member).act {
            Act::Ask(ask) => &ask.session,
            other => panic!("{other:?}"),
        })
        .collect();
    assert_ne!(sessions[0], sessions[1]);
    assert!(
        sessions
            .iter()
            .all(|rule| matches!(rule, SessionRule::Continue(key) if key.starts_with("reviewers/")))
    );
}
