//! One run: its path, what is in progress, and its spending.

use cuegate_engine::{Event, WaitKind};
use cuegate_observe::{Observer, RunningCommand};
use cuegate_view::{
    RunState, RunView, Span, SpanKind, StampedRecord, clean_lines, clean_to_one_line, describe_spending,
    format_duration, list_verdict_lines, target_word,
};
use ratatui::{
    Frame,
    layout::{Constraint, Layout, Rect},
    style::{Color, Modifier, Style},
    text::{Line, Span as Piece},
    widgets::{Block, List, ListItem, ListState, Paragraph, Wrap},
};

use crate::{
    app::{App, OneRun},
    words::{
        describe_activity, format_elapsed_time, format_span_duration, run_state, sign_of_state, span_line,
        visit_name,
    },
};

/// The narrowest terminal with the path beside what is in progress.
const SIDE_BY_SIDE: u16 = 90;
/// The narrowest pane of a command in progress.
const PANE: u16 = 34;

/// Draws the run; returns the keys.
pub(crate) fn draw_run(app: &mut App, frame: &mut Frame<'_>, area: Rect, now_ms: i64) -> String {
    let Some(run) = &app.run else { return String::new() };
    let question = open_question_of_run(run);
    let asks = u16::from(question.is_some());
    let ask_height = if asks == 1 { (area.height / 4).clamp(3, 8) } else { 0 };
    let verdict = describe_verdict(run);
    let head_height = 3 + u16::try_from(verdict.len()).unwrap_or(0).min(area.height / 4);
    let rows = [Constraint::Length(head_height), Constraint::Length(ask_height), Constraint::Min(3)];
    let [head, ask, body] = Layout::vertical(rows).areas(area);
    draw_head(run, &verdict, frame, head, now_ms);
    if let Some(question) = question {
        let title = " The run asks (a answers) ";
        let block = Block::bordered().title(title).border_style(Style::new().fg(Color::Yellow));
        frame.render_widget(Paragraph::new(question).wrap(Wrap { trim: false }).block(block), ask);
    }
    let (path, now) = match area.width >= SIDE_BY_SIDE {
        true => {
            let [path, now] =
                Layout::horizontal([Constraint::Percentage(42), Constraint::Min(10)]).areas(body);
            (path, now)
        }
        false => {
            let [path, now] = Layout::vertical([Constraint::Percentage(50), Constraint::Min(4)]).areas(body);
            (path, now)
        }
    };
    app.page = usize::from(path.height.saturating_sub(2));
    draw_path(run, frame, path, now_ms);
    match run.chosen.is_none() && !run.working.is_empty() {
        true => draw_working(&run.working, frame, now, now_ms),
        false => draw_visit(run, frame, now, now_ms),
    }
    let state = &run.view.state;
    let mut keys = Vec::new();
    // What is next comes first: on a narrow screen the rest is cut off.
    keys.extend(can_retry(&run.view).then_some("t retry"));
    keys.extend(can_apply(&run.view).then_some("m apply"));
    keys.extend(["Enter all", "v changes", "R report"]);
    keys.extend(can_undo(&run.view).then_some("u undo"));
    match state {
        RunState::Running => keys.extend(["p pause", "c cancel"]),
        RunState::Suspended(waiting) if waiting.kind == WaitKind::Person => {
            keys.insert(0, "a answer");
            keys.push("c cancel");
        }
        RunState::Suspended(_) => {
            keys.insert(0, "r resume");
            keys.push("c cancel");
        }
        RunState::Ended(_) => {}
    }
    keys.extend(["? help", "q quit"]);
    keys.join("  ")
}

/// Whether a command is among those that are next.
fn is_next(view: &RunView, command: &str) -> bool {
    let start = format!("cuegate {command} ");
    view.suggest_next_commands().iter().any(|next| next.starts_with(&start))
}

/// Whether the run can go on from where it failed.
pub(crate) fn can_retry(view: &RunView) -> bool {
    is_next(view, "retry")
}

/// Whether the changes of the run are in its worktree alone, and nobody works on it.
pub(crate) fn can_apply(view: &RunView) -> bool {
    view.state != RunState::Running && is_next(view, "apply")
}

/// Whether the run changed the user's own working tree, and nobody works on it.
pub(crate) fn can_undo(view: &RunView) -> bool {
    view.state != RunState::Running && !view.place.owned && !view.changed_files.is_empty()
}

/// What a reviewer has to know of a run at rest, without the question that stands below it.
fn describe_verdict(run: &OneRun) -> Vec<String> {
    match &run.view.state {
        RunState::Running => Vec::new(),
        _ if open_question_of_run(run).is_some() => Vec::new(),
        _ => list_verdict_lines(&run.view),
    }
}

