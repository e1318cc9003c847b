//! The starters of `cuegate init`.

use super::{minimal, takt_starter::TaktStarter};
use crate::Failure;

/// A definition that can be written into a project.
#[derive(Debug)]
pub(crate) struct Starter {
    /// The name on the command line, and the default name of the definition.
    pub(crate) name: &'static str,
    /// An alternative name on the command line.
    pub(crate) also: Option<&'static str>,
    /// Its purpose, in one line.
    pub(crate) about: &'static str,
    /// How it uses the project's test command.
    pub(crate) tests: TestUse,
    /// Its format and files.
    pub(crate) form: StarterFormat,
}

/// How a definition uses the project's test command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TestUse {
    /// Work is done only if it passes.
    Decide,
    /// It must first fail, then pass.
    DecideTwice,
    /// The prompts contain it.
    Told,
    /// Not at all.
    Unused,
}

/// The format of a definition.
#[derive(Debug)]
pub(crate) enum StarterFormat {
    /// A folder in `.agent`.
    Agent(fn(&StarterValues) -> Vec<DefinitionFile>),
    /// A workflow in `.takt/workflows`, and the texts that it shares with others.
    Takt(TaktStarter),
}

/// All starters.
pub(crate) const STARTERS: [Starter; 7] = [
    Starter {
        name: "minimal",
        also: None,
        about: "one task: understand it, do it, report; done only when the project's tests pass",
        tests: TestUse::Decide,
        form: StarterFormat::Agent(minimal::render_minimal_files),
    },
    Starter {
        name: "minimal-takt",
        also: None,
        about: "one task, as a TAKT workflow: implement, review by another agent, fix",
        tests: TestUse::Decide,
        form: StarterFormat::Takt(TaktStarter::MINIMAL),
    },
    Starter {
        name: "develop",
        also: Some("plan-implement-review-fix-supervise"),
        about: "one task: plan, implement, parallel reviews, fix, supervise; loops are monitored",
        tests: TestUse::Decide,
        form: StarterFormat::Takt(TaktStarter::DEVELOP),
    },
    Starter {
        name: "plan",
        also: None,
        about: "a wish: questions to you make it a task with acceptance criteria, then as `develop`",
        tests: TestUse::Decide,
        form: StarterFormat::Takt(TaktStarter::PLAN),
    },
    Starter {
        name: "test-first",
        also: None,
        about: "one task: failing tests, a review of them, then the code that makes them pass",
        tests: TestUse::DecideTwice,
        form: StarterFormat::Takt(TaktStarter::TEST_FIRST),
    },
    Starter {
        name: "review-only",
        also: None,
        about: "a change: correctness, tests and security reviewed in parallel; nothing is edited",
        tests: TestUse::Told,
        form: StarterFormat::Takt(TaktStarter::REVIEW_ONLY),
    },
    Starter {
        name: "research",
        also: None,
        about: "a question: split, researched, checked, answered with sources; nothing is edited",
        tests: TestUse::Unused,
        form: StarterFormat::Takt(TaktStarter::RESEARCH),
    },
];

/// The values that fill a starter's placeholders.
#[derive(Debug)]
pub(crate) struct StarterValues {
    name: String,
    test: Option<String>,
    checks: Vec<String>,
}

#[derive(Debug)]
pub(crate) struct DefinitionFile {
    /// The path in the definition's folder, separated by `/`.
    pub(crate) path: String,
    /// The content.
    pub(crate) text: String,
}

impl DefinitionFile {
    pub(super) fn new(path: impl Into<String>, text: impl Into<String>) -> DefinitionFile {
        DefinitionFile { path: path.into(), text: text.into() }
    }
}

/// The starter with this name or alternative name.
pub(crate) fn find_starter(name: &str) -> Option<&'static Starter> {
    STARTERS.iter().find(|starter| starter.name == name || starter.also == Some(name))
}

