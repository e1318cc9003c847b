//! The log for people: a line for each thing that happened, the same live and years later.

mod line;
mod wording;

use jiff::tz::TimeZone;

use self::{line::Line, wording::Words};
use crate::{
    format::{count, date, money},
    stamped::Stamped,
    status::doing,
    summary::{RunFold, tokens_of},
};

/// The lines of a whole run.
pub fn timeline(records: &[Stamped], zone: &TimeZone) -> Vec<String> {
    let mut timeline = Timeline::new(zone.clone());
    records.iter().flat_map(|record| timeline.line(record)).collect()
}

/// Lines as records come, in order and from the first one.
#[derive(Debug, Clone)]
pub struct Timeline {
    fold: RunFold,
    zone: TimeZone,
    day: Option<String>,
}

impl Timeline {
    /// A timeline that tells times in a zone.
    pub fn new(zone: TimeZone) -> Timeline {
        Timeline { fold: RunFold::new(""), zone, day: None }
    }

    /// What a record has to tell; often one line, none for what nobody needs to see.
    ///
    /// Lines are at most 100 columns wide where that is possible without cutting names. A day that begins has a
    /// line of its own.
    pub fn line(&mut self, record: &Stamped) -> Vec<String> {
        let mut words = Words::new(&self.zone, record.at_ms);
        for event in &record.events {
            words.event(&self.fold, event);
            self.fold.apply_event(record.seq, record.at_ms, event);
        }
        let told: Vec<Line> = words.into_lines();
        if told.is_empty() {
            return Vec::new();
        }
        let day = date(record.at_ms, &self.zone);
        let mut lines = Vec::new();
        if self.day.as_ref().is_some_and(|before| *before != day) {
            lines.push(day.clone());
        }
        self.day = Some(day);
        lines.extend(told.iter().map(|line| line.draw(record.at_ms, &self.zone)));
        lines
    }

    /// How far the run is, in a few words: visit and attempt of the open step, iterations, what was used up so far.
    pub fn standing(&self) -> String {
        let view = self.fold.view(crate::summary::Liveness::Alive);
        let open = view
            .open
            .as_ref()
            .map_or_else(String::new, |open| format!("visit {}, attempt {}, ", open.visit, open.attempt));
        let tokens = count(tokens_of(&view.usage));
        let cost = view.usage.cost_usd.map_or_else(String::new, |cost| format!(", {}", money(Some(cost))));
        format!("{open}iteration {} of {}, {tokens} tokens{cost}", view.iterations, view.iterations_max)
    }

    /// What the run is doing, one a line, for the end of a live display. `now_ms` is in milliseconds since 1970.
    pub fn doing(&self, now_ms: i64) -> Vec<String> {
        self.fold.pending().iter().map(|pending| doing(pending, now_ms)).collect()
    }
}

#[cfg(test)]
mod tests;
