//! Drives: performs commands, journals first, feeds completions back. Processes, working trees, effects.
//!
//! *Never* decides, parses definitions, prints or exits.

mod book;
mod clock;
mod drive;
mod error;
mod home;
mod local;
mod performer;
mod poll;
pub mod process;
mod prompt;
mod reports;
pub mod simulated;
mod translate;
pub mod tree;
pub mod wall;

pub use book::{Book, Entry, records};
pub use clock::{Clock, now_ms};
pub use drive::{Doing, Heard, Letter, Notice, answered, drive, is_over, waits_for_person};
pub use error::Error;
pub use home::Home;
pub use local::{FormerProviders, Local, Setting, state_of};
pub use performer::{Look, Performance, Performed, Performer};
pub use poll::within;
pub use prompt::{join, lookup};
