//! Programs that a definition brings along.

use crate::Str;

/// A program that a definition brings along. It is kept with the run, so that a resumed run starts the same.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Program {
    /// What it is called in texts: its path.
    pub path: Str,
    /// The file's name.
    pub name: Str,
    /// How it is started: the program and its first arguments, never empty; the file's path follows.
    pub start: Vec<Str>,
    /// What stands in the file.
    pub body: Str,
}
