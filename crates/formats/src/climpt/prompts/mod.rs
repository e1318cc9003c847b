//! Finds and compiles prompt files, and compares them with the declarations of their steps.

pub(crate) mod body;
pub(crate) mod builtin;
pub(crate) mod compile;
pub(crate) mod files;
pub(crate) mod foreign_placeholders;
pub(crate) mod front_matter;
pub(crate) mod path_template;
pub(crate) mod placeholders;
pub(crate) mod reads;
pub(crate) mod step_prompt;
pub(crate) mod undeclared_variables;
pub(crate) mod unresolved_placeholders;
pub(crate) mod unused;
pub(crate) mod variables;
