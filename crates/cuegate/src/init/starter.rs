//! What there is to begin with.

use super::{minimal, piece::Piece};
use crate::Failure;

/// A definition that can be written into a project.
#[derive(Debug)]
pub(crate) struct Starter {
    /// What it is asked for by, and called unless said otherwise.
    pub(crate) name: &'static str,
    /// Another name that it is asked for by.
    pub(crate) also: Option<&'static str>,
    /// What it is for, in a line.
    pub(crate) about: &'static str,
    /// What the test command of the project does in it.
    pub(crate) tests: Tests,
    /// What is written.
    pub(crate) form: Form,
}

/// What a definition does with the project's test command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Tests {
    /// Its success decides whether work counts as done.
    Decide,
    /// First its failure decides, then its success.
    DecideTwice,
    /// Agents are told it.
    Told,
    /// Nothing.
    Unused,
}

/// In which of the formats a definition is written.
#[derive(Debug)]
pub(crate) enum Form {
    /// A folder of its own below `.agent`.
    Agent(fn(&Wanted) -> Vec<File>),
    /// A piece below `.takt/pieces`, and the texts that it shares with others beside that.
    Piece(Piece),
}

/// All starters.
pub(crate) const STARTERS: [Starter; 6] = [
    Starter {
        name: "minimal",
        also: None,
        about: "one task: understand it, do it, report; done only when the project's tests pass",
        tests: Tests::Decide,
        form: Form::Agent(minimal::files),
    },
    Starter {
        name: "minimal-piece",
        also: None,
        about: "one task, as a piece: implement, review by somebody else, fix",
        tests: Tests::Decide,
        form: Form::Piece(Piece::MINIMAL),
    },
    Starter {
        name: "develop",
        also: Some("plan-implement-review-fix-supervise"),
        about: "one task: plan, implement, parallel reviews, fix, supervise; loops are watched",
        tests: Tests::Decide,
        form: Form::Piece(Piece::DEVELOP),
    },
    Starter {
        name: "test-first",
        also: None,
        about: "one task: failing tests, a review of them, then the code that makes them pass",
        tests: Tests::DecideTwice,
        form: Form::Piece(Piece::TEST_FIRST),
    },
    Starter {
        name: "review-only",
        also: None,
        about: "a change: correctness, tests and security reviewed in parallel; nothing is edited",
        tests: Tests::Told,
        form: Form::Piece(Piece::REVIEW_ONLY),
    },
    Starter {
        name: "research",
        also: None,
        about: "a question: broken down, looked into, checked, answered with sources; nothing is edited",
        tests: Tests::Unused,
        form: Form::Piece(Piece::RESEARCH),
    },
];

/// What a starter is filled with.
#[derive(Debug)]
pub(crate) struct Wanted {
    name: String,
    test: Option<String>,
}

/// A file of a definition.
#[derive(Debug)]
pub(crate) struct File {
    /// Where in the definition's folder, separated by `/`.
    pub(crate) path: String,
    /// What is in it.
    pub(crate) text: String,
}

impl File {
    pub(super) fn new(path: impl Into<String>, text: impl Into<String>) -> File {
        File { path: path.into(), text: text.into() }
    }
}

/// The starter that goes by a name.
pub(crate) fn starter(name: &str) -> Option<&'static Starter> {
    STARTERS.iter().find(|starter| starter.name == name || starter.also == Some(name))
}

/// The name of a starter that is almost this one.
pub(crate) fn nearest(name: &str) -> Option<&'static str> {
    let known = STARTERS.iter().flat_map(|starter| [Some(starter.name), starter.also]).flatten();
    cuegate_flow::diagnostics::nearest(name, known)
}

impl Wanted {
    /// A definition of this name, whose work is done when the test command passes; without one nothing is run.
    ///
    /// # Errors
    /// When an agent cannot be called so, or the command is empty.
    pub(crate) fn new(name: &str, test: Option<&str>) -> Result<Wanted, Failure> {
        let good = name.starts_with(|c: char| c.is_ascii_lowercase())
            && name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-');
        if !good {
            return Err(Failure::usage(
                format!("`{name}` is no name for an agent"),
                "use lower-case letters, digits and hyphens, a letter first",
            ));
        }
        if test.is_some_and(|test| test.trim().is_empty()) {
            return Err(Failure::usage(
                "the test command is empty",
                "name one, or leave out `--test` to have it looked for",
            ));
        }
        Ok(Wanted { name: name.to_owned(), test: test.map(|test| test.trim().to_owned()) })
    }

    /// What the definition is called: lower-case letters, digits and hyphens.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// What `sh -c` runs to see whether the work is done.
    pub(crate) fn test(&self) -> Option<&str> {
        self.test.as_deref()
    }

    /// That prompts of a step registry can quote the command: there is no way to write a placeholder into one without
    /// meaning it. What a piece quotes is text.
    ///
    /// # Errors
    /// When a placeholder stands in the command.
    pub(crate) fn quotable(&self) -> Result<(), Failure> {
        let test = self.test().unwrap_or_default();
        let placeholder = ["{uv-", "{section.", "{input_text}"].into_iter().find(|hole| test.contains(hole));
        placeholder.map_or(Ok(()), |hole| {
            Err(Failure::usage(
                format!("`{hole}` in the test command would be filled in where a prompt quotes it"),
                "put the command into a script of the project, and name that",
            ))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::{STARTERS, Wanted, starter};

    #[test]
    fn names_are_names_of_agents() {
        for name in ["minimal", "a", "fix-2"] {
            assert_eq!(Wanted::new(name, None).unwrap().name(), name);
        }
        for name in ["", "Minimal", "2fix", "-x", "../x", "a/b", "a\\b", ".", "a b", "é", "a.b"] {
            let refused = Wanted::new(name, None).unwrap_err();
            assert_eq!(refused.code, crate::exit::USAGE);
            assert_eq!(refused.message, format!("`{name}` is no name for an agent"));
        }
    }

    #[test]
    fn commands_are_trimmed_and_those_with_placeholders_told_apart() {
        assert_eq!(Wanted::new("a", Some(" make test\n")).unwrap().test(), Some("make test"));
        assert_eq!(Wanted::new("a", Some("f '{{.State}}' {x}")).unwrap().test(), Some("f '{{.State}}' {x}"));
        for command in ["", " \n"] {
            assert_eq!(Wanted::new("a", Some(command)).unwrap_err().code, crate::exit::USAGE, "{command}");
        }
        for command in ["echo {input_text}", "x {uv-a}", "x {section.a}"] {
            let wanted = Wanted::new("a", Some(command)).unwrap();
            assert_eq!(wanted.quotable().unwrap_err().code, crate::exit::USAGE, "{command}");
        }
        assert!(Wanted::new("a", Some("f '{{.State}}' {x}")).unwrap().quotable().is_ok());
    }

    #[test]
    fn every_starter_is_found_and_can_carry_its_own_name() {
        for known in &STARTERS {
            for asked in [Some(known.name), known.also].into_iter().flatten() {
                assert_eq!(starter(asked).map(|found| found.name), Some(known.name));
            }
            assert!(Wanted::new(known.name, None).is_ok());
        }
        assert!(starter("nobody").is_none());
        assert_eq!(super::nearest("develp"), Some("develop"));
        assert_eq!(super::nearest("nobody"), None);
    }
}
