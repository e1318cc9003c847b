//! Text for terminals: column widths, cutting, and removal of control sequences.

/// The number of terminal columns of a text. East Asian wide characters and emoji take two, combining marks none.
/// These ranges approximate Unicode's width tables, which would add a megabyte.
pub fn count_columns(text: &str) -> usize {
    text.chars().map(columns_of_char).sum()
}

fn columns_of_char(c: char) -> usize {
    match c as u32 {
        0x0300..=0x036F | 0x200B..=0x200F | 0x20D0..=0x20FF | 0xFE00..=0xFE0F => 0,
        0x1100..=0x115F
        | 0x2E80..=0x303E
        | 0x3041..=0xA4CF
        | 0xAC00..=0xD7A3
        | 0xF900..=0xFAFF
        | 0xFE30..=0xFE6F
        | 0xFF00..=0xFF60
        | 0xFFE0..=0xFFE6
        | 0x1F300..=0x1F64F
        | 0x1F680..=0x1F6FF
        | 0x1F900..=0x1F9FF
        | 0x20000..=0x3FFFD => 2,
        _ => 1,
    }
}

/// Pads a text on the right to this many columns.
pub fn pad_right(text: &str, to: usize) -> String {
    let mut padded = text.to_owned();
    padded.extend(std::iter::repeat_n(' ', to.saturating_sub(count_columns(text))));
    padded
}

/// Pads a text on the left to this many columns.
pub(crate) fn pad_left(text: &str, to: usize) -> String {
    let mut padded = " ".repeat(to.saturating_sub(count_columns(text)));
    padded.push_str(text);
    padded
}

/// Cuts a text to this many columns, at least 1, and replaces its end by `…`.
pub fn shorten_end(text: &str, to: usize) -> String {
    if count_columns(text) <= to {
        return text.to_owned();
    }
    let mut short = take_columns(text, to.saturating_sub(1));
    short.truncate(short.trim_end().len());
    short.push('…');
    short
}

/// Cuts a text to this many columns and replaces its middle by `…`: names differ at both ends.
pub fn shorten_middle(text: &str, to: usize) -> String {
    if count_columns(text) <= to {
        return text.to_owned();
    }
    let left = to.saturating_sub(1) / 2;
    let right = to.saturating_sub(1) - left;
    let backwards: String = text.chars().rev().collect();
    let tail: String = take_columns(&backwards, right).chars().rev().collect();
    format!("{}…{tail}", take_columns(text, left))
}

pub(crate) fn take_columns(text: &str, to: usize) -> String {
    let mut used = 0;
    text.chars()
        .take_while(|c| {
            used += columns_of_char(*c);
            used <= to
        })
        .collect()
}

/// A text on one line: collapses white space and removes escape sequences, control characters and directional
/// overrides. Agents, commands and file names must not control the reader's terminal.
pub fn clean_to_one_line(text: &str) -> String {
    clean_lines(text).split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Like [`clean_to_one_line`], but keeps line breaks, tabs and spaces.
pub fn clean_lines(text: &str) -> String {
    let mut kept = String::with_capacity(text.len());
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        match c {
            '\u{1b}' => skip_escape(&mut chars),
            '\n' | '\t' => kept.push(c),
            c if is_unsafe(c) => {}
            c => kept.push(c),
        }
    }
    kept
}

/// Whether a character may control a terminal, or make a text look like another one: the control characters of ASCII and
/// of ISO 6429 (C1), and the directional marks, overrides and isolates of Unicode.
pub fn is_unsafe(c: char) -> bool {
    let is_directional = matches!(
        c,
        '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}'
    );
    c.is_control() || is_directional
}

/// JSON text in which characters that may control a terminal are escaped. The value stays the same.
pub fn safe_json(json: &str) -> String {
    let mut safe = String::with_capacity(json.len());
    for c in json.chars() {
        match c {
            // Outside of strings JSON has only these two, and inside it escapes them itself.
            '\n' | '\t' => safe.push(c),
            c if is_unsafe(c) => safe.push_str(&format!("\\u{:04x}", u32::from(c))),
            c => safe.push(c),
        }
    }
    safe
}

/// A line with its spacing, without line breaks, tabs and control sequences.
pub(crate) fn sanitize_line(line: &str) -> String {
    clean_lines(line).replace(['\n', '\t'], " ")
}

/// Skips the rest of an escape sequence: a CSI sequence up to its final byte, an OSC sequence up to its terminator.
fn skip_escape(chars: &mut std::str::Chars<'_>) {
    match chars.next() {
        Some('[') => {
            chars.find(|c| ('@'..='~').contains(c));
        }
        Some(']') => {
            let mut last = ' ';
            chars.find(|c| {
                let ends = *c == '\u{7}' || (last == '\u{1b}' && *c == '\\');
                last = *c;
                ends
            });
        }
        _ => {}
    }
}

