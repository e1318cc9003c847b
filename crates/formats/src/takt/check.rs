//! Checks a workflow that was read as a whole: names of steps and reports, and permissions side by side.

use std::collections::{BTreeSet, HashMap};

use cuegate_flow::{Str, diagnostics::Diagnostic};

use super::read::{CaselessNames, FileNames, ReportDefinition, StepAction, WorkflowDefinition, WorkflowStep};
use super::routing::{ABORT, COMPLETE};
use crate::codes;
use crate::findings::Findings;
use crate::suggest::quote_names;
use crate::values::json::Text;

/// All steps and their members.
pub(super) fn list_steps_and_members<'p, 'j>(
    workflow: &'p WorkflowDefinition<'j>,
) -> impl Iterator<Item = &'p WorkflowStep<'j>> {
    workflow.steps.iter().flat_map(|step| {
        let members = match &step.does {
            StepAction::Parallel(members) => members.as_slice(),
            StepAction::Asks(_) | StepAction::System(_) => &[],
        };
        std::iter::once(step).chain(members)
    })
}

/// Reports and drops steps with ambiguous names.
pub(super) fn check_names(workflow: &mut WorkflowDefinition<'_>, found: &Findings) {
    let mut seen: BTreeSet<String> = BTreeSet::new();
    let mut sound = |step: &WorkflowStep<'_>| {
        let Text { text, span } = step.name;
        let message = if matches!(text, COMPLETE | ABORT) {
            format!("`{text}` is an end, and cannot be the name of a step")
        } else if text.contains('@') || text.chars().any(char::is_control) {
            format!("`{}` cannot be the name of a step", text.escape_debug())
        } else if !seen.insert(text.to_owned()) {
            format!("there is another step `{text}`")
        } else {
            return true;
        };
        let finding = Diagnostic::error(codes::STEP_NAME, span, message).step(text);
        found.push(finding.hint("give it another name; members have names of their own too"));
        false
    };
    let count = workflow.steps.len();
    workflow.steps.retain(&mut sound);
    workflow.nameless |= workflow.steps.len() < count;
    for step in &mut workflow.steps {
        if let StepAction::Parallel(members) = &mut step.does {
            members.retain(&mut sound);
        }
    }
}

/// Returns the names of all reports, and reports names that collide as files.
pub(super) fn check_reports(workflow: &WorkflowDefinition<'_>, found: &Findings) -> Vec<Str> {
    let mut reports: Vec<&ReportDefinition> = Vec::new();
    let (mut files, mut caseless) = (FileNames::default(), CaselessNames::default());
    for step in list_steps_and_members(workflow) {
        let StepAction::Asks(asked) = &step.does else { continue };
        for report in &asked.reports {
            if let Some(other) = files.clash_of_others(&report.name).map(|at| reports[at]) {
                let message = format!("`{}` and `{}` cannot both be files", other.name, report.name);
                let finding = Diagnostic::error(codes::REPORT_NAME, report.span, message);
                found.push(finding.step(step.name.text).hint("rename one of them"));
            }
            if let Some(other) = caseless.clash_but_for_case(&report.name).map(|at| reports[at]) {
                let message = format!(
                    "`{}` and `{}` are the same file on a case-insensitive file system",
                    other.name, report.name
                );
                let finding = Diagnostic::warning(codes::REPORT_NAME, report.span, message);
                let hint = "use one spelling if they are the same report, or rename one of them";
                found.push(finding.step(step.name.text).hint(hint));
            }
            files.add(&report.name, reports.len());
            caseless.add(&report.name, reports.len());
            reports.push(report);
        }
    }
    check_members(workflow, found);
    let mut names: Vec<Str> = reports.iter().map(|report| report.name.clone()).collect();
    names.sort();
    names.dedup();
    names
}

/// Members run in parallel in one worktree, so a changed file cannot be attributed to one of them.
pub(super) fn check_permissions(workflow: &WorkflowDefinition<'_>, found: &Findings) {
    for step in &workflow.steps {
        let StepAction::Parallel(members) = &step.does else { continue };
        let named = |may_write: bool| -> Vec<&str> {
            let fits = |member: &&WorkflowStep<'_>| match &member.does {
                StepAction::Asks(asked) => asked.boundary.permission.may_write() == may_write,
                StepAction::Parallel(_) | StepAction::System(_) => false,
            };
            members.iter().filter(fits).map(|member| member.name.text).collect()
        };
        let (readers, writers) = (named(false), named(true));
        if readers.is_empty() || writers.is_empty() {
            continue;
        }
        let name = step.name.text;
        let message = format!(
            "`{name}` runs {} (read-only) in parallel with {} (may write): changes cannot be attributed",
            quote_names(&readers),
            quote_names(&writers)
        );
        let finding = Diagnostic::warning(codes::MIXED_PERMISSIONS, step.name.span, message);
        let hint = "put those that may change files into a step of their own";
        found.push(finding.step(name).hint(hint));
    }
}

/// Checks the members of one parallel step for conflicting write access.
fn check_members(workflow: &WorkflowDefinition<'_>, found: &Findings) {
    for step in &workflow.steps {
        let StepAction::Parallel(members) = &step.does else { continue };
        let mut seen: HashMap<&str, &str> = HashMap::new();
        for member in members {
            let StepAction::Asks(asked) = &member.does else { continue };
            for report in &asked.reports {
                if let Some(other) = seen.get(&*report.name) {
                    let message = format!(
                        "`{other}` and `{}` write `{}` at the same time",
                        member.name.text, report.name
                    );
                    let finding = Diagnostic::warning(codes::REPORT_NAME, report.span, message);
                    found.push(finding.step(member.name.text).hint("give each its own report"));
                }
                seen.entry(&report.name).or_insert(member.name.text);
            }
        }
    }
}
