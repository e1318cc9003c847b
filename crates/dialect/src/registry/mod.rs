//! Step registries and the agents they belong to.

mod actions;
mod agent;
mod alone;
mod answer;
mod answer_fit;
mod answer_words;
mod behavior;
mod beside_ref;
mod breakdown;
mod builtin;
mod check_flow;
mod completion;
mod definition;
mod entries;
mod failure_values;
mod gate;
mod generation;
mod inputs;
mod jump;
mod kinds;
mod load;
mod logging;
mod lower;
mod matter;
mod migrate;
mod model;
mod param_rule;
mod parameters;
mod path_template;
mod permission;
mod places;
mod program;
mod prompt;
mod prompt_files;
mod runner;
mod sandbox;
mod schema_resolver;
mod schema_shape;
mod section_targets;
mod select;
mod stages;
mod step;
mod step_prompt;
mod told;
mod transition;
mod unused;
mod validation;
mod validators;
mod variables;
mod verdict;
mod verdict_rule;
mod vocabulary;

pub use alone::{lower_gate, lower_gates};
pub use entries::entry_step;
pub use gate::LoweredGate;
pub use generation::Generation;
pub use inputs::{DeclaredInput, expand_inputs};
pub use kinds::{StepKind, infer_kind};
pub use load::load_agent;
pub use migrate::{
    Answers, MigratedFile, MigratedScript, Migration, MigrationNote, NotMigrated, OlderAnswers,
    migrate_agent, migrate_script,
};
pub use parameters::OWN_FLAGS;
pub use schema_resolver::{SchemaFault, resolve_schema};
pub use validation::{extractor, success_when};
