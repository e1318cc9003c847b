//! Live output of a run on standard error: a line per event and, on a terminal, a status line.

use std::sync::Arc;

use cuegate_engine::Event;
use cuegate_flow::model::BlobRef;
use cuegate_journal::Journal;
use cuegate_provider::Activity;
use cuegate_runner::{Entry, Notice, lookup, now_ms};
use cuegate_view::{Stamped, TimeZone, Timeline, columns, output_tail, shorten};

use super::{print, status_line::StatusLine};

/// The fewest columns of an activity; with less room it is left out.
const ACTIVITY_COLUMNS: usize = 16;
/// How many lines of a failed command's output are shown.
const OUTPUT_LINES: usize = 5;

/// Prints a run while it is driven.
pub(super) struct Live {
    timeline: Timeline,
    status: StatusLine,
    doing: Option<String>,
    journal: Arc<dyn Journal>,
}

impl Live {
    pub(super) fn new(journal: Arc<dyn Journal>) -> Live {
        Live {
            journal,
            timeline: Timeline::new(TimeZone::system()).with_width(print::is_terminal().then(print::width)),
            status: StatusLine::new(print::has_progress()),
            doing: None,
        }
    }

    /// Folds earlier records without printing them.
    pub(super) fn catch_up(&mut self, entries: &[Entry]) {
        for entry in entries {
            self.timeline.line(&stamped(entry));
        }
    }

    /// Prints a notice.
    pub(super) fn show(&mut self, notice: &Notice<'_>) {
        match notice {
            Notice::Record(entry) => {
                self.status.clear();
                self.doing = None;
                for line in self.timeline.line(&stamped(entry)) {
                    print::line(&line);
                }
                self.show_failed_commands(entry);
                self.redraw();
            }
            Notice::Activity(doing) => {
                let activity = match &doing.activity {
                    Activity::Text { text } => Some(text.lines().next().unwrap_or_default().to_owned()),
                    Activity::Tool { name, target, .. } => Some(format!("{name} {target}")),
                    Activity::Denied { name, target, .. } => Some(format!("denied: {name} {target}")),
                    Activity::Retry { reason } => Some(format!("retrying: {reason}")),
                    Activity::ToolEnded { .. } | Activity::Usage(_) => None,
                };
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
                print::line(&cuegate_view::clean(&format!(
                    "warning: {}; the run continues, and `cuegate report` prints every report from the journal",
                    crate::failure::chain(error)
                )));
                self.redraw();
            }
            Notice::Warning(text) => {
                self.status.clear();
                print::line(&format!("note: {text}"));
                self.redraw();
            }
            Notice::Tick => self.redraw(),
        }
    }

    /// Prints the last lines of commands that failed.
    fn show_failed_commands(&self, entry: &Entry) {
        let texts = |blob: &BlobRef| lookup(&*self.journal, blob).ok();
        for event in &entry.events {
            if let Event::CommandFinished { passed: false, stdout, stderr, .. } = event {
                for line in output_tail([stdout, stderr], &texts, OUTPUT_LINES) {
                    print::line(&format!("          | {line}"));
                }
            }
        }
    }

    fn redraw(&mut self) {
        if !self.status.is_on() {
            return;
        }
        let Some(counters) = counters(&self.timeline) else { return };
        match &self.doing {
            // Which steps run, for how long and for how much comes first.
            Some(activity) => {
                let left = print::width().saturating_sub(columns(&counters) + 3);
                match left >= ACTIVITY_COLUMNS {
                    true => self.status.show(&format!("{counters} | {}", shorten(activity, left))),
                    false => self.status.show(&counters),
                }
            }
            None => self.status.show(&counters),
        }
    }
}

/// The steps in progress and the counters of a run; `None` if nothing is in progress.
pub(super) fn counters(timeline: &Timeline) -> Option<String> {
    let doing = timeline.doing(now_ms());
    (!doing.is_empty()).then(|| format!("{} | {}", doing.join(", "), timeline.standing()))
}

/// The record in the form that views take.
pub(super) fn stamped(entry: &Entry) -> Stamped {
    Stamped { seq: entry.seq, at_ms: entry.at_ms, events: entry.events.clone() }
}
