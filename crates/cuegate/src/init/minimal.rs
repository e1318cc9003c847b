//! The starter `minimal`: a step registry with three steps, whose validators are the project's commands.

use serde_json::{Map, Value, json};

use super::starter::{DefinitionFile, StarterValues};

const NAME: &str = "@NAME@";
const TESTS: &str = "@TESTS@";
/// The name of the failure pattern of all validators.
const PATTERN: &str = "command-failed";

const AGENT: &str = include_str!("minimal/agent.json");
const REGISTRY: &str = include_str!("minimal/steps_registry.json");
const SCHEMAS: &str = include_str!("minimal/schemas/steps.schema.json");
const SYSTEM: &str = include_str!("minimal/prompts/system.md");
const TESTS_KNOWN: &str = include_str!("minimal/prompts/tests/known.md");
const TESTS_UNKNOWN: &str = include_str!("minimal/prompts/tests/unknown.md");
const INITIAL: &str = include_str!("minimal/prompts/steps/initial/task/f_default.md");
const CONTINUATION: &str = include_str!("minimal/prompts/steps/continuation/task/f_default.md");
const CLOSURE: &str = include_str!("minimal/prompts/steps/closure/task/f_default.md");
const COMMAND_FAILED: &str = include_str!("minimal/prompts/steps/retry/task/f_failed_command-failed.md");

/// The files of the definition.
pub(super) fn render_minimal_files(wanted: &StarterValues) -> Vec<DefinitionFile> {
    let commands = name_validator_commands(wanted);
    let tests = if commands.is_empty() { TESTS_UNKNOWN } else { TESTS_KNOWN };
    let mut files = vec![
        DefinitionFile::new("agent.json", AGENT.replace(NAME, wanted.name())),
        DefinitionFile::new("steps_registry.json", render_registry(wanted.name(), &commands)),
        DefinitionFile::new("schemas/steps.schema.json", SCHEMAS),
        DefinitionFile::new("prompts/system.md", SYSTEM.replace(TESTS, tests.trim_end())),
        DefinitionFile::new("prompts/steps/initial/task/f_default.md", INITIAL),
        DefinitionFile::new("prompts/steps/continuation/task/f_default.md", CONTINUATION),
        DefinitionFile::new("prompts/steps/closure/task/f_default.md", CLOSURE),
    ];
    if !commands.is_empty() {
        files
            .push(DefinitionFile::new("prompts/steps/retry/task/f_failed_command-failed.md", COMMAND_FAILED));
    }
    files
}

/// The commands that decide, by the name of the validator.
fn name_validator_commands(wanted: &StarterValues) -> Vec<(String, &str)> {
    let checks = wanted.checks().iter().enumerate().map(|(index, check)| {
        let name = if index == 0 { "check".to_owned() } else { format!("check-{}", index + 1) };
        (name, check.as_str())
    });
    wanted.test().map(|test| ("tests".to_owned(), test)).into_iter().chain(checks).collect()
}

/// The registry. The steps are kept as they are written in the template; the validators follow them.
fn render_registry(name: &str, commands: &[(String, &str)]) -> String {
    let registry = REGISTRY.replace(NAME, name);
    let Some(steps) = registry.trim_end().strip_suffix('}').filter(|_| !commands.is_empty()) else {
        return registry;
    };
    let more = serde_json::to_string_pretty(&decided_by(commands)).unwrap_or_default();
    format!("{},\n{}\n", steps.trim_end(), more.trim_start_matches(['{', '\n']))
}

