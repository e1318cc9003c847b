//! `serve`: the API, who may use it, and the page in a real browser.

mod api;
mod browser;
pub(crate) mod client;
mod security;
