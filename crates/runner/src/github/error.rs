//! Why a request to GitHub failed.

use thiserror::Error;

/// Why a request failed.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum GithubError {
    /// The server was not reached. The request was not sent.
    #[error("{host} cannot be reached: {why}")]
    Unreachable { host: String, why: String },
    /// The connection broke after the request was sent, so it may have been done.
    #[error("the connection to {host} broke before its answer: {why}")]
    Broken { host: String, why: String },
    /// The server failed, perhaps after it had done the request.
    #[error("GitHub answered {status}: {message}")]
    Server {
        /// The status, 500 or higher.
        status: u16,
        message: String,
    },
    /// The rate of requests is limited. The request was not done.
    #[error("GitHub limits the rate of requests: {message}")]
    Limited {
        message: String,
        /// The time to wait that it asks for, in milliseconds.
        after_ms: Option<u64>,
    },
    /// The request was refused.
    #[error("GitHub answered {status}: {message}{}", hint_of_status(*status))]
    Refused {
        /// The status, 400 to 499.
        status: u16,
        message: String,
    },
    /// This process may act no more, so the request was not sent.
    #[error("nothing was sent: {0}")]
    Fenced(String),
    /// The answer is not what the documentation says.
    #[error("GitHub sent an answer that cannot be read: {0}")]
    Unreadable(String),
}

/// What to do about a refusal.
fn hint_of_status(status: u16) -> &'static str {
    match status {
        401 => "; the token is wrong or has expired: set `GITHUB_TOKEN`, or run `gh auth login`",
        403 => "; the token lacks a right, see docs/github.md",
        404 => "; it does not exist, or the token may not see it",
        _ => "",
    }
}

impl GithubError {
    /// Whether the request may have been done although it failed.
    pub fn is_ambiguous(&self) -> bool {
        matches!(self, GithubError::Broken { .. } | GithubError::Server { .. } | GithubError::Unreadable(_))
    }

    /// The status of a refusal.
    pub fn refused(&self) -> Option<u16> {
        match self {
            GithubError::Refused { status, .. } => Some(*status),
            _ => None,
        }
    }
}
