//! JSON Schema files: references resolved, parts merged, objects closed. What a schema means for the answers of a format is
//! the format's own.

mod beside_ref;
mod close_objects;
mod merge;
mod reference;
mod resolver;
mod unknown_keywords;

pub(crate) use close_objects::close;
pub(crate) use reference::split;
pub(crate) use resolver::{Broken, resolve_in_draft};
pub use resolver::{SchemaFault, resolve_schema};
