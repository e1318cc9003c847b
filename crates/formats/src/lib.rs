//! Reads each definition format and lowers it to a [`cuegate_flow::model::Draft`] with spans.
//!
//! *Never* touches `std::fs`, processes, the environment or the network: it reads through [`Files`]. *Never*
//! fails: what is wrong with a definition is returned beside what could be read. One format never imports another.
//!
//! ```
//! use std::collections::BTreeMap;
//! use cuegate_formats::{AgentOptions, load_agent};
//!
//! let files: BTreeMap<String, Vec<u8>> = BTreeMap::new();
//! let loaded = load_agent(&files, &AgentOptions { agent_dir: ".agent/fixer".into(), ..AgentOptions::default() });
//! assert_eq!(loaded.diagnostics[0].message, "there is no `.agent/fixer/agent.json`");
//! ```

mod climpt;
mod codes;
mod editor_schemas;
mod findings;
mod format;
mod other_formats;
mod schemas;
mod source;
mod suggest;
mod takt;
mod takt_tasks;
mod task_file;
mod templates;
mod values;

pub use climpt::{
    DeclaredInput, Generation, ISSUE_TEXTS, LoweredGate, OWN_FLAGS, SHARED_FLAGS, SchemaFault, StepKind,
    built_in, entry_step, expand_inputs, extractor_of_name, infer_kind, load_agent, lower_gate, lower_gates,
    resolve_schema, same_name, success_when,
};
pub use codes::list_codes;
pub use editor_schemas::{FormatSchema, list_format_schemas};
pub use format::{FORMATS, Format, LoadOptions, format_of};
pub use source::files::{FILE_BYTES_MAX, Files, ReadError};
pub use source::loaded::{AgentOptions, LoadedDefinition, LogFormat, LogRule, RunSettings, WorktreeRule};
pub use takt::{
    Phases, TaktOptions, UpgradedWorkflow, load_takt_workflow, read_takt_language, upgrade_takt_workflow,
};
pub use takt_tasks::{TaktTask, is_takt_task_list, read_takt_tasks, with_takt_status, with_takt_task};
pub use task_file::{ListedTask, TaskListError, read_tasks};
