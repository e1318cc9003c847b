//! Texts: those that a workflow names, the syntax of instructions, and the prompts composed of them.

pub(super) mod facet_text;
pub(super) mod instruction_template;
pub(super) mod prompt;
pub(super) mod prompt_texts;
pub(super) mod sections;
