//! The name of a run.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// The longest run id, in bytes. Branch and folder names contain it and add to it.
const LENGTH_MAX: usize = 64;

/// The name of a run: 1 to 64 of `a-z`, `0-9` and `-`, so it is safe in paths, branch names and shells.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub struct RunId(String);

/// A text that is not a valid [`RunId`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` is not a run id: 1 to {LENGTH_MAX} of `a-z`, `0-9` and `-`")]
pub struct InvalidRunId {
    /// The text as it was given.
    pub text: String,
}

impl RunId {
    /// Returns the name.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for RunId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl TryFrom<String> for RunId {
    type Error = InvalidRunId;

    fn try_from(text: String) -> Result<Self, InvalidRunId> {
        let allowed = |byte| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'-');
        if (1..=LENGTH_MAX).contains(&text.len()) && text.bytes().all(allowed) {
            Ok(Self(text))
        } else {
            Err(InvalidRunId { text })
        }
    }
}

impl FromStr for RunId {
    type Err = InvalidRunId;

    fn from_str(text: &str) -> Result<Self, InvalidRunId> {
        text.to_owned().try_into()
    }
}

impl From<RunId> for String {
    fn from(run: RunId) -> Self {
        run.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keeps_to_its_alphabet_and_length() {
        for text in ["a", "fix-login-7", "0", &"z".repeat(64)] {
            assert_eq!(text.parse::<RunId>().unwrap().as_str(), text);
        }
        for text in ["", "Fix", "a b", "a/b", "..", "ä", "a\n", &"z".repeat(65)] {
            assert_eq!(text.parse::<RunId>(), Err(InvalidRunId { text: text.to_owned() }));
        }
    }

    #[test]
    fn is_validated_when_deserialized() {
        assert_eq!(serde_json::from_str::<RunId>("\"a-1\"").unwrap().to_string(), "a-1");
        let refused = serde_json::from_str::<RunId>("\"../a\"").unwrap_err();
        assert_eq!(refused.to_string(), "`../a` is not a run id: 1 to 64 of `a-z`, `0-9` and `-`");
    }
}
