//! JSON and YAML values with their spans.

pub(crate) mod json;
pub(crate) mod yaml;
