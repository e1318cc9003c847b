//! The syntax of rule conditions: plain text, `ai("…")`, `all("…")`, `any("…")`.

use std::borrow::Cow;

use cuegate_flow::{Str, model::FieldPath};

use super::expression::Expression;

/// A parsed condition.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Condition {
    /// Plain text: the agent itself decides whether it holds.
    Text,
    /// `ai("…")`: a separate judge decides whether it holds.
    Ai(String),
    /// `all("…")`: every member has this outcome.
    All(String),
    /// `all("…", "…")`: the members have these outcomes, in order.
    Each(Vec<String>),
    /// `any("…", …)`: at least one member has one of these outcomes.
    Any(Vec<String>),
    /// `when(structured.STEP.FIELD == "…")`: a field of the structured answer has one of these values.
    Field(FieldPath, Vec<String>),
    /// `when(true)` after other predicates: none of them holds.
    Otherwise,
    /// `when(…)` over what steps handed on, with the condition and its text that has to hold as well.
    When { label: Option<(Box<Condition>, Str)>, expression: Expression },
    /// The answer is there.
    Answered,
}

impl Condition {
    /// Whether the structured answer alone decides.
    pub(crate) fn is_predicate(&self) -> bool {
        matches!(self, Condition::Field(..) | Condition::Otherwise)
    }

    /// Whether the condition is about the members of a parallel step.
    pub(crate) fn is_aggregate(&self) -> bool {
        matches!(self, Condition::All(_) | Condition::Each(_) | Condition::Any(_))
    }
}

/// Parses a condition. Full-width parentheses, quotation marks and commas, which Japanese input methods produce, have the
/// meaning of the ASCII characters.
///
/// # Errors
/// Returns the cause and a hint if the text has the form of a call but is malformed.
pub(crate) fn parse_condition(text: &str) -> Result<Condition, (String, &'static str)> {
    let plain = normalize_punctuation(text);
    if is_combined(&plain) {
        return Err((format!("`{text}` combines several calls"), ONE_CALL));
    }
    parse_call(text, &plain).map_err(|message| (message, FORMS))
}

/// The hint for several calls in one condition.
const ONE_CALL: &str = "write one rule for each call, or one `ai(\"…\")` that asks for all of it";
/// The hint for a malformed call.
const FORMS: &str = "write `ai(\"…\")`, `all(\"…\")`, `any(\"…\", \"…\")`, or a text of another form";

/// Parses a condition with ASCII punctuation; `written` is its original text.
fn parse_call(written: &str, text: &str) -> Result<Condition, String> {
    let call = |name: &str| text.strip_prefix(name)?.strip_prefix('(')?.strip_suffix(')');
    if let Some(inner) = call("ai") {
        let quoted = inner.trim().strip_prefix('"').and_then(|rest| rest.strip_suffix('"'));
        return match quoted {
            Some(condition) if !condition.trim().is_empty() => Ok(Condition::Ai(condition.trim().to_owned())),
            Some(_) => Err("`ai(\"\")` says nothing".to_owned()),
            None => Err(format!("`{written}` does not quote what is judged")),
        };
    }
    if let Some(inner) = call("all") {
        let mut words = parse_arguments(written, inner)?;
        return Ok(if words.len() == 1 { Condition::All(words.remove(0)) } else { Condition::Each(words) });
    }
    if let Some(inner) = call("any") {
        return Ok(Condition::Any(parse_arguments(written, inner)?));
    }
    Ok(Condition::Text)
}

/// A call with ASCII punctuation outside of its quoted texts; any other text as it is.
fn normalize_punctuation(text: &str) -> Cow<'_, str> {
    let is_call = |name: &str| text.strip_prefix(name).is_some_and(|rest| rest.starts_with(['(', '（']));
    if text.is_ascii() || !CALLS.into_iter().any(is_call) {
        return text.into();
    }
    let mut plain = String::with_capacity(text.len());
    let mut closing: Option<&[char]> = None;
    for (at, char) in text.char_indices() {
        let (kept, next) = match (closing, char) {
            (Some(marks), _) if marks.contains(&char) => ('"', None),
            (Some(_), _) => (char, closing),
            // A quotation that begins in ASCII ends so, unless nothing in ASCII ends it.
            (None, '"') if text[at + 1..].contains('"') => ('"', Some(&['"'][..])),
            (None, '"' | '“' | '”' | '＂') => ('"', Some(&['"', '”', '＂'][..])),
            (None, '「') => ('"', Some(&['」'][..])),
            (None, '（') => ('(', None),
            (None, '）') => (')', None),
            (None, '，' | '、') => (',', None),
            (None, '　') => (' ', None),
            (None, _) => (char, None),
        };
        plain.push(kept);
        closing = next;
    }
    plain.into()
}

