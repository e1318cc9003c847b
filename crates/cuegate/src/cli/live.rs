//! Live output of a run on standard error: a line per event and, on a terminal, a status line.

use std::sync::Arc;

use cuegate_engine::Event;
use cuegate_flow::model::BlobRef;
use cuegate_journal::{Journal, RunId};
use cuegate_provider::Activity;
use cuegate_runner::{Entry, Notice, now_ms, read_stored_text};
use cuegate_view::{
    StampedRecord, TimeZone, Timeline, count_columns, output_tail, shorten_end, shorten_middle,
};

use super::{print, status_line::StatusLine};

/// The fewest columns of an activity; with less room it is left out.
const ACTIVITY_COLUMNS: usize = 16;
/// How many lines of a failed command's output are shown.
const OUTPUT_LINES: usize = 5;

/// Prints a run while it is driven.
pub(super) struct LivePrinter {
    timeline: Timeline,
    status: StatusLine,
    doing: Option<String>,
    journal: Arc<dyn Journal>,
    run: RunId,
}

impl LivePrinter {
    pub(super) fn new(journal: Arc<dyn Journal>, run: RunId) -> LivePrinter {
        LivePrinter {
            journal,
            run,
            timeline: Timeline::new(TimeZone::system())
                .with_width(print::is_terminal().then(print::stderr_width)),
            status: StatusLine::new(print::has_progress()),
            doing: None,
        }
    }

    /// Folds earlier records without printing them.
    pub(super) fn catch_up(&mut self, entries: &[Entry]) {
        for entry in entries {
            self.timeline.line(&view_record_of_entry(entry));
        }
    }

    /// Prints a notice.
    pub(super) fn show(&mut self, notice: &Notice<'_>) {
        match notice {
            Notice::Record(entry) => {
                self.status.clear();
                self.doing = None;
                for line in self.timeline.line(&view_record_of_entry(entry)) {
                    print::print_line(&line);
                }
                self.show_failed_commands(entry);
                self.redraw();
            }
            Notice::Activity(doing) => {
                let activity = activity_words(&doing.activity);
                if let Some(activity) = activity {
                    // Of several agents it is said which.
                    let several = self.timeline.doing(now_ms()).len() > 1;
                    let step = self.timeline.step_of(doing.ask).filter(|_| several);
                    self.doing = Some(step.map_or(activity.clone(), |step| format!("{step}: {activity}")));
                }
                self.redraw();
            }
            Notice::Unkept(error) => {
                self.status.clear();
                print::print_line(&cuegate_view::clean_to_one_line(&format!(
                    "warning: {}; the run continues, and `cuegate report` prints every report from the journal",
                    crate::failure::format_error_chain(error)
                )));
                self.redraw();
            }
            Notice::Warning(text) => {
                self.status.clear();
                print::print_line(&format!("note: {text}"));
                self.redraw();
            }
            Notice::Tick => self.redraw(),
        }
    }

    /// Prints the last lines of commands that failed.
    fn show_failed_commands(&self, entry: &Entry) {
        let texts = |blob: &BlobRef| read_stored_text(&*self.journal, &self.run, blob).ok();
        for event in &entry.events {
            if let Event::CommandFinished { passed: false, stdout, stderr, .. } = event {
                for line in output_tail([stdout, stderr], &texts, OUTPUT_LINES) {
                    print::print_line(&format!("          | {line}"));
                }
            }
        }
    }

    fn redraw(&mut self) {
        if !self.status.is_on() {
            return;
        }
        if let Some(text) = status_text(&self.timeline, self.doing.as_deref(), print::stderr_width()) {
            self.status.show(&text);
        }
    }
}

/// The steps in progress, what the agent does, the money, and the rest as far as it fits into `width` columns; `None` if
/// nothing is in progress.
pub(super) fn status_text(timeline: &Timeline, activity: Option<&str>, width: usize) -> Option<String> {
    let doing = timeline.doing(now_ms());
    if doing.is_empty() {
        return None;
    }
    let money = timeline.money();
    let mut text = steps_in(&doing, width.saturating_sub(count_columns(&money) + 3));
    let room = width.saturating_sub(count_columns(&text) + count_columns(&money) + 6);
    if let Some(activity) = activity.filter(|_| room >= ACTIVITY_COLUMNS) {
        text.push_str(&format!(" | {}", shorten_end(activity, room)));
    }
    text.push_str(&format!(" | {money}"));
    let rest = timeline.counters();
    let room = width.saturating_sub(count_columns(&text) + 3);
    if room >= count_columns(&rest) {
        text.push_str(&format!(" | {rest}"));
    }
    Some(text)
}

/// The steps in progress in `width` columns. Parallel members differ at the ends of their names, so each keeps both.
fn steps_in(doing: &[String], width: usize) -> String {
    const NAME_MIN: usize = 8;
    let all = doing.join(", ");
    let each = (width / doing.len()).saturating_sub(2);
    let parts = doing.iter().map(|one| one.split_at(one.find(" (").unwrap_or(one.len())));
    let room = |rest: &str| each.saturating_sub(count_columns(rest));
    if count_columns(&all) <= width || parts.clone().any(|(_, rest)| room(rest) < NAME_MIN) {
        return shorten_end(&all, width);
    }
    let short = parts.map(|(name, rest)| format!("{}{rest}", shorten_middle(name, room(rest))));
    short.collect::<Vec<String>>().join(", ")
}

/// An activity in a few words; `None` for one that is not worth showing.
pub(super) fn activity_words(activity: &Activity) -> Option<String> {
    match activity {
        Activity::Text { text } => Some(text.lines().next().unwrap_or_default().to_owned()),
        Activity::Tool { name, target, .. } => Some(format!("{name} {target}")),
        Activity::Denied { name, target, .. } => Some(format!("denied: {name} {target}")),
        Activity::Retry { reason } => Some(format!("retrying: {reason}")),
        Activity::ToolEnded { .. } | Activity::Usage(_) => None,
    }
}

/// The record in the form that views take.
pub(super) fn view_record_of_entry(entry: &Entry) -> StampedRecord {
    StampedRecord { seq: entry.seq, at_ms: entry.at_ms, events: entry.events.clone() }
}

#[cfg(test)]
mod tests {
    use super::steps_in;

    #[test]
    fn members_keep_both_ends_of_their_names() {
        let doing =
            ["review-of-correctness (work), 3.0 s", "review-of-tests (work), 3.0 s"].map(str::to_owned);
        assert_eq!(
            steps_in(&doing, 80),
            "review-of-correctness (work), 3.0 s, review-of-tests (work), 3.0 s"
        );
        let short = steps_in(&doing, 50);
        assert_eq!(short, "revi…ness (work), 3.0 s, revi…ests (work), 3.0 s");
    }
}
