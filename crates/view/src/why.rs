//! Why a run is where it is.

use cuegate_engine::{EndState, FaultClass, SuspensionCause, WaitKind};
use jiff::tz::TimeZone;
use serde_json::{Value, json};

use crate::{
    budget,
    failure_lines::output_tail,
    format::{format_count, plural},
    run_end::{describe_continue_condition, describe_run_outcome, suggest_continue_commands},
    stamped::Texts,
    status::{describe_pending_command, describe_row_outcome},
    summary::{Liveness, RunState, RunView, VisitRow},
    text::{clean_to_one_line, format_labelled_line, shorten_end},
};

/// How many of the last visits are named.
const VISITS_MAX: usize = 6;
/// How many lines of a failed command's output are shown.
const OUTPUT_LINES: usize = 8;
/// How much of a message is shown, in columns.
const MESSAGE_COLUMNS: usize = 200;

/// A reason, by what it is about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reason {
    /// `because`, `led here`, `repeats`, `limit`, `budget`, `now`, `look at` or `continue`.
    pub label: &'static str,
    pub lines: Vec<String>,
}

/// The reasons of the state of a run: what decided last, the visits that led there, repetition, limits, and where to look.
/// `now_ms` is in milliseconds since 1970.
pub fn explain_run(view: &RunView, texts: Texts<'_>, now_ms: i64, zone: &TimeZone) -> Vec<Reason> {
    let mut reasons = Vec::new();
    let mut add = |label: &'static str, lines: Vec<String>| {
        if !lines.is_empty() {
            reasons.push(Reason { label, lines });
        }
    };
    add("because", list_causes(view, texts));
    if view.live == Liveness::Alive {
        add("now", view.pending.iter().map(|pending| describe_pending_command(pending, now_ms)).collect());
    }
    let first = view.rows.len().saturating_sub(VISITS_MAX);
    let mut led: Vec<String> = view.rows[first..].iter().map(describe_visit).collect();
    if first > 0 {
        led.insert(0, format!("… {} before", plural(first as u64, "visit")));
    }
    if let Some(open) = &view.open {
        let after = open.remedy.as_deref().map(describe_remedy);
        led.push(clean_to_one_line(&format!(
            "{} #{}{}: not ended",
            open.step,
            open.visit,
            after.unwrap_or_default()
        )));
    }
    add("led here", led);
    add("repeats", describe_repetition(view).into_iter().collect());
    if view.iterations >= view.iterations_max && view.state != RunState::Ended(EndState::Completed) {
        let (is, most) = (format_count(view.iterations.into()), format_count(view.iterations_max.into()));
        add("limit", vec![format!("iteration {is} of at most {most}")]);
    }
    add("budget", budget::format_limit_usage(&view.ledger).into_iter().collect());
    add("look at", suggest_looks(view));
    let continues = suggest_continue_commands(view).into_iter();
    add(
        "continue",
        continues.map(|hint| format!("{hint}{}", describe_continue_condition(view, zone))).collect(),
    );
    reasons
}

/// The reasons as a JSON object of `cuegate/why/v1`: a list of lines for each label, which has `_` for blanks.
pub fn why_json(view: &RunView, texts: Texts<'_>, now_ms: i64, zone: &TimeZone) -> Value {
    let mut object = json!({
        "schema": "cuegate/why/v1",
        "run": view.run,
        "state": view.state.as_str(),
        "outcome": describe_outcome(view, zone),
    });
    for Reason { label, lines } in explain_run(view, texts, now_ms, zone) {
        object[label.replace(' ', "_")] = json!(lines);
    }
    object
}

/// The state of a run with its reasons, as text.
pub fn render_why(view: &RunView, texts: Texts<'_>, now_ms: i64, zone: &TimeZone) -> String {
    let mut lines = vec![format!("{}  run {}", view.flow, view.run)];
    for (index, line) in describe_outcome(view, zone).iter().enumerate() {
        lines.push(format_labelled_line(if index == 0 { "state" } else { "" }, line));
    }
    for Reason { label, lines: texts } in explain_run(view, texts, now_ms, zone) {
        for (index, text) in texts.iter().enumerate() {
            lines.push(format_labelled_line(if index == 0 { label } else { "" }, text));
        }
    }
    lines.join("\n")
}

/// That the last visits of a step were all the same, or that the files are as they were before.
pub fn describe_repetition(view: &RunView) -> Option<String> {
    let Some((step, times)) = view.repeats.as_ref() else {
        let ((step, visit), _) = view.circle.as_ref()?;
        return Some(clean_to_one_line(&format!("`{step}` #{visit} {}", describe_circle(view)?)));
    };
    Some(clean_to_one_line(&format!(
        "the last {times} visits of `{step}` gave the same answer, and none of them changed a file"
    )))
}

