//! The fast path: parses strict JSON to values with spans in one pass.
//!
//! Nearly every file is valid JSON, and parsing takes most of the time of a check of a large definition. Anything
//! invalid is left to the slow parser, which can report what is wrong: see [`super::parse`].

use std::str::FromStr;

use cuegate_flow::{
    Str,
    diagnostics::{FileId, Span},
};
use serde_json::Number;

use super::{Entry, Json, Kind, NESTING_MAX};

/// Reads valid JSON without repeated keys and not deeper than [`NESTING_MAX`]; `None` for any other text.
pub(super) fn read(text: &str, file: FileId) -> Option<Json> {
    let mut reader = Reader {
        text,
        bytes: text.as_bytes(),
        at: 0,
        file,
        depth: 0,
        items: Vec::new(),
        entries: Vec::new(),
        known: vec![Str::from(""); KNOWN],
    };
    reader.blank();
    let value = reader.value()?;
    reader.blank();
    (reader.at == text.len()).then_some(value)
}

/// The size of the cache of shared strings. Keys repeat throughout a definition.
const KNOWN: usize = 512;

/// The length limit of shared strings.
const SHARED_MAX: usize = 32;

/// The largest object whose keys are compared pairwise.
const COMPARED_MAX: usize = 16;

/// Eight spaces.
const BLANKS: u64 = of_eight(b' ');

struct Reader<'t> {
    text: &'t str,
    bytes: &'t [u8],
    at: usize,
    file: FileId,
    depth: usize,
    /// Items of the open lists, innermost last.
    items: Vec<Json>,
    /// Entries of the open objects, innermost last.
    entries: Vec<Entry>,
    /// A hash cache of strings.
    known: Vec<Str>,
}

impl<'t> Reader<'t> {
    fn blank(&mut self) {
        while let Some(b' ' | b'\n' | b'\r' | b'\t') = self.bytes.get(self.at) {
            self.at += 1;
            // Indentation is about half of a file.
            while eight(&self.bytes[self.at..]) == Some(BLANKS) {
                self.at += 8;
            }
        }
    }

    /// Consumes a required byte.
    fn pass(&mut self, byte: u8) -> Option<()> {
        (self.bytes.get(self.at) == Some(&byte)).then(|| self.at += 1)
    }

    fn span(&self, start: usize) -> Span {
        // Files have at most 16 MiB, so every offset fits.
        Span { file: self.file, start: start as u32, end: self.at as u32 }
    }

    fn value(&mut self) -> Option<Json> {
        let start = self.at;
        let kind = match *self.bytes.get(start)? {
            b'"' => Kind::Text(self.string()?),
            b'{' => self.nested(Self::object)?,
            b'[' => self.nested(Self::list)?,
            b't' => self.word("true", Kind::Boolean(true))?,
            b'f' => self.word("false", Kind::Boolean(false))?,
            b'n' => self.word("null", Kind::Null)?,
            _ => Kind::Number(self.number()?),
        };
        Some(Json { span: self.span(start), kind })
    }

    fn word(&mut self, word: &str, kind: Kind) -> Option<Kind> {
        self.bytes[self.at..].starts_with(word.as_bytes()).then(|| {
            self.at += word.len();
            kind
        })
    }

    fn nested(&mut self, read: impl FnOnce(&mut Self) -> Option<Kind>) -> Option<Kind> {
        self.at += 1;
        self.depth += 1;
        let kind = if self.depth <= NESTING_MAX { read(self) } else { None };
        self.depth -= 1;
        kind
    }

    fn list(&mut self) -> Option<Kind> {
        let first = self.items.len();
        self.blank();
        if self.pass(b']').is_none() {
            loop {
                self.blank();
                let item = self.value()?;
                self.items.push(item);
                self.blank();
                if self.pass(b',').is_none() {
                    break self.pass(b']')?;
                }
            }
        }
        Some(Kind::List(self.items.drain(first..).collect()))
    }

