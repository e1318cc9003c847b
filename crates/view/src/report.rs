//! A run as a Markdown page.

use cuegate_engine::{ReportFile, ToolCall, ToolResult};
use cuegate_flow::model::BlobRef;
use jiff::tz::TimeZone;

use crate::{
    fork::{describe_fork, list_unrepeated_effects},
    format::{date_time, format_count, format_duration, format_money, plural},
    glance::{describe_last_validators, result_file, summary_label},
    review::{describe_denied, find_empty_tests},
    run_end::{describe_continue_condition, gate_file, self_running, suggest_continue_commands},
    stamped::Texts,
    status::{
        describe_agent, describe_calls, describe_cost, describe_row_outcome, describe_work_folder,
        format_token_usage,
    },
    summary::{RunView, ValidatorRow, VisitRow, tokens_of},
    text::{Alignment, clean_lines, clean_to_one_line, measure_columns, pad_left, pad_right},
};

/// The longest text that a report quotes in full, in bytes.
const QUOTED_MAX: usize = 16 << 10;

/// The whole run: outcome, visits, validators, errors, handoff values, reports, changed files and usage.
pub fn render_report(view: &RunView, texts: Texts<'_>, zone: &TimeZone) -> String {
    let sections = [
        render_run_header(view, texts, zone),
        render_task(view),
        render_summary(view, texts),
        render_changed_files(view),
        render_files_to_review(view),
        render_visits(view),
        render_validators(view, texts, |_| true),
        render_faults(view, zone),
        render_effects(view),
        render_outside_changes(view),
        left_in_git(view),
        render_snapshot_gaps(view),
        render_tool_calls(view),
        render_handoff_values(view, texts),
        render_questions(view, texts),
        render_reports(view, texts),
        render_totals(view),
        render_next_commands(view, zone),
    ];
    let page: Vec<String> = sections.into_iter().filter(|section| !section.is_empty()).collect();
    clean_lines(&page.join("\n\n"))
}

/// The text of the pull request that proposes the work of a completed run: the parts of the report that readers on another
/// machine can use, without paths and commands of this one.
pub fn pull_request_text(view: &RunView, texts: Texts<'_>) -> String {
    let mut lines = vec![format!("Made by run `{}` of the workflow `{}`.", view.run, view.flow)];
    if let Some(what) = &view.unvalidated {
        lines.push(format!("Not validated: {what}."));
    }
    lines.push(format!("Agent: {}.", describe_agent(view)));
    let contents = render_reports(view, texts).replacen(&format!(" in .cuegate/runs/{}", view.run), "", 1);
    let sections = [
        render_summary(view, texts),
        render_changed_files(view),
        render_files_to_review(view),
        render_validators(view, texts, |ran| still_fails(view, ran)),
        render_visits(view),
        contents,
        render_totals(view),
        render_hidden_text(view),
        lines.join("\n"),
    ];
    let page: Vec<String> = sections.into_iter().filter(|section| !section.is_empty()).collect();
    let page = clean_lines(&page.join("\n\n"));
    // Agents name files by their whole paths.
    let work = view.place.work.trim_end_matches('/');
    match work.is_empty() {
        true => page,
        false => page.replace(&format!("{work}/"), "").replace(work, "."),
    }
}

