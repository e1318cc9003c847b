//! One line of a timeline.

use jiff::tz::TimeZone;

use crate::{
    format::clock,
    text::{clean, columns, pad, safe, shorten, shorten_middle},
};

/// The width of the column with the subject of a line.
const WHO: usize = 21;
/// A detail keeps at least this many columns: fewer are unreadable.
const DETAIL_MIN: usize = 16;

/// A subject, an event, a detail that may be cut, and an outcome that may not.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Line {
    pub(super) kind: Kind,
    pub(super) who: String,
    pub(super) what: String,
    pub(super) detail: String,
    pub(super) way: String,
    pub(super) target: String,
    pub(super) by: String,
}

/// What a line is about. Later events of a record extend it or start another one.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum Kind {
    /// An ask of a step.
    Ask,
    /// An ask of a member of a parallel step.
    Member,
    /// A validator.
    Validator,
    /// A remark that later events do not extend.
    Aside,
    /// Anything else.
    #[default]
    Other,
}

impl Line {
    pub(super) fn new(kind: Kind, who: &str, what: String) -> Line {
        Line { kind, who: clean(who), what, ..Line::default() }
    }

    pub(super) fn detail(mut self, detail: &str) -> Line {
        self.detail = clean(detail);
        self
    }

    /// The line as printed. The detail is cut so that the line fits into `width` columns.
    pub(super) fn draw(&self, at_ms: i64, zone: &TimeZone, width: usize) -> String {
        let who = pad(&shorten_middle(&self.who, WHO), WHO);
        let mut line = format!("{}  {who}  {}", clock(at_ms, zone), self.what);
        let target = match self.target.is_empty() {
            true => String::new(),
            false => format!(" → {}", self.target),
        };
        let end = format!("{}{target}{}", self.way, self.by);
        if !self.detail.is_empty() {
            let left = width.saturating_sub(columns(&line) + 2 + columns(&end));
            line.push_str(": ");
            line.push_str(&shorten(&self.detail, left.max(DETAIL_MIN)));
        }
        line.push_str(&end);
        safe(&line)
    }
}
