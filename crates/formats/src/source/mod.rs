//! Opens the files of a definition, collects findings, and defines what a loader takes and returns.

pub(crate) mod files;
pub(crate) mod loaded;
pub(crate) mod loader;
pub(crate) mod shared;
pub(crate) mod tool_names;
