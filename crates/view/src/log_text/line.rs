//! One line of a timeline.

use jiff::tz::TimeZone;

use crate::{
    format::format_time_of_day,
    text::{clean_to_one_line, count_columns, pad_right, sanitize_line, shorten_end, shorten_middle},
};

/// The width of the column with the subject of a line.
const WHO: usize = 21;
/// A detail keeps at least this many columns: fewer are unreadable.
const DETAIL_MIN: usize = 16;

/// A subject, an event, a detail that may be cut, and an outcome that may not.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct TimelineLine {
    pub(super) kind: LineKind,
    pub(super) who: String,
    pub(super) what: String,
    pub(super) detail: String,
    pub(super) way: String,
    pub(super) target: String,
    pub(super) by: String,
}

/// What a line is about. Later events of a record extend it or start another one.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum LineKind {
    /// An ask of a step.
    Ask,
    /// An ask of a member of a parallel step.
    Member,
    Validator,
    /// A remark that later events do not extend.
    Aside,
    /// Anything else.
    #[default]
    Other,
}

impl TimelineLine {
    pub(super) fn new(kind: LineKind, who: &str, what: String) -> TimelineLine {
        TimelineLine { kind, who: clean_to_one_line(who), what, ..TimelineLine::default() }
    }

    pub(super) fn detail(mut self, detail: &str) -> TimelineLine {
        self.detail = clean_to_one_line(detail);
        self
    }

    /// The line as printed. The detail is cut so that the line fits into `width` columns.
    pub(super) fn draw(&self, at_ms: i64, zone: &TimeZone, width: usize) -> String {
        let who = pad_right(&shorten_middle(&self.who, WHO), WHO);
        let mut line = format!("{}  {who}  {}", format_time_of_day(at_ms, zone), self.what);
        let target = match self.target.is_empty() {
            true => String::new(),
            false => format!(" → {}", self.target),
        };
        let end = format!("{}{target}{}", self.way, self.by);
        if !self.detail.is_empty() {
            let left = width.saturating_sub(count_columns(&line) + 2 + count_columns(&end));
            line.push_str(": ");
            line.push_str(&shorten_end(&self.detail, left.max(DETAIL_MIN)));
        }
        line.push_str(&end);
        sanitize_line(&line)
    }
}
