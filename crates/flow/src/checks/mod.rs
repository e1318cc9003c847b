//! Turns a draft into a flow, or reports why it cannot.
//!
//! One file per finding: its code, its function, its tests. The manual page is `docs/findings/CODE.md`.

/// A code with its manual page `docs/findings/CODE.md`.
macro_rules! code {
    ($name:literal) => {
        $crate::checks::Code {
            name: $name,
            page: include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/findings/", $name, ".md")),
        }
    };
}

mod misread;
mod prompt_positions;
pub(crate) mod resolve;
mod step_name;
mod unknown_target;

use crate::analysis::paths::ControlGraph;
use crate::analysis::reachability::{Reachability, StepOutcomes};
use crate::{
    diagnostics::{Diagnostic, Severity},
    model::{Draft, Flow, StepId},
};
use misread::MisreadSteps;
use prompt_positions::PromptPositions;

/// The result of checking.
#[derive(Debug)]
pub struct CheckedDraft {
    /// The flow, when nothing of severity error was found.
    pub flow: Option<Flow>,
    /// The flow of an invalid draft: for display only, never to run. Transitions that do not resolve are dangling in
    /// it.
    pub unsound: Option<Flow>,
    /// All findings, in the order of the checks.
    pub diagnostics: Vec<Diagnostic>,
}

/// A finding code with its manual page.
#[derive(Debug, Clone, Copy)]
pub struct Code {
    /// The code.
    pub name: &'static str,
    /// What it means and how to fix it, as Markdown.
    pub page: &'static str,
}

/// Every code that [`check_draft`] can report.
pub fn list_codes() -> &'static [Code] {
    &[
        joins::ambiguous_join::CODE,
        paths::bound_never_hit::CODE,
        paths::closure_skipped::CODE,
        paths::unreachable_transition::CODE,
        joins::join_never_fires::CODE,
        paths::limit_too_low::CODE,
        values::maybe_unassigned::CODE,
        paths::monitor_never_acts::CODE,
        paths::no_entry::CODE,
        paths::no_way_to_end::CODE,
        values::optional_parameter::CODE,
        paths::missing_transition::CODE,
        values::unwritten_report::CODE,
        paths::retry_without_change::CODE,
        step_name::CODE,
        paths::transition_without_default::CODE,
        values::type_mismatch::CODE,
        values::unassigned_value::CODE,
        unknown_target::CODE,
        values::unknown_variable::CODE,
        joins::unmatched_join::CODE,
        paths::unreachable_step::CODE,
    ]
}

/// Checks a draft. An accepted draft can run: there is no second check later.
pub fn check_draft(mut draft: Draft) -> CheckedDraft {
    let mut diagnostics = Vec::new();
    paths::no_entry::check_entry(&draft, &mut diagnostics);
    step_name::check_step_names(&draft, &mut diagnostics);
    let faulted = draft.flaws.is_faulted;
    let (misread, reads) = (std::mem::take(&mut draft.flaws.misread), std::mem::take(&mut draft.reads));
    let (told, places) =
        (std::mem::take(&mut draft.flaws.reported_variables), PromptPositions::of_reads(&reads));
    let Some(resolved) = resolve::resolve_draft(draft, &misread, &mut diagnostics) else {
        return CheckedDraft { flow: None, unsound: None, diagnostics };
    };
    let flow = resolved.flow;
    let yields = StepOutcomes::of(&flow);
    paths::missing_transition::check_unhandled_outcomes(&flow, &yields, &mut diagnostics);
    values::optional_parameter::check_needed_parameters(&flow, &mut diagnostics);
    // Paths can be analyzed only when every name resolves.
    if resolved.complete {
        let misread = MisreadSteps::of(&flow, &misread);
        let known = misread.without_their_ways(&flow);
        let live = Reachability::where_yields(&known, &yields, &[flow.entry], !faulted);
        let others: Vec<StepId> = [flow.entry].into_iter().chain(resolved.other_entries).collect();
        let from_all =
            (others.len() > 1).then(|| Reachability::where_yields(&known, &yields, &others, !faulted));
        let from_all = from_all.as_ref().unwrap_or(&live);
        if !misread.is_live(from_all) {
            paths::unreachable_step::check_unreachable_steps(&flow, from_all, &mut diagnostics);
        }
        // Here the transitions of misread steps count as far as they were parsed.
        let by_all = misread.any().then(|| Reachability::where_yields(&flow, &yields, &[flow.entry], false));
        values::unknown_variable::check_undefined_variables(
            &flow,
            &by_all.as_ref().unwrap_or(&live).steps,
            (&told, &places),
            &mut diagnostics,
        );
        paths::no_way_to_end::check_traps(&known, &live, &misread, &mut diagnostics);
        let passing = values::unassigned_value::HandoffLookup::of(&known, &live);
        values::unassigned_value::check_missing_values(
            &known,
            &live,
            &passing,
            (&misread, &places),
            &mut diagnostics,
        );
        if !faulted {
            values::maybe_unassigned::check_omitted_values(&flow, &live, &passing, &places, &mut diagnostics);
            joins::join_never_fires::check_unfired_rules(&flow, &yields, &mut diagnostics);
            paths::monitor_never_acts::check_idle_monitors(&flow, &live, &mut diagnostics);
            diagnostics.extend(look_around(&flow, &yields, &live));
            paths::no_way_to_end::check_completes(&flow, &live, &mut diagnostics);
        }
    } else {
        let come_to = match flow.lost_entry {
            Some(_) => vec![false; flow.steps.len()],
            None => {
                Reachability::where_yields(&misread::without_dangling(&flow), &yields, &[flow.entry], false)
                    .steps
            }
        };
        values::unknown_variable::check_undefined_variables(
            &flow,
            &come_to,
            (&told, &places),
            &mut diagnostics,
        );
    }
    let sound = diagnostics.iter().all(|finding| finding.severity != Severity::Error);
    let (flow, unsound) = if sound { (Some(flow), None) } else { (None, Some(flow)) };
    CheckedDraft { flow, unsound, diagnostics }
}

/// The checks of flows without misread steps.
fn look_around(flow: &Flow, yields: &StepOutcomes, live: &Reachability) -> Vec<Diagnostic> {
    let (walks, mut around) = (ControlGraph::of(flow, live), Vec::new());
    let found = &mut around;
    paths::transition_without_default::check_uncovered_values(flow, live, &walks, found);
    paths::unreachable_transition::check_untaken_edges(flow, yields, found);
    joins::unmatched_join::check_unmatched_cases(flow, yields, found);
    joins::ambiguous_join::check_rule_overlaps(flow, yields, found);
    values::type_mismatch::check_value_types(flow, &walks, found);
    paths::retry_without_change::check_retry_prompts(flow, found);
    values::unwritten_report::check_report_reads(flow, live, &walks, found);
    paths::closure_skipped::check_skipped_proofs(flow, live, &walks, found);
    let too_low = paths::limit_too_low::check_iteration_limit(flow, live, &walks, found);
    // A verdict that fires is meant to complete the run first.
    let by_limit = !too_low && !flow.verdict.can_fire();
    paths::bound_never_hit::check_bounds(flow, live, &walks, by_limit, found);
    if !too_low {
        paths::bound_never_hit::check_verdict(flow, &walks, found);
    }
    around
}

mod joins;
mod paths;
#[cfg(test)]
pub(crate) mod testing;
#[cfg(test)]
mod tests;
mod values;
