//! The syntaxes of prompt files.

mod braces;
mod failure;
mod front_matter;
mod quoted;

pub(crate) use braces::{Hole, Part, is_name, parts};
pub(crate) use failure::{Node, nodes};
pub(crate) use front_matter::{FrontMatter, split};
pub(crate) use quoted::Quoted;
#[cfg(test)]
pub(crate) use quoted::READ;
