//! Parses text to JSON with spans. Only strict JSON is valid, but common extensions (comments, trailing commas) are
//! still read, so that their findings appear together with all others.

use std::borrow::Cow;
use std::collections::BTreeSet;

use cuegate_flow::diagnostics::{Diagnostic, FileId, Span};
use jsonc_parser::{
    CollectOptions, CommentCollectionStrategy, ParseOptions, ParseResult, ast,
    common::{Range, Ranged},
    parse_to_ast,
    tokens::Token,
};

use super::outside::BytesOutsideStrings;
use super::{Entry, Json, Kind};
use crate::codes;
use crate::findings::Findings;

/// The nesting limit of a definition, because all walks recurse.
pub(crate) const NESTING_MAX: usize = 64;

/// Parses a file. Returns `None` after reporting invalid JSON.
pub(crate) fn parse(text: &str, file: FileId, found: &Findings) -> Option<Json> {
    if let Some(at) = too_deep(text) {
        found.push(
            Diagnostic::error(
                codes::TOO_DEEP,
                span_of_range(file, at, at + 1),
                "the nesting is deeper than 64 levels",
            )
            .hint("definitions need no such depth: look for a missing closing bracket"),
        );
        return None;
    }
    let collect = CollectOptions { comments: CommentCollectionStrategy::Separate, tokens: true };
    let parsed = match parse_to_ast(text, &collect, &build_parse_options()) {
        Ok(parsed) => parsed,
        Err(error) => {
            let range = error.range();
            found.push(
                Diagnostic::error(
                    codes::INVALID_JSON,
                    span_of_range(file, range.start, range.end),
                    lower_first(&error.kind().to_string()),
                )
                .hint("write it as JSON: double quotes, a comma between entries, no comma after the last"),
            );
            return None;
        }
    };
    report_leniencies(&parsed, file, found);
    report_blanks(text, &parsed, file, found);
    report_controls(text, &parsed, file, found);
    let Some(value) = &parsed.value else {
        found.push(
            Diagnostic::error(codes::INVALID_JSON, Span::start_of(file), "the file is empty")
                .hint("it has to hold one JSON object"),
        );
        return None;
    };
    Some(JsonConverter { text, file, found }.value(value))
}

fn build_parse_options() -> ParseOptions {
    ParseOptions {
        allow_comments: true,
        allow_trailing_commas: true,
        allow_loose_object_property_names: false,
        allow_missing_commas: false,
        allow_single_quoted_strings: false,
        allow_hexadecimal_numbers: false,
        allow_unary_plus_numbers: false,
        allow_bare_decimal_point_numbers: false,
        allow_non_finite_numbers: false,
        allow_extended_string_escapes: false,
    }
}

fn report_leniencies(parsed: &ParseResult<'_>, file: FileId, found: &Findings) {
    // The map lists a comment under both the token before and the token after it.
    let mut comments: Vec<(usize, usize)> = parsed
        .comments
        .iter()
        .flat_map(|map| map.values())
        .flat_map(|comments| comments.iter().map(|comment| (comment.start(), comment.end())))
        .collect();
    comments.sort_unstable();
    comments.dedup();
    for (start, end) in comments {
        found.push(
            Diagnostic::error(codes::INVALID_JSON, span_of_range(file, start, end), "JSON has no comments")
                .hint("move the comment into a `description`"),
        );
    }
    let tokens = parsed.tokens.as_deref().unwrap_or_default();
    for pair in tokens.windows(2) {
        if pair[0].token == Token::Comma && matches!(pair[1].token, Token::CloseBrace | Token::CloseBracket) {
            let at = pair[0].range.start;
            found.push(
                Diagnostic::error(
                    codes::INVALID_JSON,
                    span_of_range(file, at, at + 1),
                    "no comma may follow the last entry",
                )
                .hint("remove the comma"),
            );
        }
    }
}

