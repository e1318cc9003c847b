//! What a JSON Schema says about the answers that fit it, as far as that is certain without trying them.

pub(crate) mod allowed;
pub(crate) mod always_present;
pub(crate) mod fit;
pub(crate) mod given_outcome;
pub(crate) mod listed_values;
pub(crate) mod required_fields;
mod schema_questions;
#[cfg(test)]
pub(crate) mod tests;

pub use allowed::ImpossiblePart;