fn render_run_header(view: &RunView, texts: Texts<'_>, zone: &TimeZone) -> String {
    let mut lines = vec![
        format!("# {}: {}", view.flow, view.standing()),
        String::new(),
        format!("- Run: `{}` of `{}`", view.run, view.path),
        format!("- State: {}", view.standing()),
    ];
    if let Some(proof) = describe_last_validators(view) {
        let label = if view.exit_code() == Some(0) { "Proof" } else { "Commands" };
        lines.push(format!("- {label}: {proof}"));
    }
    if let Some(missing) = view.describe_missing_proof().or_else(|| find_empty_tests(view, texts)) {
        lines.push(format!("- Unproved: {missing}"));
    }
    if let Some(request) = view.pull_request() {
        lines.push(format!("- Pull request: [#{}]({})", request.number, clean_to_one_line(&request.url)));
    }
    if let Some(denied) = describe_denied(view) {
        lines.push(format!("- Denied: {denied}"));
    }
    if let Some(file) = result_file(view) {
        lines.push(format!("- Result: `cuegate report {} {file}`", view.run));
    }
    if let Some(reason) = &view.reason {
        lines.push(format!("- Reason: {}", clean_to_one_line(reason)));
    }
    if let Some(what) = view.unvalidated.as_ref().filter(|_| view.exit_code() == Some(0)) {
        lines.push(format!("- Validated: no, {what}"));
    }
    if let Some(started) = view.started_ms {
        let took = format_duration(view.elapsed_ms());
        lines.push(format!("- Started: {}, took {took}", date_time(started, zone)));
    }
    lines.push(format!("- Folder: {}", describe_work_folder(view)));
    if let Some(fork) = &view.fork {
        lines.push(format!("- Fork of: {}", describe_fork(fork)));
        let unrepeated = list_unrepeated_effects(fork);
        if !unrepeated.is_empty() {
            lines.push(format!("- Done there and not repeated: {}", unrepeated.join(", ")));
        }
    }
    lines.push(format!("- Agent: {}", describe_agent(view)));
    lines.join("\n")
}

/// The whole task.
fn render_task(view: &RunView) -> String {
    match view.task.as_deref().map(str::trim) {
        None | Some("") => String::new(),
        Some(task) => {
            let lines: Vec<String> = clean_lines(task).lines().map(|line| format!("> {line}")).collect();
            let parts = ["## Task".to_owned(), render_hidden_text(view), lines.join("\n")];
            parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join("\n\n")
        }
    }
}

/// What nobody saw of the task.
fn render_hidden_text(view: &RunView) -> String {
    match view.hidden.is_empty() {
        true => String::new(),
        false => format!("Hidden text was removed: {}.", view.hidden),
    }
}

fn render_visits(view: &RunView) -> String {
    if view.rows.is_empty() {
        return "## Visits\n\nNone finished yet.".to_owned();
    }
    let head = ["Step", "Visit", "Outcome", "Calls", "Tokens", "Cost", "Time", "Files"].map(str::to_owned);
    let rows: Vec<Vec<String>> =
        std::iter::once(head.to_vec()).chain(view.rows.iter().map(visit_row)).collect();
    use Alignment::{Left, Right};
    let table = render_markdown_table(&rows, &[Left, Right, Left, Right, Right, Right, Right, Right]);
    format!("## Visits\n\n{table}")
}

fn visit_row(row: &VisitRow) -> Vec<String> {
    let mut step = row.step.to_string();
    if let Some(parent) = &row.parent {
        step = format!("{step} (of {parent})");
    }
    if let Some(validator) = &row.remedy {
        step = format!("{step} (retry after {validator})");
    }
    let visit = match row.attempt {
        1 => row.visit.to_string(),
        attempt => format!("{}.{attempt}", row.visit),
    };
    vec![
        step,
        visit,
        describe_row_outcome(row),
        format_count(row.asks),
        format_count(tokens_of(&row.usage)),
        match row.asks {
            0 => "–".to_owned(),
            _ => format_money(row.usage.cost_usd),
        },
        format_duration(row.duration_ms()),
        format_count(row.changed_files.len() as u64),
    ]
}

/// What the run did outside of its working tree.
fn render_effects(view: &RunView) -> String {
    if view.acts.effects.is_empty() {
        return String::new();
    }
    let head = ["Effect", "Class", "State", "Result"].map(str::to_owned).to_vec();
    let rows = view.acts.effects.iter().map(|row| {
        let said = row.said.clone().unwrap_or_default();
        let url = row.url.as_ref().map(|url| format!(" <{url}>")).unwrap_or_default();
        let step = if row.step.is_empty() { String::new() } else { format!(" of {}", row.step) };
        vec![
            format!("{}{step}", row.kind.word()),
            row.kind.class().as_str().to_owned(),
            row.state.as_str().to_owned(),
            clean_to_one_line(&format!("{said}{url}")),
        ]
    });
    let rows: Vec<Vec<String>> = std::iter::once(head).chain(rows).collect();
    format!("## Effects\n\n{}", render_markdown_table(&rows, &[Alignment::Left; 4]))
}

