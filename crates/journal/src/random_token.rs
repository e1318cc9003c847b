//! Secrets that nobody can guess.

/// A random token of 32 letters and digits: 160 bits.
///
/// # Panics
/// When the system has no random numbers.
pub fn random_token() -> String {
    const LETTERS: &[u8; 32] = b"abcdefghijkmnpqrstuvwxyz23456789";
    let mut bytes = [0_u8; 32];
    getrandom::fill(&mut bytes).unwrap_or_else(|error| panic!("the system has no random numbers: {error}"));
    bytes.iter().map(|byte| char::from(LETTERS[usize::from(*byte) % LETTERS.len()])).collect()
}

#[cfg(test)]
mod tests {
    use super::random_token;

    #[test]
    fn tokens_differ() {
        let tokens: std::collections::HashSet<String> = (0..100).map(|_| random_token()).collect();
        assert!(tokens.len() == 100 && tokens.iter().all(|token| token.len() == 32));
    }
}