    fn object(&mut self) -> Option<Kind> {
        let first = self.entries.len();
        self.blank();
        if self.pass(b'}').is_none() {
            loop {
                self.blank();
                let entry = self.entry()?;
                self.entries.push(entry);
                self.blank();
                if self.pass(b',').is_none() {
                    break self.pass(b'}')?;
                }
            }
        }
        let entries: Vec<Entry> = self.entries.drain(first..).collect();
        all_differ(&entries).then_some(Kind::Object(entries))
    }

    fn entry(&mut self) -> Option<Entry> {
        let start = self.at;
        let key = (*self.bytes.get(start)? == b'"').then(|| self.string())??;
        let key_span = self.span(start);
        self.blank();
        self.pass(b':')?;
        self.blank();
        Some(Entry { key, key_span, value: self.value()? })
    }

    /// Reads a string from its opening quote on.
    fn string(&mut self) -> Option<Str> {
        let start = self.at + 1;
        let inner = &self.bytes[start..];
        let end = end_of_plain(inner)?;
        match inner[end] {
            b'"' => {
                self.at = start + end + 1;
                Some(self.shared(start, start + end))
            }
            b'\\' => self.escaped(start + end),
            _ => None,
        }
    }

    /// Reads a string with escapes, the first one at `first`.
    fn escaped(&mut self, first: usize) -> Option<Str> {
        let start = self.at;
        let mut at = first;
        loop {
            match *self.bytes.get(at)? {
                b'"' => break,
                b'\\' => at += 2,
                _ => at += 1,
            }
        }
        self.at = at + 1;
        let text: String = serde_json::from_str(self.text.get(start..self.at)?).ok()?;
        Some(text.into())
    }

    /// A part of the text. Short strings are shared through the cache.
    fn shared(&mut self, start: usize, end: usize) -> Str {
        let text = &self.text[start..end];
        if text.len() > SHARED_MAX {
            return text.into();
        }
        let known = &mut self.known[place(text.as_bytes())];
        if **known != *text {
            *known = text.into();
        }
        known.clone()
    }

    /// Reads a number.
    fn number(&mut self) -> Option<Number> {
        let rest = &self.bytes[self.at..];
        let is_part = |byte: &u8| matches!(byte, b'0'..=b'9' | b'-' | b'+' | b'.' | b'e' | b'E');
        let length = rest.iter().position(|byte| !is_part(byte)).unwrap_or(rest.len());
        let number = Number::from_str(&self.text[self.at..self.at + length]).ok()?;
        self.at += length;
        Some(number)
    }
}

/// A byte repeated eight times.
const fn of_eight(byte: u8) -> u64 {
    u64::from_le_bytes([byte; 8])
}

/// The first eight bytes, little-endian.
fn eight(bytes: &[u8]) -> Option<u64> {
    bytes.first_chunk().map(|eight| u64::from_le_bytes(*eight))
}

/// The length of a string's prefix without quotes, escapes and control characters.
fn end_of_plain(bytes: &[u8]) -> Option<usize> {
    let mut at = 0;
    while let Some(word) = eight(&bytes[at..]) {
        // Sets bit 7 of each byte below the limit; only the lowest set bit is reliable.
        let less = |word: u64, limit: u8| word.wrapping_sub(of_eight(limit)) & !word & of_eight(0x80);
        let ends = less(word ^ of_eight(b'"'), 1) | less(word ^ of_eight(b'\\'), 1) | less(word, 0x20);
        if ends != 0 {
            return Some(at + ends.trailing_zeros() as usize / 8);
        }
        at += 8;
    }
    let end = bytes[at..].iter().position(|byte| matches!(byte, b'"' | b'\\' | 0..0x20));
    end.map(|end| at + end)
}

