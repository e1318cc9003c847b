//! Content addresses: SHA-256 digests, and blobs with their digest.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

/// The SHA-256 of some bytes. Shown, parsed and serialized as 64 lowercase hexadecimal digits.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub struct Digest([u8; 32]);

/// A text that is not a valid [`Digest`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` is not a digest of 64 lowercase hexadecimal digits")]
pub struct InvalidDigest {
    /// The text as it was given.
    pub text: String,
}

impl Digest {
    /// Computes the digest of `bytes`.
    pub fn for_bytes(bytes: &[u8]) -> Self {
        Self(Sha256::digest(bytes).into())
    }

    /// Wraps the 32 bytes of a digest.
    pub const fn from_bytes(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    /// Returns the 32 bytes of the digest.
    pub const fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Digest({self})")
    }
}

impl FromStr for Digest {
    type Err = InvalidDigest;

    fn from_str(text: &str) -> Result<Self, InvalidDigest> {
        parse_digest(text).ok_or_else(|| InvalidDigest { text: text.to_owned() })
    }
}

impl TryFrom<String> for Digest {
    type Error = InvalidDigest;

    fn try_from(text: String) -> Result<Self, InvalidDigest> {
        text.parse()
    }
}

impl From<Digest> for String {
    fn from(digest: Digest) -> Self {
        digest.to_string()
    }
}

/// Bytes with their digest, which is computed here and so cannot be wrong.
#[derive(Clone, PartialEq, Eq)]
pub struct Blob {
    digest: Digest,
    bytes: Vec<u8>,
}

impl Blob {
    /// Computes the digest of `bytes` and keeps both.
    pub fn new(bytes: Vec<u8>) -> Self {
        Self { digest: Digest::for_bytes(&bytes), bytes }
    }

    /// Returns the digest by which a record names the blob.
    pub const fn digest(&self) -> Digest {
        self.digest
    }

    /// Returns the content.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }
}

impl fmt::Debug for Blob {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Prompts and answers are long and may be private: only show the digest.
        write!(f, "Blob({}, {} bytes)", self.digest, self.bytes.len())
    }
}

fn parse_digest(text: &str) -> Option<Digest> {
    let text = text.as_bytes();
    if text.len() != 64 {
        return None;
    }
    let mut bytes = [0; 32];
    for (byte, pair) in bytes.iter_mut().zip(text.chunks_exact(2)) {
        *byte = parse_hex_digit(pair[0])? << 4 | parse_hex_digit(pair[1])?;
    }
    Some(Digest(bytes))
}

/// Parses one digit. Upper case is refused, so that digests can be compared as text.
fn parse_hex_digit(text: u8) -> Option<u8> {
    match text {
        b'0'..=b'9' => Some(text - b'0'),
        b'a'..=b'f' => Some(text - b'a' + 10),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// SHA-256 of `abc`, from FIPS 180-2, appendix B.1.
    const ABC: &str = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";

    #[test]
    fn is_the_sha_256_in_hexadecimal() {
        assert_eq!(Digest::for_bytes(b"abc").to_string(), ABC);
        assert_eq!(ABC.parse(), Ok(Digest::for_bytes(b"abc")));
        assert_eq!(Blob::new(b"abc".to_vec()).digest(), Digest::for_bytes(b"abc"));
    }

    #[test]
    fn is_serialized_as_a_string() {
        let text = serde_json::to_string(&Digest::for_bytes(b"abc")).unwrap();
        assert_eq!(text, format!("\"{ABC}\""));
        assert_eq!(serde_json::from_str::<Digest>(&text).unwrap(), Digest::for_bytes(b"abc"));
    }

    #[test]
    fn invalid_texts_are_refused() {
        for text in
            ["", "ba78", &ABC.to_uppercase(), &ABC.replace('b', "g"), &format!("{ABC}0"), &"é".repeat(32)]
        {
            assert_eq!(text.parse::<Digest>(), Err(InvalidDigest { text: text.to_owned() }));
        }
    }
}
