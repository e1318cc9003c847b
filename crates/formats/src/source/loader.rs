//! Opens the files of a definition, each once, and reports errors in their bytes.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, OnceLock};

use cuegate_flow::{
    Str,
    diagnostics::{Diagnostic, FileId, Sources, Span},
};

use crate::findings::Findings;
use crate::source::files::FILE_BYTES_MAX;
use crate::source::shared::SharedCell;
use crate::values::{json, json::Json};
use crate::{Files, ReadError, codes};

/// A cache by path; each value is computed once.
type FileCache<T> = SharedCell<HashMap<String, Arc<OnceLock<T>>>>;

/// Opens files and caches their contents. Shared by reference, because readers of different parts of a definition
/// open the same files.
pub(crate) struct SourceLoader<'f> {
    pub(crate) found: Findings,
    files: &'f dyn Files,
    sources: SharedCell<Sources>,
    pages: FileCache<LoadedFile>,
    parsed: FileCache<Option<Arc<Json>>>,
    /// Files that [`SourceLoader::looked_at`] has inspected.
    seen: SharedCell<HashSet<String>>,
}

/// The result of opening a file.
#[derive(Debug, Clone)]
pub(crate) enum LoadedFile {
    /// Its text, without a byte order mark.
    Text { file: FileId, text: Str },
    /// There is no such file.
    Missing,
    /// It is unusable; findings say why.
    Faulty,
}

impl<'f> SourceLoader<'f> {
    /// Creates a loader with an empty cache.
    pub(crate) fn new(files: &'f dyn Files) -> SourceLoader<'f> {
        SourceLoader {
            found: Findings::default(),
            files,
            sources: SharedCell::default(),
            pages: SharedCell::default(),
            parsed: SharedCell::default(),
            seen: SharedCell::default(),
        }
    }

    /// Opens a file. A second caller waits until the first one has opened it.
    pub(crate) fn page(&self, path: &str) -> LoadedFile {
        cell_of_path(&self.pages, path).get_or_init(|| self.open(path, None)).clone()
    }

    /// As [`SourceLoader::page`] for a file that is named at a span, where errors are reported. The first caller decides the
    /// span, so callers must run in sequence.
    pub(crate) fn page_named(&self, path: &str, named: Span) -> LoadedFile {
        cell_of_path(&self.pages, path).get_or_init(|| self.open(path, Some(named))).clone()
    }

    /// Describes what is at the path of a file that was not found.
    pub(crate) fn instead(&self, path: &str) -> String {
        match self.files.read(path) {
            Err(ReadError::Folder) => format!("`{path}` is a folder"),
            _ => format!("there is no file `{path}`"),
        }
    }

    /// Whether there is a file at a path, even an unusable one.
    pub(crate) fn is_file(&self, path: &str) -> bool {
        matches!(self.files.read(path), Ok(_) | Err(ReadError::TooLarge))
    }

    fn open(&self, path: &str, named: Option<Span>) -> LoadedFile {
        let named = || named.unwrap_or_else(|| self.unread(path));
        let bytes = match self.files.read(path) {
            Ok(bytes) if bytes.len() <= FILE_BYTES_MAX => bytes,
            Err(ReadError::NotFound | ReadError::Folder) => return LoadedFile::Missing,
            Ok(_) | Err(ReadError::TooLarge) => {
                return self.faulty(
                    path,
                    codes::UNREADABLE_FILE,
                    ("is larger than 16 MiB", "split it"),
                    self.unread(path),
                );
            }
            Err(ReadError::Escapes) => {
                let hint = "keep the files of an agent in its folder or in the project";
                return self.faulty(path, codes::ESCAPES_ROOT, ("lies outside the project", hint), named());
            }
            Err(ReadError::Other(reason)) => {
                let what = format!("cannot be read: {reason}");
                let hint = "put a file there that can be read, or correct the path that leads to it";
                return self.faulty(path, codes::UNREADABLE_FILE, (&what, hint), named());
            }
        };
        match String::from_utf8(bytes) {
            Ok(text) => {
                let text = Str::from(text.strip_prefix('\u{feff}').unwrap_or(&text));
                let file = self.sources.lock().add_shared(path, || text.clone());
                LoadedFile::Text { file, text }
            }
            Err(error) => {
                let valid = error.utf8_error().valid_up_to();
                let text = String::from_utf8_lossy(error.as_bytes());
                let file = self.sources.lock().add(path, &text);
                let span = Span { file, start: valid as u32, end: valid as u32 + 1 };
                self.found.push(
                    Diagnostic::error(
                        codes::UNREADABLE_FILE,
                        span,
                        format!("`{path}` is not UTF-8 from here on"),
                    )
                    .hint("save the file as UTF-8"),
                );
                LoadedFile::Faulty
            }
        }
    }

    fn faulty(&self, path: &str, code: &'static str, (what, hint): (&str, &str), at: Span) -> LoadedFile {
        let finding = Diagnostic::error(code, at, format!("`{path}` {what}")).hint(hint);
        self.found.push(finding);
        LoadedFile::Faulty
    }

    /// Opens a JSON file: `Ok(None)` if there is no such file, `Err` if findings say what is wrong with it.
    pub(crate) fn json(&self, path: &str) -> Result<Option<Arc<Json>>, FaultyFile> {
        let place = cell_of_path(&self.parsed, path);
        if let Some(parsed) = place.get() {
            return parsed.clone().map(Some).ok_or(FaultyFile);
        }
        let (file, text) = match self.page(path) {
            LoadedFile::Text { file, text } => (file, text),
            LoadedFile::Missing => return Ok(None),
            LoadedFile::Faulty => return Err(FaultyFile),
        };
        let parse = || json::parse(&text, file, &self.found).map(Arc::new);
        place.get_or_init(parse).clone().map(Some).ok_or(FaultyFile)
    }

    /// As [`SourceLoader::json`], and calls `look` on the first request for the file. Many steps share one schema file.
    pub(crate) fn looked_at(
        &self,
        path: &str,
        look: impl FnOnce(&Json, &Findings),
    ) -> Result<Option<Arc<Json>>, FaultyFile> {
        let json = self.json(path)?;
        // Threads may request the same file at the same time; only the first one inspects it.
        if let Some(json) = json.as_ref().filter(|_| self.is_new(path)) {
            look(json, &self.found);
        }
        Ok(json)
    }

    fn is_new(&self, path: &str) -> bool {
        let mut seen = self.seen.lock();
        !seen.contains(path) && seen.insert(path.to_owned())
    }

    /// The start of a file, for findings about the whole file. The file may not exist.
    pub(crate) fn start_of(&self, path: &str) -> Span {
        match self.page(path) {
            LoadedFile::Text { file, .. } => Span::start_of(file),
            LoadedFile::Missing | LoadedFile::Faulty => self.unread(path),
        }
    }

    /// The start of a file that is not read: findings show only its path.
    pub(crate) fn unread(&self, path: &str) -> Span {
        Span::start_of(self.sources.lock().add(path, ""))
    }

    /// The text of an opened file; empty for an unknown one.
    pub(crate) fn text_of(&self, file: FileId) -> Str {
        self.sources.lock().get(file).map_or_else(|| "".into(), |file| file.text.clone())
    }

    /// The line of a span, from 1.
    pub(crate) fn line_of(&self, span: Span) -> u32 {
        self.sources.lock().locate(span).line
    }

    /// Adds a text that belongs to the program. Findings in it are shown at `used_at`.
    pub(crate) fn own_text(&self, path: &str, text: &str, name: &str, used_at: Span) -> FileId {
        self.sources.lock().add_built_in(path, text, name, used_at)
    }

    /// The findings and the files that were opened.
    pub(crate) fn into_parts(self) -> (Findings, Sources) {
        (self.found, self.sources.into_inner())
    }
}

/// The cache cell of a path.
fn cell_of_path<T>(known: &FileCache<T>, path: &str) -> Arc<OnceLock<T>> {
    let mut known = known.lock();
    if let Some(place) = known.get(path) {
        return place.clone();
    }
    known.entry(path.to_owned()).or_default().clone()
}

/// A file with errors that have been reported.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FaultyFile;

#[cfg(test)]
mod tests {
    use super::{FaultyFile, LoadedFile, SourceLoader};
    use crate::source::files::FILE_BYTES_MAX;
    use std::collections::BTreeMap;

