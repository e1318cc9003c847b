//! Draws the screens and the window in front of them.

use cuegate_runner::now_ms;
use ratatui::{
    Frame,
    layout::{Constraint, Layout, Rect},
    style::{Modifier, Style},
    text::{Line, Span as Piece},
    widgets::{Block, Clear, Paragraph, Wrap},
};

use crate::{
    app::{App, Overlay},
    input::Input,
    list_screen, run_screen,
};

/// The smallest terminal.
const SMALLEST: (u16, u16) = (40, 10);

const HELP: [(&str, &str); 14] = [
    ("↑ ↓ j k", "move; PgUp, PgDn, g, G: further"),
    ("Enter", "open a run; in a run: all of a visit"),
    ("Esc b", "back to the list"),
    ("f", "filter: all, running, waiting, ended"),
    ("a", "answer the question of the run"),
    ("p  r", "pause; resume"),
    ("t  m  u", "retry; apply (merge) the changes; undo them"),
    ("c", "cancel; it cannot be resumed"),
    ("v", "the changes of the run"),
    ("R", "its report"),
    ("o", "open it in the browser (`cuegate serve`)"),
    ("q Ctrl-C", "leave; runs go on"),
    ("▶ ✓ ✗ –", "in progress, done, failed, cut off"),
    ("‖ †", "waits; its process died"),
];

impl App {
    /// Draws everything.
    pub fn draw(&mut self, frame: &mut Frame<'_>) {
        self.draw_at(frame, now_ms());
    }

    /// As [`App::draw`], at a time in milliseconds since 1970.
    pub fn draw_at(&mut self, frame: &mut Frame<'_>, now_ms: i64) {
        let area = frame.area();
        if area.width < SMALLEST.0 || area.height < SMALLEST.1 {
            let text = format!("The terminal is too small: {}×{} is needed.", SMALLEST.0, SMALLEST.1);
            frame.render_widget(Paragraph::new(text).wrap(Wrap { trim: true }), area);
            return;
        }
        let [body, foot] = Layout::vertical([Constraint::Min(1), Constraint::Length(1)]).areas(area);
        let keys = match &self.run {
            Some(_) => run_screen::draw_run(self, frame, body, now_ms),
            None => list_screen::draw_list(self, frame, body, now_ms),
        };
        let foot_text = match self.note() {
            Some(note) => Line::styled(note.to_owned(), Style::new().add_modifier(Modifier::BOLD)),
            None => Line::styled(keys, Style::new().add_modifier(Modifier::DIM)),
        };
        frame.render_widget(foot_text, foot);
        self.draw_overlay(frame, area);
    }

    fn draw_overlay(&mut self, frame: &mut Frame<'_>, area: Rect) {
        match &self.overlay {
            Overlay::Nothing => {}
            Overlay::Help => {
                let lines = HELP.iter().map(|(keys, about)| {
                    Line::from(vec![
                        Piece::styled(format!(" {keys:<10}"), Style::new().bold()),
                        Piece::raw(*about),
                    ])
                });
                let lines: Vec<Line<'_>> = lines.collect();
                draw_window(frame, area, "Keys", lines, 58);
            }
            Overlay::Confirm { question, .. } => {
                let lines = vec![
                    Line::raw(question.as_str()),
                    Line::raw(""),
                    Line::raw("y: yes   any other key: go back"),
                ];
                draw_window(frame, area, "Really?", lines, 58);
            }
            Overlay::Answer(input) => {
                let question = self.run.as_ref().and_then(|run| run.view.reason.clone()).unwrap_or_default();
                draw_answer(input, &cuegate_view::clean_lines(&question), frame, area);
            }
            Overlay::Text { title, lines, top } => {
                self.page = usize::from(area.height.saturating_sub(2));
                let from = (*top).min(lines.len());
                let shown: Vec<Line<'_>> =
                    lines[from..].iter().take(self.page).map(|line| patch_line(line)).collect();
                let title =
                    format!(" {title}: {}–{} of {} (Esc closes) ", from + 1, from + shown.len(), lines.len());
                frame.render_widget(Clear, area);
                frame.render_widget(Paragraph::new(shown).block(Block::bordered().title(title)), area);
            }
        }
    }
}

