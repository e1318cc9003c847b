//! Follows a run that another process drives: `log --follow` and `attach`.

use std::{collections::BTreeMap, time::Duration};

use cuegate_engine::CommandId;
use cuegate_journal::{Journal, RunId};
use cuegate_runner::ActivityReader;
use cuegate_view::{Liveness, LogOptions, RunState, StampedRecord, TimeZone, Timeline, event_json};

use super::{ProjectPlace, diff, texts_of_journal, view_of};
use crate::{
    Failure,
    cli::{
        args::{AttachArgs, LogArgs},
        live::{activity_words, status_text},
        print,
        status_line::StatusLine,
    },
    exit, project,
    run_changes::compare_files,
};

/// How often the journal is read again.
const FOLLOW: Duration = Duration::from_millis(200);
/// How many of the earlier lines `attach` prints.
const BEFORE: usize = 10;

pub(super) fn print_log(place: &ProjectPlace, args: &LogArgs) -> Result<u8, Failure> {
    let journal = place.view()?;
    let id = project::find_run_id(&*journal, &args.run)?;
    let mut timeline =
        Timeline::new(TimeZone::system()).with_tools(args.tools).with_width(print::data_width());
    // The status line would end up between the lines of a file.
    let moving = args.follow && !args.json && print::has_progress() && print::data_width().is_some();
    let mut tail = ActivityTail::default();
    follow_records(&*journal, &id, args.follow, StatusLine::new(moving), |records| {
        for record in records {
            print_events(&id, record, &mut timeline, args, &*journal);
        }
        status_text(&timeline, tail.read(place, &id, &timeline), print::stderr_width())
    })?;
    Ok(exit::DONE)
}

fn print_events(
    id: &RunId,
    record: &StampedRecord,
    timeline: &mut Timeline,
    args: &LogArgs,
    journal: &dyn Journal,
) {
    if args.json {
        for event in
            event_json(id.as_str(), record, &texts_of_journal(journal), LogOptions { full: args.full })
        {
            print::json_line(&event);
        }
        return;
    }
    for line in timeline.line(record) {
        print::data_lines(&line);
    }
}

pub(super) fn attach_to_run(place: &ProjectPlace, args: &AttachArgs) -> Result<u8, Failure> {
    let journal = place.view()?;
    let id = project::find_run_id(&*journal, &args.run)?;
    let mut timeline =
        Timeline::new(TimeZone::system()).with_width(print::is_terminal().then(print::stderr_width));
    let (mut first, mut tail) = (true, ActivityTail::default());
    follow_records(&*journal, &id, true, StatusLine::new(print::has_progress()), |records| {
        let lines: Vec<String> = records.iter().flat_map(|record| timeline.line(record)).collect();
        let left_out = if first { lines.len().saturating_sub(BEFORE) } else { 0 };
        if std::mem::take(&mut first) {
            print::print_line(&format!("run {id}: Ctrl-C detaches; the run goes on"));
        }
        lines.iter().skip(left_out).for_each(|line| print::print_line(line));
        status_text(&timeline, tail.read(place, &id, &timeline), print::stderr_width())
    })?;
    let (mut view, records) = view_of(&*journal, &id)?;
    compare_files(&place.home, &*journal, &mut view, &records);
    let undo = diff::undo_hint(place, id.as_str(), &records);
    for line in cuegate_view::render_run_end(
        &view,
        &texts_of_journal(&*journal),
        &TimeZone::system(),
        undo.as_deref(),
    ) {
        print::print_line(&line);
    }
    Ok(view.exit_code().unwrap_or(exit::ENVIRONMENT))
}

/// What the agents of a run did last.
#[derive(Default)]
struct ActivityTail {
    readers: BTreeMap<CommandId, ActivityReader>,
    last: Option<String>,
}

impl ActivityTail {
    /// Reads what the agents at work did since the last call; returns the newest of it.
    fn read(&mut self, place: &ProjectPlace, id: &RunId, timeline: &Timeline) -> Option<&str> {
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

/// Passes all records to `show`, then new ones while `goes_on` and another process drives the run. `show` returns the
/// status line.
fn follow_records(
    journal: &dyn Journal,
    id: &RunId,
    goes_on: bool,
    mut status: StatusLine,
    mut show: impl FnMut(&[StampedRecord]) -> Option<String>,
) -> Result<(), Failure> {
    let mut seen = 0;
    loop {
        let (view, records) = view_of(journal, id)?;
        let new = records.get(seen..).unwrap_or_default();
        if !new.is_empty() {
            status.clear();
        }
        let line = show(new);
        seen = records.len();
        // A suspended or ended run writes no further events until it is resumed.
        let is_driven = view.state == RunState::Running && view.live == Liveness::Alive;
        if !(goes_on && is_driven && print::is_read()) {
            return Ok(());
        }
        if let Some(line) = line {
            status.show(&line);
        }
        std::thread::sleep(FOLLOW);
    }
}
