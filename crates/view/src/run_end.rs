//! The lines that `run` prints after its last step.

use cuegate_engine::{EffectKind, EndState, FaultClass, SuspensionCause, WaitKind};
use jiff::tz::TimeZone;

use crate::{
    EffectRow, EffectState, budget,
    failure_lines::output_tail,
    format::{format_count, format_duration, plural, time_of},
    glance::{describe_changed_files, result_file, result_of_completed_run, summary_label, summary_lines},
    review::{describe_denied, find_empty_tests, suggest_review},
    stamped::{Texts, names_file},
    status::{describe_cost, format_known_cost, not_known},
    summary::{GateFile, Liveness, RunState, RunView, tokens_of},
    text::{clean_lines, clean_to_one_line, format_labelled_line, pad_right, sanitize_line, shorten_end},
};

/// How many changed files are listed; the rest are counted.
const NAMES_MAX: usize = 8;
/// How many lines of a failed validator's output are shown.
const OUTPUT_LINES: usize = 8;
/// How much of the task is shown.
const TASK_COLUMNS: usize = 100;

/// The end of a run: its outcome, the changed files, usage, and the commands to continue and to see more.
///
/// `undo` is the command that reverts the changes; the caller knows where they were made.
pub fn render_run_end(view: &RunView, texts: Texts<'_>, zone: &TimeZone, undo: Option<&str>) -> Vec<String> {
    let mut lines = describe_run_outcome(view, zone);
    let done = view.state == RunState::Ended(EndState::Completed);
    if let Some(subject) = view.subject() {
        lines.push(format_labelled_line("task", &shorten_end(&clean_to_one_line(&subject), TASK_COLUMNS)));
    }
    if !view.hidden.is_empty() {
        lines.push(format_labelled_line("hidden", &format!("{} removed from the task", view.hidden)));
    }
    // Only the failure that the run ended with: if a visit ended later, that one tells why.
    let is_last = |seq: u64| view.rows.last().is_none_or(|row| row.seq <= seq);
    if let Some(failed) = view.validators.last().filter(|ran| !ran.passed && !done && is_last(ran.seq)) {
        let what = format!("`{}` after {} #{}: {}", failed.command, failed.step, failed.visit, failed.ended);
        lines.push(format_labelled_line("failed", &clean_to_one_line(&what)));
        let output = output_tail([&failed.stdout, &failed.stderr], texts, OUTPUT_LINES);
        lines.extend(output.iter().map(|line| format_labelled_line("", line)));
    }
    let gave_up = view.state == RunState::Ended(EndState::Aborted);
    if done || gave_up {
        for (index, line) in summary_lines(view, texts).iter().enumerate() {
            lines.push(format_labelled_line(if index == 0 { summary_label(view) } else { "" }, line));
        }
    }
    for row in view.acts.effects.iter().filter(|row| row.step.is_empty() || row.state != EffectState::Done) {
        // The reason of a run that failed by it says so already.
        let is_reason =
            |said: &String| view.reason.as_ref().is_some_and(|reason| reason.ends_with(said.as_str()));
        if let Some(said) =
            row.said.as_ref().filter(|said| row.state == EffectState::Done || !is_reason(said))
        {
            let url = row.url.as_ref().map(|url| format!(": {url}")).unwrap_or_default();
            let state = match row.state {
                EffectState::Done => String::new(),
                state => format!("{}: ", state.as_str()),
            };
            lines.push(format_labelled_line(
                row.kind.word(),
                &clean_to_one_line(&format!("{state}{said}{url}")),
            ));
        }
    }
    lines.push(format_labelled_line("changed", &describe_changed_files(view)));
    if let Some(unnamed) = describe_unnamed_files(view) {
        lines.push(format_labelled_line("", &unnamed));
    }
    if let Some(reports) = describe_reports(view) {
        lines.push(format_labelled_line("reports", &reports));
    }
    lines.push(format_labelled_line("used", &describe_usage(view)));
    lines.extend(render_remarks(view, texts, done));
    lines.extend(next_lines(view, zone, undo));
    lines
}

