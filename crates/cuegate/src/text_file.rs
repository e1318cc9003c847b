//! Reads texts that a user names, with a bound: a device or an endless pipe would be read until memory ends.

use std::{
    fs::File,
    io::{self, Read},
    path::Path,
};

/// The longest text, in bytes. No task, script or answer of a person comes near it.
const TEXT_MAX: u64 = 64 << 20;

/// Reads a file as text.
///
/// # Errors
/// When it cannot be read, is no UTF-8 or has more than 64 MiB.
pub(crate) fn read_text(path: &Path) -> io::Result<String> {
    read_text_from(File::open(path)?)
}

/// What to do about a file that could not be read: `otherwise`, but for a text in another encoding.
pub(crate) fn hint_for_unread<'h>(error: &io::Error, otherwise: &'h str) -> &'h str {
    match error.kind() {
        io::ErrorKind::InvalidData => {
            "save the file as UTF-8: editors call it \"UTF-8\" or \"Unicode\" when they save"
        }
        _ => otherwise,
    }
}

/// Reads a text to its end.
///
/// # Errors
/// When it cannot be read, is no UTF-8 or has more than 64 MiB.
pub(crate) fn read_text_from(source: impl Read) -> io::Result<String> {
    let mut text = String::new();
    source.take(TEXT_MAX + 1).read_to_string(&mut text)?;
    match text.len() as u64 > TEXT_MAX {
        true => Err(io::Error::other("it has more than 64 MiB")),
        false => Ok(text),
    }
}
