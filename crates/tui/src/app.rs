//! The state of the screen, and how keys change it.

use std::{
    sync::{Arc, mpsc},
    time::Instant,
};

use cuegate_engine::WaitKind;
use cuegate_journal::RunId;
use cuegate_observe::{Control, Problem, Project, RunReader, RunningCommand};
use cuegate_view::{Liveness, RunState, RunView};
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use serde_json::Value;

use crate::{
    input::{Input, KeyEffect},
    run_screen,
};

/// How long a note is shown, in seconds.
const NOTE_SECS: u64 = 8;
/// How many lines of a running validator are kept.
const OUTPUT_LINES: usize = 40;

/// Which runs the list shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Filter {
    All,
    Active,
    Waiting,
    Ended,
}

impl Filter {
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Filter::All => "all",
            Filter::Active => "running",
            Filter::Waiting => "waiting",
            Filter::Ended => "ended",
        }
    }

    fn next(self) -> Filter {
        match self {
            Filter::All => Filter::Active,
            Filter::Active => Filter::Waiting,
            Filter::Waiting => Filter::Ended,
            Filter::Ended => Filter::All,
        }
    }

    fn shows(self, row: &Value) -> bool {
        let state = row["state"].as_str().unwrap_or_default();
        let died = row["live"] == false;
        match self {
            Filter::All => true,
            Filter::Active => state == "running" && !died,
            Filter::Waiting => state == "suspended" || died,
            Filter::Ended => !matches!(state, "running" | "suspended"),
        }
    }
}

/// A run on the screen.
pub(crate) struct OneRun {
    pub(crate) reader: RunReader,
    pub(crate) view: RunView,
    pub(crate) working: Vec<RunningCommand>,
    /// The chosen visit; `None`: the newest one.
    pub(crate) chosen: Option<usize>,
}

/// The window in front of the screen.
pub(crate) enum Overlay {
    Nothing,
    Help,
    /// An answer is written.
    Answer(Input),
    /// What changes files, or cannot be taken back, is confirmed.
    Confirm {
        question: String,
        /// The text at the bottom of the screen until it is done.
        doing: &'static str,
        control: Control,
    },
    /// A text, and its first visible line.
    Text {
        title: String,
        lines: Vec<String>,
        top: usize,
    },
}

/// The state of the terminal program.
pub struct App {
    pub(crate) project: Arc<dyn Project>,
    pub(crate) rows: Vec<Value>,
    pub(crate) filter: Filter,
    pub(crate) selected: usize,
    pub(crate) run: Option<OneRun>,
    pub(crate) overlay: Overlay,
    note: Option<(String, Instant)>,
    notes: (mpsc::Sender<String>, mpsc::Receiver<String>),
    /// Whether there is a list to go back to.
    has_list: bool,
    pub(crate) ended: bool,
    /// How many lines a page of the last drawn list or text has.
    pub(crate) page: usize,
}

impl App {
    /// Shows a run, or the list of runs.
    ///
    /// # Errors
    /// When the journal cannot be read.
    pub fn new(project: Arc<dyn Project>, run: Option<&RunId>) -> Result<App, Problem> {
        let mut app = App {
            project,
            rows: Vec::new(),
            filter: Filter::All,
            selected: 0,
            run: None,
            overlay: Overlay::Nothing,
            note: None,
            notes: mpsc::channel(),
            has_list: run.is_none(),
            ended: false,
            page: 10,
        };
        if let Some(run) = run {
            app.open(run)?;
        }
        app.refresh()?;
        Ok(app)
    }

    /// The run on the screen.
    pub fn shown(&self) -> Option<&RunId> {
        self.run.as_ref().map(|run| run.reader.id())
    }

    /// Whether the person wants to leave.
    pub fn is_ended(&self) -> bool {
        self.ended
    }

    /// Reads what is new.
    ///
    /// # Errors
    /// When the journal cannot be read.
    pub fn refresh(&mut self) -> Result<(), Problem> {
        let observer = self.project.observer();
        match &mut self.run {
            Some(run) => {
                if run.reader.refresh(observer)? {
                    run.view = run.reader.view();
                }
                run.working = run.reader.working(observer, OUTPUT_LINES);
            }
            None => {
                let object = observer.runs_json()?;
                self.rows = object["runs"].as_array().cloned().unwrap_or_default();
                self.selected = self.selected.min(self.visible().len().saturating_sub(1));
            }
        }
        if let Ok(note) = self.notes.1.try_recv() {
            self.note = Some((note, Instant::now()));
        }
        Ok(())
    }

