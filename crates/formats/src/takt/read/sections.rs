//! The texts that steps name: by keys of maps in the workflow, by paths, or by the names of files of facets.

use std::cell::Cell;
use std::collections::HashMap;
use std::sync::Arc;

use cuegate_flow::{
    Str,
    diagnostics::{Diagnostic, Span},
};

pub(crate) use super::facet_text::{Context, FacetText};
use super::workflow::list_workflow_keys;
use crate::codes;
use crate::source::files::join_path;
use crate::source::loader::{LoadedFile, SourceLoader};
use crate::suggest::add_suggestion;
use crate::takt::compose::{HOME, INSTALL, WorkflowScope};
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
    pub(in crate::takt) const ALL: [Section; 5] = [
        Section::Personas,
        Section::Policies,
        Section::Knowledge,
        Section::Instructions,
        Section::ReportFormats,
    ];

    /// The key of the map in the workflow.
    pub(crate) fn key(self) -> &'static str {
        match self {
            Section::Personas => "personas",
            Section::Policies => "policies",
            Section::Knowledge => "knowledge",
            Section::Instructions => "instructions",
            Section::ReportFormats => "report_formats",
        }
    }

    /// The folders of files that a bare name means: of current versions, and of older ones.
    fn folders(self) -> &'static [&'static str] {
        match self {
            Section::Personas => &["facets/personas", "personas", "agents"],
            Section::Policies => &["facets/policies", "policies"],
            Section::Knowledge => &["facets/knowledge", "knowledge"],
            Section::Instructions => &["facets/instructions", "instructions"],
            Section::ReportFormats => &["facets/output-contracts", "output-contracts"],
        }
    }

    /// The key of a step that refers to its entries.
    pub(in crate::takt) fn user(self) -> &'static str {
        match self {
            Section::Personas => "persona",
            Section::Policies => "policy",
            Section::Knowledge => "knowledge",
            Section::Instructions => "instruction",
            Section::ReportFormats => "format",
        }
    }
}

/// An entry of a map.
struct SectionEntry {
    section: Section,
    name: Str,
    span: Span,
    /// `None` if it could not be read; a finding says why.
    body: Option<FacetText>,
    used: Cell<bool>,
}

/// The maps of a workflow.
#[derive(Default)]
struct Maps {
    known: Vec<SectionEntry>,
    /// The index of each entry by map and key; the first one for repeated keys.
    places: HashMap<(Section, Str), usize>,
    /// Maps that could not be read; findings say why.
    unreadable: Vec<Section>,
}

/// The keys of a called workflow that are read elsewhere, besides those of [`list_workflow_keys`].
const OTHER_KEYS: [&str; 10] = [
    "name",
    "description",
    "max_steps",
    "max_iterations",
    "max_movements",
    "initial_step",
    "initial_movement",
    "steps",
    "movements",
    "loop_monitors",
];

/// How deep files may include each other.
const INCLUDES_MAX: usize = 16;

/// All texts that the steps of a workflow may name.
pub(crate) struct Sections<'d, 'f> {
    loader: &'d SourceLoader<'f>,
    scopes: &'d [WorkflowScope],
    contexts: Vec<Arc<Context>>,
    /// The index of the maps of each scope.
    maps_of: Vec<usize>,
    maps: Vec<Maps>,
    /// The scope of the step that is being read.
    current: Cell<usize>,
}