/// Whether a call is followed by another one, as in `ai("a") && ai("b")`.
fn is_combined(text: &str) -> bool {
    let is_call = |rest: &str| {
        CALLS
            .iter()
            .any(|name| rest.strip_prefix(name).is_some_and(|rest| rest.trim_start().starts_with('(')))
    };
    is_call(text)
        && text.match_indices("\")").any(|(at, _)| {
            let rest = text[at + 2..].trim_start();
            let joined = ["&&", "||", "&", "|", ",", "and ", "or ", "AND ", "OR "]
                .iter()
                .find_map(|word| rest.strip_prefix(word));
            is_call(joined.unwrap_or(rest).trim_start())
        })
}

/// The call that a text resembles but is not: it differs in case, white space or quotation marks.
pub(crate) fn near_miss(text: &str) -> Option<&'static str> {
    let (name, rest) = text.trim().split_once('(')?;
    let inner = rest.trim_end().strip_suffix(')')?.trim();
    let known = CALLS.into_iter().find(|known| name.trim().eq_ignore_ascii_case(known));
    known.filter(|_| inner.starts_with(QUOTES))
}

/// The call that a text starts but does not close with a parenthesis.
pub(crate) fn find_unclosed_call(text: &str) -> Option<&'static str> {
    let whole = format!("{})", text.trim_end());
    let is_call = matches!(parse_condition(text), Ok(Condition::Text))
        && parse_condition(&whole) != Ok(Condition::Text);
    CALLS.into_iter().find(|known| is_call && parse_condition(&whole).is_ok() && whole.starts_with(known))
}

/// The call embedded in other text, as in `not all("…")` and `any("…") or so`.
pub(crate) fn call_within(text: &str) -> Option<&'static str> {
    text.match_indices('(').find_map(|(at, _)| {
        let name = text[..at].rsplit(|char: char| !char.is_alphanumeric() && char != '_').next()?;
        let quoted = text[at + 1..].trim_start().starts_with(QUOTES);
        CALLS.into_iter().find(|known| quoted && name == *known)
    })
}

const CALLS: [&str; 3] = ["ai", "all", "any"];

/// Characters that people use as quotation marks.
const QUOTES: [char; 10] = ['"', '\'', '“', '”', '„', '‘', '’', '«', '「', '`'];

/// Parses one or more quoted, non-empty texts separated by commas. `\"` escapes a quote.
fn parse_arguments(text: &str, inner: &str) -> Result<Vec<String>, String> {
    let mut words = Vec::new();
    let mut rest = inner.trim();
    loop {
        let Some((word, after)) = rest.strip_prefix('"').and_then(parse_quoted_text) else {
            return Err(format!("`{text}` does not quote its arguments"));
        };
        if word.trim().is_empty() {
            return Err(format!("`{text}` has an empty argument"));
        }
        words.push(word);
        rest = after.trim_start();
        if rest.is_empty() {
            return Ok(words);
        }
        match rest.strip_prefix(',') {
            Some(after) => rest = after.trim_start(),
            None => return Err(format!("`{text}` needs a comma between its arguments")),
        }
    }
}

/// Returns the text before the closing quote, unescaped, and the rest after it.
fn parse_quoted_text(rest: &str) -> Option<(String, &str)> {
    let mut word = String::new();
    let mut chars = rest.char_indices().peekable();
    while let Some((at, char)) = chars.next() {
        match char {
            '"' => return Some((word, &rest[at + 1..])),
            '\\' if chars.next_if(|(_, next)| *next == '"').is_some() => word.push('"'),
            _ => word.push(char),
        }
    }
    None
}

/// Escapes a text for use between the quotes of an argument.
pub(crate) fn as_argument(text: &str) -> String {
    text.replace('"', "\\\"")
}

#[cfg(test)]
mod tests {
    use super::{
        Condition, ONE_CALL, as_argument, call_within, find_unclosed_call, near_miss, parse_condition,
    };