    /// The newest message, for some seconds.
    pub(crate) fn note(&self) -> Option<&str> {
        let (note, at) = self.note.as_ref()?;
        (at.elapsed().as_secs() < NOTE_SECS).then_some(note.as_str())
    }

    /// The rows that the filter shows.
    pub(crate) fn visible(&self) -> Vec<&Value> {
        self.rows.iter().filter(|row| self.filter.shows(row)).collect()
    }

    fn open(&mut self, run: &RunId) -> Result<(), Problem> {
        let observer = self.project.observer();
        let mut reader = observer.run(run);
        reader.refresh(observer)?;
        let view = reader.view();
        self.run = Some(OneRun { reader, view, working: Vec::new(), chosen: None });
        self.overlay = Overlay::Nothing;
        Ok(())
    }

    fn say(&mut self, text: impl Into<String>) {
        self.note = Some((text.into(), Instant::now()));
    }

    /// Does something that takes time; the result is said when it is there.
    fn act(&mut self, doing: &str, control: Control) {
        self.say(doing);
        let (project, notes) = (Arc::clone(&self.project), self.notes.0.clone());
        let done = match control {
            // Whether it then succeeds is seen on the screen.
            Control::Retry { .. } | Control::Resume { .. } => "the run goes on".to_owned(),
            _ => format!("{doing} done"),
        };
        std::thread::spawn(move || {
            let said = match project.control(control) {
                Ok(_) => done,
                Err(problem) => match problem.hint {
                    Some(hint) => format!("{}: {hint}", problem.message),
                    None => problem.message,
                },
            };
            let _ = notes.send(cuegate_view::clean_to_one_line(&said));
        });
    }

    /// Inserts what a person pasted.
    pub fn paste(&mut self, text: &str) {
        if let Overlay::Answer(input) = &mut self.overlay {
            input.paste(text);
        }
    }

    /// Does what a key means.
    pub fn key(&mut self, key: KeyEvent) {
        let control = key.modifiers.contains(KeyModifiers::CONTROL);
        match &mut self.overlay {
            Overlay::Answer(input) => match input.key(key) {
                KeyEffect::Going => {}
                KeyEffect::Left => self.overlay = Overlay::Nothing,
                KeyEffect::Done(text) => {
                    self.overlay = Overlay::Nothing;
                    if let Some(run) = self.shown().cloned() {
                        self.act("answering …", Control::Answer { run, text });
                    }
                }
            },
            Overlay::Confirm { .. } => {
                let overlay = std::mem::replace(&mut self.overlay, Overlay::Nothing);
                if let (KeyCode::Char('y'), Overlay::Confirm { doing, control, .. }) = (key.code, overlay) {
                    self.act(doing, control);
                }
            }
            Overlay::Help => self.overlay = Overlay::Nothing,
            Overlay::Text { lines, top, .. } => {
                let most = lines.len().saturating_sub(self.page);
                match key.code {
                    KeyCode::Esc | KeyCode::Char('q') | KeyCode::Enter => self.overlay = Overlay::Nothing,
                    KeyCode::Char('c') if control => self.overlay = Overlay::Nothing,
                    code => *top = move_position(code, *top, most, self.page),
                }
            }
            Overlay::Nothing => match key.code {
                KeyCode::Char('c') if control => self.ended = true,
                KeyCode::Char('q') => self.ended = true,
                KeyCode::Char('?') => self.overlay = Overlay::Help,
                code if self.run.is_some() => self.run_key(code),
                code => self.list_key(code),
            },
        }
    }

    fn list_key(&mut self, code: KeyCode) {
        let most = self.visible().len().saturating_sub(1);
        match code {
            KeyCode::Enter | KeyCode::Right | KeyCode::Char('l') => {
                let row = self.visible().get(self.selected).and_then(|row| row["run"].as_str()?.parse().ok());
                if let Some(run) = row
                    && let Err(problem) = self.open(&run)
                {
                    self.say(problem.message);
                }
            }
            KeyCode::Char('f') => {
                self.filter = self.filter.next();
                self.selected = 0;
            }
            code => self.selected = move_position(code, self.selected, most, self.page),
        }
    }

