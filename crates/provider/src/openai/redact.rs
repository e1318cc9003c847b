//! Keeps the key out of everything that is written down, should the service send it back.

/// What stands in its place.
const MARK: &str = "[redacted]";
/// From how many bytes on a key is looked for in what a model says. Local servers are given words such as `none`
/// or `test`, which an answer may well contain.
const SECRET_MIN: usize = 16;

/// Takes a key out of texts.
#[derive(Debug, Default)]
pub(super) struct Redactor {
    key: Option<String>,
    /// The end of the last piece, when it may be the beginning of the key.
    held: String,
}

impl Redactor {
    pub fn new(key: Option<String>) -> Redactor {
        Redactor { key: key.filter(|key| !key.is_empty()), held: String::new() }
    }

    /// A whole text, such as an error.
    pub fn clean(&self, text: &str) -> String {
        match &self.key {
            Some(key) => text.replace(key, MARK),
            None => text.to_owned(),
        }
    }

    /// The next piece of what a model says. What may be the beginning of the key is held back until it is known.
    pub fn next(&mut self, piece: &str) -> String {
        let Some(key) = self.key.as_ref().filter(|key| key.len() >= SECRET_MIN) else {
            return piece.to_owned();
        };
        let mut text = std::mem::take(&mut self.held) + piece;
        text = text.replace(key, MARK);
        let starts = |length: &usize| {
            text.is_char_boundary(text.len() - length) && key.starts_with(&text[text.len() - length..])
        };
        let length = (1..key.len().min(text.len() + 1)).rev().find(starts).unwrap_or(0);
        self.held = text.split_off(text.len() - length);
        text
    }

    /// What was held back.
    pub fn rest(&mut self) -> String {
        std::mem::take(&mut self.held)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: &str = "sk-0123456789abcdef";

    fn through(pieces: &[&str]) -> Vec<String> {
        let mut redactor = Redactor::new(Some(KEY.to_owned()));
        let mut out: Vec<String> = pieces.iter().map(|piece| redactor.next(piece)).collect();
        out.push(redactor.rest());
        out
    }

    #[test]
    fn a_key_is_found_in_one_piece_and_over_several() {
        assert_eq!(through(&[&format!("a {KEY} b")]), ["a [redacted] b", ""]);
        assert_eq!(through(&["a s", "k-01234567", "89abcdef!"]), ["a ", "", "[redacted]!", ""]);
        assert_eq!(through(&["sk-0123456789abcde"]), ["", "sk-0123456789abcde"]);
        assert_eq!(through(&["sk-", "sk-", "x"]), ["", "sk-", "sk-x", ""]);
    }

    #[test]
    fn other_text_is_not_held_back() {
        assert_eq!(through(&["für", "…", "s", "o"]), ["für", "…", "", "so", ""]);
    }

    #[test]
    fn a_word_that_is_no_secret_may_be_said_but_no_error_repeats_it() {
        let mut redactor = Redactor::new(Some("test".to_owned()));
        assert_eq!(redactor.next("the test passes"), "the test passes");
        assert_eq!(redactor.clean("bad key test"), "bad key [redacted]");
    }

    #[test]
    fn an_empty_key_is_none() {
        assert_eq!(Redactor::new(Some(String::new())).clean("abc"), "abc");
    }
}