impl<'d, 'f> Sections<'d, 'f> {
    /// Reads the maps of a workflow and of the workflows that it calls.
    pub(crate) fn read(
        workflow: &Fields<'_, '_>,
        loader: &'d SourceLoader<'f>,
        scopes: &'d [WorkflowScope],
    ) -> Self {
        let context = |scope: &WorkflowScope| {
            Arc::new(Context { prefixes: scope.prefixes.clone(), vars: scope.vars.clone() })
        };
        let contexts = scopes.iter().map(context).collect();
        let (maps_of, maps, current) = (Vec::new(), Vec::new(), Cell::new(0));
        let mut sections = Sections { loader, scopes, contexts, maps_of, maps, current };
        for at in 0..sections.scopes.len() {
            sections.current.set(at);
            let root = sections.scopes[at].root.clone();
            let same = (0..at).find(|other| Arc::ptr_eq(&sections.scopes[*other].root, &root));
            if let Some(other) = same {
                sections.maps_of.push(sections.maps_of[other]);
                continue;
            }
            sections.maps_of.push(sections.maps.len());
            if at == 0 {
                sections.read_maps(workflow);
                continue;
            }
            let Some(fields) = Fields::of(&root, "the workflow", None, &loader.found) else {
                sections.maps.push(Maps::default());
                continue;
            };
            sections.read_maps(&fields);
            for key in OTHER_KEYS.into_iter().chain(list_workflow_keys()) {
                fields.shunned(key);
            }
            fields.finish();
        }
        sections.current.set(0);
        sections
    }

    /// Reads the maps of one workflow.
    fn read_maps(&mut self, workflow: &Fields<'_, '_>) {
        let mut maps = Maps::default();
        for section in Section::ALL {
            let written = workflow.nullable(section.key());
            if written.is_some_and(|written| !matches!(written.value.kind, Kind::Object(_))) {
                maps.unreadable.push(section);
            }
            for entry in workflow.names(section.key()) {
                let body = match entry.value.as_text() {
                    Some(text) => self.value(section, Text { text, span: entry.value.span }),
                    None => {
                        workflow.wrong_type(&entry.key, &entry.value, "the path of a file");
                        None
                    }
                };
                let place = (section, entry.key.clone());
                maps.places.entry(place).or_insert(maps.known.len());
                maps.known.push(SectionEntry {
                    section,
                    name: entry.key.clone(),
                    span: entry.key_span,
                    body,
                    used: Cell::default(),
                });
            }
        }
        self.maps.push(maps);
    }

    /// Begins to read a step, a member or a monitor of this scope: names in it mean those of its workflow.
    pub(crate) fn enter(&self, scope: usize) {
        self.current.set(scope);
    }

    /// The scope of what is being read.
    pub(in crate::takt) fn scope(&self) -> &WorkflowScope {
        &self.scopes[self.current.get()]
    }

    fn own(&self) -> &Maps {
        &self.maps[self.maps_of[self.current.get()]]
    }

    /// What names of reports of the present step begin with.
    pub(crate) fn report_prefix(&self) -> &str {
        self.scope().prefixes.first().map_or("", String::as_str)
    }

    /// The rules for all steps.
    pub(crate) fn rules(&self) -> Vec<FacetText> {
        let rules = self.scope().rules.clone();
        rules.iter().filter_map(|(path, span)| self.file_at(path, *span)).collect()
    }

    /// A text that is written in the workflow itself.
    /// What the names of steps begin with that texts and rules of the current step mean.
    pub(crate) fn prefixes(&self) -> Vec<String> {
        self.contexts[self.current.get()].prefixes.clone()
    }

    pub(crate) fn inline(&self, text: Text<'_>) -> FacetText {
        let context = self.contexts[self.current.get()].clone();
        let source = self.loader.text_of(text.span.file);
        FacetText { text: text.text.into(), span: text.span, source, context, stem: None }
    }

