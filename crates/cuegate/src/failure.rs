//! Why a command could not do what it was asked to.

use std::fmt;

use crate::exit;

/// A failure with what to do about it and the exit code it ends in.
#[derive(Debug)]
pub struct Failure {
    /// What happened, with its causes.
    pub message: String,
    /// What to do.
    pub hint: Option<String>,
    /// The exit code.
    pub code: u8,
}

impl Failure {
    /// Wrong use.
    pub fn usage(message: impl Into<String>, hint: impl Into<String>) -> Failure {
        Failure { message: message.into(), hint: Some(hint.into()), code: exit::USAGE }
    }

    /// Something of this machine.
    pub fn environment(message: impl Into<String>) -> Failure {
        Failure { message: message.into(), hint: None, code: exit::ENVIRONMENT }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Failure {}

/// An error and its causes, in one line.
pub(crate) fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let next = error.to_string();
        // Some libraries repeat their cause in their own words.
        if !text.contains(&next) {
            text.push_str(": ");
            text.push_str(&next);
        }
        cause = error.source();
    }
    text
}

impl From<cuegate_journal::Error> for Failure {
    fn from(error: cuegate_journal::Error) -> Failure {
        let hint = error.hint().map(str::to_owned);
        Failure { message: chain(&error), hint, code: exit::ENVIRONMENT }
    }
}

impl From<cuegate_runner::Error> for Failure {
    fn from(error: cuegate_runner::Error) -> Failure {
        let hint = error.hint();
        Failure { message: chain(&error), hint, code: exit::ENVIRONMENT }
    }
}

impl From<cuegate_runner::worktree::Error> for Failure {
    fn from(error: cuegate_runner::worktree::Error) -> Failure {
        cuegate_runner::Error::from(error).into()
    }
}