/// Files outside of what the steps may change.
fn render_outside_changes(view: &RunView) -> String {
    let mut lines: Vec<String> = view
        .violations
        .iter()
        .map(|path| format!("- changed without permission: {}", clean_to_one_line(path)))
        .collect();
    let by = "in the main checkout, by the agent or someone else";
    lines.extend(view.main_checkout.iter().map(|path| format!("- {by}: {}", clean_to_one_line(path))));
    if view.main_checkout_more > 0 {
        lines.push(format!("- {by}: {}", plural(view.main_checkout_more, "further file")));
    }
    render_section("Files changed elsewhere", &lines)
}

/// What agents changed in their git folder and the run did not take over.
fn left_in_git(view: &RunView) -> String {
    let lines: Vec<String> =
        view.left_in_git.iter().map(|what| format!("- {}", clean_to_one_line(what))).collect();
    render_section("Not taken over from the agent's git", &lines)
}

fn render_snapshot_gaps(view: &RunView) -> String {
    let lines: Vec<String> =
        view.snapshot_gaps.iter().map(|what| format!("- {}", clean_to_one_line(what))).collect();
    render_section("Not in the snapshots", &lines)
}

/// The uses of tools.
fn render_tool_calls(view: &RunView) -> String {
    if view.tools.is_empty() {
        return String::new();
    }
    let head = ["Step", "Tool", "Target", "Result", "Time"].map(str::to_owned);
    let rows = view.tools.iter().map(|row| {
        let ToolCall { tool, target, result, duration_ms, .. } = &row.call;
        vec![
            format!("{} #{}", row.step, row.visit),
            clean_to_one_line(tool),
            clean_to_one_line(target),
            tool_result(*result).to_owned(),
            duration_ms.map_or_else(|| "–".to_owned(), format_duration),
        ]
    });
    let rows: Vec<Vec<String>> = std::iter::once(head.to_vec()).chain(rows).collect();
    use Alignment::{Left, Right};
    let more = match view.tools_more {
        0 => String::new(),
        more => format!("\n\nand {} that the journal does not keep.", plural(more, "further call")),
    };
    format!("## Tool calls\n\n{}{more}", render_markdown_table(&rows, &[Left, Left, Left, Left, Right]))
}

/// The printed word.
pub(crate) fn tool_result(result: ToolResult) -> &'static str {
    match result {
        ToolResult::Ok => "ok",
        ToolResult::Failed => "failed",
        ToolResult::Denied => "denied",
        ToolResult::Unknown => "no result",
    }
}

/// The validators, and what those of them printed that failed and that `shows` picks.
fn render_validators(view: &RunView, texts: Texts<'_>, shows: impl Fn(&ValidatorRow) -> bool) -> String {
    if view.validators.is_empty() {
        return String::new();
    }
    let head = ["Command", "Step", "Result", "Time"].map(str::to_owned);
    let rows = view.validators.iter().map(|ran| {
        let result = if ran.passed {
            "passed".to_owned()
        } else {
            format!("failed: {}", clean_to_one_line(&ran.ended))
        };
        vec![
            ran.command.clone(),
            format!("{} #{}", ran.step, ran.visit),
            result,
            format_duration(ran.duration_ms),
        ]
    });
    let rows: Vec<Vec<String>> = std::iter::once(head.to_vec()).chain(rows).collect();
    let mut text = String::from("## Validators\n\n");
    text.push_str(&render_markdown_table(
        &rows,
        &[Alignment::Left, Alignment::Left, Alignment::Left, Alignment::Right],
    ));
    for ran in view.validators.iter().filter(|ran| !ran.passed && shows(ran)) {
        text.push_str("\n\n");
        text.push_str(&render_validator_output(ran, texts));
    }
    text
}

/// Whether no later run of the same command passed.
fn still_fails(view: &RunView, ran: &ValidatorRow) -> bool {
    view.validators.iter().rfind(|other| other.command == ran.command).is_some_and(|last| !last.passed)
}

/// What a failed validator printed.
fn render_validator_output(ran: &ValidatorRow, texts: Texts<'_>) -> String {
    let mut text = format!(
        "### `{}` failed after {} #{}: {}",
        ran.command,
        ran.step,
        ran.visit,
        clean_to_one_line(&ran.ended)
    );
    let mut is_empty = true;
    for (name, blob) in [("standard output", &ran.stdout), ("standard error", &ran.stderr)] {
        if blob.len == 0 {
            continue;
        }
        is_empty = false;
        text.push_str(&format!("\n\n{name}:\n\n{}", fence_blob(blob, texts)));
    }
    if is_empty {
        text.push_str("\n\nIt printed nothing.");
    }
    text
}