    /// Resolves several references as one text.
    pub(crate) fn joined(
        &self,
        section: Section,
        all: &[Text<'_>],
        user: &Fields<'_, '_>,
    ) -> Option<FacetText> {
        FacetText::joined(all.iter().filter_map(|text| self.resolve(section, *text, user)).collect())
    }

    /// Resolves the value of an entry: a path, or the text itself.
    fn value(&self, section: Section, text: Text<'_>) -> Option<FacetText> {
        if text.text.trim().is_empty() {
            let message = format!("an entry of `{}` is empty", section.key());
            let finding = Diagnostic::error(codes::INVALID_VALUE, text.span, message);
            self.loader.found.push(finding.hint("name a file, relative to the workflow's folder"));
            return None;
        }
        if !is_path(text.text) {
            return Some(self.inline(text));
        }
        let name = text.text.trim();
        if is_marked_path(name) || self.is_file(name) {
            return self.file(text);
        }
        match self.facet(section, name) {
            Some(path) => self.file_at(&path, text.span),
            None if self.scope().layers.has_installed(self.loader) => {
                self.loader.found.push(self.used_as_text(section.key(), section, text));
                Some(self.inline(text))
            }
            None => self.file(text),
        }
    }

    /// The file of a facet that a name means.
    fn facet(&self, section: Section, name: &str) -> Option<String> {
        self.scope().layers.find(self.loader, section.folders(), name, &[".md"])
    }

    /// Warns of a name without a file: TAKT takes the name for the text.
    fn used_as_text(&self, key: &str, section: Section, name: Text<'_>) -> Diagnostic {
        let message =
            format!("`{key}` names `{}`, which is not found; the name itself becomes the text", name.text);
        let places = self.scope().layers.places(section.folders()[0], name.text);
        Diagnostic::warning(codes::UNKNOWN_NAME, name.span, message).hint(format!(
            "add `{}.md` to one of {places}, or write the text itself here, as a whole sentence",
            name.text
        ))
    }

    /// Reads a file at a path relative to the workflow's folder.
    fn file(&self, path: Text<'_>) -> Option<FacetText> {
        let found = &self.loader.found;
        let joined = match path.text.strip_prefix(HOME) {
            // Before version 0.8, the personas of TAKT lay there as well.
            Some(inside) if inside.starts_with('/') => {
                let leads_out = inside.split('/').any(|part| part == "..");
                join_path(HOME, &inside[1..]).filter(|_| !leads_out)
            }
            _ => join_path(&self.scope().folder, path.text).filter(|_| !path.text.starts_with('~')),
        };
        let Some(joined) = joined else {
            let message = format!("`{}` leads out of the folder above the workflow's", path.text);
            let finding = Diagnostic::error(codes::ESCAPES_ROOT, path.span, message);
            found.push(
                finding
                    .hint("keep the files of a workflow in the project, beside its folder, or in `~/.takt`"),
            );
            return None;
        };
        self.file_at(&joined, path.span)
    }

    /// Reads a file that is named at a span.
    pub(in crate::takt) fn file_at(&self, joined: &str, named: Span) -> Option<FacetText> {
        let found = &self.loader.found;
        match self.loader.page_named(joined, named) {
            LoadedFile::Text { file, text } if text.trim().is_empty() => {
                let finding = Diagnostic::error(
                    codes::MISSING_PROMPT,
                    Span::start_of(file),
                    format!("`{joined}` is empty"),
                );
                found.push(finding.hint("write the text, or remove what names the file"));
                None
            }
            LoadedFile::Text { file, text } => {
                let name = joined.rsplit('/').next().unwrap_or(joined);
                let stem = name.rsplit_once('.').map_or(name, |(stem, _)| stem);
                let span = Span { file, start: 0, end: text.len() as u32 };
                let context = self.contexts[self.current.get()].clone();
                let whole = self.with_parents(&text, span, &mut vec![joined.to_owned()]);
                Some(FacetText { text: whole, span, source: text, context, stem: Some(stem.into()) })
            }
            LoadedFile::Missing => {
                let finding = Diagnostic::error(codes::UNREADABLE_FILE, named, self.loader.instead(joined));
                found.push(finding.hint(
                    "write that file, or correct the path, which is relative to the workflow's folder",
                ));
                None
            }
            LoadedFile::Faulty => None,
        }
    }

    /// A text with those that it extends, in the place of a line `{extends:NAME}`, and with what they include. A file that
    /// is read already is not its own parent: the next layer's of its name is. Personas extend none.
    fn with_parents(&self, text: &Str, at: Span, inside: &mut Vec<String>) -> Str {
        const OPEN: &str = "{extends:";
        let kind = inside.last().and_then(|path| path.rsplit('/').nth(1)).unwrap_or_default().to_owned();
        if !text.contains(OPEN) || matches!(&*kind, "personas" | "agents") {
            return self.with_includes(text, at, inside);
        }
        let (mut whole, mut offset) = (String::with_capacity(text.len()), at.start);
        for line in text.split_inclusive('\n') {
            let name = line.trim().strip_prefix(OPEN).and_then(|rest| rest.strip_suffix('}')).map(str::trim);
            let place = Span { start: offset, end: offset + line.trim_end().len() as u32, ..at };
            offset += line.len() as u32;
            let Some(name) = name else {
                whole.push_str(line);
                continue;
            };
            let kinds = [format!("facets/{kind}"), kind.clone()];
            let kinds = kinds.each_ref().map(String::as_str);
            let is_bare = !name.contains('/');
            let layers = &self.scope().layers;
            let path =
                is_bare.then(|| layers.find_other(self.loader, &kinds, name, &[".md"], inside)).flatten();
            let Some(path) = path.filter(|_| inside.len() <= INCLUDES_MAX) else {
                let is_there = is_bare && layers.find(self.loader, &kinds, name, &[".md"]).is_some();
                let (message, hint) = match is_there {
                    true => (
                        format!("`{name}` extends itself"),
                        "remove a line `{extends:…}`: no other layer has a text of this name".to_owned(),
                    ),
                    false => (
                        format!("the text `{name}` to extend is not found"),
                        format!("it is looked for by its name in {}; {INSTALL}", layers.places(kinds[0], "")),
                    ),
                };
                let finding = Diagnostic::error(codes::UNREADABLE_FILE, place, message);
                self.loader.found.push(finding.hint(hint));
                continue;
            };
            if let LoadedFile::Text { file, text } = self.loader.page_named(&path, place) {
                let span = Span { file, start: 0, end: text.len() as u32 };
                inside.push(path);
                whole.push_str(self.with_parents(&text, span, inside).trim_end());
                whole.push('\n');
                inside.pop();
            }
        }
        self.with_includes(&whole.into(), at, inside)
    }

    /// A text with the partial texts that it includes as `{{include:KIND/NAME}}`.
    fn with_includes(&self, text: &Str, at: Span, inside: &mut Vec<String>) -> Str {
        const OPEN: &str = "{{include:";
        if !text.contains(OPEN) {
            return text.clone();
        }
        let mut whole = String::with_capacity(text.len());
        let mut rest: &str = text;
        while let Some((before, after)) = rest.split_once(OPEN) {
            whole.push_str(before);
            let Some((name, tail)) = after.split_once("}}").filter(|(name, _)| !name.contains('\n')) else {
                whole.push_str(OPEN);
                rest = after;
                continue;
            };
            rest = tail;
            let name = name.trim();
            let offset = (text.len() - after.len() - OPEN.len()) as u32;
            let place = Span { start: at.start + offset, end: at.start + offset + OPEN.len() as u32, ..at };
            let path = self.scope().layers.find(self.loader, &["facets/partials"], name, &[".md"]);
            let refuse = |message: String, hint: String| {
                let finding = Diagnostic::error(codes::UNREADABLE_FILE, place, message);
                self.loader.found.push(finding.hint(hint));
            };
            let Some(path) = path else {
                let places = self.scope().layers.places("facets/partials", name);
                refuse(
                    format!("the text `{name}` to include is not found"),
                    format!("it is looked for in {places}; {INSTALL}"),
                );
                continue;
            };
            if inside.contains(&path) || inside.len() > INCLUDES_MAX {
                refuse(format!("`{name}` includes itself"), "remove one of the includes".to_owned());
                continue;
            }
            if let LoadedFile::Text { file, text } = self.loader.page_named(&path, place) {
                let span = Span { file, start: 0, end: text.len() as u32 };
                inside.push(path);
                whole.push_str(self.with_includes(&text, span, inside).trim_end());
                inside.pop();
            }
        }
        whole.push_str(rest);
        whole.into()
    }

    /// Resolves a reference of a step. Returns `None` after reporting an unknown key.
    pub(crate) fn resolve(
        &self,
        section: Section,
        reference: Text<'_>,
        user: &Fields<'_, '_>,
    ) -> Option<FacetText> {
        let place = self.place(section, reference.text).filter(|_| !self.is_block(reference));
        if let Some(known) = place.map(|at| &self.own().known[at]) {
            known.used.set(true);
            return known.body.clone();
        }
        if self.is_block(reference) || !self.is_reference(reference.text) {
            return Some(self.inline(reference));
        }
        if is_marked_path(reference.text) {
            return self.file(reference);
        }
        if self.own().unreadable.contains(&section) {
            return None;
        }
        if let Some(path) = self.facet(section, reference.text) {
            return self.file_at(&path, reference.span);
        }
        let layers = &self.scope().layers;
        let is_relative = reference.text.contains('/') && !reference.text.starts_with('@');
        if is_relative && (self.is_file(reference.text) || !layers.has_installed(self.loader)) {
            return self.file(reference);
        }
        let names: Vec<&str> = self.names(section).collect();
        let near = cuegate_flow::diagnostics::find_nearest_name(reference.text, names.iter().copied());
        // A name that resembles a key is a typing error.
        if near.is_none() && layers.has_installed(self.loader) {
            user.push(self.used_as_text(section.user(), section, reference));
            return Some(self.inline(reference));
        }
        let message = format!("`{}` names `{}`, which is not found", section.user(), reference.text);
        let finding = Diagnostic::error(codes::UNKNOWN_NAME, reference.span, message);
        user.push(match near {
            Some(_) => add_suggestion(finding, reference.text, &names),
            None => finding.hint(format!(
                "it is not a key of `{}`, and there is no file `{}.md` in {}; {INSTALL}",
                section.key(),
                reference.text,
                layers.places(section.folders()[0], reference.text)
            )),
        });
        None
    }

    /// Whether a text names a file or a key, and is not the text itself.
    fn is_reference(&self, text: &str) -> bool {
        let is_line = !text.contains('\n') && text.len() <= 200;
        is_path(text) || is_line && text.contains('/') && self.is_file(text)
    }

    /// Whether there is a file at a path relative to the folder of the workflow.
    fn is_file(&self, path: &str) -> bool {
        join_path(&self.scope().folder, path).is_some_and(|path| self.loader.is_file(&path))
    }

    /// Whether a text is a YAML block scalar. That is a text, even of a single word; only other scalars can be keys.
    pub(crate) fn is_block(&self, text: Text<'_>) -> bool {
        // The span begins at the content, on a line after the header: `|`, `>-`, `|2`, perhaps with a comment.
        let source = self.loader.text_of(text.span.file);
        let before = source.get(..text.span.start as usize).unwrap_or_default();
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
        self.own().places.get(&(section, name.into())).copied()
    }

    fn names(&self, section: Section) -> impl Iterator<Item = &str> {
        self.own().known.iter().filter(move |known| known.section == section).map(|known| &*known.name)
    }

    /// Reports entries without a reference.
    pub(crate) fn report_unused(&self) {
        let unused = self.maps.iter().take(1).flat_map(|maps| &maps.known).filter(|known| !known.used.get());
        for known in unused {
            let message = format!("nothing refers to `{}` of `{}`", known.name, known.section.key());
            let finding = Diagnostic::warning(codes::UNUSED_DEFINITION, known.span, message);
            let hint = format!("name it as `{}` of a step, or remove it", known.section.user());
            self.loader.found.push(finding.hint(hint));
        }
    }
}

/// Whether a reference is a path by its form; any other one with `/` may be a name in a subfolder of the facets.
fn is_marked_path(text: &str) -> bool {
    ["./", "../", "/", "~"].iter().any(|start| text.starts_with(start)) || text.ends_with(".md")
}

/// Whether a text is a key or a path: one word of ASCII letters, digits and `_`, `-`, `.`, `/` or `@`, or one line with the
/// extension of a text file, or a path in the home folder. Any other text is inline, also a word with a full stop: not all
/// languages have blanks between words.
pub(crate) fn is_path(text: &str) -> bool {
    let text = text.trim();
    let is_word = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.' | '/' | '@');
    !text.is_empty() && text.chars().all(is_word) && !text.ends_with('.')
        || (!text.contains('\n') && text.ends_with(".md"))
        || (text.starts_with("~/") && !text.contains(char::is_whitespace))
}