/// The question above, and what is typed below it, which is always visible.
fn draw_answer(input: &Input, question: &str, frame: &mut Frame<'_>, area: Rect) {
    let width = area.width.saturating_sub(2).min(100);
    let inner = usize::from(width.saturating_sub(2)).max(1);
    let (before, after) = input.parts();
    // Broken at the width, not at words, so that the number of rows is known.
    let mut rows: Vec<String> = vec![String::new()];
    let mut cursor = (0, 0);
    let letters = before.chars().chain(std::iter::once('\u{0}')).chain(after.chars());
    for letter in letters {
        let last = rows.len() - 1;
        let used = cuegate_view::count_columns(&rows[last]);
        if letter == '\u{0}' {
            cursor = (last, used);
        } else if letter == '\n' {
            rows.push(String::new());
        } else if used + cuegate_view::count_columns(&letter.to_string()) > inner.saturating_sub(1) {
            rows.push(letter.to_string());
        } else {
            rows[last].push(letter);
        }
    }
    let typed_rows = u16::try_from(rows.len()).unwrap_or(u16::MAX).clamp(1, (area.height / 3).max(1));
    let first = cursor.0.saturating_sub(usize::from(typed_rows) - 1);
    let height = (area.height * 3 / 4).max(typed_rows + 4).min(area.height);
    let at =
        Rect { x: area.x + (area.width - width) / 2, y: area.y + (area.height - height) / 2, width, height };
    frame.render_widget(Clear, at);
    let [above, below] = Layout::vertical([Constraint::Min(1), Constraint::Length(typed_rows + 2)]).areas(at);
    let asked = Paragraph::new(question).wrap(Wrap { trim: false });
    frame.render_widget(asked.block(Block::bordered().title(" The run asks ")), above);
    let shown: Vec<Line<'_>> =
        rows.iter().skip(first).take(usize::from(typed_rows)).map(|row| Line::raw(row.as_str())).collect();
    let title = " Answer: Enter sends, Ctrl-J: new line, Esc leaves ";
    frame.render_widget(Paragraph::new(shown).block(Block::bordered().title(title)), below);
    let column = below.x + 1 + u16::try_from(cursor.1).unwrap_or(0);
    let row = below.y + 1 + u16::try_from(cursor.0 - first).unwrap_or(0);
    frame.set_cursor_position((column.min(below.right().saturating_sub(2)), row));
}

/// A line of a text; those of a patch are coloured besides their signs.
fn patch_line(line: &str) -> Line<'_> {
    use ratatui::style::Color;
    let style = match line.as_bytes().first() {
        Some(b'+') => Style::new().fg(Color::Green),
        Some(b'-') => Style::new().fg(Color::Red),
        Some(b'@') => Style::new().fg(Color::Cyan),
        _ => Style::new(),
    };
    Line::styled(line, style)
}

/// A window in the middle.
fn draw_window(frame: &mut Frame<'_>, area: Rect, title: &str, lines: Vec<Line<'_>>, width: u16) {
    let width = width.min(area.width.saturating_sub(2));
    let inner = usize::from(width.saturating_sub(2)).max(1);
    let rows: usize = lines.iter().map(|line| line.width().div_ceil(inner).max(1)).sum();
    let height = u16::try_from(rows + 2).unwrap_or(u16::MAX).min(area.height);
    let at =
        Rect { x: area.x + (area.width - width) / 2, y: area.y + (area.height - height) / 2, width, height };
    // What is typed is at the end, and stays visible.
    let hidden = u16::try_from((rows + 2).saturating_sub(usize::from(height))).unwrap_or(0);
    frame.render_widget(Clear, at);
    let text = Paragraph::new(lines).wrap(Wrap { trim: false }).scroll((hidden, 0));
    frame.render_widget(text.block(Block::bordered().title(format!(" {title} "))), at);
}