fn render_faults(view: &RunView, zone: &TimeZone) -> String {
    let lines: Vec<String> = view
        .faults
        .iter()
        .map(|fault| {
            let at = date_time(fault.at_ms, zone);
            let class = fault.class.words();
            format!("- {at}  {} #{}: {class}: {}", fault.step, fault.visit, clean_to_one_line(&fault.message))
        })
        .collect();
    render_section("Errors", &lines)
}

fn render_handoff_values(view: &RunView, texts: Texts<'_>) -> String {
    let lines: Vec<String> = view
        .handed
        .iter()
        .map(|row| {
            let value = row.scalar.as_ref().map(|scalar| scalar.to_string()).or_else(|| texts(&row.value));
            let value = value.unwrap_or_else(|| format!("({} bytes)", format_count(row.value.len)));
            format!("- {}.{}: {}", row.step, row.key, clean_to_one_line(&value))
        })
        .collect();
    render_section("Handoff values", &lines)
}

/// All reports by name, and the newest version of each in full.
fn render_reports(view: &RunView, texts: Texts<'_>) -> String {
    let lines: Vec<String> = view
        .reports
        .files()
        .iter()
        .map(|file| {
            let ReportFile { path, version, .. } = file;
            format!("- {} ({} #{})", clean_to_one_line(path), version.step, version.visit)
        })
        .collect();
    let newest =
        view.reports.files().into_iter().filter(|file| file.path == format!("reports/{}", file.name));
    let contents: Vec<String> = newest
        .map(|file| {
            format!("\n### {}\n\n{}", clean_to_one_line(file.name), fence_blob(&file.version.content, texts))
        })
        .collect();
    render_section(&format!("Reports in .cuegate/runs/{}", view.run), &[lines, contents].concat())
}

fn render_questions(view: &RunView, texts: Texts<'_>) -> String {
    let text = |blob: &BlobRef| fence_blob(blob, texts);
    let lines: Vec<String> = view
        .questions
        .iter()
        .map(|row| {
            let by = if row.by_definition { "the definition" } else { "a person" };
            match &row.answer {
                Some(answer) => format!("{}\n\nAnswer of {by}:\n\n{}", text(&row.question), text(answer)),
                None => format!("{}\n\nNot answered yet.", text(&row.question)),
            }
        })
        .collect();
    render_section(
        "Questions",
        &[lines.join("\n\n")].into_iter().filter(|text| !text.is_empty()).collect::<Vec<_>>(),
    )
}

fn render_summary(view: &RunView, texts: Texts<'_>) -> String {
    match view.summary_text(texts) {
        Some(summary) => {
            let title = match summary_label(view) {
                "summary" => "Summary",
                _ => "What the agent said last",
            };
            format!("## {title}\n\n{}", fence_text(&summary))
        }
        None => String::new(),
    }
}

fn render_changed_files(view: &RunView) -> String {
    let count = |file: &str| {
        let count = view.difference.as_ref().and_then(|all| all.get(file)?.describe());
        count.map(|count| format!(" {count}")).unwrap_or_default()
    };
    let by_agents =
        view.agent_changes().into_iter().map(|file| format!("- {}{}", clean_to_one_line(file), count(file)));
    let by_commands = view.command_changes();
    let by_commands = by_commands
        .into_iter()
        .map(|file| format!("- {}{} (by a command)", clean_to_one_line(file), count(file)));
    let lines: Vec<String> = by_agents.chain(by_commands).collect();
    match lines.is_empty() {
        true => "## Changed files\n\nNone.".to_owned(),
        false => render_section("Changed files", &lines),
    }
}

/// What a reviewer should look at: gates that the run may have weakened, and files that no diff shows.
fn render_files_to_review(view: &RunView) -> String {
    let gates = view.gate_files.iter().map(|file| format!("- {}", gate_file(file)));
    let hidden =
        view.hidden_files.iter().map(|file| format!("- git does not show `{}`", clean_to_one_line(file)));
    let committed = view.committed_otherwise.iter();
    let committed = committed.map(|(path, what)| format!("- `{}`: {what}", clean_to_one_line(path)));
    let marked = view.self_running();
    let marked = marked.into_iter().map(|(path, tool)| format!("- {}", self_running(path, tool)));
    render_section("To be looked at", &gates.chain(marked).chain(committed).chain(hidden).collect::<Vec<_>>())
}