/// What a user has to know besides the result.
fn render_remarks(view: &RunView, texts: Texts<'_>, done: bool) -> Vec<String> {
    let mut lines = Vec::new();
    if let Some(empty) = find_empty_tests(view, texts).filter(|_| done) {
        lines.push(format_labelled_line("note", &empty));
    }
    if let Some(what) = view.unvalidated.as_ref().filter(|_| done) {
        lines.push(format_labelled_line("note", what));
    }
    if view.unvalidated.is_none()
        && let Some(missing) = view.describe_missing_proof()
    {
        lines.push(format_labelled_line("note", &missing));
    }
    if let Some((answered, most)) = view.ledger.beyond_bound() {
        let message = format!(
            "{answered} calls were answered, but the computed upper bound is {most}: please report this"
        );
        lines.push(format_labelled_line("bug", &message));
    }
    for file in &view.gate_files {
        lines.push(format_labelled_line("gate", &gate_file(file)));
    }
    for (path, tool) in view.self_running() {
        lines.push(format_labelled_line("review", &self_running(path, tool)));
    }
    lines.extend(render_committed_otherwise(view));
    if !view.hidden_files.is_empty() {
        let (files, all) = (view.hidden_files.iter().map(String::as_str), view.hidden_files.len());
        lines.push(format_labelled_line(
            "hidden",
            &format!("git does not show {}", list_first_files(files, all)),
        ));
    }
    for (label, files) in
        [("violations", &view.violations), ("elsewhere", &view.main_checkout), ("meanwhile", &view.meanwhile)]
    {
        if !files.is_empty() {
            lines.push(format_labelled_line(
                label,
                &list_first_files(files.iter().map(String::as_str), files.len()),
            ));
        }
    }
    if !view.left_in_git.is_empty() {
        let what = view.left_in_git.iter().map(String::as_str).collect::<Vec<_>>().join(", ");
        lines.push(format_labelled_line("not taken", &clean_to_one_line(&what)));
        if view.left_in_git.iter().any(|what| what.starts_with("the branch ")) {
            let folder = format!(".cuegate/runs/{}/git", view.run);
            lines.push(format_labelled_line(
                "",
                &format!("`git fetch {folder} BRANCH` gets a branch of the agent"),
            ));
        }
    }
    if !view.meanwhile.is_empty() {
        lines.push(format_labelled_line(
            "",
            "changed while no process drove the run, by the agent or by you; `undo` leaves them",
        ));
    }
    // They often explain a poor answer.
    if let Some(denied) = describe_denied(view) {
        lines.push(format_labelled_line("denied", &denied));
    }
    lines
}

/// The commands that continue the run, show more of it, and take or discard its changes.
fn next_lines(view: &RunView, zone: &TimeZone, undo: Option<&str>) -> Vec<String> {
    let mut lines = Vec::new();
    for hint in suggest_continue_commands(view) {
        lines.push(format_labelled_line(
            "continue",
            &format!("{hint}{}", describe_continue_condition(view, zone)),
        ));
    }
    let has_diff = view.git && !(view.agent_changes().is_empty() && view.command_changes().is_empty());
    let see = [("diff", "what changed"), ("log", "what happened"), ("report", "full report")];
    for (index, (command, what)) in
        see.into_iter().filter(|(command, _)| has_diff || *command != "diff").enumerate()
    {
        let label = if index == 0 { "see" } else { "" };
        lines.push(format_labelled_line(label, &format!("{}  {what}", pad_command(command, &view.run))));
    }
    if let Some((label, what)) = suggest_review(view) {
        let into = if label == "take" { "  into this working tree" } else { "" };
        lines.push(format_labelled_line(label, &format!("{what}{into}")));
    }
    if let Some(undo) = undo {
        lines.push(format_labelled_line(if view.place.owned { "discard" } else { "undo" }, undo));
    }
    lines
}

