//! Detects placeholders in the syntax of other formats, which stay text.

use super::variables::{Meaning, PromptScope, Variables};
use crate::suggest::find_nearest_name;
use crate::templates::is_name;

/// The names in pieces of values that prompts of a registry can read, too.
const OF_PIECES: [(&str, &str); 2] =
    [("previous_response", "uv-previous_summary"), ("movement_iteration", "uv-iteration")];

/// The intended placeholder of a word in braces that stays text, blanks included; `None` for ordinary text.
pub(crate) fn guess_placeholder(
    inner: &str,
    variables: &Variables<'_>,
    scope: PromptScope<'_>,
    sections: impl Fn(&str) -> Option<String>,
) -> Option<String> {
    let known = |name: &str| variables.meaning(name, scope) != Meaning::Unknown;
    let word = inner.trim();
    if inner == "task" || (word.starts_with(['i', 'I']) && find_nearest_name(word, ["input_text"]).is_some())
    {
        return Some("input_text".to_owned());
    }
    if let Some((_, meant)) = OF_PIECES.iter().find(|(name, _)| *name == inner) {
        return Some((*meant).to_owned());
    }
    // A known name between blanks may be code.
    if known(inner) {
        return Some(format!("uv-{inner}"));
    }
    if let Some(name) = strip_name_prefix(word, "section", &['.', ':', '-', '_', '/']) {
        return sections(name);
    }
    if let Some(name) = strip_name_prefix(word, "uv", &['-', '_', '.']) {
        return Some(format!("uv-{name}"));
    }
    // Other words may begin the same way: with another sign, or none, the name must exist.
    let name = strip_name_prefix(word, "uv", &[':'])
        .or_else(|| inner.strip_prefix("uv"))
        .filter(|name| known(name))?;
    Some(format!("uv-{name}"))
}

/// The name after a prefix in any case and one of several signs, if it matches.
fn strip_name_prefix<'w>(word: &'w str, prefix: &str, signs: &[char]) -> Option<&'w str> {
    let (head, rest) = word.split_at_checked(prefix.len())?;
    let name = rest.strip_prefix(signs)?.trim_start();
    (head.eq_ignore_ascii_case(prefix) && is_name(name)).then_some(name)
}

/// The maximum length in bytes of text in braces that may have been meant as a placeholder.
const INNER_MAX: usize = 200;

/// The texts in braces on one line without placeholders, without the braces, each with the position of its brace.
pub(crate) fn in_braces(text: &str) -> impl Iterator<Item = (usize, &str)> {
    text.match_indices('{').filter_map(|(at, _)| {
        let inner = &text[at + 1..];
        let inner = &inner[..inner.floor_char_boundary(INNER_MAX)];
        let end = inner.find(['{', '}', '\n', '"'])?;
        inner[end..].starts_with('}').then(|| (at, &inner[..end]))
    })
}

/// The starts of placeholders in a text that contains none, each up to its brace, or to the end of its word.
pub(crate) fn find_malformed_placeholders(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let begins = ["{uv-", "{input_text", "{section."].into_iter();
    begins.flat_map(|begins| text.match_indices(begins)).map(|(at, begins)| {
        let rest = &text[at + begins.len()..];
        let line = rest.split(['\n', '{']).next().unwrap_or_default();
        let end = match line.find('}') {
            Some(brace) => brace + 1,
            None => line.find(char::is_whitespace).unwrap_or(line.len()),
        };
        (at, &text[at..at + begins.len() + end])
    })
}