/// That the last visit left files which the run had before.
pub(crate) fn describe_circle(view: &RunView) -> Option<String> {
    let (_, (earlier, first)) = view.circle.as_ref()?;
    let then = match first {
        0 => "at the start".to_owned(),
        first => format!("after `{earlier}` #{first}"),
    };
    Some(clean_to_one_line(&format!("left the files as they were {then}: a circle")))
}

/// What decided last: a failed command, a failed call, a monitor, a permission, a limit of a call.
fn list_causes(view: &RunView, texts: Texts<'_>) -> Vec<String> {
    let mut causes = Vec::new();
    let is_last = |seq: u64| view.rows.last().is_none_or(|row| row.seq <= seq);
    if let Some(ran) = view.validators.last().filter(|ran| !ran.passed && is_last(ran.seq)) {
        let what = format!("`{}` after {} #{}: {}", ran.command, ran.step, ran.visit, ran.ended);
        causes.push(clean_to_one_line(&what));
        let output = output_tail([&ran.stdout, &ran.stderr], texts, OUTPUT_LINES);
        causes.extend(output.into_iter().map(|line| format!("  {line}")));
    }
    let waits_for_agent = matches!(
        &view.state,
        RunState::Suspended(SuspensionCause { kind: WaitKind::Environment | WaitKind::Quota, .. })
    );
    let waits_for_agent = waits_for_agent || view.awaited_retry().is_some();
    let has_failed = waits_for_agent || view.state == RunState::Ended(EndState::Failed);
    if let Some(fault) = view.faults.last().filter(|_| has_failed) {
        let same = view.faults.iter().rev();
        let same = same.take_while(|row| (row.class, &row.message) == (fault.class, &fault.message)).count();
        let times = if same > 1 { format!(", {same} times") } else { String::new() };
        let message = shorten_end(&clean_to_one_line(&fault.message), MESSAGE_COLUMNS);
        let (step, visit) = (&fault.step, fault.visit);
        causes.push(format!(
            "the call of {step} #{visit} failed{times}: {}: {message}",
            class_words(fault.class)
        ));
    }
    let Some(last) = view.rows.iter().rev().find(|row| row.parent.is_none()) else { return causes };
    if let Some(by) = last.overridden_by.as_ref().filter(|_| !has_failed) {
        let by = by.strip_prefix("monitor:").unwrap_or(by);
        causes.push(clean_to_one_line(&format!("the monitor `{by}` chose the next step, not the answer")));
    }
    if !last.violations.is_empty() {
        let count = plural(last.violations.len() as u64, "file");
        causes.push(format!("{} #{} changed {count} without permission", last.step, last.visit));
    }
    let members: Vec<&VisitRow> = view
        .rows
        .iter()
        .filter(|row| row.seq <= last.seq && row.parent.as_ref() == Some(&last.step))
        .collect();
    for member in members.iter().filter(|row| row.visit == last.visit && row.outcome.is_none()) {
        let why = member.why.as_deref().unwrap_or("no outcome");
        causes.push(shorten_end(
            &clean_to_one_line(&format!("member {}: {why}", member.step)),
            MESSAGE_COLUMNS,
        ));
    }
    causes
}

fn describe_outcome(view: &RunView, zone: &TimeZone) -> Vec<String> {
    match view.is_answered {
        true => vec![format!("answered, and goes on with `cuegate resume {}`", view.run)],
        false => describe_run_outcome(view, zone),
    }
}

fn describe_visit(row: &VisitRow) -> String {
    let member = row.parent.as_ref().map(|parent| format!(" (of {parent})")).unwrap_or_default();
    let after = row.remedy.as_deref().map(describe_remedy);
    let files = match row.changed_files.len() {
        0 => String::new(),
        n => format!(", {} changed", plural(n as u64, "file")),
    };
    clean_to_one_line(&format!(
        "{} #{}{member}{}: {}{files}",
        row.step,
        row.visit,
        after.unwrap_or_default(),
        describe_row_outcome(row)
    ))
}

/// The commands that show the last visit.
fn suggest_looks(view: &RunView) -> Vec<String> {
    let run = &view.run;
    let mut looks = Vec::new();
    let changed = view.rows.iter().rev().find(|row| row.parent.is_none() && !row.changed_files.is_empty());
    if let Some(row) = changed.filter(|_| view.git) {
        looks.push(format!("cuegate diff {run} --at {}#{}", row.step, row.visit));
    }
    looks.push(format!("cuegate log {run}"));
    looks
}

fn class_words(class: FaultClass) -> String {
    class.as_str().replace('_', " ")
}
/// The reason of a visit with a follow-up prompt. Only commands have names; judges and reviewers have none.
fn describe_remedy(validator: &str) -> String {
    match validator {
        "" => ", to mend what a review found".to_owned(),
        validator => format!(", to mend what `{validator}` found"),
    }
}
