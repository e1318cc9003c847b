//! Rules over members whose outcomes a judge decides.

use cuegate_engine::EndState;

use crate::support::findings_of;
use crate::takt::runs::{Drive, flow};
use crate::takt::takt_support::{broken, changed, load};

const RULES: &str = "        rules:\n          - condition: approved\n          - condition: needs_fix\n";

/// Edits that give the members these rules, and the group these two conditions.
fn edits(arch: &[&str], qa: &[&str], group: [&str; 2]) -> Vec<(String, String)> {
    let rules = |texts: &[&str]| {
        let lines = texts.iter().map(|text| format!("          - condition: {text}\n"));
        format!("        rules:\n{}", lines.collect::<String>())
    };
    let owned = |from: &str, to: String| (from.to_owned(), to);
    vec![
        owned(&format!("{RULES}      - name: qa"), format!("{}      - name: qa", rules(arch))),
        owned(&format!("{RULES}    rules:"), format!("{}    rules:", rules(qa))),
        owned("all(\"approved\")", group[0].to_owned()),
        owned("any(\"needs_fix\")", group[1].to_owned()),
    ]
}

fn borrowed(edits: &[(String, String)]) -> Vec<(&str, &str)> {
    edits.iter().map(|(from, to)| (&**from, &**to)).collect()
}

/// The target of the group for these answers of the members or their judges.
fn led(edits: &[(String, String)], said: [(&str, &str); 2]) -> String {
    assert_eq!(broken(&borrowed(edits)), "", "{edits:?}");
    let flow = flow(&borrowed(edits), |_| {});
    let mut drive = Drive::start(&flow);
    drive.say("plan", "The plan stands").say("implement", "Done").exits(0);
    for (who, outcome) in said {
        let member = who.trim_end_matches("@ai");
        if member != who {
            drive.text(member, "I looked at all of it.");
        }
        drive.say(who, outcome);
    }
    match drive.end() {
        Some(end) => format!("{end:?}"),
        None => drive.asked().join(" "),
    }
}

#[test]
fn rules_over_members_refer_to_judged_outcomes() {
    let judged = ["ai(\"good\")", "ai(\"bad\")"];
    let edits = edits(&judged, &judged, ["all(\"good\")", "any(\"bad\")"]);
    let said = |arch, qa| led(&edits, [("arch-review@ai", arch), ("qa-review@ai", qa)]);
    assert_eq!(said("good", "good"), format!("{:?}", EndState::Completed));
    assert_eq!(said("bad", "good"), "implement");
    assert_eq!(said("good", "bad"), "implement");
    assert_eq!(said("good", "none"), "reviewers@ai", "no rule about the members holds");
}

/// The word is a plain rule of one member and an `ai("…")` rule of the other; it names both.
#[test]
fn a_word_names_a_plain_rule_and_a_judged_rule() {
    let edits = |group| edits(&["good", "bad"], &["ai(\"good\")", "ai(\"bad\")"], group);
    let said = |group, arch, qa| led(&edits(group), [("arch-review", arch), ("qa-review@ai", qa)]);
    let usual = ["all(\"good\")", "any(\"bad\")"];
    assert_eq!(said(usual, "good", "good"), "Completed");
    assert_eq!(said(usual, "bad", "good"), "implement");
    assert_eq!(said(usual, "good", "bad"), "implement");
    let each = ["all(\"good\", \"bad\")", "all(\"bad\", \"good\")"];
    assert_eq!(said(each, "good", "bad"), "Completed");
    assert_eq!(said(each, "bad", "good"), "implement");
}

#[test]
fn a_condition_with_quotes_can_be_named() {
    let rules = ["'it is \"good\"'", "bad"];
    let named = ["all(\"it is \\\"good\\\"\")", "any(\"bad\")"];
    let edits = edits(&rules, &rules, named);
    let good = "it is \"good\"";
    assert_eq!(led(&edits, [("arch-review", good), ("qa-review", good)]), "Completed");
    assert_eq!(led(&edits, [("arch-review", good), ("qa-review", "bad")]), "implement");
}

/// Conditions that differ only in case are numbered in results, but each can be named as written.
#[test]
fn conditions_that_differ_in_case_only_can_be_named() {
    let rules = ["Fine", "fine"];
    let edits = edits(&rules, &rules, ["all(\"fine\")", "any(\"Fine\")"]);
    let said = |arch, qa| led(&edits, [("arch-review", arch), ("qa-review", qa)]);
    assert_eq!(said("fine (2)", "fine (2)"), "Completed");
    assert_eq!(said("fine (2)", "Fine (1)"), "implement");
}

/// Following the hint gives a valid name.
#[test]
fn hints_name_what_can_be_written() {
    let judged = ["ai(\"good\")", "'ai(\"is it \"bad\"?\")'"];
    for (word, hint) in [
        ("missing", "use one of `good`, `is it \\\"bad\\\"?`"),
        ("is it bad?", "did you mean `is it \\\"bad\\\"?`?"),
    ] {
        let edits = edits(&judged, &judged, ["all(\"good\")", &format!("any(\"{word}\")")]);
        let loaded = load(&changed(&borrowed(&edits)), |_| {});
        let hints: Vec<String> = loaded.diagnostics.iter().filter_map(|found| found.hint.clone()).collect();
        assert_eq!(hints, [hint], "{}", findings_of(loaded));
    }
    let edits = edits(&judged, &judged, ["all(\"good\")", "any(\"is it \\\"bad\\\"?\")"]);
    assert_eq!(broken(&borrowed(&edits)), "");
}
