//! The codes of findings about definitions, each with its manual page.

mod agents;
mod check_flow;
mod complete;
mod files;
mod pages;
mod pieces;
mod prompts;
mod steps;
mod validators;

pub(crate) use agents::*;
pub(crate) use check_flow::*;
pub(crate) use complete::*;
pub(crate) use files::*;
pub use pages::codes;
pub(crate) use pieces::*;
pub(crate) use prompts::*;
pub(crate) use steps::*;
pub(crate) use validators::*;
