//! What to do about YAML that cannot be read: what its author meant, as far as the lines around tell.

use serde_saphyr::granit_parser::ErrorKind;

/// A hint, and where it is about another line than that of the fault.
pub(super) struct Advice {
    pub(super) hint: &'static str,
    /// The byte of that line where it begins, and what is wrong there.
    pub(super) place: Option<(usize, &'static str)>,
}

/// Of a line that the next one goes on with.
const NO_KEY: &str = "this line is no key and no item: the next one goes on with it";

/// What to do about a fault at a place of a text.
pub(super) fn of(kind: &ErrorKind, text: &str, at: usize) -> Advice {
    let here = |hint| Advice { hint, place: None };
    match kind {
        ErrorKind::MappingValueNotAllowed | ErrorKind::InvalidColonPlacement => of_colon(text, at),
        ErrorKind::SimpleKeyExpected | ErrorKind::InvalidSimpleKey => here(
            "a key ends with a colon and a blank; a text that goes on in this line is indented further than its key",
        ),
        ErrorKind::InvalidTrailingDoubleQuotedScalar => here(
            "the text ends with the quotes before it: write `\\\"` for those inside, or put it into single quotes",
        ),
        ErrorKind::InvalidTrailingSingleQuotedScalar => here(
            "the text ends with the quote before it: write `''` for one inside, or put it into double quotes",
        ),
        ErrorKind::UnexpectedCharacter { .. } if control(text, at).is_some() => Advice {
            hint: "remove it, or put the text into double quotes and write `\\xNN` with its number",
            place: control(text, at).map(|at| (at, "this is a control character, which YAML takes nowhere")),
        },
        ErrorKind::MissingAnchorOrAliasName
        | ErrorKind::UnknownAnchor
        | ErrorKind::UnexpectedCharacter { .. } => {
            here("put the text into quotes: what begins so means something else in YAML")
        }
        ErrorKind::InvalidQuotedScalarIndent => Advice {
            hint: "close them in this line, or leave them out",
            place: opening(text, at).map(|at| (at, "the quotes that open here are not closed")),
        },
        ErrorKind::UnclosedQuotedScalar => here("close the quotes that open here, or leave them out"),
        ErrorKind::UnknownQuotedScalarEscape
        | ErrorKind::InvalidQuotedScalarHexEscape
        | ErrorKind::InvalidUnicodeEscape => {
            here("write `\\\\` for a backslash in double quotes, or put the text into single quotes")
        }
        ErrorKind::ExpectedBlockMappingKey
        | ErrorKind::ExpectedBlockSequenceEntry
        | ErrorKind::BlockSequenceEntryNotAllowed
        | ErrorKind::MappingKeyNotAllowed
        | ErrorKind::InvalidIndentation => here(
            "indent it as the lines that it belongs to; perhaps the line above it is lost, or lacks its colon",
        ),
        ErrorKind::ExpectedFlowSequenceSeparator
        | ErrorKind::ExpectedFlowMappingSeparator
        | ErrorKind::UnexpectedEofFlowSequence
        | ErrorKind::UnexpectedEofFlowMapping
        | ErrorKind::UnclosedFlowCollection { .. }
        | ErrorKind::MismatchedFlowCollectionEnd { .. }
        | ErrorKind::MisplacedFlowCollectionEnd
        | ErrorKind::InvalidFlowScalarIndent => here(
            "put a comma between items, and close each bracket by its own; a text with brackets stands in quotes",
        ),
        _ => here("correct the place"),
    }
}

/// A colon that is not one behind a key: the second of its line, or the first of one that goes on with the line above.
fn of_colon(text: &str, at: usize) -> Advice {
    let at = text.floor_char_boundary(at);
    let begin = text[..at].rfind('\n').map_or(0, |end| end + 1);
    let is_second = text[begin..at].contains(": ");
    let above = text[..begin].trim_end();
    if is_second || above.is_empty() {
        let hint = "put the text into quotes: in it a colon with a blank behind begins a value";
        return Advice { hint, place: None };
    }
    let line = above.rfind('\n').map_or(0, |end| end + 1);
    let written = above[line..].trim_start();
    let hint = match written.strip_prefix('-') {
        Some(rest) if !rest.starts_with(' ') => "put a blank behind the dash",
        _ if written.contains(": ") => {
            let hint = "indent this line as the one above, whose value goes on in it otherwise";
            return Advice { hint, place: None };
        }
        _ if written.contains(':') => "put a blank behind the colon",
        _ => "put a colon and a blank behind the key",
    };
    Advice { hint, place: Some((line + above[line..].len() - written.len(), NO_KEY)) }
}

/// The first character from a place to the end of its line that YAML takes nowhere.
fn control(text: &str, at: usize) -> Option<usize> {
    let at = text.floor_char_boundary(at);
    let line = text[at..].split('\n').next()?;
    line.trim_end_matches('\r').find(|c: char| c.is_control() && c != '\t').map(|found| at + found)
}

/// Where the quotes opened in which a place still is: the last before it that begin a text and do not close again.
fn opening(text: &str, at: usize) -> Option<usize> {
    let before = &text[..text.floor_char_boundary(at)];
    let begins = |at: &usize| {
        let head = before[..*at].trim_end_matches([' ', '\t']);
        head.is_empty() || head.ends_with([':', '-', '?', ',', '[', '{', '\n'])
    };
    let is_open = |(at, quote): &(usize, &str)| begins(at) && !closes(&before[at + 1..], quote);
    before.rmatch_indices(['"', '\'']).find(is_open).map(|(at, _)| at)
}

/// Whether a text that such a quote opens ends in what follows: `\"` in double quotes and `''` in single ones are in it.
fn closes(text: &str, quote: &str) -> bool {
    match quote {
        "\"" => text.match_indices('"').any(|(at, _)| {
            let backslashes = text[..at].bytes().rev().take_while(|byte| *byte == b'\\').count();
            backslashes % 2 == 0
        }),
        _ => text.matches(quote).count() % 2 == 1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(text: &str) -> (&'static str, Option<usize>) {
        let at = text.rfind(':').unwrap();
        let found = of(&ErrorKind::MappingValueNotAllowed, text, at);
        (found.hint, found.place.map(|(at, _)| at))
    }

    #[test]
    fn quotes_are_shown_where_they_open() {
        let text = "a: 'it is'\nb: \"Good, it's\n  c: d";
        assert_eq!(opening(text, text.len()), Some(14));
        assert_eq!(opening("a: b", 4), None);
        let escaped = r#"a: "say \"yes\" or"#;
        assert_eq!(opening(escaped, escaped.len()), Some(3));
        assert_eq!(opening("a: 'it''s", 9), Some(3));
        assert_eq!(opening(r#"a: "b\\" c"#, 10), None);
    }

    #[test]
    fn a_colon_too_many_is_told_from_one_too_few() {
        assert_eq!(told("- a: b: c").1, None);
        assert_eq!(told("x:\n  -a: b\n    c: d"), ("put a blank behind the dash", Some(5)));
        assert_eq!(told("  a:b\n\n  c: d"), ("put a blank behind the colon", Some(2)));
        assert_eq!(told("a b\nc: d"), ("put a colon and a blank behind the key", Some(0)));
        assert_eq!(
            told("ä: b\n  c: d"),
            ("indent this line as the one above, whose value goes on in it otherwise", None)
        );
    }
}
