//! Rules over members of which a judge says what holds.

use cuegate_engine::EndState;

use crate::piece_runs::{Drive, flow};
use crate::piece_support::{broken, changed, load};
use crate::support::findings_of;

const RULES: &str = "        rules:\n          - condition: approved\n          - condition: needs_fix\n";

/// The sound piece whose members have these rules, and whose group has these two conditions.
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

/// Where the group leads when the members, or their judges, say this.
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
fn rules_over_members_name_what_judges_decide() {
    let judged = ["ai(\"good\")", "ai(\"bad\")"];
    let edits = edits(&judged, &judged, ["all(\"good\")", "any(\"bad\")"]);
    let said = |arch, qa| led(&edits, [("arch-review@ai", arch), ("qa-review@ai", qa)]);
    assert_eq!(said("good", "good"), format!("{:?}", EndState::Completed));
    assert_eq!(said("bad", "good"), "implement");
    assert_eq!(said("good", "bad"), "implement");
    assert_eq!(said("good", "none"), "reviewers@ai", "no rule about the members holds");
}

/// One member says it, of the other one a judge does: the same word means both.
#[test]
fn a_word_means_the_text_of_one_member_and_the_judged_text_of_another() {
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

/// Texts that differ in case only are numbered in results; each can be named as it is written.
#[test]
fn conditions_that_differ_in_case_only_can_be_named() {
    let rules = ["Fine", "fine"];
    let edits = edits(&rules, &rules, ["all(\"fine\")", "any(\"Fine\")"]);
    let said = |arch, qa| led(&edits, [("arch-review", arch), ("qa-review", qa)]);
    assert_eq!(said("fine (2)", "fine (2)"), "Completed");
    assert_eq!(said("fine (2)", "Fine (1)"), "implement");
}

/// Whoever follows the hint has written what counts.
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