fn render_totals(view: &RunView) -> String {
    let lines = [
        format!("- Calls: {}", describe_calls(view)),
        format!("- Tokens: {}", format_token_usage(view)),
        format!("- Cost: {}", describe_cost(view)),
        format!("- Iterations: {} of at most {}", view.iterations, view.iterations_max),
    ];
    render_section("Totals", &lines)
}

fn render_next_commands(view: &RunView, zone: &TimeZone) -> String {
    let hints = suggest_continue_commands(view).into_iter();
    let mut lines: Vec<String> = hints
        .map(|hint| {
            format!("- continue: `{hint}`{}", describe_continue_condition(view, zone).replacen("  ", " ", 1))
        })
        .collect();
    for (command, what) in [("diff", "what changed"), ("log", "what happened, step by step")] {
        lines.push(format!("- `cuegate {command} {}`: {what}", view.run));
    }
    render_section("More", &lines)
}

fn render_section(title: &str, lines: &[String]) -> String {
    match lines.is_empty() {
        true => String::new(),
        false => format!("## {title}\n\n{}", lines.join("\n")),
    }
}

/// A stored text in a fence longer than any run of backticks in the text.
fn fence_blob(blob: &BlobRef, texts: Texts<'_>) -> String {
    let Some(text) = texts(blob) else {
        return format!("({} bytes, `{}`, not stored here)", format_count(blob.len), blob.short());
    };
    fence_text(&text)
}

fn fence_text(text: &str) -> String {
    let text = clean_lines(text);
    let text = ends_of(text.trim_end());
    let longest = text.split(|c| c != '`').map(str::len).max().unwrap_or(0);
    let fence = "`".repeat(longest.max(2) + 1);
    format!("{fence}text\n{text}\n{fence}")
}

/// A text, or its beginning and its end if it is long.
fn ends_of(text: &str) -> String {
    if text.len() <= QUOTED_MAX {
        return text.to_owned();
    }
    let begin = &text[..text.floor_char_boundary(QUOTED_MAX / 2)];
    let begin = begin.rfind('\n').map_or(begin, |line| &begin[..line]);
    let end = &text[text.ceil_char_boundary(text.len() - QUOTED_MAX / 2)..];
    let end = end.find('\n').map_or(end, |line| &end[line + 1..]);
    let left_out = text.len() - begin.len() - end.len();
    format!("{begin}\n[{} bytes are left out here]\n{end}", format_count(left_out as u64))
}