/// The cache slot of a short string. Any deterministic value works.
fn place(text: &[u8]) -> usize {
    let four = |bytes: &[u8]| bytes.first_chunk().map(|four| u64::from(u32::from_le_bytes(*four)));
    let ends = |first: Option<u64>, last: Option<u64>| first.zip(last);
    let last = |count: usize| &text[text.len().saturating_sub(count)..];
    let (first, last) =
        ends(eight(text), eight(last(8))).or_else(|| ends(four(text), four(last(4)))).unwrap_or_else(|| {
            text.iter().fold((0, 0), |(first, last), byte| (last, first << 8 | u64::from(*byte)))
        });
    let mixed = (first ^ last.rotate_left(32) ^ text.len() as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    (mixed >> 32) as usize % KNOWN
}

/// Whether an object has no repeated key.
fn all_differ(entries: &[Entry]) -> bool {
    if entries.len() <= COMPARED_MAX {
        let before = |at: usize| entries[..at].iter();
        return entries.iter().enumerate().all(|(at, entry)| before(at).all(|other| other.key != entry.key));
    }
    let mut seen = std::collections::HashSet::with_capacity(entries.len());
    entries.iter().all(|entry| seen.insert(&*entry.key))
}

#[cfg(test)]
mod tests {
    use super::read;
    use crate::source::findings::Findings;
    use crate::values::json::parse::{faults, parse};
    use crate::values::json::{Json, Kind};
    use cuegate_flow::diagnostics::FileId;
    use cuegate_testkit::world::roll;

    /// A value with its spans, as text.
    fn told(json: &Json) -> String {
        let inner: Vec<String> = match &json.kind {
            Kind::List(items) => items.iter().map(told).collect(),
            Kind::Object(entries) => entries
                .iter()
                .map(|entry| format!("{}@{:?}={}", entry.key, entry.key_span, told(&entry.value)))
                .collect(),
            other => vec![format!("{other:?}")],
        };
        format!("{:?}{inner:?}", json.span)
    }

    const TEXT: &str = r#" {"a": [1, -2.5e3, true, false, null, "é\n\u00e9", {}, []],
        "b c": {"a": "x\"y", "": 0.1, "long": "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"}, "n": 18446744073709551615} "#;

    /// The slow parser knows each error: the fast one must agree on valid texts and reject all others.
    #[test]
    fn it_reads_what_is_faultless_and_nothing_else() {
        let bytes: Vec<char> = "{}[]\",:\\/ \n\t\u{1}019.eE+-tfnaeé'u#".chars().collect();
        let mut turn = 0;
        let mut below = |n: usize| {
            turn += 1;
            roll(turn, "json") as usize % n
        };
        let (mut sound, mut faulty) = (0, 0);
        for round in 0..40_000 {
            let mut text: Vec<char> = TEXT.chars().collect();
            for _ in 0..round % 4 {
                let at = below(text.len());
                match below(3) {
                    0 => drop(text.remove(at)),
                    1 => text.insert(at, bytes[below(bytes.len())]),
                    _ => text[at] = bytes[below(bytes.len())],
                }
            }
            let text: String = text.into_iter().collect();
            let found = Findings::default();
            let careful = faults(&text, FileId(0), &found).filter(|_| !found.has_errors());
            assert_eq!(read(&text, FileId(0)).as_ref().map(told), careful.as_ref().map(told), "{text}");
            if careful.is_some() { sound += 1 } else { faulty += 1 }
        }
        assert!(sound > 10_000 && faulty > 10_000, "{sound} {faulty}");
        for text in
            ["", " ", "1", "\"\"", "{}{}", "01", "1.", "-", "\"\\u12\"", "\"\\", "tru", "[1 2]", "\u{feff}{}"]
        {
            let found = Findings::default();
            let careful = faults(text, FileId(0), &found).filter(|_| !found.has_errors());
            assert_eq!(read(text, FileId(0)).as_ref().map(told), careful.as_ref().map(told), "{text}");
        }
    }

    #[test]
    fn keys_that_repeat_are_left_to_the_careful_reader() {
        let many: Vec<String> = (0..40).map(|at| format!("\"k{}\": 1", at % 39)).collect();
        for text in ["{\"a\": 1, \"a\": 2}".to_owned(), format!("{{{}}}", many.join(","))] {
            assert!(read(&text, FileId(0)).is_none());
            let found = Findings::default();
            assert!(parse(&text, FileId(0), &found).is_some());
            assert!(found.has_errors(), "{text}");
        }
    }
}
