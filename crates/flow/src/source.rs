//! The files of a definition and places in them.

use crate::Str;

/// Names a file in [`Sources`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct FileId(pub u32);

/// A range of bytes in a file of a definition.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct Span {
    /// The file.
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
    /// Path as shown to people: relative to the project where possible.
    pub path: Str,
    /// Its content.
    pub text: Str,
}

/// All files that a definition was read from, in the order of reading.
#[derive(Debug, Clone, Default)]
pub struct Sources {
    files: Vec<SourceFile>,
}

impl Sources {
    /// Adds a file, or finds the one of the same path.
    pub fn add(&mut self, path: &str, text: &str) -> FileId {
        if let Some(index) = self.files.iter().position(|file| &*file.path == path) {
            return FileId(index as u32);
        }
        self.files.push(SourceFile { path: path.into(), text: text.into() });
        FileId((self.files.len() - 1) as u32)
    }

    /// The file of this id, when it is one of these.
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
        let before = &file.text[..end];
        let line_start = before.rfind('\n').map_or(0, |at| at + 1);
        LineColumn {
            line: before.matches('\n').count() as u32 + 1,
            column: before[line_start..].chars().count() as u32 + 1,
        }
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
    }
}