/// Reports the first white space between tokens that JSON does not allow.
fn report_blanks(text: &str, parsed: &ParseResult<'_>, file: FileId, found: &Findings) {
    let is_blank = |c: char| c.is_whitespace() && !matches!(c, ' ' | '\t' | '\r' | '\n');
    let tokens = parsed.tokens.as_deref().unwrap_or_default();
    let ends = std::iter::once(0).chain(tokens.iter().map(|token| token.range.end));
    let starts = tokens.iter().map(|token| token.range.start).chain([text.len()]);
    let between = ends.zip(starts).filter(|(from, to)| from < to);
    let odd = between.filter_map(|(from, to)| {
        // Comments have their own findings.
        let gap = &text[from..to];
        let at = gap.find(is_blank).filter(|_| !gap.contains('/'))?;
        Some((from + at, gap[at..].chars().next()?))
    });
    if let Some((at, blank)) = odd.into_iter().next() {
        let place = span_of_range(file, at, at + blank.len_utf8());
        let message = format!("the character U+{:04X} is not white space in JSON", u32::from(blank));
        found.push(Diagnostic::error(codes::INVALID_JSON, place, message).hint("write a plain blank"));
    }
}

/// Reports the first unescaped control character of each string.
fn report_controls(text: &str, parsed: &ParseResult<'_>, file: FileId, found: &Findings) {
    for token in parsed.tokens.iter().flatten() {
        if !matches!(token.token, Token::String(_)) {
            continue;
        }
        let Range { start, end } = token.range;
        let Some(at) = text.as_bytes()[start..end].iter().position(|byte| *byte < 0x20) else { continue };
        let escape = match text.as_bytes()[start + at] {
            b'\t' => "\\t".to_owned(),
            b'\n' => "\\n".to_owned(),
            b'\r' => "\\r".to_owned(),
            other => format!("\\u{other:04x}"),
        };
        let place = span_of_range(file, start + at, start + at + 1);
        found.push(
            Diagnostic::error(codes::INVALID_JSON, place, "a control character stands in a text")
                .hint(format!("write it as `{escape}`")),
        );
    }
}

/// Converts the parser's values to values with spans.
struct JsonConverter<'t> {
    text: &'t str,
    file: FileId,
    found: &'t Findings,
}

impl JsonConverter<'_> {
    fn value(&self, value: &ast::Value<'_>) -> Json {
        let place = self.place(value.range());
        let kind = match value {
            ast::Value::NullKeyword(_) => Kind::Null,
            ast::Value::BooleanLit(literal) => Kind::Boolean(literal.value),
            ast::Value::StringLit(literal) => Kind::Text(self.readable(&literal.value, literal.range).into()),
            ast::Value::NumberLit(literal) => match serde_json::from_str(literal.value) {
                Ok(number) => Kind::Number(number),
                Err(_) => {
                    let message = format!("`{}` is not a number that JSON knows", literal.value);
                    self.found.push(
                        Diagnostic::error(codes::INVALID_JSON, place, message)
                            .hint("write a number that fits into 64 bits"),
                    );
                    Kind::Null
                }
            },
            ast::Value::Array(array) => {
                Kind::List(array.elements.iter().map(|element| self.value(element)).collect())
            }
            ast::Value::Object(object) => Kind::Object(self.object(object)),
        };
        Json { span: place, kind }
    }

    fn object(&self, object: &ast::Object<'_>) -> Vec<Entry> {
        let mut seen = BTreeSet::new();
        let mut entries = Vec::new();
        for property in &object.properties {
            let (key, range) = match &property.name {
                ast::ObjectPropName::String(literal) => {
                    (self.readable(&literal.value, literal.range), literal.range)
                }
                ast::ObjectPropName::Word(word) => (word.value.into(), word.range),
            };
            let key_span = self.place(range);
            if !seen.insert(key.clone()) {
                self.found.duplicate_key(&key, key_span);
            }
            entries.push(Entry { key: (&*key).into(), key_span, value: self.value(&property.value) });
        }
        entries
    }

    /// The text without unescaped control characters, which have been reported and occur in no name.
    fn readable<'v>(&self, value: &'v str, range: Range) -> Cow<'v, str> {
        let is_odd = |byte: u8| byte < 0x20 && !matches!(byte, b'\t' | b'\n' | b'\r');
        match self.text.as_bytes()[range.start..range.end].iter().any(|byte| is_odd(*byte)) {
            true => value.chars().filter(|c| !(c.is_ascii() && is_odd(*c as u8))).collect(),
            false => value.into(),
        }
    }

    fn place(&self, range: Range) -> Span {
        span_of_range(self.file, range.start, range.end)
    }
}

