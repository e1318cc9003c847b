//! Asks that were cut off before they answered, and the end of the time that a run has.

use cuegate_ask::Usage;
use cuegate_flow::{Str, model::Act};

use super::Decider;
use crate::{
    command::CommandId,
    completion::{Tools, TreeChange},
    event::Event,
    event_types::AskRequest,
    pending::session_key,
    run::{PendingAsk, State},
};

/// A begun ask that nobody will ever hear of again: it is settled, and put anew.
pub(super) fn repeat_cut_ask(
    decider: &mut Decider<'_>,
    ask: CommandId,
    (usage, usage_unknown): (Usage, bool),
    spoilt: bool,
    tools: Tools,
) {
    if !decider.run.spending.unsettled.contains(&ask) {
        return;
    }
    let Some((name, member, asking)) = decider.run.asking(ask) else { return };
    let asking = asking.clone();
    let asked = asking.asked(&name).clone();
    let key = decider.step(&asked).and_then(|step| match &step.act {
        Act::Ask(ask) => session_key(ask).cloned(),
        _ => None,
    });
    let spoilt = key.filter(|key| spoilt && decider.run.context.sessions.contains_key(key));
    decider.tools_used(ask, &asked, tools);
    decider.emit(Event::AskCut { ask, step: asked, usage, usage_unknown, spoilt });
    repeat_ask(decider, &name, member, &asking);
}

/// The time is used up: what was at work was stopped, and waits where it is for more. What an ask had done until then is
/// found when the run goes on, as after an interruption.
pub(super) fn out_of_time(decider: &mut Decider<'_>, seen: Option<TreeChange>) {
    if decider.run.state != State::Running {
        return;
    }
    super::control::left_behind(decider, seen);
    let reason = decider.run.spending.ledger.describe(crate::budget::Lack::Time);
    decider.stop(reason);
}

/// Puts an ask anew, as it was.
pub(super) fn repeat_ask(decider: &mut Decider<'_>, name: &Str, member: Option<u16>, asking: &PendingAsk) {
    let request = asking.again(name, member);
    decider.request_ask(AskRequest { waited_ms: asking.waited_ms, ..request });
}
