//! JSON and YAML as values that know where they stand in their file.

pub(crate) mod json;
pub(crate) mod yaml;
