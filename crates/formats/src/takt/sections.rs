//! The maps of a piece from keys to texts: personas, policies, knowledge, instructions, report formats.

use std::cell::Cell;
use std::collections::HashMap;

use cuegate_flow::{
    Str,
    diagnostics::{Diagnostic, Span},
};

use crate::lints;
use crate::source::files::join;
use crate::source::loader::{Desk, Page};
use crate::source::suggest::suggested;
use crate::values::json::{Fields, Kind, Text};

/// One of the maps.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Section {
    Personas,
    Policies,
    Knowledge,
    Instructions,
    ReportFormats,
}

impl Section {
    pub(super) const ALL: [Section; 5] = [
        Section::Personas,
        Section::Policies,
        Section::Knowledge,
        Section::Instructions,
        Section::ReportFormats,
    ];

    /// The key of the map in the piece.
    pub(crate) fn key(self) -> &'static str {
        match self {
            Section::Personas => "personas",
            Section::Policies => "policies",
            Section::Knowledge => "knowledge",
            Section::Instructions => "instructions",
            Section::ReportFormats => "report_formats",
        }
    }

    /// The movement key that refers to its entries.
    pub(super) fn user(self) -> &'static str {
        match self {
            Section::Personas => "persona",
            Section::Policies => "policy",
            Section::Knowledge => "knowledge",
            Section::Instructions => "instruction",
            Section::ReportFormats => "format",
        }
    }
}

/// A text of a piece with its place.
#[derive(Debug, Clone)]
pub(crate) struct Body {
    pub(crate) text: Str,
    /// The whole file, or a value in the piece.
    pub(crate) span: Span,
    /// The source text, for locating a part of the text.
    source: Str,
    /// The file name without folder and extension, for a text from a file.
    pub(crate) stem: Option<Str>,
}

impl Body {
    /// A text that is written in the piece itself.
    pub(crate) fn inline(text: Text<'_>, source: &Str) -> Body {
        Body { text: text.text.into(), span: text.span, source: source.clone(), stem: None }
    }

    /// Offsets of the opening braces in the source, in order; empty if they cannot be determined.
    pub(crate) fn braces(&self) -> Vec<u32> {
        let whole = self.source.get(self.span.start as usize..self.span.end as usize).unwrap_or_default();
        // The header line of a YAML block scalar does not belong to the text.
        let is_block = *whole != *self.text && whole.starts_with(['|', '>']);
        let head = whole.find('\n').filter(|_| is_block).unwrap_or_default();
        let places: Vec<u32> =
            whole[head..].match_indices('{').map(|(at, _)| self.span.start + (head + at) as u32).collect();
        // Comments may add braces after the text; escapes may hide some.
        if places.len() < self.text.matches('{').count() { Vec::new() } else { places }
    }

    /// The span of `written` at a source offset; the whole text if it is not there.
    pub(crate) fn place_at(&self, start: Option<u32>, written: &str) -> Span {
        let is_there =
            |start: &u32| self.source.get(*start as usize..).is_some_and(|rest| rest.starts_with(written));
        match start.filter(is_there) {
            Some(start) => Span { start, end: start + written.len() as u32, ..self.span },
            None => self.span,
        }
    }

    /// The span of `written` in the text; the whole text if it is not found.
    pub(crate) fn place(&self, written: &str) -> Span {
        let whole = self.source.get(self.span.start as usize..self.span.end as usize).unwrap_or_default();
        match whole.find(written) {
            Some(at) => {
                let start = self.span.start + at as u32;
                Span { start, end: start + written.len() as u32, ..self.span }
            }
            None => self.span,
        }
    }
}

/// An entry of a map.
struct Known {
    section: Section,
    name: Str,
    span: Span,
    /// `None` if it could not be read; a finding says why.
    body: Option<Body>,
    used: Cell<bool>,
}

/// All maps of a piece.
pub(crate) struct Sections<'d, 'f> {
    desk: &'d Desk<'f>,
    /// The folder of the piece.
    folder: String,
    /// The source text of the piece.
    pub(crate) source: Str,
    known: Vec<Known>,
    /// The index of each entry by map and key; the first one for repeated keys.
    places: HashMap<(Section, Str), usize>,
    /// Maps that could not be read; findings say why.
    unreadable: Vec<Section>,
}

impl<'d, 'f> Sections<'d, 'f> {
    /// Reads the maps of a piece in `folder`.
    pub(crate) fn read(piece: &Fields<'_, '_>, desk: &'d Desk<'f>, folder: &str, source: &Str) -> Self {
        let mut sections = Sections {
            desk,
            folder: folder.to_owned(),
            source: source.clone(),
            known: Vec::new(),
            places: HashMap::new(),
            unreadable: Vec::new(),
        };
        for section in Section::ALL {
            let written = piece.nullable(section.key());
            if written.is_some_and(|written| !matches!(written.value.kind, Kind::Object(_))) {
                sections.unreadable.push(section);
            }
            for entry in piece.names(section.key()) {
                let body = match entry.value.as_text() {
                    Some(text) => sections.value(section, Text { text, span: entry.value.span }),
                    None => {
                        piece.wrong_type(&entry.key, &entry.value, "the path of a file");
                        None
                    }
                };
                let place = (section, entry.key.clone());
                sections.places.entry(place).or_insert(sections.known.len());
                sections.known.push(Known {
                    section,
                    name: entry.key.clone(),
                    span: entry.key_span,
                    body,
                    used: Cell::default(),
                });
            }
        }
        sections
    }

