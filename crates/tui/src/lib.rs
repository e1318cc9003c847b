//! The full-screen terminal of `cuegate watch`.
//!
//! [`App`] is the state of the screen and its reaction to keys; it needs no terminal. [`show_until_left`] draws it
//! on the alternate screen, which is left clean after every way out: the end, a signal, a panic.

mod app;
mod draw;
mod input;
mod list_screen;
mod run_screen;
mod terminal;
mod words;

pub use app::App;
pub use terminal::{ScreenExit, show_until_left, use_colours};
