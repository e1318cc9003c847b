//! The starter `minimal`: understand, do, report; the run is done only if the project's tests pass.
//!
//! The folder `minimal` contains its files, with marks for the name and the test command.

use super::starter::{File, Wanted};

const NAME: &str = "@NAME@";
const TEST_COMMAND: &str = "@TEST_COMMAND@";
const TESTS: &str = "@TESTS@";
/// The start of the part of the registry that runs the tests; it extends to the end of the registry.
const VALIDATORS: &str = ",\n  \"validators\": {";

const AGENT: &str = include_str!("minimal/agent.json");
const REGISTRY: &str = include_str!("minimal/steps_registry.json");
const SCHEMAS: &str = include_str!("minimal/schemas/steps.schema.json");
const SYSTEM: &str = include_str!("minimal/prompts/system.md");
const TESTS_KNOWN: &str = include_str!("minimal/prompts/tests/known.md");
const TESTS_UNKNOWN: &str = include_str!("minimal/prompts/tests/unknown.md");
const INITIAL: &str = include_str!("minimal/prompts/steps/initial/task/f_default.md");
const CONTINUATION: &str = include_str!("minimal/prompts/steps/continuation/task/f_default.md");
const CLOSURE: &str = include_str!("minimal/prompts/steps/closure/task/f_default.md");
const TESTS_FAILED: &str = include_str!("minimal/prompts/steps/retry/task/f_failed_tests-failed.md");

/// The files of the definition.
pub(super) fn files(wanted: &Wanted) -> Vec<File> {
    let mut files = vec![
        File::new("agent.json", AGENT.replace(NAME, wanted.name())),
        File::new("steps_registry.json", registry(wanted)),
        File::new("schemas/steps.schema.json", SCHEMAS),
        File::new("prompts/system.md", SYSTEM.replace(TESTS, tests(wanted).trim_end())),
        File::new("prompts/steps/initial/task/f_default.md", INITIAL),
        File::new("prompts/steps/continuation/task/f_default.md", CONTINUATION),
        File::new("prompts/steps/closure/task/f_default.md", CLOSURE),
    ];
    if wanted.test().is_some() {
        files.push(File::new("prompts/steps/retry/task/f_failed_tests-failed.md", TESTS_FAILED));
    }
    files
}

fn registry(wanted: &Wanted) -> String {
    // Replace the command last: it may contain the other mark.
    let registry = REGISTRY.replace(NAME, wanted.name());
    match wanted.test() {
        Some(test) => {
            let quoted = serde_json::Value::from(test).to_string();
            registry.replace(&format!("\"{TEST_COMMAND}\""), &quoted)
        }
        None => {
            let steps = registry.split(VALIDATORS).next().unwrap_or(&registry);
            format!("{steps}\n}}\n")
        }
    }
}

fn tests(wanted: &Wanted) -> String {
    match wanted.test() {
        Some(test) => TESTS_KNOWN.replace(TEST_COMMAND, &code_block(test)),
        None => TESTS_UNKNOWN.to_owned(),
    }
}

/// A Markdown code block with a command; the fence is longer than any in the command.
pub(super) fn code_block(command: &str) -> String {
    let mut fence = "```".to_owned();
    while command.contains(&fence) {
        fence.push('`');
    }
    format!("{fence}sh\n{command}\n{fence}")
}

#[cfg(test)]
mod tests {
    use super::files;
    use crate::init::starter::Wanted;
    use serde_json::Value;

    fn text(test: Option<&str>, path: &str) -> Option<String> {
        let files = files(&Wanted::new("fixer", test).unwrap());
        files.into_iter().find(|file| file.path == path).map(|file| file.text)
    }

    fn registry(test: Option<&str>) -> Value {
        serde_json::from_str(&text(test, "steps_registry.json").unwrap()).unwrap()
    }

    #[test]
    fn the_validator_and_the_prompt_contain_the_same_command() {
        for command in
            ["make test", r#"sh -c "a \"b\" \\ $(c)" # `d`"#, "a\nb\t@NAME@ @TESTS@", "echo '```' é"]
        {
            assert_eq!(registry(Some(command))["validators"]["tests"]["command"], command);
            let system = text(Some(command), "prompts/system.md").unwrap();
            assert!(system.contains(&format!("sh\n{command}\n```")), "{system}");
        }
    }

    #[test]
    fn a_fence_is_longer_than_any_in_the_command() {
        assert!(
            text(Some("echo '````'"), "prompts/system.md").unwrap().contains("`````sh\necho '````'\n`````")
        );
    }

    #[test]
    fn without_a_command_nothing_is_validated() {
        let (with, without) = (registry(Some("x")), registry(None));
        let validating = ["validators", "failurePatterns", "validationSteps"];
        for key in validating {
            assert!(with.get(key).is_some() && without.get(key).is_none(), "{key}");
        }
        assert_eq!(with["steps"], without["steps"]);
        assert!(text(None, "prompts/steps/retry/task/f_failed_tests-failed.md").is_none());
        assert!(text(None, "prompts/system.md").unwrap().contains("Nobody has said how"));
    }

    #[test]
    fn no_mark_is_left() {
        for test in [Some("make test"), None] {
            for file in files(&Wanted::new("fixer", test).unwrap()) {
                assert!(!file.text.contains('@'), "{}", file.path);
                assert!(file.text.ends_with('\n') && !file.text.ends_with("\n\n"), "{}", file.path);
            }
        }
        assert_eq!(registry(None)["agentId"], "fixer");
    }
}