    /// Resolves the value of an entry: a path, or the text itself.
    fn value(&self, section: Section, text: Text<'_>) -> Option<Body> {
        if text.text.trim().is_empty() {
            let message = format!("an entry of `{}` is empty", section.key());
            let finding = Diagnostic::error(lints::INVALID_VALUE, text.span, message);
            self.desk.found.push(finding.hint("name a file, relative to the piece's folder"));
            return None;
        }
        if is_path(text.text) {
            return self.file(text);
        }
        Some(Body::inline(text, &self.source))
    }

    /// Reads a file at a path relative to the piece's folder.
    fn file(&self, path: Text<'_>) -> Option<Body> {
        let found = &self.desk.found;
        let Some(joined) = join(&self.folder, path.text).filter(|_| !path.text.starts_with('~')) else {
            let message = format!("`{}` leads out of the folder above the piece's", path.text);
            let finding = Diagnostic::error(lints::ESCAPES_ROOT, path.span, message);
            found.push(finding.hint("keep the files of a piece in the project, or beside its folder"));
            return None;
        };
        match self.desk.page_named(&joined, path.span) {
            Page::Text { file, text } if text.trim().is_empty() => {
                let finding = Diagnostic::error(
                    lints::MISSING_PROMPT,
                    Span::start_of(file),
                    format!("`{joined}` is empty"),
                );
                found.push(finding.hint("write the text, or remove what names the file"));
                None
            }
            Page::Text { file, text } => {
                let name = joined.rsplit('/').next().unwrap_or(&joined);
                let stem = name.rsplit_once('.').map_or(name, |(stem, _)| stem);
                let span = Span { file, start: 0, end: text.len() as u32 };
                Some(Body { text: text.clone(), span, source: text, stem: Some(stem.into()) })
            }
            Page::Missing => {
                let finding =
                    Diagnostic::error(lints::UNREADABLE_FILE, path.span, self.desk.instead(&joined));
                found.push(
                    finding.hint(
                        "write that file, or correct the path, which is relative to the piece's folder",
                    ),
                );
                None
            }
            Page::Faulty => None,
        }
    }

    /// Resolves a reference of a movement. Returns `None` after reporting an unknown key.
    pub(crate) fn resolve(
        &self,
        section: Section,
        reference: Text<'_>,
        user: &Fields<'_, '_>,
    ) -> Option<Body> {
        let place = self.place(section, reference.text).filter(|_| !self.is_block(reference));
        if let Some(known) = place.map(|at| &self.known[at]) {
            known.used.set(true);
            return known.body.clone();
        }
        if self.is_block(reference) || !is_path(reference.text) {
            return Some(Body::inline(reference, &self.source));
        }
        if reference.text.contains('/') || reference.text.ends_with(".md") {
            return self.file(reference);
        }
        if self.unreadable.contains(&section) {
            return None;
        }
        let names: Vec<&str> = self.names(section).collect();
        let message = format!(
            "`{}` names `{}`, which `{}` does not have",
            section.user(),
            reference.text,
            section.key()
        );
        let finding = Diagnostic::error(lints::UNKNOWN_NAME, reference.span, message);
        user.push(match &names[..] {
            [] => finding.hint(format!(
                "add `{}` with the path of its file to `{}`",
                reference.text,
                section.key()
            )),
            names => suggested(finding, reference.text, names),
        });
        None
    }

    /// Whether a text is a YAML block scalar. That is a text, even of a single word; only other scalars can be keys.
    pub(crate) fn is_block(&self, text: Text<'_>) -> bool {
        // The span begins at the content, on a line after the header: `|`, `>-`, `|2`, perhaps with a comment.
        let before = self.source.get(..text.span.start as usize).unwrap_or_default();
        if !before.trim_end_matches(' ').ends_with('\n') {
            return false;
        }
        let header = before.trim_end().lines().next_back().unwrap_or_default();
        let header = header.split_once(" #").map_or(header, |(header, _)| header).trim_end();
        let mark = header.rsplit(' ').next().unwrap_or_default();
        let style = mark.strip_prefix(['|', '>']);
        style.is_some_and(|style| style.chars().all(|char| matches!(char, '+' | '-' | '0'..='9')))
    }

    /// Whether a map has this key.
    pub(crate) fn has(&self, section: Section, name: &str) -> bool {
        self.place(section, name).is_some()
    }

    fn place(&self, section: Section, name: &str) -> Option<usize> {
        self.places.get(&(section, name.into())).copied()
    }

    fn names(&self, section: Section) -> impl Iterator<Item = &str> {
        self.known.iter().filter(move |known| known.section == section).map(|known| &*known.name)
    }

    /// Reports entries without a reference.
    pub(crate) fn report_unused(&self) {
        let unused = self.known.iter().filter(|known| !known.used.get());
        for known in unused {
            let message = format!("nothing refers to `{}` of `{}`", known.name, known.section.key());
            let finding = Diagnostic::warning(lints::UNUSED_DEFINITION, known.span, message);
            let hint = format!("name it as `{}` of a movement, or remove it", known.section.user());
            self.desk.found.push(finding.hint(hint));
        }
    }
}

/// Whether a text is a path: one word, or one line with the extension of a text file. Any other text is inline.
pub(crate) fn is_path(text: &str) -> bool {
    let text = text.trim();
    !text.contains(char::is_whitespace) || (!text.contains('\n') && text.ends_with(".md"))
}
