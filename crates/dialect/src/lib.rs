//! Reads each definition format and lowers it to a [`cuegate_flow::model::Draft`] with spans.
//!
//! *Never* touches `std::fs`, processes, the environment or the network: it reads through [`Files`]. *Never*
//! fails: what is wrong with a definition is returned beside what could be read. One format never imports another.
//!
//! ```
//! use std::collections::BTreeMap;
//! use cuegate_dialect::{Options, load_agent};
//!
//! let files: BTreeMap<String, Vec<u8>> = BTreeMap::new();
//! let loaded = load_agent(&files, &Options { agent_dir: ".agent/fixer".into(), ..Options::default() });
//! assert_eq!(loaded.diagnostics[0].message, "there is no `.agent/fixer/agent.json`");
//! ```

mod codes;
mod correct;
mod desk;
mod files;
mod findings;
mod json;
mod loaded;
mod nearest;
mod piece;
mod registry;
mod schemas;
mod shared;
mod template;
mod unknown_tool;
mod yaml;

pub use codes::codes;
pub use files::{FILE_BYTES_MAX, Files, ReadError};
pub use loaded::{Loaded, LogFormat, LogRule, Options, RunSettings, WorktreeRule};
pub use piece::{Phases, PieceOptions, load_piece};
pub use registry::{
    DeclaredInput, Generation, LoweredGate, OWN_FLAGS, SchemaFault, StepKind, built_in, entry_step,
    expand_inputs, extractor, infer_kind, load_agent, lower_gate, lower_gates, resolve_schema, success_when,
};
pub use schemas::{FormatSchema, schemas};
