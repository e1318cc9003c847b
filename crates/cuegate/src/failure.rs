//! The failure of a command: message, hint and exit code.

use std::fmt;

use crate::exit;

/// The failure of a command.
#[derive(Debug)]
pub struct Failure {
    /// What happened, with its causes.
    pub message: String,
    /// How to fix it.
    pub hint: Option<String>,
    /// The exit code.
    pub code: u8,
}

impl Failure {
    /// A mistake in the arguments, the configuration or the definition.
    pub fn usage(message: impl Into<String>, hint: impl Into<String>) -> Failure {
        Failure { message: message.into(), hint: Some(hint.into()), code: exit::USAGE }
    }

    /// A failure of this machine or the provider.
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
pub(crate) fn format_error_chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let next = error.to_string();
        // Some libraries include the text of the cause in their own message.
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
        let hint = error.hint();
        Failure { message: format_error_chain(&error), hint, code: exit::ENVIRONMENT }
    }
}

impl From<cuegate_runner::Error> for Failure {
    fn from(error: cuegate_runner::Error) -> Failure {
        let hint = error.hint();
        Failure { message: format_error_chain(&error), hint, code: exit::ENVIRONMENT }
    }
}

impl From<cuegate_runner::worktree::WorktreeError> for Failure {
    fn from(error: cuegate_runner::worktree::WorktreeError) -> Failure {
        cuegate_runner::Error::from(error).into()
    }
}
