//! Texts with restrictions.

use super::{Fields, Text};

impl<'j> Fields<'j, '_> {
    /// A non-empty text.
    pub(crate) fn filled(&self, key: &'static str) -> Option<Text<'j>> {
        let text = self.text(key)?;
        if text.text.trim().is_empty() {
            let needed = self.is_needed(key);
            let hint = if needed { "give it a value" } else { "give it a value, or leave it out" };
            self.invalid(text.span, format!("`{key}` is empty"), hint);
            return None;
        }
        Some(text)
    }

    /// A required, non-empty text.
    pub(crate) fn required(&self, key: &'static str) -> Option<Text<'j>> {
        self.need(key);
        if self.entry(key).is_none() {
            self.missing(key);
        }
        self.filled(key)
    }

    /// A required shell command.
    pub(crate) fn command(&self, key: &'static str) -> Option<Text<'j>> {
        let command = self.required(key)?;
        if command.text.contains('\0') {
            self.invalid(command.span, "no command has a zero byte in it", "remove `\\u0000`");
            return None;
        }
        Some(command)
    }

    /// A segment of a prompt's path: it must not lead out of its folder.
    pub(crate) fn part(&self, key: &'static str) -> Option<Text<'j>> {
        self.filled(key).and_then(|part| self.forward(key, part))
    }

    /// As [`Fields::part`], required.
    pub(crate) fn required_part(&self, key: &'static str) -> Option<Text<'j>> {
        self.required(key).and_then(|part| self.forward(key, part))
    }

    fn forward(&self, key: &str, part: Text<'j>) -> Option<Text<'j>> {
        let leads_back =
            part.text.starts_with(['/', '\\']) || part.text.split(['/', '\\']).any(|name| name == "..");
        if leads_back || part.text.contains('\0') {
            let message = format!("`{key}` is a part of the path of a prompt, and leads elsewhere");
            self.invalid(part.span, message, "write the name of a folder or a file, without `..`");
            return None;
        }
        Some(part)
    }
}
