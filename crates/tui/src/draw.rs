//! Draws the screens and what is in front of them.

use cuegate_runner::now_ms;
use ratatui::{
    Frame,
    layout::{Constraint, Layout, Rect},
    style::{Modifier, Style},
    text::{Line, Span as Piece},
    widgets::{Block, Clear, Paragraph, Wrap},
};

use crate::{
    app::{App, Front},
    list_screen, run_screen,
};

/// The smallest terminal.
const SMALLEST: (u16, u16) = (40, 10);

const HELP: [(&str, &str); 13] = [
    ("↑ ↓ j k", "move; PgUp, PgDn, g, G: further"),
    ("Enter", "open a run; in a run: all of a visit"),
    ("Esc b", "back to the list"),
    ("f", "filter: all, running, waiting, ended"),
    ("a", "answer the question of the run"),
    ("p  r", "pause; resume"),
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
            Some(_) => run_screen::draw(self, frame, body, now_ms),
            None => list_screen::draw(self, frame, body, now_ms),
        };
        let foot_text = match self.note() {
            Some(note) => Line::styled(note.to_owned(), Style::new().add_modifier(Modifier::BOLD)),
            None => Line::styled(keys, Style::new().add_modifier(Modifier::DIM)),
        };
        frame.render_widget(foot_text, foot);
        self.draw_front(frame, area);
    }

    fn draw_front(&mut self, frame: &mut Frame<'_>, area: Rect) {
        match &self.front {
            Front::Nothing => {}
            Front::Help => {
                let lines = HELP.iter().map(|(keys, about)| {
                    Line::from(vec![
                        Piece::styled(format!(" {keys:<10}"), Style::new().bold()),
                        Piece::raw(*about),
                    ])
                });
                let lines: Vec<Line<'_>> = lines.collect();
                window(frame, area, "Keys", lines, 58);
            }
            Front::Cancel => {
                let lines = vec![
                    Line::raw("Cancel this run? It cannot be resumed."),
                    Line::raw(""),
                    Line::raw("y: cancel   any other key: go back"),
                ];
                window(frame, area, "Cancel", lines, 46);
            }
            Front::Answer(input) => {
                let question = self.run.as_ref().and_then(|run| run.view.reason.clone()).unwrap_or_default();
                let mut lines: Vec<Line<'_>> =
                    question.lines().map(|line| Line::raw(cuegate_view::clean_lines(line))).collect();
                lines.push(Line::raw(""));
                let (before, after) = input.parts();
                let mut rest = after.chars();
                let at: String =
                    rest.next().filter(|c| *c != '\n').map_or_else(|| " ".to_owned(), String::from);
                let mut typed =
                    before.split('\n').map(|line| vec![Piece::raw(line.to_owned())]).collect::<Vec<_>>();
                if let Some(last) = typed.last_mut() {
                    last.push(Piece::styled(at, Style::new().add_modifier(Modifier::REVERSED)));
                    last.push(Piece::raw(rest.as_str().to_owned()));
                }
                lines.extend(typed.into_iter().map(Line::from));
                window(frame, area, "Answer: Enter sends, Ctrl-J is a new line, Esc leaves", lines, 100);
            }
            Front::Text { title, lines, top } => {
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
fn window(frame: &mut Frame<'_>, area: Rect, title: &str, lines: Vec<Line<'_>>, width: u16) {
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