fn decided_by(commands: &[(String, &str)]) -> Value {
    let validators: Map<String, Value> = commands
        .iter()
        .map(|(name, command)| {
            let validator = json!({
                "type": "command",
                "command": command,
                "successWhen": "exitCode:0",
                "failurePattern": PATTERN,
                "extractParams": {
                    "exitCode": "exitCode",
                    "failedTests": "parseTestOutput",
                    "output": "stdout",
                    "errors": "stderr",
                },
            });
            (name.clone(), validator)
        })
        .collect();
    let conditions: Vec<Value> = commands.iter().map(|(name, _)| json!({"validator": name})).collect();
    json!({
        "validators": validators,
        "failurePatterns": {
            PATTERN: {
                "description": "A command that decides does not pass",
                "edition": "failed",
                "adaptation": PATTERN,
                "params": ["exitCode", "failedTests", "output", "errors"],
            },
        },
        "validationSteps": {
            "closure.task": {
                "stepId": "closure.task",
                "name": "Proof",
                "c2": "retry",
                "c3": "task",
                "validationConditions": conditions,
                "onFailure": {"action": "retry", "maxAttempts": 3},
            },
        },
    })
}

#[cfg(test)]
mod tests {
    use super::render_minimal_files;
    use crate::init::starter::StarterValues;
    use serde_json::Value;

    fn text(test: Option<&str>, path: &str) -> Option<String> {
        let files = render_minimal_files(&StarterValues::new("fixer", test).unwrap());
        files.into_iter().find(|file| file.path == path).map(|file| file.text)
    }

    fn registry(test: Option<&str>) -> Value {
        serde_json::from_str(&text(test, "steps_registry.json").unwrap()).unwrap()
    }

    #[test]
    fn a_command_is_written_once_and_verbatim() {
        for command in
            ["make test", r#"sh -c "a \"b\" \\ $(c)" # `d`"#, "a\nb\t@NAME@ @TESTS@", "echo '```' é {uv-x}"]
        {
            assert_eq!(registry(Some(command))["validators"]["tests"]["command"], command);
            let others = render_minimal_files(&StarterValues::new("fixer", Some(command)).unwrap());
            let mut others = others.iter().filter(|file| file.path != "steps_registry.json");
            assert!(others.all(|file| !file.text.contains(command)), "{command}");
            assert!(text(Some(command), "prompts/system.md").unwrap().contains("{uv-validators}"));
        }
    }

    #[test]
    fn checks_are_validators_too() {
        let wanted = StarterValues::new("fixer", Some("t")).unwrap();
        let wanted = wanted.with_checks(vec!["a".into(), "b".into()]).unwrap();
        let file = render_minimal_files(&wanted)
            .into_iter()
            .find(|file| file.path == "steps_registry.json")
            .unwrap();
        let registry: Value = serde_json::from_str(&file.text).unwrap();
        let commands: Vec<&Value> =
            registry["validators"].as_object().unwrap().values().map(|known| &known["command"]).collect();
        assert_eq!(commands, ["t", "a", "b"]);
        let conditions = registry["validationSteps"]["closure.task"]["validationConditions"].to_string();
        assert_eq!(conditions, r#"[{"validator":"tests"},{"validator":"check"},{"validator":"check-2"}]"#);
        assert!(StarterValues::new("fixer", None).unwrap().with_checks(vec![" ".into()]).is_err());
    }

    #[test]
    fn without_a_command_nothing_is_validated() {
        let (with, without) = (registry(Some("x")), registry(None));
        let validating = ["validators", "failurePatterns", "validationSteps"];
        for key in validating {
            assert!(with.get(key).is_some() && without.get(key).is_none(), "{key}");
        }
        assert_eq!(with["steps"], without["steps"]);
        assert!(text(None, "prompts/steps/retry/task/f_failed_command-failed.md").is_none());
        assert!(text(None, "prompts/system.md").unwrap().contains("Nobody has said how"));
    }

    #[test]
    fn no_mark_is_left() {
        for test in [Some("make test"), None] {
            for file in render_minimal_files(&StarterValues::new("fixer", test).unwrap()) {
                assert!(!file.text.contains('@'), "{}", file.path);
                assert!(file.text.ends_with('\n') && !file.text.ends_with("\n\n"), "{}", file.path);
            }
        }
        assert_eq!(registry(None)["agentId"], "fixer");
    }
}