/// The alignment of a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Alignment {
    Left,
    Right,
}

/// Rows as lines with aligned columns, two spaces apart.
pub(crate) fn align_table(rows: &[Vec<String>], align: &[Alignment]) -> Vec<String> {
    let widths = measure_columns(rows);
    rows.iter()
        .map(|row| {
            let cells: Vec<String> = row
                .iter()
                .zip(&widths)
                .enumerate()
                .map(|(index, (cell, width))| match align.get(index) {
                    Some(Alignment::Right) => pad_left(&sanitize_line(cell), *width),
                    _ => pad_right(&sanitize_line(cell), *width),
                })
                .collect();
            cells.join("  ").trim_end().to_owned()
        })
        .collect()
}

/// The width of each column.
pub(crate) fn measure_columns(rows: &[Vec<String>]) -> Vec<usize> {
    let mut widths: Vec<usize> = Vec::new();
    for row in rows {
        widths.resize(widths.len().max(row.len()), 0);
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = (*width).max(count_columns(&sanitize_line(cell)));
        }
    }
    widths
}

/// Wraps a text at spaces into lines of at most this many columns; a longer word stays whole.
pub(crate) fn wrap_text(text: &str, to: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    let mut current: Option<String> = None;
    for word in text.split(' ') {
        current = Some(match current {
            None => word.to_owned(),
            Some(line) if count_columns(&line) + 1 + count_columns(word) <= to => format!("{line} {word}"),
            Some(line) => {
                lines.push(line.trim_end().to_owned());
                word.to_owned()
            }
        });
    }
    lines.extend(current);
    lines
}

/// A line with a label column of 12, or more if the label needs it.
pub(crate) fn format_labelled_line(label: &str, text: &str) -> String {
    let width = if count_columns(label) < 12 { 12 } else { count_columns(label) + 2 };
    format!("{}{}", pad_right(label, width), sanitize_line(text)).trim_end().to_owned()
}

/// A command for the shell on one short line; the name of its validator if a journal does not tell the command.
pub(crate) fn command_name(command: &str, validator: &str) -> String {
    const WIDTH_MAX: usize = 60;
    let line = command.trim().lines().next().unwrap_or_default();
    let more = if line.len() < command.trim().len() { " …" } else { "" };
    match line {
        "" => clean_to_one_line(validator),
        line => shorten_end(&clean_to_one_line(&format!("{line}{more}")), WIDTH_MAX),
    }
}

#[cfg(test)]
mod tests {
    use super::{
        Alignment, align_table, clean_lines, clean_to_one_line, count_columns, pad_right, shorten_end,
        shorten_middle, wrap_text,
    };

    #[test]
    fn wide_characters_take_two_columns() {
        assert_eq!((count_columns("実装"), count_columns("e\u{301}"), count_columns("→…")), (4, 1, 2));
        assert_eq!(pad_right("実装", 6), "実装  ");
    }

    #[test]
    fn cuts_to_columns() {
        for (text, to, short) in
            [("abc", 3, "abc"), ("abcd", 3, "ab…"), ("ab cd", 4, "ab…"), ("実装レビュー", 6, "実装…")]
        {
            assert_eq!(shorten_end(text, to), short);
            assert!(count_columns(&shorten_end(text, to)) <= to);
        }
        assert_eq!(shorten_middle("continuation.issue", 9), "cont…ssue");
    }

    #[test]
    fn control_sequences_are_removed() {
        assert_eq!(clean_to_one_line("a\u{1b}[31mred\u{1b}[0m\r\n b\u{7}\u{202e}"), "ared b");
        assert_eq!(clean_to_one_line("\u{1b}]8;;http://x\u{1b}\\link\u{1b}]8;;\u{7}"), "link");
        assert_eq!(clean_lines("a\r\n\tb\u{1b}"), "a\n\tb");
        assert_eq!(clean_lines("a\u{9b}31m\u{85}b\u{200f}c\u{61c}d\u{7f}"), "a31mbcd");
    }

    #[test]
    fn breaks_at_spaces() {
        assert_eq!(wrap_text("a  bc def", 5), ["a  bc", "def"]);
        assert_eq!(wrap_text("abcdefgh i", 3), ["abcdefgh", "i"]);
        assert_eq!(wrap_text("", 3), [""]);
    }

    #[test]
    fn table_columns_are_aligned() {
        let rows = vec![vec!["実装".into(), "1".into(), "x".into()], vec!["a".into(), "10".into()]];
        assert_eq!(align_table(&rows, &[Alignment::Left, Alignment::Right]), ["実装   1  x", "a     10"]);
    }
}
