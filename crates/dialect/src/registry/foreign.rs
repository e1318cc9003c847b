//! Placeholders that are written as other formats write them, and stay text.

use cuegate_flow::{Diagnostic, Span};

use super::variables::{Meaning, Scope, Variables};
use crate::codes;
use crate::nearest::nearest;

/// What pieces call what a prompt of a registry can read, too.
const OF_PIECES: [(&str, &str); 2] =
    [("previous_response", "uv-previous_summary"), ("movement_iteration", "uv-iteration")];

/// The finding about a word in braces that was meant to be filled in; `None` for one that is text as any other.
pub(super) fn finding(
    word: &str,
    variables: &Variables<'_>,
    scope: Scope<'_>,
    span: Span,
) -> Option<Diagnostic> {
    let known = |name: &str| variables.meaning(name, scope) != Meaning::Unknown;
    let meant = if word == "task" || nearest(word, ["input_text"]).is_some() {
        "input_text".to_owned()
    } else if let Some((_, meant)) = OF_PIECES.iter().find(|(name, _)| *name == word) {
        (*meant).to_owned()
    } else if known(word) {
        format!("uv-{word}")
    } else {
        let own = ["uv_", "uv.", "UV-", "UV_", "Uv-"].iter().find_map(|prefix| word.strip_prefix(prefix));
        // Without anything between, another word may begin so.
        let name = own.or_else(|| word.strip_prefix("uv").filter(|name| known(name)));
        format!("uv-{}", name.filter(|name| !name.is_empty())?)
    };
    let message = format!("`{{{word}}}` stays text");
    let finding = Diagnostic::warning(codes::FOREIGN_PLACEHOLDER, span, message);
    Some(finding.hint(format!("did you mean `{{{meant}}}`?")))
}

/// What begins as `{uv-` or `{input_text` in a text that has no placeholder in it, and where: up to its brace, or to the end of its word.
pub(super) fn malformed(text: &str) -> impl Iterator<Item = (usize, &str)> {
    text.match_indices("{uv-").chain(text.match_indices("{input_text")).map(|(at, begins)| {
        let rest = &text[at + begins.len()..];
        let line = rest.split(['\n', '{']).next().unwrap_or_default();
        let end = match line.find('}') {
            Some(brace) => brace + 1,
            None => line.find(char::is_whitespace).unwrap_or(line.len()),
        };
        (at, &text[at..at + begins.len() + end])
    })
}
