//! The starters that are TAKT workflows: each has a file of steps, and texts that several of them share.
//!
//! The folder `workflows` contains the files, with marks. A mark in a workflow is an item of `quality_gates`: a text about
//! the tests for agents, or a command that verifies them.

use super::starter::{DefinitionFile, StarterValues};

const NAME: &str = "@NAME@";
/// The start of a list item that is a mark.
const ITEM: &str = "- @";
/// The timeout of the tests in milliseconds: 10 minutes.
const TIMEOUT_MS: u32 = 600_000;

#[derive(Debug)]
pub(crate) struct TaktStarter {
    text: &'static str,
    /// A script of answers that rehearses the workflow in any repository whose tests pass.
    rehearsal: Option<&'static str>,
    /// The workflow that it calls, and its name.
    calls: Option<(&'static str, &'static TaktStarter)>,
}

impl TaktStarter {
    /// Implement, review, fix.
    pub(super) const MINIMAL: TaktStarter = TaktStarter {
        text: include_str!("takt/workflows/minimal-takt.yaml"),
        rehearsal: Some(include_str!("takt/rehearsals/minimal-takt.yaml")),
        calls: None,
    };
    /// Plan, implement, review, fix, supervise.
    pub(super) const DEVELOP: TaktStarter = TaktStarter {
        text: include_str!("takt/workflows/develop.yaml"),
        rehearsal: Some(include_str!("takt/rehearsals/develop.yaml")),
        calls: None,
    };
    /// Questions to a person about the task, then `develop`.
    pub(super) const PLAN: TaktStarter = TaktStarter {
        text: include_str!("takt/workflows/plan.yaml"),
        rehearsal: Some(include_str!("takt/rehearsals/plan.yaml")),
        calls: Some(("develop", &TaktStarter::DEVELOP)),
    };
    /// Tests, then code. It has no rehearsal: its first tests must fail, and no script can write tests for every
    /// language.
    pub(super) const TEST_FIRST: TaktStarter =
        TaktStarter { text: include_str!("takt/workflows/test-first.yaml"), rehearsal: None, calls: None };
    /// Reviews.
    pub(super) const REVIEW_ONLY: TaktStarter = TaktStarter {
        text: include_str!("takt/workflows/review-only.yaml"),
        rehearsal: Some(include_str!("takt/rehearsals/review-only.yaml")),
        calls: None,
    };
    /// Questions.
    pub(super) const RESEARCH: TaktStarter = TaktStarter {
        text: include_str!("takt/workflows/research.yaml"),
        rehearsal: Some(include_str!("takt/rehearsals/research.yaml")),
        calls: None,
    };

    /// The name of the workflow that it calls, which it cannot have itself.
    pub(crate) fn called(&self) -> Option<&'static str> {
        self.calls.map(|(name, _)| name)
    }

    /// The workflow file.
    pub(crate) fn own(&self, wanted: &StarterValues) -> Vec<DefinitionFile> {
        vec![DefinitionFile::new(format!("workflows/{}.yaml", wanted.name()), self.filled(wanted))]
    }

    /// The files that may exist already: the texts that it references, which workflows share, its rehearsal, and the workflow
    /// that it calls with all of its files.
    pub(crate) fn shared(&self, wanted: &StarterValues) -> Vec<DefinitionFile> {
        let mut shared = self.texts();
        if let Some((name, called)) = self.calls {
            let wanted = wanted.named(name);
            for file in called.own(&wanted).into_iter().chain(called.shared(&wanted)) {
                if shared.iter().all(|known| known.path != file.path) {
                    shared.push(file);
                }
            }
        }
        if let Some(rehearsal) = self.rehearsal {
            let name = wanted.name();
            shared
                .push(DefinitionFile::new(format!("rehearsals/{name}.yaml"), rehearsal.replace(NAME, name)));
        }
        shared
    }

    fn texts(&self) -> Vec<DefinitionFile> {
        let named = |path: &str| {
            let rule = path.strip_prefix("workflows/rules/").and_then(|name| name.strip_suffix(".md"));
            let ends = rule.map_or_else(|| format!(": ../{path}"), |name| format!("rules: [{name}]"));
            self.text.lines().any(|line| line.ends_with(&ends))
        };
        PARTS
            .iter()
            .filter(|(path, _)| named(path))
            .map(|&(path, text)| DefinitionFile::new(path, text))
            .collect()
    }

    fn filled(&self, wanted: &StarterValues) -> String {
        let mut filled = String::new();
        let mut written = AnchoredCommands { wanted, anchors: Vec::new() };
        for line in self.text.replace(NAME, wanted.name()).lines() {
            let margin = line.len() - line.trim_start().len();
            let Some(mark) = line.trim_start().strip_prefix(ITEM) else {
                filled.push_str(line);
                filled.push('\n');
                continue;
            };
            for item in written.items(mark) {
                for (index, line) in item.lines().enumerate() {
                    let lead = if index == 0 { "- " } else { "  " };
                    filled.push_str(&format!("{}{lead}{line}\n", " ".repeat(margin)));
                }
            }
        }
        filled
    }
}

