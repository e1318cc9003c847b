//! The page and the HTTP API of `cuegate serve`.
//!
//! Every view is made of the same folds as the command line: an answer of the API is a `cuegate/*/v1` object, and its
//! events are the lines of `cuegate log --json`. What changes runs goes through
//! `Project::control`.
//!
//! A local server is reached by every program and every web page of the machine. So each request needs a session
//! (`auth.rs`), its `Host` and `Origin` have to be ours, and it is read-only unless the user allows control.

mod api;
mod assets;
mod auth;
mod connections;
mod hub;
mod markdown;
mod openapi;
mod server;

pub use auth::Access;
pub use openapi::build_openapi_document;
pub use server::{Listener, Server};
