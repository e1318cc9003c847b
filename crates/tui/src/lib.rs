//! The full-screen terminal of `cuegate watch`.
//!
//! [`App`] holds what is shown and what keys do, without a terminal, so that tests draw it into a buffer. [`watch`] shows it
//! on the alternate screen, which is left clean after every way out: the end, a signal, a panic.

mod app;
mod draw;
mod input;
mod list_screen;
mod run_screen;
mod terminal;
mod words;

pub use app::{App, Screen};
pub use terminal::{Ended, use_colours, watch};