/// The commands in a workflow. Each is written once, with an anchor; later uses refer to it.
struct AnchoredCommands<'w> {
    wanted: &'w StarterValues,
    anchors: Vec<String>,
}

impl AnchoredCommands<'_> {
    /// The items that replace a mark.
    fn items(&mut self, mark: &str) -> Vec<String> {
        const RUN_BY: &str = "The tests are run in the top folder by the command on the next line";
        let test = self.wanted.test().map(str::to_owned);
        match (mark, test) {
            ("TESTS_PASS@", test) => {
                let mut gates: Vec<String> =
                    test.map(|test| render_command_gate(&self.command("tests", &test))).into_iter().collect();
                for (index, check) in self.wanted.checks().iter().enumerate() {
                    gates.push(render_command_gate(&self.command(&format!("check-{}", index + 1), check)));
                }
                gates
            }
            ("TESTS_FAIL@", Some(test)) => {
                vec![render_command_gate(&quote_yaml_scalar(&invert_test_command(&test)))]
            }
            ("TESTS_FAIL@", None) => Vec::new(),
            // The prompt shows the gate's command, so an item is needed only if it does not fit on one line.
            ("TESTS_DECIDE@", Some(test)) if !test.contains('\n') => Vec::new(),
            ("TESTS_DECIDE@", Some(test)) => {
                vec![
                    quote_yaml_scalar("All tests pass"),
                    quote_yaml_scalar(RUN_BY),
                    self.command("tests", &test),
                ]
            }
            ("TESTS_DECIDE_RED@", Some(test)) => {
                let red = "The tests can be run, and fail because of the new ones; the command below passes only then";
                vec![quote_yaml_scalar(red), quote_yaml_scalar(RUN_BY), self.command("tests", &test)]
            }
            (_, Some(test)) => {
                let told = "The report quotes what the tests said, or says why they were not run";
                vec![quote_yaml_scalar(told), quote_yaml_scalar(RUN_BY), self.command("tests", &test)]
            }
            ("TESTS_DECIDE_RED@", None) => {
                vec![quote_yaml_scalar(
                    "The new tests were run and seen to fail, and nothing else fails that passed before",
                )]
            }
            ("TESTS_DECIDE@", None) => vec![quote_yaml_scalar(
                "What tests this repository has was found out from its documents, build files and continuous \
                 integration; they were run after the last edit, and pass. Where there are none, the report says so",
            )],
            (_, None) => vec![quote_yaml_scalar(
                "How this repository is tested was found out from its documents, build files and continuous \
                 integration; the report quotes what was run, or says that there is nothing",
            )],
        }
    }

    /// A command as a YAML scalar.
    fn command(&mut self, anchor: &str, command: &str) -> String {
        if self.anchors.iter().any(|known| known == anchor) {
            return format!("*{anchor}");
        }
        self.anchors.push(anchor.to_owned());
        format!("&{anchor} {} # change it here; `*{anchor}` refers to it", quote_yaml_scalar(command))
    }
}

/// A command that must pass, as an item of `quality_gates`.
fn render_command_gate(command: &str) -> String {
    format!("command: {command}\ntimeout_ms: {TIMEOUT_MS}")
}

/// A command that passes if the tests can be run and fail.
fn invert_test_command(test: &str) -> String {
    format!(
        "(\n{test}\n); code=$?; case $code in 0|126|127) \
         echo \"exit code $code: here the tests have to run, and to fail\"; exit 1;; esac"
    )
}