fn open_question_of_run(run: &OneRun) -> Option<String> {
    let RunState::Suspended(waiting) = &run.view.state else { return None };
    let is_open = waiting.kind == WaitKind::Person && !run.view.is_answered;
    is_open.then(|| clean_lines(&waiting.detail))
}

fn draw_head(run: &OneRun, verdict: &[String], frame: &mut Frame<'_>, area: Rect, now_ms: i64) {
    let view = &run.view;
    let (state, style) = run_state(view);
    let mut first = vec![
        Piece::styled(clean_to_one_line(&view.flow), Style::new().add_modifier(Modifier::BOLD)),
        Piece::raw(format!(" {}  ", view.run)),
        Piece::styled(state, style),
    ];
    if view.started_ms.is_some() {
        first.push(Piece::raw(format!("  {}", format_duration(view.elapsed_until(now_ms)))));
    }
    let progress = format!(
        "iteration {} of at most {}, {}",
        view.iterations,
        view.iterations_max,
        describe_spending(view)
    );
    let subject = clean_to_one_line(&view.subject().unwrap_or_default());
    let dim = Style::new().add_modifier(Modifier::DIM);
    let mut lines = vec![Line::from(first), Line::styled(subject, dim), Line::raw(progress)];
    lines.extend(verdict.iter().map(|line| Line::raw(line.as_str())));
    frame.render_widget(Paragraph::new(lines), area);
}

fn draw_path(run: &OneRun, frame: &mut Frame<'_>, area: Rect, now_ms: i64) {
    let spans = run.reader.spans();
    let visits = spans.visits();
    let rows = usize::from(area.height.saturating_sub(2)).max(1);
    let chosen = run.chosen.unwrap_or(visits.saturating_sub(1));
    // Only the visible visits are made, however many there are.
    let first = chosen.saturating_sub(rows / 2).min(visits.saturating_sub(rows));
    let items: Vec<ListItem<'_>> = (first..visits.min(first + rows))
        .filter_map(|index| spans.visit(index))
        .map(|visit| {
            let (mark, style) = sign_of_state(visit.state);
            let mut text = format!(
                " {} #{}  {}",
                clean_to_one_line(&visit_name(visit)),
                visit.visit,
                format_span_duration(visit, now_ms)
            );
            if let Some(outcome) = &visit.outcome {
                text.push_str(&format!(" → {}", clean_to_one_line(outcome)));
            }
            ListItem::new(Line::from(vec![Piece::styled(mark, style), Piece::raw(text)]))
        })
        .collect();
    let title = format!(" Path: {} of {visits} ", if visits == 0 { 0 } else { chosen + 1 });
    let list = List::new(items)
        .block(Block::bordered().title(title))
        .highlight_style(Style::new().add_modifier(Modifier::REVERSED));
    let mut state = ListState::default().with_selected((visits > 0).then(|| chosen - first));
    frame.render_stateful_widget(list, area, &mut state);
}

/// What is in progress: members side by side if there is room, else one below the other.
fn draw_working(working: &[RunningCommand], frame: &mut Frame<'_>, area: Rect, now_ms: i64) {
    let count = u16::try_from(working.len()).unwrap_or(u16::MAX).max(1);
    let columns = (area.width / PANE).clamp(1, count);
    let rows = count.div_ceil(columns).min((area.height / 3).max(1));
    let fits = usize::from(rows) * usize::from(columns);
    // What does not fit is named on the last line.
    let hidden = working.len().saturating_sub(fits);
    let [area, rest] =
        Layout::vertical([Constraint::Min(1), Constraint::Length(u16::from(hidden > 0))]).areas(area);
    if hidden > 0 {
        let names: Vec<String> = working[fits..].iter().map(|one| clean_to_one_line(&one.name)).collect();
        frame.render_widget(Line::raw(format!("and {hidden} more: {}", names.join(", "))), rest);
    }
    let bands = Layout::vertical(vec![Constraint::Ratio(1, u32::from(rows)); usize::from(rows)]).split(area);
    let mut left = working.iter();
    for band in bands.iter() {
        let cells = Layout::horizontal(vec![Constraint::Ratio(1, u32::from(columns)); usize::from(columns)])
            .split(*band);
        for cell in cells.iter() {
            let Some(one) = left.next() else { return };
            draw_one(one, frame, *cell, now_ms);
        }
    }
}

fn draw_one(one: &RunningCommand, frame: &mut Frame<'_>, area: Rect, now_ms: i64) {
    let detail = if one.is_ask { format!(" ({})", one.detail) } else { String::new() };
    let title =
        format!(" ▶ {}{detail} {} ", clean_to_one_line(&one.name), format_elapsed_time(one.from_ms, now_ms));
    let lines: Vec<String> = match one.is_ask {
        true => one.activities.iter().filter_map(|done| describe_activity(&done.activity)).collect(),
        false => one.output.iter().map(|line| clean_lines(line)).collect(),
    };
    let rows = usize::from(area.height.saturating_sub(2));
    let first = lines.len().saturating_sub(rows);
    let none = if one.is_ask { "no activity yet" } else { "no output yet" };
    let lines: Vec<Line<'_>> = match lines.is_empty() {
        true => vec![Line::styled(none, Style::new().add_modifier(Modifier::DIM))],
        false => lines[first..].iter().map(|line| Line::raw(line.as_str())).collect(),
    };
    let block = Block::bordered().title(title).border_style(Style::new().fg(Color::Cyan));
    frame.render_widget(Paragraph::new(lines).block(block), area);
}