/// Whether the changes of the run are in its worktree alone. Those of a pull request are merged there.
pub(crate) fn is_open_to_take(view: &RunView) -> bool {
    let merged = |row: &EffectRow| {
        let left = row.said.as_deref().unwrap_or_default().contains("was not moved");
        row.kind == EffectKind::Merge && row.state == EffectState::Done && !left
    };
    let is_merged = view.acts.effects.iter().any(merged);
    let is_at_rest = view.state != RunState::Running || view.live != Liveness::Alive;
    is_at_rest
        && view.place.owned
        && !view.changed_files.is_empty()
        && !is_merged
        && view.pull_request().is_none()
}

fn pad_command(command: &str, run: &str) -> String {
    pad_right(&format!("cuegate {command} {run}"), "cuegate report ".len() + run.len())
}

/// The commands that continue a run; none when the run is over or a process drives it.
pub fn suggest_continue_commands(view: &RunView) -> Vec<String> {
    let run = &view.run;
    match &view.state {
        RunState::Suspended(SuspensionCause { kind: WaitKind::Person, .. }) if !view.is_answered => {
            vec![format!("cuegate answer {run} \"…\"")]
        }
        RunState::Suspended(SuspensionCause { kind: WaitKind::Quota, .. }) => {
            vec![format!("cuegate resume {run} --wait")]
        }
        RunState::Suspended(SuspensionCause { kind: WaitKind::Environment, .. }) => {
            let class = view.faults.last().map(|fault| fault.class);
            vec![match class {
                Some(FaultClass::ScriptExhausted) => format!("cuegate resume {run} --script FILE"),
                Some(FaultClass::UnknownModel) => format!("cuegate resume {run} --model NAME"),
                _ => format!("cuegate resume {run}"),
            }]
        }
        RunState::Suspended(_) => vec![format!("cuegate resume {run}")],
        RunState::Ended(EndState::Exhausted) => {
            let mut flags = budget::suggest_budget_flags(&view.ledger, view.wanting);
            if view.iterations >= view.iterations_max {
                flags.push(format!("--max-iterations {}", view.iterations_max.saturating_mul(2).max(1)));
            }
            let flags: String = flags.iter().map(|flag| format!(" {flag}")).collect();
            vec![format!("cuegate resume {run}{flags}")]
        }
        RunState::Running if view.live != Liveness::Alive => {
            vec![format!("cuegate resume {run}")]
        }
        RunState::Ended(EndState::Failed | EndState::Aborted) => {
            // A failed validator at the iteration limit fails the run; a retry needs iterations.
            let flag = match view.iterations >= view.iterations_max {
                true => format!(" --max-iterations {}", view.iterations_max.saturating_mul(2).max(1)),
                false => String::new(),
            };
            vec![format!("cuegate retry {run}{flag}")]
        }
        RunState::Running | RunState::Ended(_) => Vec::new(),
    }
}

/// When the command of a hint can succeed: `  after 14:05`, or after a change that no flag makes.
pub(crate) fn describe_continue_condition(view: &RunView, zone: &TimeZone) -> String {
    match &view.state {
        RunState::Suspended(SuspensionCause { kind: WaitKind::Quota, until_ms: Some(until), .. }) => {
            let until = time_of(*until, view.last_ms, zone);
            format!("  waits until {until}; without `--wait` it retries at once")
        }
        RunState::Ended(EndState::Exhausted)
            if view.reason.as_ref() == view.ledger.overspent.as_ref().map(|excess| &excess.what)
                && budget::capped_elsewhere(&view.ledger) =>
        {
            "  after raising the limit named in the reason".to_owned()
        }
        RunState::Suspended(SuspensionCause { kind: WaitKind::Environment, .. }) => {
            match view.faults.last().map(|fault| fault.class) {
                Some(FaultClass::Auth | FaultClass::MissingProgram) => {
                    "  after you fixed it; `cuegate doctor` says how".to_owned()
                }
                Some(FaultClass::ScriptExhausted) => "  with a script that has more answers".to_owned(),
                _ => String::new(),
            }
        }
        RunState::Ended(EndState::Failed | EndState::Aborted) => {
            "  after the cause was fixed; `--say \"…\"` tells the agent something".to_owned()
        }
        _ => String::new(),
    }
}

