//! The line at the bottom of a terminal that is overwritten while a run goes on.

use cuegate_view::shorten;

use super::print;

/// A status line on standard error; nothing if that is not a terminal.
#[derive(Debug)]
pub(super) struct StatusLine {
    moving: bool,
    last: String,
}

impl StatusLine {
    pub(super) fn new(moving: bool) -> StatusLine {
        StatusLine { moving, last: String::new() }
    }

    /// Whether the line is shown at all.
    pub(super) fn is_on(&self) -> bool {
        self.moving
    }

    /// Shows a text, cut to the width of the terminal.
    pub(super) fn show(&mut self, text: &str) {
        let line = shorten(text, print::width());
        if self.moving && line != self.last {
            print::now(&line);
            self.last = line;
        }
    }

    /// Removes the line, so that other lines can be printed.
    pub(super) fn clear(&mut self) {
        if self.moving && !self.last.is_empty() {
            print::now("");
            self.last.clear();
        }
    }
}

impl Drop for StatusLine {
    fn drop(&mut self) {
        self.clear();
    }
}
