//! Reads the records of a run that another process drives, as they come.

use std::{collections::BTreeMap, time::Duration};

use cuegate_engine::CommandId;
use cuegate_journal::{Journal, RunId};
use cuegate_runner::ActivityReader;
use cuegate_view::{Liveness, RunFold, RunState, StampedRecord, Timeline};

use crate::Failure;
use crate::cli::commands::ProjectPlace;
use crate::cli::live::activity_words;
use crate::cli::print;
use crate::cli::status_line::StatusLine;
use crate::project;

/// How often the journal is read again.
const FOLLOW: Duration = Duration::from_millis(200);

/// What the agents of a run did last.
#[derive(Default)]
pub(super) struct ActivityTail {
    readers: BTreeMap<CommandId, ActivityReader>,
    last: Option<String>,
}

impl ActivityTail {
    /// Reads what the agents at work did since the last call; returns the newest of it.
    pub(super) fn read(&mut self, place: &ProjectPlace, id: &RunId, timeline: &Timeline) -> Option<&str> {
        let asks = timeline.asks();
        let before = self.readers.len();
        self.readers.retain(|ask, _| asks.contains(ask));
        if self.readers.len() < before {
            self.last = None;
        }
        for ask in &asks {
            let reader =
                self.readers.entry(*ask).or_insert_with(|| ActivityReader::new(&place.home, id, *ask));
            for one in reader.read_new() {
                let Some(words) = activity_words(&one.activity) else { continue };
                let step = timeline.step_of(*ask).filter(|_| asks.len() > 1);
                self.last = Some(step.map_or(words.clone(), |step| format!("{step}: {words}")));
            }
        }
        self.last.as_deref()
    }
}

/// What of a run is shown next.
pub(super) enum Followed<'r> {
    Record(&'r StampedRecord),
    /// Nothing more for now. The answer is the status line.
    Pause,
}

/// Passes all records to `show`, then new ones while `goes_on` and another process drives the run.
pub(super) fn follow_records(
    journal: &dyn Journal,
    id: &RunId,
    goes_on: bool,
    mut status: StatusLine,
    mut show: impl FnMut(Followed<'_>) -> Option<String>,
) -> Result<(), Failure> {
    let (mut seen, mut fold) = (0, RunFold::new(id.as_str()));
    loop {
        // Read before the records: a process that ends meanwhile has written its last one.
        let live = project::liveness_of_run(journal, id)?;
        cuegate_runner::read_each_record(journal, id, seen, |entry| {
            let record = StampedRecord { seq: entry.seq, at_ms: entry.at_ms, events: entry.events };
            seen = record.seq + 1;
            fold.apply(&record);
            status.clear();
            show(Followed::Record(&record));
        })?;
        let line = show(Followed::Pause);
        // A suspended or ended run writes no further events until it is resumed.
        let is_driven = *fold.state() == RunState::Running && live == Liveness::Alive;
        if !(goes_on && is_driven && print::is_read()) {
            return Ok(());
        }
        if let Some(line) = line {
            status.show(&line);
        }
        std::thread::sleep(FOLLOW);
    }
}
