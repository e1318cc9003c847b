//! What the sandbox kept from those behind it. It is told, and nothing is decided by it.

use cuegate_flow::Str;

use super::Decider;
use crate::{command::CommandId, event::Event, run::State};

pub(super) fn record_denial(decider: &mut Decider<'_>, by: CommandId, to: String, why: String) {
    if decider.run.state != State::Running {
        return;
    }
    let asked: Option<Str> = decider.run.asking(by).map(|(step, ..)| step);
    let here = || decider.run.progress.node.as_ref().map(|node| node.step.clone());
    if let Some(step) = asked.or_else(here) {
        decider.emit(Event::SandboxDenied { by, step, to, why });
    }
}
