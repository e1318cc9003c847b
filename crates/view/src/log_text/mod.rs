//! The log for people: a line per event. A live run and its journal give the same lines.

mod line;
mod wording;

use cuegate_engine::CommandId;
use jiff::tz::TimeZone;

use self::{line::TimelineLine, wording::LineBuilder};
use crate::{
    format::{format_count, format_date, plural},
    stamped::StampedRecord,
    status::{describe_pending_command, format_spent_amount, most_calls},
    summary::RunFold,
    why::describe_circle,
};

/// The lines of a whole run.
pub fn render_timeline(records: &[StampedRecord], zone: &TimeZone) -> Vec<String> {
    let mut timeline = Timeline::new(zone.clone());
    records.iter().flat_map(|record| timeline.line(record)).collect()
}

/// Produces lines as records arrive, in order from the first one.
#[derive(Debug, Clone)]
pub struct Timeline {
    fold: RunFold,
    zone: TimeZone,
    day: Option<String>,
    tools: bool,
    width: usize,
}

/// The default width of a line in columns.
const WIDTH: usize = 100;

impl Timeline {
    /// A timeline with times in this zone.
    pub fn new(zone: TimeZone) -> Timeline {
        Timeline { fold: RunFold::new(""), zone, day: None, tools: false, width: WIDTH }
    }

    /// Fits lines into this many columns, at the expense of error messages and other details; `None` = whole lines.
    #[must_use]
    pub fn with_width(self, columns: Option<usize>) -> Timeline {
        Timeline { width: columns.unwrap_or(usize::MAX), ..self }
    }

    /// Also shows the uses of tools that were not denied.
    #[must_use]
    pub fn with_tools(self, tools: bool) -> Timeline {
        Timeline { tools, ..self }
    }

    /// The lines of a record: often one, none for internal events.
    ///
    /// Lines fit into the width, 100 columns by default, where that is possible without cutting names. A new day adds a line with its
    /// date.
    pub fn line(&mut self, record: &StampedRecord) -> Vec<String> {
        let mut words = LineBuilder::new(&self.zone, record.at_ms, self.tools);
        let circle = self.fold.view_so_far().circle.clone();
        for event in &record.events {
            words.event(&self.fold, event);
            self.fold.apply_event(record.seq, record.at_ms, event);
        }
        let view = self.fold.view_so_far();
        if let Some(((step, visit), _)) = view.circle.as_ref().filter(|_| view.circle != circle) {
            words.remark(&format!("{step} #{visit}"), &describe_circle(view).unwrap_or_default());
        }
        self.fold.forget_ended();
        let drawn: Vec<TimelineLine> = words.into_lines();
        if drawn.is_empty() {
            return Vec::new();
        }
        let day = format_date(record.at_ms, &self.zone);
        let mut lines = Vec::new();
        if self.day.as_ref().is_some_and(|before| *before != day) {
            lines.push(day.clone());
        }
        self.day = Some(day);
        lines.extend(drawn.iter().map(|line| line.draw(record.at_ms, &self.zone, self.width)));
        lines
    }

    /// What the run has spent, of its budget: `$0.03 of $2.00`, or `12,000 of 2,000,000 tokens`.
    pub fn money(&self) -> String {
        format_spent_amount(self.fold.view_so_far())
    }

    /// The counters of the run: its calls, iterations, tokens, and the attempt of the open step if it is not the first.
    pub fn counters(&self) -> String {
        let view = self.fold.view_so_far();
        let again = self.fold.open_attempt().filter(|attempt| *attempt > 1);
        let attempt = again.map_or_else(String::new, |attempt| format!(", attempt {attempt}"));
        let calls = match most_calls(view) {
            Some(most) => {
                format!("call {} of at most {}", format_count(view.asks.total() + 1), format_count(most))
            }
            None => plural(view.asks.total(), "call"),
        };
        format!("{calls}, iteration {} of {}{attempt}", view.iterations, view.iterations_max)
    }

    /// The asks that agents work on.
    pub fn asks(&self) -> Vec<CommandId> {
        self.fold.asks()
    }

    /// The step that an ask was sent for: the member of a parallel step, or the judge's subject.
    pub fn step_of(&self, ask: CommandId) -> Option<&str> {
        self.fold.request(ask).map(|request| &*request.step)
    }

    /// The pending commands, one per line, for the end of a live display. `now_ms` is in milliseconds since 1970.
    pub fn doing(&self, now_ms: i64) -> Vec<String> {
        let short = |text: String| match text.strip_prefix("waiting for the agent: ") {
            Some(rest) => rest.to_owned(),
            None => text,
        };
        self.fold.pending().iter().map(|pending| short(describe_pending_command(pending, now_ms))).collect()
    }
}

#[cfg(test)]
mod tests;