/// The chosen visit, or the newest one.
fn find_chosen_visit(run: &OneRun) -> Option<(&Span, Vec<&Span>)> {
    let spans = run.reader.spans();
    let index = run.chosen.unwrap_or(spans.visits().saturating_sub(1));
    let visit = spans.visit(index)?;
    let inside = spans.page(index, 1).filter(|span| span.id != visit.id).collect();
    Some((visit, inside))
}

fn draw_visit(run: &OneRun, frame: &mut Frame<'_>, area: Rect, now_ms: i64) {
    let Some((visit, inside)) = find_chosen_visit(run) else {
        frame.render_widget(Block::bordered().title(" Visit "), area);
        return;
    };
    let mut lines = Vec::new();
    for span in inside {
        let (mark, style) = sign_of_state(span.state);
        let indent = if span.kind == SpanKind::Tool { "  " } else { "" };
        let line = vec![
            Piece::raw(indent),
            Piece::styled(mark, style),
            Piece::raw(format!(" {}", clean_to_one_line(&span_line(span, now_ms)))),
        ];
        lines.push(Line::from(line));
    }
    if let Some(target) = &visit.target {
        lines.push(Line::raw(format!("→ {}", clean_to_one_line(target_word(target)))));
    }
    let title = format!(" {} #{} (Enter shows all) ", clean_to_one_line(&visit.name), visit.visit);
    frame.render_widget(
        Paragraph::new(lines).wrap(Wrap { trim: false }).block(Block::bordered().title(title)),
        area,
    );
}

/// Prompts, answers and outputs of the chosen visit.
pub(crate) fn visit_text(run: &OneRun, observer: &Observer) -> Vec<String> {
    let Some((visit, _)) = find_chosen_visit(run) else {
        return vec!["the run has not entered a step yet".to_owned()];
    };
    let last = visit.to_seq.unwrap_or(u64::MAX);
    let mut lines: Vec<String> = Vec::new();
    let mut put = |title: String, text: Option<String>| {
        lines.push(format!("── {title}"));
        lines.extend(text.unwrap_or_default().lines().map(|line| format!("  {}", clean_lines(line))));
        lines.push(String::new());
    };
    let text_of = |blob: &_| observer.text(run.reader.id(), blob);
    let mut show = |record: &StampedRecord| {
        for event in &record.events {
            match event {
                Event::Answered { step, kind, output, text, prompt, .. } if record.seq > visit.from_seq => {
                    put(format!("prompt of {step} ({})", kind.as_str()), prompt.as_ref().and_then(text_of));
                    let answer = output.as_ref().or(text.as_ref()).and_then(text_of);
                    put(format!("answer of {step}"), answer.map(|answer| indent_json(&answer)));
                }
                Event::CommandFinished { validator, ended, stdout, stderr, .. }
                    if record.seq > visit.from_seq =>
                {
                    let output = [stdout, stderr].into_iter().filter_map(text_of).collect::<String>();
                    put(format!("validator {validator}: {ended}"), Some(output));
                }
                Event::Faulted { step, class, message, .. } => {
                    put(format!("{step}: {}", class.as_str()), Some(message.clone()));
                }
                Event::AnswerRejected { step, why, .. } => {
                    put(format!("answer of {step} rejected"), Some(why.clone()))
                }
                Event::PersonAsked { question, .. } => {
                    put("question to a person".to_owned(), text_of(question))
                }
                Event::PersonAnswered { text, .. } => put("answer of a person".to_owned(), text_of(text)),
                Event::ReportWritten { name, content, .. } => put(format!("report {name}"), text_of(content)),
                _ => {}
            }
        }
    };
    let read = run.reader.read_records(observer, visit.from_seq, |record| {
        if record.seq <= last {
            show(record);
        }
        record.seq < last
    });
    if let Err(error) = read {
        lines.push(format!("the run cannot be read: {error}"));
    }
    if lines.is_empty() {
        lines.push("nothing has ended in this visit yet".to_owned());
    }
    lines
}

fn indent_json(text: &str) -> String {
    let parsed = serde_json::from_str::<serde_json::Value>(text).ok();
    parsed.and_then(|value| serde_json::to_string_pretty(&value).ok()).unwrap_or_else(|| text.to_owned())
}
