//! Somebody starts the run.

use super::{Decider, enter};
use crate::{completion::Start, event::Event, run::State};

pub(super) fn start_run(decider: &mut Decider<'_>, start: Start) {
    // A run starts once; a second start of the same run is a repeated completion.
    if decider.run.state != State::New {
        return;
    }
    decider.emit(Event::RunStarted(Box::new(start.started)));
    enter::enter_step(decider, decider.flow.entry, None, None);
}