/// The outcome in one line; a question for a person keeps all its lines.
pub(crate) fn describe_run_outcome(view: &RunView, zone: &TimeZone) -> Vec<String> {
    let reason = view.reason.as_deref().unwrap_or_default();
    let outcome = match &view.state {
        RunState::Running => view.standing(),
        // That `npm test` passes says more than the name of the last step.
        RunState::Ended(EndState::Completed) => match result_of_completed_run(view) {
            Some(result) => return vec![format!("done: {result}")],
            None => "done".to_owned(),
        },
        RunState::Ended(EndState::Aborted) => "aborted".to_owned(),
        RunState::Ended(EndState::Failed) => "failed".to_owned(),
        RunState::Ended(EndState::Exhausted) => "stopped at a limit".to_owned(),
        RunState::Ended(EndState::Cancelled) => return vec!["cancelled".to_owned()],
        RunState::Suspended(waiting) => match waiting.kind {
            WaitKind::Person => return waiting_for_person(reason),
            WaitKind::Quota => format!("paused{}", format_wait_end(waiting, view.last_ms, zone)),
            WaitKind::Environment => "needs fixing".to_owned(),
            WaitKind::Interrupted => return vec!["interrupted; nothing is lost".to_owned()],
        },
    };
    let reason = clean_to_one_line(reason);
    vec![if reason.is_empty() { outcome } else { format!("{outcome}: {reason}") }]
}

/// The whole question, with its line breaks.
fn waiting_for_person(question: &str) -> Vec<String> {
    let asked = clean_lines(question.trim());
    let mut lines: Vec<String> = vec!["asks you".to_owned()];
    match asked.lines().count() {
        0 => {}
        1 => lines[0].push_str(&format!(": {}", clean_to_one_line(&asked))),
        _ => {
            lines[0].push(':');
            lines
                .extend(asked.lines().map(|line| format!("  {}", sanitize_line(line)).trim_end().to_owned()));
        }
    }
    lines
}

fn format_wait_end(waiting: &SuspensionCause, now_ms: Option<i64>, zone: &TimeZone) -> String {
    let until = waiting.until_ms.map(|until| format!(" until {}", time_of(until, now_ms, zone)));
    until.unwrap_or_default()
}

/// The folder of the reports, and their names in the order in which they were first written.
fn describe_reports(view: &RunView) -> Option<String> {
    let files = view.reports.files();
    let mut names: Vec<&str> = Vec::new();
    for file in &files {
        if !names.contains(&&**file.name) {
            names.push(file.name);
        }
    }
    let all = names.len();
    let names: Vec<String> = names.into_iter().take(NAMES_MAX).map(clean_to_one_line).collect();
    let more = if all > names.len() { format!(" and {} more", all - names.len()) } else { String::new() };
    let result = result_file(view).map(|name| format!("; the last is `cuegate report {} {name}`", view.run));
    let result = result.unwrap_or_default();
    (all > 0).then(|| format!("{}{more} in .cuegate/runs/{}/reports{result}", names.join(", "), view.run))
}

/// That a changed file decides what a gate runs.
pub(crate) fn gate_file(file: &GateFile) -> String {
    clean_to_one_line(&format!(
        "the agent changed `{}`, which decides what `{}` runs",
        file.path, file.command
    ))
}

/// That a tool runs or obeys a changed file by itself.
pub(crate) fn self_running(path: &str, tool: &str) -> String {
    clean_to_one_line(&format!("`{path}` was changed, which {tool} obeys without being asked"))
}

