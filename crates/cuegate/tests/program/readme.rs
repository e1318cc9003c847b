//! The recorded run in the README: Claude Code on a small Node project, with prepared answers in place of a model.

use std::path::Path;

use cuegate_testkit::{
    offline,
    standin::{Reply, Scenario},
};
use serde_json::json;

use crate::{
    agents::Set,
    support::{Project, tidy},
};

const TASK: &str = "weekOf returns 53 for dates in week 1. Fix it.";
const BEGIN: &str = "$ cuegate run minimal \"weekOf returns 53 for dates in week 1. Fix it.\" --provider claude --budget-usd 2\n";

const TEST: &str = "import test from 'node:test';\nimport assert from 'node:assert';\nimport { weekOf } from './week.js';\n\
                    test('the last days of December can be in week 1', () => {\n  \
                    assert.equal(weekOf(new Date('2024-12-30')), 1);\n});\n";
const BEFORE: &str = "export function weekOf(date) {\n  const start = Date.UTC(date.getUTCFullYear(), 0, 1);\n  \
                      return Math.ceil((date - start) / 604800000);\n}\n";

fn model() -> Scenario {
    let next = |action: &str, reason: &str| json!({"action": action, "reason": reason});
    let done = |summary: &str| {
        json!({"summary": summary, "changed": "week.js: counts weeks from the Thursday of the week.",
            "tested": "npm test", "next_action": next("handoff", "The change is made.")})
    };
    let code = |first: &str| {
        format!(
            "export function weekOf(date) {{\n  const day = new Date(date);\n  day.setUTCDate(day.getUTCDate() + {first});\n  \
             const start = Date.UTC(day.getUTCFullYear(), 0, 1);\n  \
             return Math.ceil(((day - start) / 86400000 + 1) / 7);\n}}\n"
        )
    };
    Scenario::new()
        .usage(9_000, 7_000, 300)
        .reply(Reply::to("# Understand").shell("cat week.js week.test.js; npm test").json(json!({
            "summary": "Weeks are counted from January 1, not by ISO 8601.",
            "goal": "weekOf returns the ISO week.", "plan": "Move the date to the Thursday of its week.",
            "before": "1 test failed.", "next_action": next("next", "The cause is clear.")
        })))
        .reply(
            Reply::to("# Do it")
                .write("week.js", &code("4 - day.getUTCDay() - 7"))
                .json(done("weekOf counts from the Thursday of the week.")),
        )
        .reply(Reply::to("# Close").times(2).json(json!({
            "summary": "weekOf returns the ISO week: days at the end of December can be in week 1. Seen with npm test.",
            "files": [{"path": "week.js", "why": "The calculation."}], "open": "nothing",
            "next_action": next("closing", "The goal is reached.")
        })))
        .reply(
            Reply::to("# A command does not pass")
                .write("week.js", &code("4 - (day.getUTCDay() || 7)"))
                .shell("npm test")
                .json(done("The Thursday was one week too early.")),
        )
}

#[test]
fn the_recorded_run_of_the_readme_is_what_claude_code_prints() {
    if !offline::inside() {
        return;
    }
    let project = Project::empty();
    project.write("package.json", "{\"type\": \"module\", \"scripts\": {\"test\": \"node --test\"}}\n");
    project.write("week.js", BEFORE);
    project.write("week.test.js", TEST);
    project.init();
    let set = Set::of("claude", project, model());
    let ran = set.run(&["run", "minimal", TASK, "--provider", "claude", "--budget-usd", "2"]);
    assert_eq!(ran.code, 0, "{}\n{:?}", ran.stderr, set.standin.unmatched());
    set.project.all_gone();
    let recorded = format!("{BEGIN}{}", shown(&set.project, &ran.stderr));
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../README.md");
    let readme = std::fs::read_to_string(&path).unwrap();
    let known = block(&readme).expect("the README has no recorded run");
    if std::env::var_os("CUEGATE_WRITE_DOCS").is_some() {
        std::fs::write(&path, readme.replace(known, &recorded)).unwrap();
        return;
    }
    assert_eq!(
        bare(&set.project, known),
        bare(&set.project, &recorded),
        "run this test with CUEGATE_WRITE_DOCS=1 and look at the difference"
    );
}

/// The recorded run in the README.
fn block(readme: &str) -> Option<&str> {
    let start = readme.find("$ cuegate run minimal \"weekOf")?;
    let length = readme[start..].find("```")?;
    Some(&readme[start..start + length])
}

/// The output without the path of this machine.
fn shown(project: &Project, stderr: &str) -> String {
    let text = stderr.replace(project.path().to_str().unwrap(), "~/dates");
    text.lines().map(|line| format!("{}\n", line.trim_end())).collect()
}

/// The text without times, amounts and versions.
fn bare(project: &Project, text: &str) -> String {
    let tidied = tidy(project, text);
    let words = tidied.split_whitespace().map(|word| {
        let number =
            word.contains(|c: char| c.is_ascii_digit()) && !word.contains("week") && !word.contains('#');
        if number { "N" } else { word }
    });
    words.collect::<Vec<_>>().join(" ")
}