/// Quotes a text as a YAML scalar: a JSON string is a valid double-quoted scalar.
fn quote_yaml_scalar(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

macro_rules! parts {
    ($($path:literal),* $(,)?) => {
        [$(($path, include_str!(concat!("takt/", $path)))),*]
    };
}

/// All texts that workflows reference, by path relative to `.takt`.
const PARTS: [(&str, &str); 51] = parts![
    "instructions/agree.md",
    "instructions/fix.md",
    "instructions/implement.md",
    "instructions/plan.md",
    "instructions/research-check.md",
    "instructions/research-dig.md",
    "instructions/research-questions.md",
    "instructions/research-write.md",
    "instructions/review-conclude.md",
    "instructions/review-correctness.md",
    "instructions/review-scope.md",
    "instructions/review-security.md",
    "instructions/review-tests.md",
    "instructions/supervise.md",
    "instructions/test-first-behaviour.md",
    "instructions/test-first-implement.md",
    "instructions/test-first-review.md",
    "instructions/test-first-verify.md",
    "instructions/test-first-write.md",
    "knowledge/project.md",
    "personas/coder.md",
    "personas/correctness-reviewer.md",
    "personas/planner.md",
    "personas/researcher.md",
    "personas/security-reviewer.md",
    "personas/supervisor.md",
    "personas/test-reviewer.md",
    "personas/tester.md",
    "policies/asking.md",
    "policies/editing.md",
    "policies/evidence.md",
    "policies/read-only.md",
    "policies/reviewing.md",
    "policies/sources.md",
    "policies/testing.md",
    "report-formats/behaviour.md",
    "report-formats/changes.md",
    "report-formats/check.md",
    "report-formats/findings.md",
    "report-formats/fixes.md",
    "report-formats/plan.md",
    "report-formats/questions.md",
    "report-formats/research.md",
    "report-formats/review-plan.md",
    "report-formats/review-result.md",
    "report-formats/review.md",
    "report-formats/supervision.md",
    "report-formats/task.md",
    "report-formats/tests.md",
    "report-formats/verification.md",
    "workflows/rules/agreed-task.md",
];

#[cfg(test)]
mod tests {
    use super::{PARTS, TaktStarter};
    use crate::init::starter::{STARTERS, StarterFormat, StarterValues};

    fn workflows() -> impl Iterator<Item = (&'static str, &'static TaktStarter)> {
        STARTERS.iter().filter_map(|starter| match &starter.form {
            StarterFormat::Takt(workflow) => Some((starter.name, workflow)),
            StarterFormat::Agent(_) => None,
        })
    }

    fn filled(workflow: &TaktStarter, test: Option<&str>) -> String {
        workflow.own(&StarterValues::new("mine", test).unwrap()).remove(0).text
    }

    #[test]
    fn every_text_is_referenced_and_every_reference_has_a_text() {
        for (name, workflow) in workflows() {
            let named: Vec<&str> = workflow
                .text
                .lines()
                .filter_map(|line| line.split_once(": ../"))
                .map(|(_, path)| path)
                .collect();
            let texts = workflow.texts().into_iter().map(|file| file.path);
            let shared: Vec<String> = texts.filter(|path| !path.starts_with("workflows/")).collect();
            assert!(!named.is_empty());
            for path in &named {
                assert!(shared.iter().any(|known| known == path), "{name}: {path}");
            }
            assert_eq!(named.len(), shared.len(), "{name}");
        }
        for (path, _) in PARTS {
            assert!(
                workflows().any(|(_, workflow)| workflow.texts().iter().any(|file| file.path == path)),
                "{path}"
            );
        }
    }

    #[test]
    fn no_mark_is_left() {
        for (name, workflow) in workflows() {
            for test in [Some("make test"), None] {
                let wanted = StarterValues::new("mine", test).unwrap();
                for file in workflow.own(&wanted).into_iter().chain(workflow.shared(&wanted)) {
                    assert!(!file.text.contains('@'), "{name}: {}", file.path);
                    assert!(file.text.ends_with('\n') && !file.text.ends_with("\n\n"), "{}", file.path);
                }
            }
        }
    }

    #[test]
    fn gates_have_commands_only_with_a_test_command() {
        for (name, workflow) in workflows() {
            let proved = |test| filled(workflow, test).matches("command: ").count();
            assert_eq!(proved(None), 0, "{name}");
            let expected = if matches!(name, "minimal-takt" | "develop" | "test-first") { 2 } else { 0 };
            assert_eq!(proved(Some("make test")), expected, "{name}");
        }
    }

    #[test]
    fn a_command_with_special_characters_is_quoted() {
        let text = filled(&TaktStarter::MINIMAL, Some("echo \"a: b\" '#' @NAME@\n\techo `c` \\ {task}"));
        let command = r##"&tests "echo \"a: b\" '#' @NAME@\n\techo `c` \\ {task}" #"##;
        assert!(text.lines().any(|line| line.contains(command)), "{text}");
    }

    #[test]
    fn a_command_is_written_once() {
        for workflow in [&TaktStarter::MINIMAL, &TaktStarter::DEVELOP] {
            let wanted = StarterValues::new("mine", Some("make x-test")).unwrap();
            let wanted = wanted.with_checks(vec!["make x-lint".into()]).unwrap();
            let text = workflow.own(&wanted).remove(0).text;
            assert_eq!((text.matches("x-test").count(), text.matches("x-lint").count()), (1, 1), "{text}");
            assert_eq!(text.matches("command: *check-1").count(), 1);
        }
    }
}
