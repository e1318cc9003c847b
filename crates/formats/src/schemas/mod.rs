//! JSON Schema files: references resolved, parts merged, objects closed. What a schema means for the answers of a format is
//! the format's own.

mod beside_ref;
mod close_objects;
mod merge;
mod reference;
mod resolver;
mod unknown_keywords;

pub(crate) use close_objects::close_object_schemas;
pub(crate) use reference::split_reference;
pub use resolver::{SchemaFault, resolve_schema};
pub(crate) use resolver::{UnresolvedSchema, resolve_in_draft};
