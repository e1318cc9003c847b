//! Reports that an answer owes: those that it holds are written, the others are asked for one by one.

use cuegate_ask::AskKind;
use cuegate_flow::{
    Str,
    model::{Act, Ask, Outcome, Step, StepId},
};
use serde_json::Value;

use super::{
    Decider,
    answered::{self, AskScope},
    rejected_answer,
};
use crate::{
    answers::{gate::InvalidAnswer, parsed_answer::ParsedAnswer},
    event::Event,
    event_types::{AfterReports, AskContext, AskRequest, OwedReport},
};

/// Whether a step's answers owe reports.
pub(super) fn has_owed_reports(step: &Step<StepId>) -> bool {
    matches!(&step.act, Act::Ask(ask) if !ask.reports.is_empty())
}

/// Writes what a structured answer holds, and asks for the first report that it lacks. `false` when it lacks none.
pub(super) fn collect_reports(
    decider: &mut Decider<'_>,
    step: &Step<StepId>,
    member: Option<u16>,
    output: Option<&Value>,
    answer: &cuegate_flow::model::BlobRef,
    then: &AfterReports,
) -> bool {
    let Act::Ask(ask) = &step.act else { return false };
    for report in &ask.reports {
        if let Some(content) = find_report_text(ask, output, &report.name) {
            let content = content.to_owned();
            write_report(decider, step, member, &report.name, &content);
        }
    }
    let lacking = find_missing_report(ask, 0, |name| find_report_text(ask, output, name).is_some());
    lacking.is_some_and(|report| {
        request_report(
            decider,
            step,
            member,
            OwedReport { report, answer: answer.clone(), then: then.clone() },
        );
        true
    })
}

/// An answer that is a report.
pub(super) fn receive_report(
    decider: &mut Decider<'_>,
    scope: &AskScope<'_>,
    owing: &OwedReport,
    answer: &ParsedAnswer<'_>,
) {
    let &AskScope { step, member, .. } = scope;
    let Act::Ask(ask) = &step.act else { return };
    let Some(report) = ask.reports.get(owing.report as usize) else { return };
    let content = strip_outer_fence(&answer.to_text()).to_owned();
    if content.trim().is_empty() {
        let bad = InvalidAnswer { absent: true, why: format!("the report `{}` is empty", report.name) };
        rejected_answer::reject_answer(decider, scope, bad, answer);
        return;
    }
    write_report(decider, step, member, &report.name, &content);
    // What the answer itself held was written with it, in this visit.
    let written = |name: &str| is_written(decider, step, member, name);
    match find_missing_report(ask, owing.report + 1, written) {
        Some(report) => request_report(decider, step, member, OwedReport { report, ..owing.clone() }),
        None => answered::continue_after_reports(decider, step, member, &owing.answer, &owing.then),
    }
}

/// The first report from this place on that is not there.
fn find_missing_report(ask: &Ask, from: u16, is_there: impl Fn(&str) -> bool) -> Option<u16> {
    let mut reports = ask.reports.iter().enumerate().skip(from as usize);
    reports.find(|(_, report)| !is_there(&report.name)).map(|(index, _)| index as u16)
}

/// Whether a report was written since the step was entered.
fn is_written(decider: &Decider<'_>, step: &Step<StepId>, member: Option<u16>, name: &str) -> bool {
    let Some(node) = &decider.run.progress.node else { return false };
    let order = (node.entered, member.unwrap_or(0));
    let mut versions = decider.run.context.reports.versions(name).iter();
    versions.any(|version| version.order == order && version.step == step.name)
}

/// The text that a structured answer holds for a report; one that is empty is none.
fn find_report_text<'o>(ask: &Ask, output: Option<&'o Value>, name: &str) -> Option<&'o str> {
    let reports = ask.fused.as_ref()?.reports.get(output?)?;
    reports.get(name)?.as_str().filter(|content| !content.trim().is_empty())
}

fn write_report(
    decider: &mut Decider<'_>,
    step: &Step<StepId>,
    member: Option<u16>,
    name: &Str,
    content: &str,
) {
    let content = decider.keep(content);
    let visit = decider.run.progress.visit.as_ref().map_or(1, |visit| visit.visit);
    decider.emit(Event::ReportWritten {
        step: step.name.clone(),
        member,
        name: name.clone(),
        visit,
        content,
    });
}

fn request_report(decider: &mut Decider<'_>, step: &Step<StepId>, member: Option<u16>, owing: OwedReport) {
    let request = AskRequest::own(&step.name, member, AskKind::Report);
    decider.request_ask(AskRequest { context: AskContext::Report(owing), ..request });
}

/// What follows when an outcome was read. Only named ones come out of answers.
pub(super) fn after_reports_of_outcome(outcome: &Outcome, reason: Option<String>) -> AfterReports {
    AfterReports::Decided { outcome: outcome.to_string().into(), reason }
}

/// A text without the code fence that wraps all of it, as agents like to answer when a file is asked for.
fn strip_outer_fence(text: &str) -> &str {
    let bare = |text: &str| -> Option<(usize, usize)> {
        let (first, rest) = text.split_once('\n')?;
        let ticks = first.len() - first.trim_start_matches('`').len();
        let info = first[ticks..].trim();
        let body = rest.strip_suffix(&first[..ticks]).filter(|_| ticks >= 3)?;
        let whole = matches!(info, "markdown" | "md") || (info.is_empty() && !body.contains(&first[..ticks]));
        (whole && (body.is_empty() || body.ends_with('\n')))
            .then(|| (first.len() + 1, first.len() + 1 + body.len()))
    };
    let trimmed = text.trim();
    bare(trimmed).map_or(trimmed, |(from, to)| trimmed[from..to].trim_end())
}

#[cfg(test)]
mod tests {
    use super::strip_outer_fence;

    #[test]
    fn a_fence_around_all_of_it_is_taken_off() {
        for (text, content) in [
            ("# Plan\nall\n", "# Plan\nall"),
            ("```markdown\n# Plan\n```\n", "# Plan"),
            ("```\n# Plan\n```", "# Plan"),
            ("````md\n# Plan\n```js\nx\n```\n````", "# Plan\n```js\nx\n```"),
            ("```markdown\n# Plan\n```js\nx\n```\n```", "# Plan\n```js\nx\n```"),
            ("```\na\n```\nand\n```\nb\n```", "```\na\n```\nand\n```\nb\n```"),
            ("```js\nx\n```", "```js\nx\n```"),
            ("Here:\n```\nx\n```", "Here:\n```\nx\n```"),
            ("```", "```"),
            ("", ""),
        ] {
            assert_eq!(strip_outer_fence(text), content, "{text}");
        }
    }
}
