//! The structure of JSON text outside strings and comments, where a bracket is a bracket.

/// Iterates over the bytes outside strings and comments with their offsets, including line ends.
pub(super) struct BytesOutsideStrings<'t> {
    bytes: &'t [u8],
    at: usize,
}

impl<'t> BytesOutsideStrings<'t> {
    /// A string ends at its closing quote, even on a later line.
    pub(super) fn of(text: &'t str) -> BytesOutsideStrings<'t> {
        BytesOutsideStrings { bytes: text.as_bytes(), at: 0 }
    }

    /// Skips a string after its opening quote.
    fn pass_text(&mut self) {
        while let Some(byte) = self.bytes.get(self.at) {
            match byte {
                b'\\' => self.at += 1,
                b'"' => {
                    self.at += 1;
                    return;
                }
                _ => {}
            }
            self.at += 1;
        }
    }

    /// Skips a comment with this end mark.
    fn pass_comment(&mut self, end: &[u8]) {
        let rest = &self.bytes[self.at.min(self.bytes.len())..];
        self.at += rest.windows(end.len()).position(|found| found == end).unwrap_or(rest.len());
    }
}

impl Iterator for BytesOutsideStrings<'_> {
    type Item = (usize, u8);

    fn next(&mut self) -> Option<(usize, u8)> {
        loop {
            let (at, byte) = (self.at, *self.bytes.get(self.at)?);
            self.at += 1;
            match (byte, self.bytes.get(self.at)) {
                (b'"', _) => self.pass_text(),
                (b'/', Some(b'/')) => {
                    self.pass_comment(b"\n");
                    continue;
                }
                (b'/', Some(b'*')) => {
                    self.at += 1;
                    self.pass_comment(b"*/");
                    self.at += 2;
                    continue;
                }
                _ => {}
            }
            return Some((at, byte));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::BytesOutsideStrings;

    #[test]
    fn texts_and_comments_are_passed() {
        let show =
            |outside: BytesOutsideStrings<'_>| outside.map(|(_, byte)| char::from(byte)).collect::<String>();
        for (text, expected) in [
            (r#"{"a": "{\"}"}"#, "{\": \"}"),
            ("[1, // [\n2]", "[1, \n2]"),
            ("[/* [ */1]", "[1]"),
            ("[/* ", "["),
            ("/", "/"),
            ("[\"a\\", "[\""),
        ] {
            assert_eq!(show(BytesOutsideStrings::of(text)), expected, "{text}");
        }
        assert_eq!(show(BytesOutsideStrings::of("[\"a\n]\"]")), "[\"]");
    }
}
