//! A text that a person writes, with a cursor.

use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

/// What a key did to the text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum KeyEffect {
    /// It changed, or nothing happened.
    Going,
    /// It is done.
    Done(String),
    /// It is given up.
    Left,
}

/// A line of input, which may have line ends.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Input {
    text: Vec<char>,
    cursor: usize,
}

impl Input {
    /// The text before and after the cursor.
    pub(crate) fn parts(&self) -> (String, String) {
        (self.text[..self.cursor].iter().collect(), self.text[self.cursor..].iter().collect())
    }

    /// Inserts a pasted text.
    pub(crate) fn paste(&mut self, text: &str) {
        text.chars().filter(|c| *c == '\n' || !c.is_control()).for_each(|c| self.insert(c));
    }

    pub(crate) fn key(&mut self, key: KeyEvent) -> KeyEffect {
        let control = key.modifiers.contains(KeyModifiers::CONTROL);
        match key.code {
            KeyCode::Esc => return KeyEffect::Left,
            KeyCode::Char('c') if control => return KeyEffect::Left,
            // Some terminals tell Shift-Enter and Alt-Enter apart; Ctrl-J is the same everywhere.
            KeyCode::Enter if key.modifiers.intersects(KeyModifiers::SHIFT | KeyModifiers::ALT) => {
                self.insert('\n')
            }
            KeyCode::Char('j') if control => self.insert('\n'),
            KeyCode::Enter if !self.text.iter().all(|c| c.is_whitespace()) => {
                return KeyEffect::Done(self.text.iter().collect());
            }
            KeyCode::Char('u') if control => drop(self.text.drain(..std::mem::take(&mut self.cursor))),
            KeyCode::Char('a') if control => self.cursor = 0,
            KeyCode::Char('e') if control => self.cursor = self.text.len(),
            KeyCode::Char(c) if !control => self.insert(c),
            KeyCode::Backspace if self.cursor > 0 => {
                self.cursor -= 1;
                self.text.remove(self.cursor);
            }
            KeyCode::Delete if self.cursor < self.text.len() => drop(self.text.remove(self.cursor)),
            KeyCode::Left => self.cursor = self.cursor.saturating_sub(1),
            KeyCode::Right => self.cursor = (self.cursor + 1).min(self.text.len()),
            KeyCode::Home => self.cursor = 0,
            KeyCode::End => self.cursor = self.text.len(),
            _ => {}
        }
        KeyEffect::Going
    }

    fn insert(&mut self, c: char) {
        self.text.insert(self.cursor, c);
        self.cursor += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn typed(keys: &[KeyCode]) -> (Input, KeyEffect) {
        let mut input = Input::default();
        let mut last = KeyEffect::Going;
        for key in keys {
            last = input.key(KeyEvent::new(*key, KeyModifiers::NONE));
        }
        (input, last)
    }

    #[test]
    fn a_text_is_edited_at_its_cursor() {
        use KeyCode::{Backspace, Char, Delete, End, Enter, Home, Left};
        let (input, _) =
            typed(&[Char('赤'), Char('b'), Left, Backspace, Char('ü'), End, Char('c'), Home, Delete]);
        assert_eq!(input.parts(), (String::new(), "bc".to_owned()));
        assert_eq!(typed(&[Char('a'), Enter]).1, KeyEffect::Done("a".to_owned()));
        assert_eq!(typed(&[Char(' '), Enter]).1, KeyEffect::Going, "an empty answer is none");
        assert_eq!(typed(&[Char('a'), KeyCode::Esc]).1, KeyEffect::Left);
        let mut input = Input::default();
        input.paste("a\nb\u{1b}c");
        assert_eq!(input.parts().0, "a\nbc");
    }
}
