//! Hints about pieces: following one must not cause another error.

use crate::takt::takt_support::{changed, load};

/// The findings in the sound piece after a replacement, with their hints.
fn hints(from: &str, to: &str) -> Vec<String> {
    let loaded = load(&changed(&[(from, to)]), |_| {});
    let line = |found: &cuegate_flow::diagnostics::Diagnostic| {
        format!("{}: {}", found.message, found.hint.as_deref().unwrap_or_default())
    };
    loaded.diagnostics.iter().map(line).collect()
}

#[test]
fn too_large_numbers_are_reported_as_numbers() {
    for (written, bound) in [
        ("99999999999999999999", "at most 4294967295"),
        ("4294967296", "at most 4294967295"),
        ("-99999999999999999999", "at least 1"),
        ("1.5", "at least 1"),
    ] {
        let found = hints("max_iterations: 12", &format!("max_iterations: {written}"));
        let expected =
            format!("`max_iterations` must be a whole number of {bound}, not {written}: correct the number");
        assert_eq!(found, [expected]);
    }
    let found = hints("max_iterations: 12", "max_iterations: \"12\"");
    assert_eq!(found, ["`max_iterations` must be a number, not a text: write a number"]);
}

#[test]
fn hints_do_not_advise_removing_required_keys() {
    for (from, to, hint) in [
        ("max_iterations: 12", "max_iterations: many", "write a number"),
        ("initial_movement: plan", "initial_movement: [plan]", "write text"),
        ("name: sound", "name: [sound]", "write text"),
        ("name: sound", "name:", "give `name` a value"),
        ("    edit: false\n    allowed_tools", "    edit: no\n    allowed_tools", "write `true` or `false`"),
        ("        next: reviewers", "        next: [reviewers]", "write text"),
        ("cycle: [implement, reviewers]", "cycle: implement", "write a list"),
        // The hint for an optional key may advise removing it.
        ("    model: opus", "    model: [opus]", "write text, or leave `model` out"),
        ("threshold: 2", "threshold: two", "write a number, or leave `threshold` out"),
    ] {
        let found = hints(from, to);
        assert!(found.iter().any(|line| line.ends_with(&format!(": {hint}"))), "{to}: {found:#?}");
    }
}

#[test]
fn hints_do_not_offer_ends_that_would_be_errors() {
    for (from, to) in [
        ("cycle: [implement, reviewers]", "cycle: [implement, nowhere]"),
        ("cycle: [implement, reviewers]", "cycle: [implement, COMPLET]"),
        ("initial_movement: plan", "initial_movement: ABROT"),
    ] {
        let found = hints(from, to);
        assert!(found[0].ends_with(": name a step"), "{found:#?}");
    }
    let found = hints("        next: reviewers", "        next: ABROT");
    assert!(found[0].ends_with(": did you mean `ABORT`?"), "{found:#?}");
}
