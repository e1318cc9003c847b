//! Reads step registries and the agents they belong to.

pub(crate) mod agent;
mod agent_paths;
mod completion_lowering;
mod conformance_api;
mod generation;
mod kinds;
mod load;
mod lower;
pub(crate) mod older;
pub(crate) mod prompts;
pub(crate) mod registry;
pub(crate) mod schemas;
pub(crate) mod validation;
mod verdict_variables;

pub use crate::climpt::agent::entries::entry_step;
pub use crate::climpt::agent::parameters::{OWN_FLAGS, SHARED_FLAGS, built_in, same_name};
pub use crate::climpt::generation::Generation;
pub use crate::climpt::kinds::{StepKind, infer_kind};
pub use crate::climpt::lower::ISSUE_TEXTS;
pub use crate::climpt::registry::gate_lowering::LoweredGate;
pub use crate::climpt::registry::inputs::{DeclaredInput, expand_inputs};
pub use crate::climpt::registry::validation_definition::{extractor_of_name, success_when};
pub use crate::schemas::{SchemaFault, resolve_schema};
pub use conformance_api::{lower_gate, lower_gates};
pub use load::load_agent;
