//! What guards the end: commands, when they pass, what is taken out of what they print, and what happens when they fail.

use cuegate_engine::EndState;
use cuegate_formats::Generation;
use serde_json::{Value, json};

use crate::registry::drive::{Drive, Small, small};

const BOTH: [Generation; 2] = [Generation::Closing, Generation::Complete];

/// A run whose validator is about to say something.
fn at_the_end(small: &Small) -> Drive {
    let (to_end, ending) = small.ending();
    let mut drive = small.drive();
    drive.say("next").say(to_end).say(ending);
    drive
}

#[test]
fn a_validator_passes_when_its_condition_holds() {
    // When it is a success, how it ends, what it prints, and whether it passes.
    let cases = [
        ("exitCode:0", 0, "noise", "", true),
        ("exitCode:0", 1, "", "", false),
        ("exitCode:3", 3, "", "", true),
        ("exitCode:3", 0, "", "", false),
        ("empty", 0, "", "", true),
        ("empty", 0, "\n", "", true),
        ("empty", 0, " M a.txt\n", "", false),
        ("empty", 1, "", "", true),
        ("empty", 1, "", "no such thing\n", false),
        ("empty", 2, "", "", false),
    ];
    for generation in BOTH {
        for (when, code, stdout, stderr, passes) in cases {
            let all =
                small(generation).validator(json!({"command": "look", "successWhen": when}), "Mend it.");
            let mut drive = at_the_end(&all);
            assert_eq!(drive.command().as_deref(), Some("look"));
            drive.exec(code, stdout, stderr);
            let ended = drive.end().map(|(state, _)| state);
            assert_eq!(
                ended == Some(EndState::Completed),
                passes,
                "{when}, exit {code}, {stdout:?}, {stderr:?}"
            );
            assert!(passes || drive.prompt().starts_with("Mend it."), "{}", passes);
        }
    }
}

/// The extractors, each with what a command prints and what the failure prompt says of it.
#[test]
fn every_extractor_fills_the_prompt_that_asks_for_a_remedy() {
    const STATUS: &str = "M  staged.rs\n M changed.rs\n?? new.rs\n";
    const TYPES: &str = "error: TS2345 [ERROR]: no\n    at file:///src/a.ts:3:5\n";
    const LINT: &str = "/src/a.ts:3:5: x is never used [no-unused]\n";
    const TESTS: &str = "adds ... FAILED (3ms)\n";
    let cases: [(&str, &str, &str, &str); 18] = [
        ("parseChangedFiles", STATUS, "", "changed.rs"),
        ("parseUntrackedFiles", STATUS, "", "new.rs"),
        ("parseStagedFiles", STATUS, "", "staged.rs"),
        ("parseUnstagedFiles", STATUS, "", "changed.rs"),
        ("parseTestOutput", TESTS, "", "adds"),
        ("errorOutput", "out", "it broke", "it broke"),
        ("parseTypeErrors", TYPES, "", "\"line\":3,\"column\":5,\"message\":\"no\""),
        ("extractFiles", TYPES, "", "a.ts"),
        ("parseLintErrors", LINT, "", "\"rule\":\"no-unused\""),
        ("lintFiles", LINT, "", "a.ts"),
        ("parseFormatOutput", "from /src/a.ts:\n", "", "a.ts"),
        ("generateDiff", "--- a\n+++ b\n-x\n+y\n", "", "+y"),
        ("parseBranchName", "feature/x\n", "", "feature/x"),
        ("parseRemoteStatus", "## main...origin/main [ahead 2]\n", "", "ahead"),
        ("parseMergeStatus", "CONFLICTING\n", "", "CONFLICTING"),
        ("stdout", "what it said\n", "", "what it said"),
        ("stderr", "", "what it moaned\n", "what it moaned"),
        ("exitCode", "", "", "7"),
    ];
    for (extractor, stdout, stderr, expected) in cases {
        let validator = json!({"extractParams": {"value": extractor}});
        let prompt = "Mend it: {{#if value}}{{value}}{{else}}nothing{{/if}}";
        let all = small(Generation::Closing)
            .validator(validator, prompt)
            .registry(json!({"failurePatterns": {"unproven": {"params": ["value"]}}}));
        let mut drive = at_the_end(&all);
        let prompt = drive.exec(7, stdout, stderr).prompt();
        assert!(prompt.contains(expected), "{extractor}: {prompt}");
    }
}

