//! Where a closing bracket is missing: how lines are indented tells what was meant to be closed.

use super::outside::Outside;

/// A bracket that nothing closes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Unclosed {
    /// The bracket, in bytes.
    pub(super) open: usize,
    /// What would close it.
    pub(super) close: char,
    /// Where that would have to stand before, where it can be told.
    pub(super) before: Option<usize>,
}

/// An open bracket.
struct Open {
    at: usize,
    close: u8,
    /// How far its line is indented.
    indent: usize,
    /// Whether what follows in it is indented further.
    is_deeper: bool,
}

/// The innermost bracket that betrays that it is not closed; `None` in a text whose brackets match. A text that is not
/// indented betrays nothing before its end.
pub(super) fn unclosed(text: &str) -> Option<Unclosed> {
    let mut open: Vec<Open> = Vec::new();
    let mut betrayed = None;
    let mut line = Line { indent: 0, is_blank: true };
    for (at, byte) in Outside::by_line(text) {
        if byte == b'\n' {
            line = Line { indent: 0, is_blank: true };
            continue;
        }
        if matches!(byte, b' ' | b'\t' | b'\r') {
            line.indent += usize::from(line.is_blank);
            continue;
        }
        let is_first = std::mem::take(&mut line.is_blank);
        if let Some(top) = open.last_mut().filter(|_| is_first) {
            let is_outside = match matches!(byte, b'}' | b']') {
                true => line.indent < top.indent,
                false => line.indent <= top.indent,
            };
            top.is_deeper |= line.indent > top.indent;
            if is_outside && top.is_deeper && betrayed.is_none() {
                betrayed = Some(Unclosed { open: top.at, close: top.close.into(), before: Some(at) });
            }
        }
        match byte {
            b'{' | b'[' => {
                let close = if byte == b'{' { b'}' } else { b']' };
                open.push(Open { at, close, indent: line.indent, is_deeper: false });
            }
            b'}' | b']' => {
                let top = open.pop()?;
                if top.close != byte {
                    return betrayed.or(Some(Unclosed {
                        open: top.at,
                        close: top.close.into(),
                        before: Some(at),
                    }));
                }
            }
            _ => {}
        }
    }
    let last = open.last()?;
    Some(betrayed.unwrap_or(Unclosed { open: last.at, close: last.close.into(), before: None }))
}

/// A line as far as it has been looked at.
struct Line {
    indent: usize,
    is_blank: bool,
}

#[cfg(test)]
mod tests {
    use super::unclosed;

    /// The bracket that is missing, where what it would close begins, and the text that it is missing before.
    fn found(text: &str) -> Option<(char, usize, &str)> {
        unclosed(text).map(|found| {
            let before = found.before.map_or("", |at| text[at..].lines().next().unwrap_or_default());
            (found.close, text[..found.open].matches('\n').count() + 1, before)
        })
    }

    #[test]
    fn the_innermost_that_is_not_closed() {
        for (text, expected) in [
            ("{\"a\": {\"b\": 1}}", None),
            ("{\n  \"a\": \"{\"\n}", None),
            ("{\"a\": {\"b\": 1}", Some(('}', 1, ""))),
            ("{\n  \"a\": {\n    \"b\": 1\n  },\n  \"c\": 2\n", Some(('}', 1, ""))),
            ("{\n  \"a\": {\n    \"b\": 1,\n  \"c\": {\n    \"d\": 1\n  }\n}\n", Some(('}', 2, "\"c\": {"))),
            ("{\n  \"a\": {\n    \"b\": 1\n  ,\n  \"c\": {\n  }\n}\n", Some(('}', 2, ","))),
            ("{\n  \"a\": [\n    1,\n    2\n  ,\n  \"c\": {}\n}\n", Some((']', 2, ","))),
            ("{\n  \"a\": {\n    \"b\": [1, 2\n  }\n}\n", Some((']', 3, "}"))),
            ("{\n\"a\": {\n\"b\": 1,\n\"c\": 2\n}\n", Some(('}', 1, ""))),
            ("{\"a\": [1}", Some((']', 1, "}"))),
            ("}", None),
            ("{\n  // {\n  \"a\": 1 /* [ */\n}", None),
            ("{\"a\": \"x\n}", None),
        ] {
            assert_eq!(found(text), expected, "{text}");
        }
    }
}
