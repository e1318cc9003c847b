//! Setting shares of the budget aside for asks, in the record that makes them pending.

use cuegate_flow::{
    Str,
    analysis::cost_bound::{Terms, bound_remaining_asks},
};

use super::Decider;
use crate::{
    command::CommandId,
    event::Event,
    run::{State, Work},
};

/// Gives each pending ask its share. When one has to go without and nothing else is at work, the run stops there.
pub(super) fn reserve_shares(decider: &mut Decider<'_>) {
    if decider.run.state != State::Running || decider.run.effects.ending.is_some() {
        return;
    }
    let asks = list_pending_asks(decider);
    if !decider.run.spending.ledger.limits() {
        return;
    }
    let (funded, wanting): (Vec<_>, Vec<_>) =
        asks.into_iter().partition(|ask| decider.run.spending.ledger.reserved.contains_key(ask));
    for (index, ask) in wanting.iter().enumerate() {
        match decider.run.spending.ledger.share((wanting.len() - index) as u64) {
            Ok(share) => decider.emit(Event::Reserved { ask: *ask, share }),
            // What others leave of their shares may be enough for it.
            Err(_) if index > 0 || !funded.is_empty() || is_command_running(decider) => return,
            Err(lack) => {
                let reason = decider.run.describe_lack(lack);
                decider.stop(reason);
                return;
            }
        }
    }
}

/// The cost bound of the rest of the run in asks, after a person allowed more than the definition says: computed again
/// from the current step.
pub(super) fn priced_anew(
    decider: &Decider<'_>,
    step: &Str,
    iterations_max: u32,
    repairs_max: u32,
) -> Option<u64> {
    let run = &decider.run;
    run.spending.ledger.asks_max?;
    let at = decider.flow.find(step)?;
    let iterations_max = iterations_max.saturating_sub(run.progress.iterations);
    let terms = Terms { iterations_max, repairs_max, ..Terms::default() };
    Some(run.spending.ledger.answered.saturating_add(bound_remaining_asks(decider.flow, at, &terms)))
}

/// Whether a gate command of a member or an effect is at work.
fn is_command_running(decider: &Decider<'_>) -> bool {
    let of_member = match decider.run.progress.node.as_ref().map(|node| &node.work) {
        Some(Work::Joining(members)) => {
            members.iter().any(|member| member.proving.is_some() && member.asking.is_none())
        }
        _ => false,
    };
    of_member || !decider.run.effects.pending.is_empty()
}

/// The pending asks, members in their order.
fn list_pending_asks(decider: &Decider<'_>) -> Vec<CommandId> {
    match decider.run.progress.node.as_ref().map(|node| &node.work) {
        Some(Work::Asking(asking)) => vec![CommandId::Step { seq: asking.seq }],
        Some(Work::Joining(members)) => members
            .iter()
            .enumerate()
            .filter_map(|(index, member)| {
                Some(CommandId::Member { seq: member.asking.as_ref()?.seq, index: index as u16 })
            })
            .collect(),
        _ => Vec::new(),
    }
}