/// The name of a starter similar to this one.
pub(crate) fn find_nearest_starter(name: &str) -> Option<&'static str> {
    let known = STARTERS.iter().flat_map(|starter| [Some(starter.name), starter.also]).flatten();
    cuegate_flow::diagnostics::find_nearest_name(name, known)
}

impl StarterValues {
    /// Checks the name and the optional test command.
    ///
    /// # Errors
    /// When the name is not valid for an agent, or the command is empty.
    pub(crate) fn new(name: &str, test: Option<&str>) -> Result<StarterValues, Failure> {
        let good = name.starts_with(|c: char| c.is_ascii_lowercase())
            && name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-');
        if !good {
            return Err(Failure::usage(
                format!("`{name}` is not a valid agent name"),
                "use lower-case letters, digits and hyphens; start with a letter",
            ));
        }
        if test.is_some_and(|test| test.trim().is_empty()) {
            return Err(Failure::usage(
                "the test command is empty",
                "give a command, or omit `--test` to detect it",
            ));
        }
        Ok(StarterValues {
            name: name.to_owned(),
            test: test.map(|test| test.trim().to_owned()),
            checks: Vec::new(),
        })
    }

    /// The same, with further commands that must pass before work is done.
    ///
    /// # Errors
    /// When a command is empty.
    pub(crate) fn with_checks(self, checks: Vec<String>) -> Result<StarterValues, Failure> {
        if checks.iter().any(|check| check.trim().is_empty()) {
            return Err(Failure::usage("a check is empty", "give a command, or omit `--check`"));
        }
        Ok(StarterValues { checks, ..self })
    }

    /// The name of the definition: lower-case letters, digits and hyphens.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// The same for a definition with another name.
    pub(super) fn named(&self, name: &str) -> StarterValues {
        StarterValues { name: name.to_owned(), test: self.test.clone(), checks: self.checks.clone() }
    }

    /// The test command, for `sh -c`.
    pub(crate) fn test(&self) -> Option<&str> {
        self.test.as_deref()
    }

    /// Further commands that must pass, for `sh -c`.
    pub(crate) fn checks(&self) -> &[String] {
        &self.checks
    }
}

#[cfg(test)]
mod tests {
    use super::{STARTERS, StarterValues, find_starter};

    #[test]
    fn names_are_valid_agent_names() {
        for name in ["minimal", "a", "fix-2"] {
            assert_eq!(StarterValues::new(name, None).unwrap().name(), name);
        }
        for name in ["", "Minimal", "2fix", "-x", "../x", "a/b", "a\\b", ".", "a b", "é", "a.b"] {
            let refused = StarterValues::new(name, None).unwrap_err();
            assert_eq!(refused.code, crate::exit::USAGE);
            assert_eq!(refused.message, format!("`{name}` is not a valid agent name"));
        }
    }

    #[test]
    fn commands_are_trimmed_and_not_empty() {
        assert_eq!(StarterValues::new("a", Some(" make test\n")).unwrap().test(), Some("make test"));
        assert_eq!(
            StarterValues::new("a", Some("f '{{.State}}' {x}")).unwrap().test(),
            Some("f '{{.State}}' {x}")
        );
        for command in ["", " \n"] {
            assert_eq!(
                StarterValues::new("a", Some(command)).unwrap_err().code,
                crate::exit::USAGE,
                "{command}"
            );
        }
    }

    #[test]
    fn every_starter_is_found_and_its_name_is_valid() {
        for known in &STARTERS {
            for asked in [Some(known.name), known.also].into_iter().flatten() {
                assert_eq!(find_starter(asked).map(|found| found.name), Some(known.name));
            }
            assert!(StarterValues::new(known.name, None).is_ok());
        }
        assert!(find_starter("nobody").is_none());
        assert_eq!(super::find_nearest_starter("develp"), Some("develop"));
        assert_eq!(super::find_nearest_starter("nobody"), None);
    }
}