/// The offset where the nesting exceeds the limit, found without recursion.
fn too_deep(text: &str) -> Option<usize> {
    let mut depth = 0_usize;
    for (at, byte) in BytesOutsideStrings::of(text) {
        match byte {
            b'{' | b'[' => {
                depth += 1;
                if depth > NESTING_MAX {
                    return Some(at);
                }
            }
            b'}' | b']' => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    None
}

fn span_of_range(file: FileId, start: usize, end: usize) -> Span {
    // Files have at most 16 MiB, so every offset fits.
    Span { file, start: start as u32, end: end as u32 }
}

fn lower_first(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map_or_else(String::new, |first| first.to_lowercase().chain(chars).collect())
}

#[cfg(test)]
mod tests {
    use super::parse;
    use crate::findings::Findings;
    use cuegate_flow::diagnostics::FileId;
    use serde_json::json;

    fn findings(text: &str) -> Vec<(&'static str, u32, String)> {
        let found = Findings::default();
        parse(text, FileId(0), &found);
        found.into_parts().0.into_iter().map(|d| (d.code, d.span.start, d.message)).collect()
    }

    #[test]
    fn keeps_values_and_places() {
        let found = Findings::default();
        let value = parse(r#"{"a": [1, true, null, "é"]}"#, FileId(0), &found).unwrap();
        assert_eq!(value.to_value(), json!({"a": [1, true, null, "é"]}));
        let entry = value.entry("a").unwrap();
        assert_eq!((entry.key_span.start, entry.key_span.end, entry.value.span.start), (1, 4, 6));
        assert!(found.into_parts().0.is_empty());
    }

    #[test]
    fn what_is_no_json_is_said_where() {
        let cases = [
            ("", vec![("invalid-json", 0, "the file is empty")]),
            ("{\"a\": 1,}", vec![("invalid-json", 7, "no comma may follow the last entry")]),
            (
                "// c\n{\"a\": /* d */ 1}",
                vec![
                    ("invalid-json", 0, "JSON has no comments"),
                    ("invalid-json", 11, "JSON has no comments"),
                ],
            ),
            ("{'a': 1}", vec![("invalid-json", 1, "single-quoted strings are not allowed")]),
            (
                "{\"a\" 1}",
                vec![("invalid-json", 5, "expected colon after the string or word in object property")],
            ),
            ("[01]", vec![("invalid-json", 2, "expected comma")]),
            ("[\"a\tb\"]", vec![("invalid-json", 3, "a control character stands in a text")]),
            ("[1e999]", vec![("invalid-json", 1, "`1e999` is not a number that JSON knows")]),
            ("{} {}", vec![("invalid-json", 3, "text cannot contain more than one JSON value")]),
            ("{\"a\": [1, 2}", vec![("invalid-json", 11, "unexpected close brace")]),
            ("{\"a\": {\"b\": 2}\n", vec![("invalid-json", 0, "unterminated object")]),
            ("{\"a\":\u{a0}1}", vec![("invalid-json", 5, "the character U+00A0 is not white space in JSON")]),
            ("{\"a\": \"b{\" c\"\n}", vec![("invalid-json", 11, "unexpected token")]),
            ("{\n\"a\": 1 \"b\": {\n}", vec![("invalid-json", 8, "expected comma")]),
            ("{\"a\": NaN}", vec![("invalid-json", 6, "unexpected token")]),
        ];
        for (text, expected) in cases {
            let found = findings(text);
            let found: Vec<_> =
                found.iter().map(|(code, at, message)| (*code, *at, message.as_str())).collect();
            assert_eq!(found, expected, "{text}");
        }
    }

    #[test]
    fn control_characters_are_no_part_of_names() {
        let found = Findings::default();
        let value = parse("{\"st\u{0}eps\": \"a\\u0001b\"}", FileId(0), &found).unwrap();
        assert_eq!(value.to_value(), json!({"steps": "a\u{1}b"}));
        assert_eq!(found.into_parts().0.len(), 1);
    }

    #[test]
    fn deep_nesting_is_refused_before_parsing() {
        let deep = |levels: usize| format!("{}{}", "[".repeat(levels), "]".repeat(levels));
        assert!(findings(&deep(64)).is_empty());
        assert_eq!(findings(&deep(65))[0].0, "too-deep");
        assert_eq!(findings(&"[".repeat(1 << 20))[0].0, "too-deep");
        assert!(
            findings(r#"["[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[["]"#)
                .is_empty()
        );
    }
}
