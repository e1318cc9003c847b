//! What providers share that ask by starting a program.

pub(crate) mod find;
pub(crate) mod git;
pub(crate) mod guard;
pub(crate) mod probe;
pub(crate) mod resets;
pub(crate) mod told;

use std::collections::BTreeMap;

use serde::{Deserialize, Deserializer};

/// Reads a table of names and values.
pub(crate) fn pairs<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<(String, String)>, D::Error> {
    Ok(BTreeMap::deserialize(deserializer)?.into_iter().collect())
}
