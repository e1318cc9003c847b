//! Turns a draft into a flow, or says why it is none.
//!
//! One file a kind of finding: its manual page, its function, its tests.

pub(crate) mod graph;
mod join_never_fires;
pub(crate) mod live;
mod maybe_unassigned;
mod monitor_never_acts;
mod newest;
mod no_entry;
mod no_way_to_end;
mod optional_parameter;
mod outcome_without_edge;
mod resolve;
mod step_name;
mod unassigned_value;
mod unknown_target;
mod unknown_variable;
mod unreachable_step;

use crate::{Diagnostic, Draft, Flow, Severity, StepId};
use live::Live;

/// What came out of checking.
#[derive(Debug)]
pub struct Checked {
    /// The flow, when nothing of severity error was found.
    pub flow: Option<Flow>,
    /// What could be made of a draft that is no flow: to be looked at, never to be run. Ways that lead nowhere are
    /// dangling in it.
    pub unsound: Option<Flow>,
    /// Everything that was found, in the order of the checks.
    pub diagnostics: Vec<Diagnostic>,
}

/// The manual page of a kind of finding.
#[derive(Debug, Clone, Copy)]
pub struct Code {
    /// The code.
    pub name: &'static str,
    /// What it means and what to do, as plain text.
    pub page: &'static str,
}

/// Every code that [`check`] can report.
pub fn codes() -> &'static [Code] {
    &[
        join_never_fires::CODE,
        maybe_unassigned::CODE,
        monitor_never_acts::CODE,
        no_entry::CODE,
        no_way_to_end::CODE,
        optional_parameter::CODE,
        outcome_without_edge::CODE,
        step_name::CODE,
        unassigned_value::CODE,
        unknown_target::CODE,
        unknown_variable::CODE,
        unreachable_step::CODE,
    ]
}

/// Checks a draft. What it accepts can run: there is no second check later.
pub fn check(draft: Draft) -> Checked {
    let mut diagnostics = Vec::new();
    no_entry::check(&draft, &mut diagnostics);
    step_name::check(&draft, &mut diagnostics);
    let faulted = draft.faulted;
    let Some(resolved) = resolve::resolve(draft, &mut diagnostics) else {
        return Checked { flow: None, unsound: None, diagnostics };
    };
    let flow = resolved.flow;
    outcome_without_edge::check(&flow, &mut diagnostics);
    optional_parameter::check(&flow, &mut diagnostics);
    // Where paths lead can be asked only when every name leads somewhere.
    if resolved.complete {
        let live = Live::of(&flow, &[flow.entry], !faulted);
        if resolved.other_entries.is_empty() {
            unreachable_step::check(&flow, &live, &mut diagnostics);
        } else {
            let entries: Vec<StepId> = [flow.entry].into_iter().chain(resolved.other_entries).collect();
            unreachable_step::check(&flow, &Live::of(&flow, &entries, !faulted), &mut diagnostics);
        }
        unknown_variable::check(&flow, &live.steps, &mut diagnostics);
        no_way_to_end::check(&flow, &live, &mut diagnostics);
        unassigned_value::check(&flow, &live, &mut diagnostics);
        if !faulted {
            maybe_unassigned::check(&flow, &live, &mut diagnostics);
            join_never_fires::check(&flow, &mut diagnostics);
            monitor_never_acts::check(&flow, &live, &mut diagnostics);
        }
    } else {
        // Any step may be one that a run comes to.
        unknown_variable::check(&flow, &vec![true; flow.steps.len()], &mut diagnostics);
    }
    let sound = diagnostics.iter().all(|finding| finding.severity != Severity::Error);
    let (flow, unsound) = if sound { (Some(flow), None) } else { (None, Some(flow)) };
    Checked { flow, unsound, diagnostics }
}

#[cfg(test)]
pub(crate) mod testing;
#[cfg(test)]
mod twins;