/// A Markdown table with aligned columns.
fn render_markdown_table(rows: &[Vec<String>], align: &[Alignment]) -> String {
    let rows: Vec<Vec<String>> = rows
        .iter()
        .map(|row| row.iter().map(|cell| clean_to_one_line(cell).replace('|', "\\|")).collect())
        .collect();
    let widths = measure_columns(&rows);
    let right = |index: usize| align.get(index) == Some(&Alignment::Right);
    let mut lines: Vec<String> = rows
        .iter()
        .map(|row| {
            let cells: Vec<String> = row
                .iter()
                .enumerate()
                .map(|(index, cell)| match right(index) {
                    true => pad_left(cell, widths[index]),
                    false => pad_right(cell, widths[index]),
                })
                .collect();
            format!("| {} |", cells.join(" | "))
        })
        .collect();
    let rules: Vec<String> = widths
        .iter()
        .enumerate()
        .map(|(index, width)| match right(index) {
            true => format!("{}:", "-".repeat(width + 1)),
            false => "-".repeat(width + 2),
        })
        .collect();
    lines.insert(1, format!("|{}|", rules.join("|")));
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use jiff::tz::TimeZone;
    use serde_json::json;

    use super::render_report;
    use crate::testing::{Scene, piece, registry};

    #[test]
    fn a_remedied_run() {
        let scene = Scene::remedied();
        insta::assert_snapshot!(render_report(&scene.view(), &|blob| scene.text(blob), &TimeZone::UTC), @"
        # iterator: completed

        - Run: `r1` of `.agent/iterator`
        - State: completed
        - Proof: `cargo test` passes (2nd try), `git status --porcelain` passes
        - Reason: `closure.fix` completed the workflow
        - Started: 2026-11-21 12:00:00, took 7.9 s
        - Folder: /work/project, in place, with uncommitted changes at the start
        - Agent: scripted, model stand-in-1

        ## Summary

        ```text
        All is
        well.
        ```

        ## Changed files

        - src/a.txt
        - src/b.txt

        ## Visits

        | Step                                 | Visit | Outcome                    | Calls | Tokens |  Cost |  Time | Files |
        |--------------------------------------|------:|----------------------------|------:|-------:|------:|------:|------:|
        | initial.fix                          |     1 | next → continuation.fix    |     1 |  1,500 | $0.01 | 1.2 s |     1 |
        | continuation.fix                     |     1 | handoff → closure.fix      |     2 |  3,000 | $0.02 | 2.4 s |     2 |
        | closure.fix                          |     1 | closing → continuation.fix |     1 |  1,500 | $0.01 | 1.4 s |     0 |
        | continuation.fix (retry after tests) |     2 | handoff → closure.fix      |     1 |  1,510 | $0.01 | 1.3 s |     1 |
        | closure.fix                          |     2 | closing → done             |     1 |  1,500 | $0.01 | 1.6 s |     0 |

        ## Validators

        | Command                | Step           | Result         |  Time |
        |------------------------|----------------|----------------|------:|
        | cargo test             | closure.fix #1 | failed: exit 1 | 0.2 s |
        | cargo test             | closure.fix #2 | passed         | 0.2 s |
        | git status --porcelain | closure.fix #2 | passed         | 0.2 s |

        ### `cargo test` failed after closure.fix #1: exit 1

        standard output:

        ````text
        running 3 tests
        test a ... FAILED
        ```
        ````

        ## Errors

        - 2026-11-21 12:00:05  continuation.fix #2: rate limit: slow down

        ## Handoff values

        - initial.fix.approach: small steps

        ## Totals

        - Calls: 6: 4 work, 1 repair, 1 retry
        - Tokens: 7,210 in, 1,800 out
        - Cost: $0.07, plus an unknown amount for 1 call that was cut off or failed
        - Iterations: 5 of at most 8

        ## More

        - `cuegate diff r1`: what changed
        - `cuegate log r1`: what happened, step by step
        ");
    }

    #[test]
    fn the_middle_of_a_long_text_is_left_out() {
        let text: String = (0..100_000).map(|line| format!("ü {line}\n")).collect();
        let kept = super::ends_of(&text);
        assert!(kept.len() <= super::QUOTED_MAX + 100, "{}", kept.len());
        assert!(kept.starts_with("ü 0\nü 1\n") && kept.ends_with("ü 99999\n"));
        assert_eq!(super::ends_of("short"), "short");
    }

    #[test]
    fn missing_texts_are_named_by_digest() {
        let mut scene = Scene::start(registry());
        scene
            .says(json!({"action": "next"}))
            .says(json!({"action": "handoff"}))
            .says(json!({"action": "closing"}))
            .exits(2, "lost")
            .happens(cuegate_engine::Completion::Cancelled { seen: None });
        let page = render_report(&scene.view(), &|_| None, &TimeZone::UTC);
        assert!(page.contains("(4 bytes, `"), "{page}");
    }

    #[test]
    fn a_run_without_finished_visits() {
        let scene = Scene::start(piece());
        insta::assert_snapshot!(render_report(&scene.view(), &|_| None, &TimeZone::UTC), @"
        # review: running

        - Run: `r1` of `.agent/review`
        - State: running
        - Started: 2026-11-21 12:00:00, took 0 ms
        - Folder: /work/project, in place, with uncommitted changes at the start
        - Agent: scripted

        ## Changed files

        None.

        ## Visits

        None finished yet.

        ## Totals

        - Calls: none
        - Tokens: 0 in, 0 out
        - Cost: nothing
        - Iterations: 1 of at most 12

        ## More

        - `cuegate diff r1`: what changed
        - `cuegate log r1`: what happened, step by step
        ");
    }
}
