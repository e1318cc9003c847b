//! Reads `steps_registry.json`: steps, gates, transitions and its generation.

pub(in crate::climpt) mod completion_steps;
pub(crate) mod conditional_transitions;
pub(crate) mod definition;
pub(crate) mod gate_lowering;
pub(crate) mod index;
pub(crate) mod inputs;
pub(crate) mod jump;
pub(crate) mod later_keys;
pub(crate) mod section_targets;
pub(crate) mod step_definition;
pub(crate) mod transition;
pub(in crate::climpt) mod validation_definition;
pub(crate) mod vocabulary;