/// The changed files that no tool call of an agent names. In the user's own working tree the user may have changed them
/// meanwhile, so `undo` leaves them. Empty if the tool calls are not known.
pub fn perhaps_by_user(view: &RunView) -> Vec<&str> {
    let is_known = !view.place.owned && !view.tools.is_empty() && view.tools_more == 0;
    if !is_known {
        return Vec::new();
    }
    let is_named = |path: &str| view.tools.iter().any(|row| names_file(&row.call.target, path));
    view.agent_changes().into_iter().filter(|path| !is_named(path)).collect()
}

fn describe_unnamed_files(view: &RunView) -> Option<String> {
    let files = perhaps_by_user(view);
    let all = files.len();
    (all > 0).then(|| {
        format!(
            "named in no tool call, so perhaps changed by you: {}",
            list_first_files(files.into_iter(), all)
        )
    })
}

/// The number of files, and the first names.
fn list_first_files<'f>(files: impl Iterator<Item = &'f str>, all: usize) -> String {
    let names: Vec<String> = files.take(NAMES_MAX).map(clean_to_one_line).collect();
    let more = match all - names.len() {
        0 => String::new(),
        n => format!(" and {n} more"),
    };
    format!("{}: {}{more}", plural(all as u64, "file"), names.join(", "))
}

fn describe_usage(view: &RunView) -> String {
    let took = format_duration(view.elapsed_ms());
    let tokens = tokens_of(&view.usage);
    let seen = view.asks.total() > 0 || view.unpriced > 0 || tokens > 0 || view.usage.cost_usd.is_some();
    if !seen && view.unknown > 0 {
        return format!("{}, in {took}", describe_cost(view));
    }
    let paid = match (view.usage.cost_usd, not_known(view)) {
        (None, None) => "nothing".to_owned(),
        (None, Some(_)) => "unknown cost".to_owned(),
        (Some(_), _) => format_known_cost(view),
    };
    // `unknown cost` covers all calls.
    let missing = view.usage.cost_usd.and_then(|_| not_known(view));
    let missing = missing.map(|asks| format!(", plus an unknown amount for {asks}")).unwrap_or_default();
    let cut = if view.cut > 0 { format!(" ({} cut off)", format_count(view.cut)) } else { String::new() };
    let asks = format!("{}{cut}", plural(view.asks.total() + view.cut, "call"));
    let estimated = if view.usage.is_estimated { " (partly estimated)" } else { "" };
    format!("{asks}, {}{estimated}, {paid} in {took}{missing}", plural(tokens, "token"))
}

/// Where the commits of a run and its files differ, a line each; at most some of them.
pub fn render_committed_otherwise(view: &RunView) -> Vec<String> {
    const SHOWN_MAX: usize = 10;
    let all = &view.committed_otherwise;
    let mut lines: Vec<String> = all
        .iter()
        .take(SHOWN_MAX)
        .map(|(path, what)| {
            format_labelled_line("committed", &format!("{}: {what}", clean_to_one_line(path)))
        })
        .collect();
    if all.len() > SHOWN_MAX {
        lines.push(format_labelled_line("", &format!("and {} more", all.len() - SHOWN_MAX)));
    }
    lines
}

#[cfg(test)]
mod tests {
    use cuegate_engine::{Completion, FaultClass};
    use jiff::tz::TimeZone;
    use serde_json::json;

    use super::render_run_end;
    use crate::{
        summary::Liveness,
        testing::{Scene, piece, registry},
    };

    fn lines(scene: &Scene) -> String {
        render_run_end(&scene.view(), &|blob| scene.text(blob), &TimeZone::UTC, None).join("\n")
    }

    /// The first line and the commands that continue the run.
    fn short(scene: &Scene) -> String {
        let lines =
            render_run_end(&scene.view_as(Liveness::Dead), &|blob| scene.text(blob), &TimeZone::UTC, None);
        let hints = lines.iter().filter(|line| line.starts_with("continue"));
        std::iter::once(&lines[0]).chain(hints).cloned().collect::<Vec<_>>().join("\n")
    }

