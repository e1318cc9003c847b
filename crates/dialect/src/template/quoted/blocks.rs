//! The blocks of a text in Markdown, as CommonMark has them: which lines are code, which are prose.

use std::ops::Range;

/// How far a line is indented that is code.
const CODE_INDENT: usize = 4;

/// How deep blocks nest: each line is held against all that it stands in.
const NESTING_MAX: usize = 64;

/// The lines of a text by what they are, in bytes.
#[derive(Debug, Default)]
pub(super) struct Blocks {
    /// Fences, with what is around them, and indented code.
    pub(super) code: Vec<Range<usize>>,
    /// Paragraphs and headings: what a code span can stand in.
    pub(super) prose: Vec<Range<usize>>,
}

/// What other blocks stand in.
#[derive(Clone, Copy)]
enum Container {
    Quote,
    /// An item of a list, whose content is indented so far.
    Item(usize),
}

/// A fence that has begun.
#[derive(Clone, Copy)]
struct Fence {
    mark: u8,
    length: usize,
}

/// Takes a text apart.
pub(super) fn blocks(text: &str) -> Blocks {
    let mut reader = Reader::default();
    let mut at = 0;
    for line in text.split_inclusive('\n') {
        reader.line(line, at);
        at += line.len();
    }
    reader.end_paragraph();
    reader.blocks
}

#[derive(Default)]
struct Reader {
    blocks: Blocks,
    containers: Vec<Container>,
    fence: Option<Fence>,
    paragraph: Option<Range<usize>>,
}

impl Reader {
    fn line(&mut self, line: &str, at: usize) {
        let whole = at..at + line.len();
        let mut rest = Rest { text: line, column: 0, spare: 0 };
        let held = self.containers.iter().take_while(|container| rest.enters(**container)).count();
        let is_held = held == self.containers.len();
        if let Some(fence) = self.fence.filter(|_| is_held) {
            if fence.is_closed_by(&rest) {
                self.fence = None;
            }
            self.blocks.code.push(whole);
            return;
        }
        // A fence ends with what it stands in.
        self.fence = None;
        if rest.is_blank() {
            self.end_paragraph();
            self.containers.truncate(held);
            return;
        }
        let begins = |rest: &Rest<'_>| rest.indent() < CODE_INDENT && rest.begins_block();
        if self.paragraph.is_some() && !begins(&rest) {
            // It goes on, though it leaves what it stands in.
            self.extend(whole);
            return;
        }
        if !is_held {
            self.end_paragraph();
            self.containers.truncate(held);
        }
        while self.containers.len() < NESTING_MAX
            && let Some(container) = rest.opens()
        {
            self.end_paragraph();
            self.containers.push(container);
        }
        self.content(rest, whole);
    }

    /// What stands on a line within its containers.
    fn content(&mut self, rest: Rest<'_>, whole: Range<usize>) {
        if rest.is_blank() {
            return;
        }
        if rest.indent() >= CODE_INDENT && self.paragraph.is_none() {
            self.blocks.code.push(whole);
        } else if let Some(fence) = rest.fence() {
            self.end_paragraph();
            self.fence = Some(fence);
            self.blocks.code.push(whole);
        } else if rest.is_heading() || rest.is_rule() {
            self.end_paragraph();
            self.blocks.prose.push(whole);
        } else {
            self.extend(whole);
        }
    }

    fn extend(&mut self, whole: Range<usize>) {
        let end = whole.end;
        self.paragraph.get_or_insert(whole).end = end;
    }

    fn end_paragraph(&mut self) {
        self.blocks.prose.extend(self.paragraph.take());
    }
}

impl Fence {
    fn is_closed_by(self, rest: &Rest<'_>) -> bool {
        let line = rest.trimmed();
        let length = line.bytes().take_while(|byte| *byte == self.mark).count();
        rest.indent() < CODE_INDENT && length >= self.length && line[length..].trim().is_empty()
    }
}

/// What is left of a line behind the marks of its containers.
#[derive(Clone, Copy)]
struct Rest<'l> {
    text: &'l str,
    /// At which column it begins, for tabs.
    column: usize,
    /// Columns of a tab before it that are left over.
    spare: usize,
}

impl<'l> Rest<'l> {
    fn is_blank(&self) -> bool {
        self.text.trim().is_empty()
    }

