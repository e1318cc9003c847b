//! Step registries of the "closing" generation, and the agents they belong to.

mod agent;
mod alone;
mod answer;
mod definition;
mod gate;
mod generation;
mod inputs;
mod jump;
mod kinds;
mod load;
mod lower;
mod parameters;
mod permission;
mod places;
mod prompt;
mod prompt_files;
mod runner;
mod schema_resolver;
mod schema_shape;
mod select;
mod step;
mod step_prompt;
mod transition;
mod validation;
mod validators;
mod variables;
mod verdict;

pub use alone::{lower_gate, lower_gates};
pub use definition::entry_step;
pub use gate::LoweredGate;
pub use inputs::{DeclaredInput, expand_inputs};
pub use kinds::{StepKind, infer_kind};
pub use load::load_agent;
pub use schema_resolver::{SchemaFault, resolve_schema};
pub use validation::{extractor, success_when};
