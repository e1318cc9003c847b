//! Static analysis of flows: reachability, handoff values, the answers that a schema allows, the graph of run states,
//! and the cost bound.

pub(crate) mod bit_set;
pub(crate) mod components;
pub(crate) mod conditional_fields;
pub mod cost_bound;
pub(crate) mod dominators;
pub(crate) mod earliest_completion;
pub(crate) mod extractor_yields;
pub(crate) mod fallback_edges;
pub mod flow_queries;
pub(crate) mod graph;
pub(crate) mod handoff_origins;
pub(crate) mod handoff_values;
pub(crate) mod join_rules;
pub(crate) mod newest_values;
pub(crate) mod paths;
pub(crate) mod reachability;
pub(crate) mod schema;
pub mod state_graph;

pub use extractor_yields::ExtractorShape;
pub use graph::judges_of_gate;
pub use schema::ImpossiblePart;
