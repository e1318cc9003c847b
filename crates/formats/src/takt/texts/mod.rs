//! The syntax of instructions, and the prompts composed of what a workflow names.

pub(super) mod instruction_template;
pub(super) mod prompt;
pub(super) mod prompt_texts;
pub(super) mod step_values;
