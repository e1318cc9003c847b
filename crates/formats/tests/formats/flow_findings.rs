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
