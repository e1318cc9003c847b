//! Validators, failure patterns and the prompts that ask an agent to fix a failure.

mod command_values;
pub(crate) mod failure_texts;
pub(crate) mod failure_values;
pub(crate) mod guarded_steps;
pub(crate) mod lowering;
pub(crate) mod program;
