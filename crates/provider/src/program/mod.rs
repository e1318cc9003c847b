//! Helpers shared by the providers that start a program.

pub(crate) mod git;
pub(crate) mod locate;
pub(crate) mod probe;
pub(crate) mod redact_env;
pub(crate) mod resets;
pub(crate) mod tool_servers;
pub(crate) mod wording;

use std::{collections::BTreeMap, path::PathBuf};

use serde::{Deserialize, Deserializer, de::Error as _};
use serde_json::Value;

/// Deserializes a table of names and values.
pub(crate) fn deserialize_pairs<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Vec<(String, String)>, D::Error> {
    Ok(BTreeMap::deserialize(deserializer)?.into_iter().collect())
}

/// Deserializes the name or path of a program.
pub(crate) fn deserialize_program<'de, D: Deserializer<'de>>(deserializer: D) -> Result<PathBuf, D::Error> {
    let program = PathBuf::deserialize(deserializer)?;
    if program.as_os_str().is_empty() {
        return Err(D::Error::custom("`program` is empty: set a name in `PATH`, or a path"));
    }
    Ok(program)
}

/// The largest accepted number of tokens: 2⁵³, up to which JSON numbers are exact. Larger numbers are invalid and must
/// not overflow sums.
const TOKENS_MAX: u64 = 1 << 53;

/// An estimate of a text's tokens, rounded up. A token has about four bytes in English and in code; other scripts have
/// more bytes per character and more tokens.
pub(crate) fn estimate_tokens(bytes: u64) -> u64 {
    bytes.div_ceil(4)
}

/// A number of tokens in JSON; 0 if there is none.
pub(crate) fn read_token_count(value: &Value) -> u64 {
    // JSON numbers above the integer range parse as floats and saturate.
    let number = value.as_u64().or_else(|| value.as_f64().map(|number| number as u64));
    number.unwrap_or_default().min(TOKENS_MAX)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn token_counts_are_bounded() {
        for (said, read) in [
            (json!(7), 7),
            (json!(7.0), 7),
            (json!(-1), 0),
            (json!("7"), 0),
            (json!(u64::MAX), TOKENS_MAX),
            (json!(1e300), TOKENS_MAX),
        ] {
            assert_eq!(read_token_count(&said), read, "{said}");
        }
    }
}
