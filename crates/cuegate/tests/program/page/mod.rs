//! `serve`: the API, who may use it, and the page in a real browser.

mod api;
mod browser;
mod client;
mod security;
