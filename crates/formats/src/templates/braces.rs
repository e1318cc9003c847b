//! The syntax of prompts: `{uv-name}`, `{input_text}`, `{section.NAME}`, and `{word}`, which is a placeholder only if
//! the front matter declares the word. Everything else is text, in particular JSON examples.

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PromptPart<'t> {
    /// Verbatim text.
    Text(&'t str),
    /// A placeholder.
    Hole {
        hole: Hole<'t>,
        /// The source text, braces included.
        written: &'t str,
        /// The byte offset.
        at: usize,
    },
}

/// The value that a placeholder reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Hole<'t> {
    /// `{uv-name}`.
    Variable(&'t str),
    /// `{input_text}`.
    Input,
    /// `{section.NAME}`, without the prefix.
    Section(&'t str),
    Word(&'t str),
}

/// Splits a prompt into parts. Cannot fail: whatever is no placeholder is text.
pub(crate) fn parse_prompt_parts(text: &str) -> Vec<PromptPart<'_>> {
    let mut parts = Vec::new();
    let (mut text_from, mut search_from) = (0, 0);
    while let Some(open) = text[search_from..].find('{').map(|at| at + search_from) {
        search_from = open + 1;
        // A placeholder contains no brace and no white space, so the next such byte decides.
        let inner_end = text[search_from..].find(['{', '}', ' ', '\t', '\r', '\n', '"']);
        let Some(close) = inner_end.map(|at| at + search_from) else { break };
        if text.as_bytes()[close] != b'}' {
            continue;
        }
        let Some(hole) = parse_hole(&text[search_from..close]) else { continue };
        if text_from < open {
            parts.push(PromptPart::Text(&text[text_from..open]));
        }
        parts.push(PromptPart::Hole { hole, written: &text[open..=close], at: open });
        text_from = close + 1;
        search_from = close + 1;
    }
    if text_from < text.len() {
        parts.push(PromptPart::Text(&text[text_from..]));
    }
    parts
}

fn parse_hole(inner: &str) -> Option<Hole<'_>> {
    if let Some(name) = inner.strip_prefix("uv-") {
        return is_name(name).then_some(Hole::Variable(name));
    }
    if let Some(name) = inner.strip_prefix("section.") {
        return is_name(name).then_some(Hole::Section(name));
    }
    if inner == "input_text" {
        return Some(Hole::Input);
    }
    is_name(inner).then_some(Hole::Word(inner))
}

/// Letters, digits, `_`, `-` and `.`, and not only digits (`{3}` is a regular expression, not a name).
pub(crate) fn is_name(name: &str) -> bool {
    name.chars().all(|c| c.is_alphanumeric() || matches!(c, '_' | '-' | '.'))
        && name.chars().any(|c| c.is_alphabetic() || c == '_')
}

#[cfg(test)]
mod tests {
    use super::{Hole, PromptPart, parse_prompt_parts};

    fn dump(text: &str) -> String {
        let show = |part: &PromptPart<'_>| match part {
            PromptPart::Text(text) => format!("'{text}'"),
            PromptPart::Hole { hole: Hole::Variable(name), at, .. } => format!("uv({name})@{at}"),
            PromptPart::Hole { hole: Hole::Input, .. } => "input".to_owned(),
            PromptPart::Hole { hole: Hole::Section(name), .. } => format!("section({name})"),
            PromptPart::Hole { hole: Hole::Word(name), .. } => format!("word({name})"),
        };
        parse_prompt_parts(text).iter().map(show).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn finds_placeholders_and_nothing_else() {
        let cases = [
            ("", ""),
            ("no holes", "'no holes'"),
            ("#{uv-issue}.", "'#' uv(issue)@1 '.'"),
            ("{uv-base-branch}{uv-a.b_c}", "uv(base-branch)@0 uv(a.b_c)@16"),
            ("{input_text}", "input"),
            ("a {section.projectcontext} b", "'a ' section(projectcontext) ' b'"),
            ("{word}{}", "word(word) '{}'"),
            (r#"{"action":{uv-issue},"x":{}}"#, r#"'{"action":' uv(issue)@10 ',"x":{}}'"#),
            ("{uv-}", "'{uv-}'"),
            ("{uv-a b} {uv-c}", "'{uv-a b} ' uv(c)@9"),
            ("{{uv-x}}", "'{' uv(x)@1 '}'"),
            ("x{2,3} {4}", "'x{2,3} {4}'"),
            ("{never closed", "'{never closed'"),
            ("{é}", "word(é)"),
        ];
        for (text, expected) in cases {
            assert_eq!(dump(text), expected, "{text}");
        }
    }
}
