//! The syntaxes of prompt files.

mod braces;
mod failure;
mod front_matter;
mod quoted;

pub(crate) use braces::{Hole, PromptPart, is_name, parse_prompt_parts};
pub(crate) use failure::{FailureNode, parse_failure_prompt};
pub(crate) use front_matter::{FrontMatter, split_front_matter};
pub(crate) use quoted::QuotedRanges;
#[cfg(test)]
pub(crate) use quoted::READ;
