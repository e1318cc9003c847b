//! Programs that belong to a definition.

use crate::Str;

/// A program that belongs to a definition. The run stores it, so that a resumed run uses the same program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Program {
    /// Its path, as shown in texts.
    pub path: Str,
    /// The file's name.
    pub name: Str,
    /// The program and its first arguments that start it, never empty; the file's path follows.
    pub start: Vec<Str>,
    /// The content of the file.
    pub body: Str,
}