    #[test]
    fn a_quote_in_an_argument_is_written_with_a_backslash() {
        for word in ["is it \"good\"?", "\"", "a\\b", "\\\"", "\"a\", \"b\""] {
            let call = format!("any(\"{}\", \"x\")", as_argument(word));
            assert_eq!(
                parse_condition(&call),
                Ok(Condition::Any(vec![word.to_owned(), "x".to_owned()])),
                "{call}"
            );
        }
        assert!(parse_condition("all(\"a\\\")").is_err(), "it does not end");
    }

    #[test]
    fn finds_what_only_looks_like_a_call() {
        for (text, meant) in [
            ("ALL(\"x\")", Some("all")),
            ("AI(\"is it?\")", Some("ai")),
            ("any (\"x\")", Some("any")),
            ("any(“x”)", Some("any")),
            ("any issues (minor)", None),
            ("All (most of it)", None),
            ("done", None),
        ] {
            assert_eq!(near_miss(text), meant, "{text}");
        }
    }

    #[test]
    fn finds_a_parenthesis_that_is_not_closed() {
        assert_eq!(find_unclosed_call("all(\"x\""), Some("all"));
        assert_eq!(find_unclosed_call("any(\"x\", \"y\" "), Some("any"));
        for text in ["all(\"x\")", "all(x", "all(\"x\" or so", "done", "all"] {
            assert_eq!(find_unclosed_call(text), None, "{text}");
        }
    }

    #[test]
    fn finds_calls_among_other_words() {
        for (text, meant) in [
            ("not all(\"x\")", Some("all")),
            ("any(\"x\") or so", Some("any")),
            ("!ai( 'x' )", Some("ai")),
            ("all(tests) pass", None),
            ("small(\"x\")", None),
            ("fix them all (\"x\")", None),
            ("done", None),
        ] {
            assert_eq!(call_within(text), meant, "{text}");
        }
    }

    #[test]
    fn takes_conditions_apart() {
        let word = |text: &str| text.to_owned();
        let cases = [
            ("approved", Ok(Condition::Text)),
            ("any issues (minor)", Ok(Condition::Text)),
            ("all(tests) pass", Ok(Condition::Text)),
            ("ai(\"is it \"good\"?\")", Ok(Condition::Ai(word("is it \"good\"?")))),
            ("ai(good)", Err(word("`ai(good)` does not quote what is judged"))),
            ("ai(\" \")", Err(word("`ai(\"\")` says nothing"))),
            ("all(\"ok\")", Ok(Condition::All(word("ok")))),
            ("all( \"a\" ,\"b, c\" )", Ok(Condition::Each(vec![word("a"), word("b, c")]))),
            ("any(\"a\")", Ok(Condition::Any(vec![word("a")]))),
            ("any(\"問題なし\", \"x\")", Ok(Condition::Any(vec![word("問題なし"), word("x")]))),
            ("all（\"ok\"）", Ok(Condition::All(word("ok")))),
            ("ai（”問題（重大）はない”）", Ok(Condition::Ai(word("問題（重大）はない")))),
            ("any(\"a”，“b”、「c」)", Ok(Condition::Any(vec![word("a"), word("b"), word("c")]))),
            ("any（\"“a”\", \"b\"）", Ok(Condition::Any(vec![word("“a”"), word("b")]))),
            ("全部（\"ok\"）", Ok(Condition::Text)),
            ("ai(\"a\") && ai(\"b\")", Err(word("`ai(\"a\") && ai(\"b\")` combines several calls"))),
            ("all(\"a\") or any(\"b\")", Err(word("`all(\"a\") or any(\"b\")` combines several calls"))),
            ("ai(\"is (\"a\") and b true\")", Ok(Condition::Ai(word("is (\"a\") and b true")))),
            ("all()", Err(word("`all()` does not quote its arguments"))),
            ("all(ok)", Err(word("`all(ok)` does not quote its arguments"))),
            ("all(\"a\",)", Err(word("`all(\"a\",)` does not quote its arguments"))),
            ("any(\"\")", Err(word("`any(\"\")` has an empty argument"))),
            ("any(\"a\" \"b\")", Err(word("`any(\"a\" \"b\")` needs a comma between its arguments"))),
        ];
        for (text, expected) in cases {
            assert_eq!(parse_condition(text).map_err(|(message, _)| message), expected, "{text}");
        }
        assert_eq!(parse_condition("ai(\"a\") && ai(\"b\")").unwrap_err().1, ONE_CALL);
    }
}
