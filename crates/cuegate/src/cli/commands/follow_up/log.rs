//! `log`: the events of a run.

use super::followed_run::{ActivityTail, Followed, follow_records};
use crate::cli::commands::shared_args::RunOrFile;

use cuegate_journal::{Journal, RunId};
use cuegate_view::{LogOptions, StampedRecord, TimeZone, Timeline, event_json};

use crate::cli::commands::{ProjectPlace, texts_of_run};
use crate::cli::live::status_text;
use crate::cli::print;
use crate::cli::status_line::StatusLine;
use crate::{Failure, exit};
use clap::Args;

#[derive(Debug, Args)]
pub(crate) struct LogArgs {
    #[command(flatten)]
    pub(crate) run: RunOrFile,
    /// Keep printing events until the run ends or suspends
    #[arg(short, long)]
    pub(crate) follow: bool,
    /// Also print each tool call of the agents
    #[arg(long)]
    pub(crate) tools: bool,
    /// Print one JSON object per line
    #[arg(long)]
    pub(crate) json: bool,
    /// Leave out the records up to this number, `seq` in the JSON
    #[arg(long, value_name = "SEQ")]
    pub(crate) after: Option<u64>,
    /// Include texts of any length in the JSON
    #[arg(long, requires = "json")]
    pub(crate) full: bool,
}

pub(in crate::cli::commands) fn print_log(place: &ProjectPlace, args: &LogArgs) -> Result<u8, Failure> {
    let (journal, id) = place.view_run(&args.run.id)?;
    let mut timeline =
        Timeline::new(TimeZone::system()).with_tools(args.tools).with_width(print::data_width());
    // The status line would end up between the lines of a file.
    let moving = args.follow && !args.json && print::has_progress() && print::data_width().is_some();
    let mut tail = ActivityTail::default();
    follow_records(&*journal, &id, args.follow, StatusLine::new(moving), |followed| match followed {
        Followed::Record(record) => {
            print_record(&id, record, &mut timeline, args, &*journal);
            None
        }
        Followed::Pause => status_text(&timeline, tail.read(place, &id, &timeline), print::stderr_width()),
    })?;
    Ok(exit::DONE)
}

fn print_record(
    id: &RunId,
    record: &StampedRecord,
    timeline: &mut Timeline,
    args: &LogArgs,
    journal: &dyn Journal,
) {
    let is_left_out = args.after.is_some_and(|after| record.seq <= after);
    if args.json {
        if is_left_out {
            return;
        }
        for event in
            event_json(id.as_str(), record, &texts_of_run(journal, id), LogOptions { full: args.full })
        {
            print::json_line(&event);
        }
        return;
    }
    // The timeline needs the records that `--after` leaves out.
    for line in timeline.line(record).iter().filter(|_| !is_left_out) {
        print::data_lines(line);
    }
}