    fn trimmed(&self) -> &'l str {
        self.text.trim_start_matches([' ', '\t'])
    }

    /// How many columns of white space it begins with.
    fn indent(&self) -> usize {
        let mut column = self.column;
        for byte in self.text.bytes().take_while(|byte| matches!(byte, b' ' | b'\t')) {
            column += width(byte, column);
        }
        column - self.column + self.spare
    }

    /// Leaves out some columns of white space, or as many as there are.
    fn skip(&mut self, columns: usize) {
        let from_spare = columns.min(self.spare);
        self.spare -= from_spare;
        let mut left = columns - from_spare;
        while left > 0 {
            let Some(byte) = self.text.bytes().next().filter(|byte| matches!(byte, b' ' | b'\t')) else {
                return;
            };
            let width = width(byte, self.column);
            (self.text, self.column) = (&self.text[1..], self.column + width);
            self.spare = width.saturating_sub(left);
            left = left.saturating_sub(width);
        }
    }

    /// Leaves out white space and a mark of some bytes behind it.
    fn skip_mark(&mut self, length: usize) {
        self.skip(self.indent());
        (self.text, self.column) = (&self.text[length..], self.column + length);
    }

    /// Goes into what the line before stood in, if the line stands in it as well.
    fn enters(&mut self, container: Container) -> bool {
        match container {
            Container::Quote if self.is_quote() => {
                self.skip_mark(1);
                self.skip(1);
                true
            }
            // A blank line ends quotations, and stands in items of lists.
            Container::Item(columns) if self.is_blank() || self.indent() >= columns => {
                self.skip(columns);
                true
            }
            _ => false,
        }
    }

    /// Goes into what begins here, if something does that others stand in.
    fn opens(&mut self) -> Option<Container> {
        if self.enters(Container::Quote) {
            return Some(Container::Quote);
        }
        let mark = self.item().filter(|_| !self.is_rule())?;
        let before = self.indent() + mark;
        self.skip_mark(mark);
        // Code in an item begins one column behind its mark.
        let inside = match self.indent() {
            _ if self.is_blank() => 1,
            indent if indent > CODE_INDENT => 1,
            indent => indent,
        };
        self.skip(inside);
        Some(Container::Item(before + inside))
    }

    fn begins_block(&self) -> bool {
        self.is_quote()
            || self.item().is_some()
            || self.fence().is_some()
            || self.is_heading()
            || self.is_rule()
    }

    fn is_quote(&self) -> bool {
        self.indent() < CODE_INDENT && self.trimmed().starts_with('>')
    }

    /// How long the mark of an item of a list is that the line begins with.
    fn item(&self) -> Option<usize> {
        let line = self.trimmed();
        let digits = line.bytes().take_while(u8::is_ascii_digit).count();
        let mark = match line.as_bytes().get(digits)? {
            b'-' | b'*' | b'+' if digits == 0 => 1,
            b'.' | b')' if (1..=9).contains(&digits) => digits + 1,
            _ => return None,
        };
        let apart = line[mark..].is_empty() || line[mark..].starts_with([' ', '\t', '\n', '\r']);
        (apart && self.indent() < CODE_INDENT).then_some(mark)
    }

    fn fence(&self) -> Option<Fence> {
        let line = self.trimmed();
        let mark = line.bytes().next().filter(|byte| matches!(byte, b'`' | b'~'))?;
        let length = line.bytes().take_while(|byte| *byte == mark).count();
        // What has another such mark on its line is a code span.
        let is_span = mark == b'`' && line[length..].contains('`');
        (length >= 3 && !is_span && self.indent() < CODE_INDENT).then_some(Fence { mark, length })
    }

    fn is_heading(&self) -> bool {
        let line = self.trimmed();
        let level = line.bytes().take_while(|byte| *byte == b'#').count();
        (1..=6).contains(&level)
            && (line[level..].is_empty() || line[level..].starts_with(char::is_whitespace))
    }

    /// Whether it is a line across the page.
    fn is_rule(&self) -> bool {
        let mut marks = self.text.chars().filter(|c| !c.is_whitespace());
        let Some(first) = marks.next().filter(|c| matches!(c, '-' | '*' | '_')) else { return false };
        let mut others = 0;
        marks.all(|c| {
            others += 1;
            c == first
        }) && others >= 2
    }
}

/// How many columns a blank or a tab takes.
fn width(byte: u8, column: usize) -> usize {
    if byte == b'\t' { CODE_INDENT - column % CODE_INDENT } else { 1 }
}
