//! The line at the bottom of a terminal that is overwritten while a run goes on.

use cuegate_view::{count_columns, shorten_end};

use super::print;

/// A status line on standard error; nothing if that is not a terminal.
#[derive(Debug)]
pub(super) struct StatusLine {
    moving: bool,
    last: String,
    /// The width of the terminal when it was shown.
    width: usize,
}

impl StatusLine {
    pub(super) fn new(moving: bool) -> StatusLine {
        StatusLine { moving, last: String::new(), width: 0 }
    }

    /// Whether the line is shown at all.
    pub(super) fn is_on(&self) -> bool {
        self.moving
    }

    /// Shows a text, cut to the width of the terminal.
    pub(super) fn show(&mut self, text: &str) {
        let width = print::stderr_width();
        let line = shorten_end(text, width);
        if self.moving && (line != self.last || width != self.width) {
            print::rewrite_status_line(&line, self.rows(width));
            (self.last, self.width) = (line, width);
        }
    }

    /// Removes the line, so that other lines can be printed.
    pub(super) fn clear(&mut self) {
        if self.moving && !self.last.is_empty() {
            print::rewrite_status_line("", self.rows(print::stderr_width()));
            self.last.clear();
        }
    }

    /// How many rows the line takes in a terminal of this width: it was broken if that became narrower.
    fn rows(&self, width: usize) -> usize {
        match width < self.width {
            true => count_columns(&self.last).div_ceil(width + 1),
            false => 1,
        }
    }
}

impl Drop for StatusLine {
    fn drop(&mut self) {
        self.clear();
    }
}
