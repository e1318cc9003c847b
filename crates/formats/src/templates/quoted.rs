//! Finds quotations in Markdown, whose braces are not ours: fences, indented code, code spans, and string literals of
//! programs. Computed once for a whole text.

mod programs;

use std::ops::Range;

use pulldown_cmark::{Event, Options, Parser, Tag};

#[cfg(test)]
thread_local! {
    /// The number of bytes that this thread has parsed.
    pub(crate) static READ: std::cell::Cell<usize> = const { std::cell::Cell::new(0) };
}

/// The quotations of a text.
#[derive(Debug, Default)]
pub(crate) struct QuotedRanges {
    /// Byte ranges, in order and disjoint.
    ranges: Vec<Range<usize>>,
}

impl QuotedRanges {
    /// Finds the quotations. The time is linear in the length of the text.
    pub(crate) fn of(text: &str) -> QuotedRanges {
        #[cfg(test)]
        READ.with(|read| read.set(read.get() + text.len()));
        let parts = Parser::new_ext(text, Options::empty()).into_offset_iter();
        let is_code = |event: &Event<'_>| matches!(event, Event::Code(_) | Event::Start(Tag::CodeBlock(_)));
        let mut ranges: Vec<Range<usize>> =
            parts.filter(|(event, _)| is_code(event)).map(|(_, range)| range).collect();
        let in_marks = programs::texts_of_programs(text, &ranges);
        ranges.extend(in_marks);
        ranges.sort_by_key(|range| (range.start, range.end));
        QuotedRanges { ranges }
    }

    /// Whether a byte is inside a quotation.
    pub(crate) fn has(&self, at: usize) -> bool {
        let next = self.ranges.partition_point(|range| range.start <= at);
        next.checked_sub(1).is_some_and(|last| self.ranges[last].contains(&at))
    }
}

#[cfg(test)]
mod tests {
    use super::QuotedRanges;

    /// The words among `x0` to `x9` that are quoted.
    fn quoted(text: &str) -> String {
        let quoted = QuotedRanges::of(text);
        let words = text.match_indices('x').filter(|(at, _)| quoted.has(*at));
        words.map(|(at, _)| &text[at + 1..at + 2]).collect::<Vec<_>>().join("")
    }

    #[test]
    fn fences() {
        for (text, expected) in [
            ("x0\n```\nx1\n```\nx2", "1"),
            ("~~~ sh\nx0\n```\nx1\n~~~\nx2", "01"),
            ("````\nx0\n```\nx1\n`````\nx2", "01"),
            ("   ```\nx0\n   ```\nx1", "0"),
            ("```\nx0\n    ```\nx1", "01"),
            ("```\nx0\n``` no end\nx1", "01"),
            ("```\r\nx0\r\n```\r\nx1", "0"),
            ("use ```y``` and\nx0", ""),
            ("```y``` is code\nx0", ""),
            ("``\nx0\n\nx1", ""),
            ("~~~ `a` ~\nx0\n~~~\nx1", "0"),
            ("- a\n\n  ```\n  x0\n  ```\n  x1", "0"),
            ("1. a\n\n   - b\n     ```\n     x0\n     ```\n     x1", "0"),
            ("- ```\n  x0\n\nx1", "0"),
            ("- ```\n  x0\n\n  x1\n  ```\n  x2", "01"),
            ("> ```\n> x0\n>\n> x1\n> ```\n> x2", "01"),
            ("```\n\nx0\n- x1\n> x2\n```\nx3", "012"),
            ("> ```\n> x0\n\nx1", "0"),
            ("> ```\n> x0\nx1", "0"),
        ] {
            assert_eq!(quoted(text), expected, "{text}");
        }
    }

    #[test]
    fn indented_code() {
        for (text, expected) in [
            ("a\n\n    x0\n\n    x1\nx2", "01"),
            ("    x0", "0"),
            ("\tx0\n", "0"),
            ("a\n    x0", ""),
            ("# a\n    x0", "0"),
            ("- a\n\n    x0", ""),
            ("- a\n\n      x0\n\n  x1", "0"),
            ("10. a\n\n    x0\n\n        x1", "1"),
            ("- a\n    - b\n\n      x0", ""),
            ("* * *\n    x0", "0"),
        ] {
            assert_eq!(quoted(text), expected, "{text}");
        }
    }

    #[test]
    fn spans() {
        for (text, expected) in [
            ("`x0` x1", "0"),
            ("``x0 ` x1`` x2", "01"),
            ("`x0 `` x1", ""),
            ("a `b\nx0` x1", "0"),
            ("a `b\n\nx0` x1", ""),
            ("\\`x0` x1", ""),
            ("\\\\`x0` x1", "0"),
            ("`\\` x0 `x1`", "1"),
            ("# a `b\nx0`", ""),
            ("- `x0\n- x1`", ""),
            ("format!(\"x0 {{}}\", x1)", "0"),
            ("print(f\"x0\") x1", "0"),
            ("say f\"x0 \\\" x1\" x2", "01"),
            ("say \"x0\" and (\"x1\") {\"a\": \"x2\"}", ""),
            ("a(\"never closed x0", ""),
        ] {
            assert_eq!(quoted(text), expected, "{text}");
        }
    }

    /// Lookups use binary search, and the text is parsed once.
    #[test]
    fn a_large_text_has_as_many_ranges_as_quotations() {
        let text = "a `x0` {b}\n".repeat(20_000);
        assert_eq!(QuotedRanges::of(&text).ranges.len(), 20_000);
        let runs: String = (1..300).map(|n| format!("{} x0 ", "`".repeat(n))).collect();
        assert_eq!(QuotedRanges::of(&runs).ranges.len(), 0);
        for mark in ["- ", "> ", "1. ", "   - ", "-\t"] {
            assert!(
                !QuotedRanges::of(&format!("{}x", mark.repeat(20_000))).has(mark.len() * 20_000),
                "{mark}"
            );
        }
    }

    /// For any text, the ranges are ordered and disjoint.
    #[test]
    fn ranges_are_apart() {
        let parts = [
            "`", "```", "~~~", "\n", "\n\n", "- ", "> ", "    ", "\t", "\\", "\"", "f(\"", "é", "# ", "1. ",
            "x",
        ];
        let mut seed = 7_u64;
        for _ in 0..20_000 {
            let mut next = || {
                seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                parts[(seed >> 33) as usize % parts.len()]
            };
            let text: String = (0..30).map(|_| next()).collect();
            let ranges = QuotedRanges::of(&text).ranges;
            assert!(ranges.windows(2).all(|two| two[0].end <= two[1].start), "{text:?}: {ranges:?}");
            assert!(ranges.iter().all(|range| range.end <= text.len()), "{text:?}: {ranges:?}");
        }
    }
}