    fn findings(bytes: Vec<u8>) -> Vec<(&'static str, u32)> {
        let files = BTreeMap::from([("a.json".to_owned(), bytes)]);
        let loader = SourceLoader::new(&files);
        assert!(matches!(loader.page("a.json"), LoadedFile::Faulty));
        assert_eq!(loader.json("a.json").err(), Some(FaultyFile));
        loader
            .into_parts()
            .0
            .into_parts()
            .0
            .into_iter()
            .map(|finding| (finding.code, finding.span.start))
            .collect()
    }

    #[test]
    fn bytes_that_are_no_text_are_said_once() {
        assert_eq!(findings(b"{\"a\": \"\xff\"}".to_vec()), [("unreadable-file", 7)]);
        assert_eq!(findings(vec![b' '; FILE_BYTES_MAX + 1]), [("unreadable-file", 0)]);
    }

    #[test]
    fn a_byte_order_mark_and_windows_line_ends_are_fine() {
        let files = BTreeMap::from([("a.json".to_owned(), b"\xef\xbb\xbf{\r\n\"a\": 1}\r\n".to_vec())]);
        let loader = SourceLoader::new(&files);
        let json = loader.json("a.json").unwrap().unwrap();
        assert_eq!(json.entry("a").unwrap().key_span.start, 3);
        assert!(loader.json("b.json").unwrap().is_none());
        assert!(!loader.found.has_errors());
    }
}