/// Where the prompt of a remedy lies: by the pattern's edition and adaptation, and the `c2` and `c3` of the validation, else
/// of the closure step, else of the work step.
#[test]
fn a_remedy_is_asked_with_the_prompt_of_its_pattern() {
    let cases: [(Value, Value, &str); 5] = [
        (json!({}), json!({}), "retry/fix/f_failed_unproven.md"),
        (json!({"edition": "broken"}), json!({}), "retry/fix/f_broken_unproven.md"),
        (json!({"adaptation": null}), json!({}), "retry/fix/f_failed.md"),
        (json!({}), json!({"c2": null, "c3": null}), "closure/fix/f_failed_unproven.md"),
        (json!({}), json!({"c2": "again", "c3": "all"}), "again/all/f_failed_unproven.md"),
    ];
    for (pattern, validation, path) in cases {
        let all = small(Generation::Closing)
            .validator(json!({}), "")
            .without("prompts/steps/retry/fix/f_failed_unproven.md")
            .file(&format!("prompts/steps/{path}"), "Mend it so.")
            .registry(json!({"failurePatterns": {"unproven": pattern}, "validationSteps": {"closure.fix": validation}}));
        let mut drive = at_the_end(&all);
        drive.exec(1, "", "");
        assert_eq!(
            (drive.step(), drive.prompt()),
            ("continuation.fix".into(), "Mend it so.".into()),
            "{path}"
        );
    }
}

/// Several validators are asked in order, all have to pass, and the first that fails says what is asked.
#[test]
fn validators_run_in_their_order_and_all_have_to_pass() {
    let all = small(Generation::Closing).validator(json!({"command": "first"}), "Mend the first.").registry(json!({
        "validators": {"second": {"type": "command", "command": "second", "successWhen": "empty", "failurePattern": "other"}},
        "failurePatterns": {"other": {"description": "Other", "edition": "failed", "adaptation": "other"}},
        "validationSteps": {"closure.fix": {"validationConditions": [{"validator": "proof"}, {"validator": "second"}]}}
    }));
    let all = all.file("prompts/steps/retry/fix/f_failed_other.md", "Mend the second.");
    let mut drive = at_the_end(&all);
    assert_eq!(drive.command().as_deref(), Some("first"));
    drive.exec(0, "", "");
    assert_eq!((drive.command().as_deref(), drive.end()), (Some("second"), None), "one is not all");
    drive.exec(0, "dirt", "");
    assert_eq!(drive.prompt(), "Mend the second.");
    drive.say("handoff").say("closing").exec(0, "", "").exec(0, "", "");
    assert_eq!(drive.end().unwrap().0, EndState::Completed);
}

/// `onFailure`: what follows a failure, and how often it is tried to mend it.
#[test]
fn a_failure_is_mended_so_often_given_up_or_passed_over() {
    for generation in BOTH {
        let with = |on_failure: Value| {
            let all = small(generation).validator(json!({}), "Mend it.");
            let end = all.end();
            let key = if generation == Generation::Complete { "completionSteps" } else { "validationSteps" };
            all.registry(json!({ key: { end: {"onFailure": on_failure} } }))
        };
        for (on_failure, remedies) in [
            (json!({"action": "retry", "maxAttempts": 2}), 2),
            (json!({"action": "retry"}), 3),
            (json!({"action": "retry", "maxAttempts": 0}), 0),
            (json!({"action": "abort"}), 0),
        ] {
            let all = with(on_failure.clone());
            let (to_end, ending) = all.ending();
            let mut drive = at_the_end(&all);
            for _ in 0..remedies {
                drive.exec(1, "", "");
                assert_eq!(drive.prompt(), "Mend it.");
                drive.say(to_end).say(ending);
            }
            assert_eq!(drive.exec(1, "", "").end().unwrap().0, EndState::Failed, "{on_failure}");
        }
        let all = with(json!({"action": "skip", "maxAttempts": null}));
        assert_eq!(at_the_end(&all).exec(1, "", "").end().unwrap().0, EndState::Completed);
    }
}
