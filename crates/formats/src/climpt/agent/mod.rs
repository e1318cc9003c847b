//! Reads `agent.json`: the runner, parameters, permissions, the sandbox, and the completion of a run.

pub(crate) mod actions;
pub(crate) mod completion_type;
pub(crate) mod definition;
pub(crate) mod entries;
pub(crate) mod legacy;
pub(crate) mod logging;
pub(crate) mod model_names;
pub(crate) mod parameter_rules;
pub(crate) mod parameters;
pub(crate) mod permission_mode;
pub(crate) mod runner;
pub(crate) mod sandbox;
