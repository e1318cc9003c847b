//! The list of runs.

use cuegate_view::{RunRow, clean_to_one_line, format_money, format_time_ago};
use ratatui::{
    Frame,
    layout::{Constraint, Layout, Rect},
    style::{Color, Modifier, Style},
    text::{Line, Span as Piece},
    widgets::{Paragraph, Row, Table, TableState},
};
use serde_json::Value;

use crate::app::App;

/// Draws the list; returns the keys.
pub(crate) fn draw_list(app: &mut App, frame: &mut Frame<'_>, area: Rect, now_ms: i64) -> String {
    let [head, body] = Layout::vertical([Constraint::Length(1), Constraint::Min(1)]).areas(area);
    app.page = usize::from(body.height.saturating_sub(1));
    let rows = app.visible();
    let waits = app.rows.iter().filter(|row| row["state"] == "suspended" || row["live"] == false).count();
    let mut title = format!(
        "{}: {} of {} runs ({})",
        app.project.name(),
        rows.len(),
        app.rows.len(),
        app.filter.as_str()
    );
    if waits > 0 {
        title.push_str(&format!(", {waits} waiting"));
    }
    frame.render_widget(Line::styled(title, Style::new().add_modifier(Modifier::BOLD)), head);
    if rows.is_empty() {
        let text = match app.rows.is_empty() {
            true => "This project has no runs. `cuegate run PATH` starts one.",
            false => "No such runs. Press f for others.",
        };
        frame.render_widget(Paragraph::new(text), body);
        return list_key_hints(area.width);
    }
    let columns = columns_that_fit(area.width);
    let lines = rows.iter().map(|row| build_run_row(row, now_ms, &columns));
    let widths = columns.iter().map(|column| column.width());
    let names = columns.iter().map(|column| column.title());
    let header = Row::new(names).style(Style::new().add_modifier(Modifier::DIM));
    let chosen = Style::new().add_modifier(Modifier::REVERSED);
    let table = Table::new(lines, widths).header(header).row_highlight_style(chosen);
    let mut state = TableState::default().with_selected(app.selected);
    frame.render_stateful_widget(table, body, &mut state);
    list_key_hints(area.width)
}

/// A column of the list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Column {
    State,
    Run,
    Flow,
    Steps,
    Cost,
    Started,
    Task,
}

impl Column {
    fn title(self) -> &'static str {
        match self {
            Column::State => "STATE",
            Column::Run => "RUN",
            Column::Flow => "WORKFLOW",
            Column::Steps => "STEPS",
            Column::Cost => "COST",
            Column::Started => "STARTED",
            Column::Task => "TASK",
        }
    }

    fn width(self) -> Constraint {
        match self {
            Column::State => Constraint::Length(23),
            Column::Run | Column::Cost => Constraint::Length(9),
            Column::Flow => Constraint::Length(20),
            Column::Steps => Constraint::Length(6),
            Column::Started => Constraint::Length(11),
            Column::Task => Constraint::Min(10),
        }
    }
}

/// The columns for a width: a person knows a run by its state and its task, so the others go first.
fn columns_that_fit(width: u16) -> Vec<Column> {
    use Column::{Cost, Flow, Run, Started, State, Steps, Task};
    match width {
        0..48 => vec![State, Task],
        48..76 => vec![State, Run, Task],
        76..100 => vec![State, Run, Started, Task],
        _ => vec![State, Run, Flow, Steps, Cost, Started, Task],
    }
}

fn list_key_hints(width: u16) -> String {
    match width >= 70 {
        true => "Enter open  f filter  ↑↓ move  ? help  q quit".to_owned(),
        false => "Enter open  f filter  ? help  q quit".to_owned(),
    }
}

fn build_run_row(row: &Value, now_ms: i64, columns: &[Column]) -> Row<'static> {
    let text = |key: &str| clean_to_one_line(row[key].as_str().unwrap_or_default());
    let state = row["state"].as_str().unwrap_or_default();
    let (sign, colour) = match state {
        "running" if row["live"] == false => ("†", Color::Red),
        "running" => ("▶", Color::Cyan),
        "suspended" => ("‖", Color::Yellow),
        "completed" => ("✓", Color::Green),
        "cancelled" => ("⊘", Color::Reset),
        _ => ("✗", Color::Red),
    };
    let words = match row["live"] == false {
        true => "process died".to_owned(),
        false => text("standing"),
    };
    let state = Piece::styled(format!("{sign} {words}"), Style::new().fg(colour));
    let started = row["started_at"].as_str().and_then(cuegate_view::parse_rfc3339);
    let started = started.map_or_else(|| "never".to_owned(), |at| format_time_ago(now_ms, at));
    let known = serde_json::from_value::<RunRow>(row.clone()).map(|row| row.describe_subject());
    let subject = known.unwrap_or_else(|_| text("task"));
    let cell = |column: &Column| -> Line<'static> {
        match column {
            Column::State => state.clone().into(),
            Column::Run => text("run").into(),
            Column::Flow => text("flow").into(),
            Column::Steps => row["steps"].to_string().into(),
            Column::Cost => match row["cost_usd"].as_f64() {
                Some(usd) => format_money(Some(usd)).into(),
                None => "–".into(),
            },
            Column::Started => started.clone().into(),
            // Without a task the workflow is what a person knows it by.
            Column::Task if subject.is_empty() => text("flow").into(),
            Column::Task => subject.clone().into(),
        }
    };
    Row::new(columns.iter().map(cell).collect::<Vec<_>>())
}
