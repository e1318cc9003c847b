//! Talks to GitHub: reads issues and projects, changes labels, comments and pull requests.
//!
//! The client sends each request once. Whether one is repeated is decided by the engine, from the class of the effect; a
//! client for what is read before a run starts waits itself, by the same rule.

mod client;
mod conversation;
pub(crate) mod effects;
mod error;
mod objects;
mod token;

pub(crate) use client::Fence;
pub use client::{Github, Patience};
pub use error::GithubError;
pub use objects::{Comment, Issue, PullRequest};
pub use token::{TOKEN_VARS, find_token, repository_of};