    fn run_key(&mut self, code: KeyCode) {
        let Some(run) = &mut self.run else { return };
        let id = run.reader.id().clone();
        let visits = run.reader.spans().visits();
        match code {
            KeyCode::Esc | KeyCode::Left | KeyCode::Char('b') if self.has_list => {
                self.run = None;
                if let Err(problem) = self.refresh() {
                    self.say(problem.message);
                }
            }
            KeyCode::Esc => run.chosen = None,
            KeyCode::Char('a') => match &run.view.state {
                RunState::Suspended(waiting) if waiting.kind == WaitKind::Person && !run.view.is_answered => {
                    self.overlay = Overlay::Answer(Input::default());
                }
                _ => self.say("the run asks nothing"),
            },
            KeyCode::Char('c') => match &run.view.state {
                RunState::Ended(_) => self.say("the run has ended"),
                _ => {
                    let question = "Cancel this run? It cannot be resumed.".to_owned();
                    let control = Control::Cancel { run: id };
                    self.overlay = Overlay::Confirm { question, doing: "cancelling …", control };
                }
            },
            KeyCode::Char('t') => match run_screen::can_retry(&run.view) {
                true => self.act("retrying …", Control::Retry { run: id, say: None }),
                false => self.say("only a run that failed is retried"),
            },
            KeyCode::Char('m') => match run_screen::can_apply(&run.view) {
                true => {
                    let missing = run.view.describe_missing_proof();
                    let missing =
                        missing.map(|missing| format!(" It is not proved: {missing}.")).unwrap_or_default();
                    let question = format!("Merge the changes of this run into the working tree?{missing}");
                    let control = Control::Apply { run: id };
                    self.overlay = Overlay::Confirm { question, doing: "applying …", control };
                }
                false => self.say("there are no changes to apply"),
            },
            KeyCode::Char('u') => match run_screen::can_undo(&run.view) {
                true => {
                    let question = "Take back what this run did in the working tree?".to_owned();
                    let control = Control::Undo { run: id };
                    self.overlay = Overlay::Confirm { question, doing: "undoing …", control };
                }
                false => self.say("there is nothing to undo here"),
            },
            KeyCode::Char('p') => match (&run.view.state, run.view.live) {
                (RunState::Running, Liveness::Alive) => self.act("pausing …", Control::Pause { run: id }),
                _ => self.say("the run does not work now"),
            },
            KeyCode::Char('r') => match (&run.view.state, run.view.live) {
                (RunState::Running, Liveness::Alive) => self.say("the run works already"),
                (RunState::Suspended(waiting), _)
                    if waiting.kind == WaitKind::Person && !run.view.is_answered =>
                {
                    self.say("the run waits for an answer: press a");
                }
                _ => self.act("resuming …", Control::Resume { run: id }),
            },
            KeyCode::Char('v') => self.text("Changes", |project| project.diff(&id, None)),
            KeyCode::Char('R') => self.text("Report", |project| project.report(&id)),
            KeyCode::Char('o') => {
                let said = self.project.open(&id);
                self.say(said.unwrap_or_else(|problem| problem.message));
            }
            KeyCode::Enter => {
                let lines = run_screen::visit_text(run, self.project.observer());
                let title = "Visit".to_owned();
                self.overlay = Overlay::Text { title, lines, top: 0 };
            }
            KeyCode::End | KeyCode::Char('G') => run.chosen = None,
            code => {
                let last = visits.saturating_sub(1);
                let at = run.chosen.unwrap_or(last);
                let to = move_position(code, at, last, self.page);
                if to != at {
                    // At the end the newest visit is followed again.
                    run.chosen = (to < last).then_some(to);
                }
            }
        }
    }

    fn text(&mut self, title: &str, make: impl FnOnce(&dyn Project) -> Result<String, Problem>) {
        match make(&*self.project) {
            Ok(text) if text.trim().is_empty() => self.say("there is nothing"),
            Ok(text) => {
                let lines = text.lines().map(cuegate_view::clean_lines).collect();
                self.overlay = Overlay::Text { title: title.to_owned(), lines, top: 0 };
            }
            Err(problem) => self.say(problem.message),
        }
    }
}

/// The position after a key that moves in a list.
fn move_position(code: KeyCode, at: usize, most: usize, page: usize) -> usize {
    let page = page.saturating_sub(1).max(1);
    let to = match code {
        KeyCode::Down | KeyCode::Char('j') => at + 1,
        KeyCode::Up | KeyCode::Char('k') => at.saturating_sub(1),
        KeyCode::PageDown | KeyCode::Char(' ') => at + page,
        KeyCode::PageUp => at.saturating_sub(page),
        KeyCode::Home | KeyCode::Char('g') => 0,
        KeyCode::End | KeyCode::Char('G') => most,
        _ => at,
    };
    to.min(most)
}
