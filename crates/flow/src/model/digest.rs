//! Content addresses.

use std::fmt;

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

/// Identifies bytes by their SHA-256 and their length.
///
/// A run holds these references instead of texts, so that decisions stay cheap however large an answer is.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct BlobRef {
    /// Lower-case hexadecimal SHA-256, 64 characters.
    pub digest: String,
    /// Length in bytes.
    pub len: u64,
}

impl BlobRef {
    /// The reference of these bytes.
    pub fn for_bytes(bytes: &[u8]) -> BlobRef {
        const DIGITS: &[u8; 16] = b"0123456789abcdef";
        let digits = |byte: u8| [DIGITS[usize::from(byte >> 4)], DIGITS[usize::from(byte & 15)]];
        let digest = Sha256::digest(bytes).into_iter().flat_map(digits).map(char::from).collect();
        BlobRef { digest, len: bytes.len() as u64 }
    }

    /// The first eight characters: enough to distinguish the blobs of one run.
    pub fn short(&self) -> &str {
        self.digest.get(..8).unwrap_or(&self.digest)
    }
}

impl fmt::Debug for BlobRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}+{}", self.short(), self.len)
    }
}

#[cfg(test)]
mod tests {
    use super::BlobRef;

    #[test]
    fn known_digest() {
        let blob = BlobRef::for_bytes(b"abc");
        assert_eq!(blob.digest, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
        assert_eq!((blob.short(), blob.len), ("ba7816bf", 3));
    }
}
