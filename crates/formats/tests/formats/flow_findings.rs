//! What is found in the flow that definitions come down to: each case changes a sound definition.

use cuegate_flow::model::{Act, SessionRule};

use crate::takt::takt_support::{self, changed};

/// What members say does not get between each other: each has a conversation of its own, whoever they are.
#[test]
fn members_share_no_conversation() {
    let files =
        changed(&[("      - name: qa-review\n", "      - name: qa-review\n        persona: reviewer\n")]);
    let draft = takt_support::load(&files, |_| {}).draft;
    let sessions: Vec<&SessionRule> = ["arch-review", "qa-review"]
        .iter()
        .map(|member| match &takt_support::step(&draft, member).act {
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
