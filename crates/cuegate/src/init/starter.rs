//! What there is to begin with.

use super::minimal;
use crate::Failure;

/// A definition that can be written into a project.
#[derive(Debug)]
pub(crate) struct Starter {
    /// What it is asked for by, and called unless said otherwise.
    pub(crate) name: &'static str,
    /// What it is for, in a line.
    pub(crate) about: &'static str,
    /// Its files.
    pub(crate) files: fn(&Wanted) -> Vec<File>,
}

/// All starters.
pub(crate) const STARTERS: [Starter; 1] = [Starter {
    name: "minimal",
    about: "one task: understand it, do it, report; done only when the project's tests pass",
    files: minimal::files,
}];

/// What a starter is filled with.
#[derive(Debug)]
pub(crate) struct Wanted {
    name: String,
    test: Option<String>,
}

/// A file of a definition.
#[derive(Debug)]
pub(crate) struct File<P = &'static str> {
    /// Where in the definition's folder, separated by `/`.
    pub(crate) path: P,
    /// What is in it.
    pub(crate) text: String,
}

/// The starter of a name.
pub(crate) fn starter(name: &str) -> Option<&'static Starter> {
    STARTERS.iter().find(|starter| starter.name == name)
}

impl Wanted {
    /// A definition of this name, whose work is done when the test command passes; without one nothing is run.
    ///
    /// # Errors
    /// When an agent cannot be called so, or a command like this cannot be told to one.
    pub(crate) fn new(name: &str, test: Option<&str>) -> Result<Wanted, Failure> {
        let good = name.starts_with(|c: char| c.is_ascii_lowercase())
            && name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-');
        if !good {
            return Err(Failure::usage(
                format!("`{name}` is no name for an agent"),
                "use lower-case letters, digits and hyphens, a letter first",
            ));
        }
        if let Some(test) = test {
            tellable(test)?;
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
}

/// Prompts quote the command, and there is no way to write a placeholder into one without meaning it.
fn tellable(test: &str) -> Result<(), Failure> {
    if test.trim().is_empty() {
        return Err(Failure::usage(
            "the test command is empty",
            "name one, or leave out `--test` to have it looked for",
        ));
    }
    let placeholder = ["{uv-", "{section.", "{input_text}"].into_iter().find(|hole| test.contains(hole));
    placeholder.map_or(Ok(()), |hole| {
        Err(Failure::usage(
            format!("`{hole}` in the test command would be filled in where a prompt quotes it"),
            "put the command into a script of the project, and name that",
        ))
    })
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
    fn commands_are_trimmed_and_hold_no_placeholder() {
        assert_eq!(Wanted::new("a", Some(" make test\n")).unwrap().test(), Some("make test"));
        assert_eq!(Wanted::new("a", Some("f '{{.State}}' {x}")).unwrap().test(), Some("f '{{.State}}' {x}"));
        for command in ["", " \n", "echo {input_text}", "x {uv-a}", "x {section.a}"] {
            assert_eq!(Wanted::new("a", Some(command)).unwrap_err().code, crate::exit::USAGE, "{command}");
        }
    }

    #[test]
    fn every_starter_is_found_and_can_carry_its_own_name() {
        for known in &STARTERS {
            assert_eq!(starter(known.name).map(|found| found.name), Some(known.name));
            assert!(Wanted::new(known.name, None).is_ok());
        }
        assert!(starter("nobody").is_none());
    }
}
