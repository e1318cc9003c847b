//! Finds string literals of programs.

use std::ops::Range;

/// String literals such as `format!("{name}")` or `f"{name}"`, outside the ranges in `quoted`.
pub(super) fn texts_of_programs(text: &str, quoted: &[Range<usize>]) -> Vec<Range<usize>> {
    let (bytes, mut found) = (text.as_bytes(), Vec::new());
    let mut quoted = quoted.iter().peekable();
    let mut open: Option<usize> = None;
    let mut at = 0;
    while at < bytes.len() {
        while quoted.next_if(|range| range.end <= at).is_some() {}
        if let Some(range) = quoted.peek().filter(|range| range.contains(&at)) {
            (at, open) = (range.end, None);
            continue;
        }
        match (bytes[at], open) {
            (b'\n', _) => open = None,
            (b'\\', _) => at += 1,
            (b'"', Some(from)) => {
                if is_of_program(&bytes[..from]) {
                    found.push(from..at + 1);
                }
                open = None;
            }
            (b'"', None) => open = Some(at),
            _ => {}
        }
        at += 1;
    }
    found
}

/// Whether the bytes before a quotation mark make it a string literal: a prefix letter, or a call.
fn is_of_program(before: &[u8]) -> bool {
    let is_word = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'_';
    match before.split_last() {
        Some((b'(', rest)) => rest.last().is_some_and(|byte| is_word(byte) || *byte == b'!'),
        Some((last, _)) => is_word(last),
        None => false,
    }
}
