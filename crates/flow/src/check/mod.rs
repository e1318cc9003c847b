//! Turns a draft into a flow, or says why it is none.
//!
//! One file a kind of finding: its manual page, its function, its tests.

pub(crate) mod graph;
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

use crate::{Diagnostic, Draft, Flow, Severity};

/// What came out of checking.
#[derive(Debug)]
pub struct Checked {
    /// The flow, when nothing of severity error was found.
    pub flow: Option<Flow>,
    /// What could be made of a draft that is no flow: to be looked at, never to be run. Ways that lead nowhere are
    /// missing in it.
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
    let Some(resolved) = resolve::resolve(draft, &mut diagnostics) else {
        return Checked { flow: None, unsound: None, diagnostics };
    };
    let flow = resolved.flow;
    outcome_without_edge::check(&flow, &mut diagnostics);
    unknown_variable::check(&flow, &mut diagnostics);
    optional_parameter::check(&flow, &mut diagnostics);
    // Where paths lead can be asked only when every name leads somewhere.
    if resolved.complete {
        unreachable_step::check(&flow, &resolved.other_entries, &mut diagnostics);
        no_way_to_end::check(&flow, &mut diagnostics);
        unassigned_value::check(&flow, &mut diagnostics);
    }
    let sound = diagnostics.iter().all(|finding| finding.severity != Severity::Error);
    let (flow, unsound) = if sound { (Some(flow), None) } else { (None, Some(flow)) };
    Checked { flow, unsound, diagnostics }
}

#[cfg(test)]
pub(crate) mod testing;