    #[test]
    fn done() {
        let scene = Scene::remedied();
        let undo = Some("git restore --source c0 .");
        insta::assert_snapshot!(render_run_end(&scene.view(), &|blob| scene.text(blob), &TimeZone::UTC, undo).join("\n"), @"
        done: `cargo test` passes (2nd try), `git status --porcelain` passes
        summary     All is
                    well.
        changed     2 files: src/a.txt, src/b.txt
        used        6 calls, 9,010 tokens, $0.07 in 7.9 s, plus an unknown amount for 1 call that was cut off or failed
        see         cuegate diff r1    what changed
                    cuegate log r1     what happened
                    cuegate report r1  full report
        undo        git restore --source c0 .
        ");
    }

    #[test]
    fn a_completed_run_with_skipped_validators_has_a_note() {
        let mut scene = Scene::remedied();
        let skipped =
            cuegate_engine::Event::ValidationSkipped { step: "closure.fix@validators".into(), failed: true };
        let last = scene.records.last_mut().map(|record| &mut record.events);
        last.into_iter().for_each(|events| events.insert(0, skipped.clone()));
        insta::assert_snapshot!(lines(&scene).lines().take(2).collect::<Vec<_>>().join("\n"), @"
        done: `closure.fix` completed the workflow
        summary     All is
        ");
    }

    #[test]
    fn long_file_lists_are_cut() {
        let names: Vec<String> = (0..11).map(|n| format!("f{n:02}")).collect();
        let mut scene = Scene::start(registry());
        let files: Vec<&str> = names.iter().map(String::as_str).collect();
        scene.answer_with_changes(json!({"action": "abort"}), &files);
        insta::assert_snapshot!(lines(&scene), @r#"
        aborted: `initial.fix` gave up
        changed     11 files: f00, f01, f02, f03, f04, f05, f06, f07 and 3 more
        used        1 call, 1,500 tokens, $0.01 in 1.2 s
        continue    cuegate retry r1  after the cause was fixed; `--say "…"` tells the agent something
        see         cuegate diff r1    what changed
                    cuegate log r1     what happened
                    cuegate report r1  full report
        "#);
    }

    #[test]
    fn every_state_names_the_command_that_continues_it() {
        let mut scene = Scene::start(piece());
        insta::assert_snapshot!(short(&scene), @"
        running, but its process died
        continue    cuegate resume r1
        ");
        scene.says(json!({"action": "unclear"}));
        insta::assert_snapshot!(short(&scene), @r#"
        asks you:
        continue    cuegate answer r1 "…"
        "#);
        let mut scene = Scene::start(registry());
        scene.faults(FaultClass::Overloaded, "busy", Some(600_000));
        insta::assert_snapshot!(short(&scene), @"
        paused until 12:10: server error: busy
        continue    cuegate resume r1 --wait  waits until 12:10; without `--wait` it retries at once
        ");
        scene.happens(Completion::Resumed(Box::default())).faults(
            FaultClass::MissingProgram,
            "no `claude`",
            None,
        );
        insta::assert_snapshot!(short(&scene), @"
        needs fixing: agent not available: no `claude`
        continue    cuegate resume r1  after you fixed it; `cuegate doctor` says how
        ");
        scene.happens(Completion::Resumed(Box::default())).happens(Completion::Interrupted { seen: None });
        insta::assert_snapshot!(short(&scene), @"
        interrupted; nothing is lost
        continue    cuegate resume r1
        ");
        scene.happens(Completion::Cancelled { seen: None });
        insta::assert_snapshot!(short(&scene), @"cancelled");
        let mut scene = Scene::start(registry());
        for _ in 0..8 {
            scene.says(json!({"action": "repeat"}));
        }
        insta::assert_snapshot!(short(&scene), @"
        stopped at a limit: the limit of 8 iterations is reached
        continue    cuegate resume r1 --max-iterations 16
        ");
    }
}
