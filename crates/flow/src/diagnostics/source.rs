//! The files of a definition and positions in them.

use std::collections::HashMap;
use std::path::Path;
use std::sync::OnceLock;

use crate::Str;

/// Names a file in [`Sources`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct FileId(pub u32);

/// A range of bytes in a file of a definition.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct Span {
    pub file: FileId,
    /// First byte.
    pub start: u32,
    /// One past the last byte.
    pub end: u32,
}

impl Span {
    /// The beginning of a file, for findings about the file as a whole.
    pub fn start_of(file: FileId) -> Span {
        Span { file, start: 0, end: 0 }
    }
}

/// One-based line and column; the column counts characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct LineColumn {
    /// One-based line.
    pub line: u32,
    /// One-based column in characters.
    pub column: u32,
}

/// A file that a definition was read from.
#[derive(Debug, Clone)]
pub struct SourceFile {
    /// Its path relative to the definition's root folder, which is the project if the file lies in one.
    pub path: Str,
    /// Its display path if the root folder is not the project.
    elsewhere: Option<Str>,
    /// Its content.
    pub text: Str,
    /// If the text belongs to the program: its name, and where the definition refers to it.
    pub(super) built_in: Option<(Str, Span)>,
    /// The line starts, computed on first use.
    lines: OnceLock<Vec<u32>>,
}

impl SourceFile {
    /// Its display path: relative to the project, or absolute for a file outside it.
    pub fn display_path(&self) -> &str {
        self.elsewhere.as_deref().unwrap_or(&self.path)
    }

    /// Its path for programs: as displayed, but relative to the definition's folder if the display path is absolute.
    pub fn given(&self) -> &str {
        let shown = self.display_path();
        if Path::new(shown).is_absolute() { &self.path } else { shown }
    }

    /// The start of each line.
    fn lines(&self) -> &[u32] {
        self.lines.get_or_init(|| {
            let ends = memchr::memchr_iter(b'\n', self.text.as_bytes()).map(|at| at as u32 + 1);
            std::iter::once(0).chain(ends).collect()
        })
    }
}

/// All files of a definition, in reading order.
#[derive(Debug, Clone, Default)]
pub struct Sources {
    files: Vec<SourceFile>,
    by_path: HashMap<Str, FileId>,
}

impl Sources {
    /// Adds a file, or returns the existing one of the same path.
    pub fn add(&mut self, path: &str, text: &str) -> FileId {
        self.add_shared(path, || text.into())
    }

    /// As [`Sources::add`], for a shared text.
    pub fn add_shared(&mut self, path: &str, text: impl FnOnce() -> Str) -> FileId {
        if let Some(known) = self.by_path.get(path) {
            return *known;
        }
        let (id, path) = (FileId(self.files.len() as u32), Str::from(path));
        self.files.push(SourceFile {
            path: path.clone(),
            elsewhere: None,
            text: text(),
            built_in: None,
            lines: OnceLock::new(),
        });
        self.by_path.insert(path, id);
        id
    }

    /// Adds a text that belongs to the program. Findings in it are shown at `used_at`, where the definition refers to
    /// it, and name it by `name`.
    pub fn add_built_in(&mut self, path: &str, text: &str, name: &str, used_at: Span) -> FileId {
        let id = self.add(path, text);
        self.files[id.0 as usize].built_in = Some((name.into(), used_at));
        id
    }

    /// Sets the display paths of all files if they lie outside the project.
    pub fn show_as(&mut self, shown: impl Fn(&str) -> String) {
        for file in &mut self.files {
            file.elsewhere = Some(shown(&file.path).into());
        }
    }

    /// The file of this id, if it exists.
    pub fn get(&self, id: FileId) -> Option<&SourceFile> {
        self.files.get(id.0 as usize)
    }

    /// All files.
    pub fn iter(&self) -> impl Iterator<Item = &SourceFile> {
        self.files.iter()
    }

    /// Line and column of the first byte of a span; 1:1 for an unknown file.
    pub fn locate(&self, span: Span) -> LineColumn {
        let Some(file) = self.get(span.file) else {
            return LineColumn { line: 1, column: 1 };
        };
        let mut end = (span.start as usize).min(file.text.len());
        while !file.text.is_char_boundary(end) {
            end -= 1;
        }
        let lines = file.lines();
        let line = lines.partition_point(|start| *start as usize <= end);
        let line_start = lines[line - 1] as usize;
        LineColumn { line: line as u32, column: file.text[line_start..end].chars().count() as u32 + 1 }
    }
}

#[cfg(test)]
mod tests {
    use super::{Sources, Span};

    #[test]
    fn locates_by_characters() {
        let mut sources = Sources::default();
        let file = sources.add("a.json", "{\n  \"é\": 1\n}");
        let at = sources.locate(Span { file, start: 9, end: 10 });
        assert_eq!((at.line, at.column), (2, 7), "two bytes of é are one column");
        assert_eq!(sources.add("a.json", "other"), file);
        let first = sources.locate(Span { file, start: 0, end: 1 });
        assert_eq!((first.line, first.column), (1, 1));
        // A position at a line end belongs to that line, one past the end of the file to its last line.
        let at_end = sources.locate(Span { file, start: 1, end: 2 });
        assert_eq!((at_end.line, at_end.column), (1, 2));
        assert_eq!(sources.locate(Span { file, start: 99, end: 99 }).line, 3);
    }
}
