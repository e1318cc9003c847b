//! The terminal itself: enters the alternate screen, reads keys, and leaves it clean after every way out.

use std::{
    io::{self, Write as _, stderr},
    sync::atomic::{AtomicBool, Ordering},
    time::Duration,
};

use ratatui::{
    Terminal,
    backend::CrosstermBackend,
    crossterm::{
        cursor::Show,
        event::{self, DisableBracketedPaste, EnableBracketedPaste, Event, KeyEventKind},
        execute,
        terminal::{EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode, enable_raw_mode},
    },
};
use tokio::{
    signal::unix::{SignalKind, signal},
    sync::mpsc,
    time::{MissedTickBehavior, interval},
};

use crate::app::App;

/// How often the screen is drawn: six times a second.
const FRAME: Duration = Duration::from_millis(160);

/// Why the screen was left.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ScreenExit {
    /// The person left it.
    Left,
    /// A signal ended it.
    Signal,
}

/// Whether the terminal is in our mode, so that it is left once.
static ENTERED: AtomicBool = AtomicBool::new(false);

/// Leaves the alternate screen, if it was entered.
fn leave_screen() {
    if ENTERED.swap(false, Ordering::SeqCst) {
        let _ = disable_raw_mode();
        let _ = execute!(stderr(), DisableBracketedPaste, LeaveAlternateScreen, Show);
        let _ = stderr().flush();
    }
}

/// Leaves the screen when it is dropped, also by an error.
struct ScreenGuard;

impl Drop for ScreenGuard {
    fn drop(&mut self) {
        leave_screen();
    }
}

fn enter_screen() -> io::Result<ScreenGuard> {
    // The message of a panic would be lost on the alternate screen, and the terminal left unusable.
    let before = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |info| {
        leave_screen();
        before(info);
    }));
    enable_raw_mode()?;
    ENTERED.store(true, Ordering::SeqCst);
    let guard = ScreenGuard;
    execute!(stderr(), EnterAlternateScreen, EnableBracketedPaste)?;
    Ok(guard)
}

/// Sets whether colours are used. Nothing is told by colours alone.
pub fn use_colours(wanted: bool) {
    ratatui::crossterm::style::force_color_output(wanted);
}

/// Shows the screen on standard error until the person leaves or a signal comes. Needs a tokio runtime.
///
/// # Errors
/// When the terminal cannot be used.
pub async fn show_until_left(app: &mut App) -> io::Result<ScreenExit> {
    let _guard = enter_screen()?;
    let mut terminal = Terminal::new(CrosstermBackend::new(stderr()))?;
    let kinds = [SignalKind::terminate(), SignalKind::hangup(), SignalKind::interrupt()];
    let mut signals = kinds.map(signal).into_iter().collect::<io::Result<Vec<_>>>()?;
    let [terminate, hangup, interrupt] = signals.as_mut_slice() else { return Ok(ScreenExit::Signal) };
    // Reading blocks, so it has a thread of its own, which ends with the program.
    let (sender, mut events) = mpsc::channel(64);
    std::thread::spawn(move || {
        while let Ok(event) = event::read() {
            if sender.blocking_send(event).is_err() {
                break;
            }
        }
    });
    let mut frames = interval(FRAME);
    frames.set_missed_tick_behavior(MissedTickBehavior::Skip);
    let mut reads = true;
    loop {
        tokio::select! {
            _ = frames.tick() => {
                // An error of the journal is temporary, or its next reader reports it; the screen stays as it was.
                let _ = app.refresh();
            }
            event = events.recv(), if reads => match event {
                Some(Event::Key(key)) if key.kind != KeyEventKind::Release => app.key(key),
                Some(Event::Paste(text)) => app.paste(&text),
                Some(_) => {}
                // The terminal is gone.
                None => reads = false,
            },
            _ = terminate.recv() => return Ok(ScreenExit::Signal),
            _ = hangup.recv() => return Ok(ScreenExit::Signal),
            _ = interrupt.recv() => return Ok(ScreenExit::Signal),
        }
        if app.is_ended() {
            return Ok(ScreenExit::Left);
        }
        if !reads {
            return Ok(ScreenExit::Signal);
        }
        terminal.draw(|frame| app.draw(frame))?;
    }
}
