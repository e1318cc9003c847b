//! What providers share that ask by starting a program.

pub(crate) mod git;
pub(crate) mod locate;
pub(crate) mod probe;
pub(crate) mod redact_env;
pub(crate) mod resets;
pub(crate) mod wording;

use std::{collections::BTreeMap, path::PathBuf};

use serde::{Deserialize, Deserializer, de::Error as _};
use serde_json::Value;

/// Reads a table of names and values.
pub(crate) fn pairs<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<(String, String)>, D::Error> {
    Ok(BTreeMap::deserialize(deserializer)?.into_iter().collect())
}

/// Reads the name or path of a program.
pub(crate) fn program<'de, D: Deserializer<'de>>(deserializer: D) -> Result<PathBuf, D::Error> {
    let program = PathBuf::deserialize(deserializer)?;
    if program.as_os_str().is_empty() {
        return Err(D::Error::custom("no program is named: give a name that is in `PATH`, or a path"));
    }
    Ok(program)
}

/// The most tokens that a program or service is believed, at once: 2⁵³, up to which JSON's numbers are exact. What is
/// more is nonsense, and must not make a sum overflow further on.
const TOKENS_MAX: u64 = 1 << 53;

/// A number of tokens out of JSON, 0 when there is none.
pub(crate) fn tokens(value: &Value) -> u64 {
    // A number that is too large for an integer is read as a float, and stays a large one.
    let number = value.as_u64().or_else(|| value.as_f64().map(|number| number as u64));
    number.unwrap_or_default().min(TOKENS_MAX)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn numbers_of_tokens_are_bounded() {
        for (said, read) in [
            (json!(7), 7),
            (json!(7.0), 7),
            (json!(-1), 0),
            (json!("7"), 0),
            (json!(u64::MAX), TOKENS_MAX),
            (json!(1e300), TOKENS_MAX),
        ] {
            assert_eq!(tokens(&said), read, "{said}");
        }
    }
}
