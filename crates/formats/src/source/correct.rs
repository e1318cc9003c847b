//! What is misspelt is read as what was probably meant.
//!
//! A misspelt key or name is one mistake. Read as it stands it is many: something is missing, something else is not
//! allowed, steps cannot be reached, values have no source. So a definition in which words are misspelt is read again
//! with the words that were probably meant in their places, and what is found then is found, beside the misspelt words,
//! of what the author meant to write.

use std::collections::{BTreeMap, BTreeSet};

use cuegate_flow::{
    Str,
    diagnostics::{Diagnostic, FileId, Severity, Sources, Span, sort},
};

use crate::source::loaded::Loaded;
use crate::values::json::{Json, Kind};

/// How often a definition is read again at most: inside of what was not read before there may be more to correct.
const ROUNDS_MAX: usize = 8;

/// Where a word stands in a file: its first byte, and one past its last.
type Place = (u32, u32);

/// The words that are read in place of others: by file, and by where they stand in it.
#[derive(Debug, Default)]
pub(crate) struct Corrections {
    words: BTreeMap<Str, BTreeMap<Place, Str>>,
}

impl Corrections {
    /// Puts the words that were meant into what a file holds.
    pub(crate) fn apply(&self, path: &str, json: &mut Json) {
        if let Some(words) = self.words.get(path) {
            correct(json, words);
        }
    }

    fn has(&self, path: &str, span: Span) -> bool {
        self.words.get(path).is_some_and(|words| words.contains_key(&place(span)))
    }

    /// Takes over what was found to be meant; the findings that say so, with the paths of their files.
    fn learn(&mut self, loaded: &Loaded) -> Vec<(Str, Diagnostic)> {
        let mut learnt = Vec::new();
        for finding in loaded.diagnostics.iter().filter(|finding| finding.severity == Severity::Error) {
            let (Some(meant), Some(file)) = (&finding.meant, loaded.sources.get(finding.span.file)) else {
                continue;
            };
            if !self.has(&file.path, finding.span) {
                let words = self.words.entry(file.path.clone()).or_default();
                words.insert(place(finding.span), meant.clone());
                learnt.push((file.path.clone(), finding.clone()));
            }
        }
        learnt
    }
}

fn place(span: Span) -> Place {
    (span.start, span.end)
}

fn correct(json: &mut Json, words: &BTreeMap<Place, Str>) {
    match &mut json.kind {
        Kind::Text(text) => {
            if let Some(word) = words.get(&place(json.span)) {
                *text = word.clone();
            }
        }
        Kind::List(items) => {
            let known: BTreeSet<Str> = items.iter().filter_map(Json::as_text).map(Str::from).collect();
            for item in items {
                let is_there = words.get(&place(item.span)).is_some_and(|word| known.contains(word));
                if !is_there {
                    correct(item, words);
                }
            }
        }
        Kind::Object(entries) => {
            let known: BTreeSet<Str> = entries.iter().map(|entry| entry.key.clone()).collect();
            for entry in entries {
                // Where the key is there already, the other one was meant to be something else.
                if let Some(word) = words.get(&place(entry.key_span)).filter(|word| !known.contains(*word)) {
                    entry.key = word.clone();
                }
                correct(&mut entry.value, words);
            }
        }
        Kind::Null | Kind::Boolean(_) | Kind::Number(_) => {}
    }
}

/// Loads something, again with what is misspelt in it corrected, and says what was found.
pub(crate) fn load(read: impl Fn(&Corrections) -> Loaded) -> Loaded {
    let mut corrections = Corrections::default();
    let mut misspelt: Vec<(Str, Diagnostic)> = Vec::new();
    for _ in 0..ROUNDS_MAX {
        let loaded = read(&corrections);
        let learnt = corrections.learn(&loaded);
        if learnt.is_empty() {
            return finish(loaded, &corrections, misspelt);
        }
        misspelt.extend(learnt);
    }
    finish(read(&corrections), &corrections, misspelt)
}

/// Puts together what was found of a definition and what was misspelt in it.
fn finish(mut loaded: Loaded, corrections: &Corrections, misspelt: Vec<(Str, Diagnostic)>) -> Loaded {
    let Loaded { draft, diagnostics, sources, .. } = &mut loaded;
    // Of a word that is not the author's nothing more is said.
    let corrected = |finding: &Diagnostic, sources: &Sources| {
        sources.get(finding.span.file).is_some_and(|file| corrections.has(&file.path, finding.span))
    };
    diagnostics.retain(|finding| !corrected(finding, sources));
    let errors = diagnostics.iter().filter(|finding| finding.severity == Severity::Error);
    draft.faulted = errors.clone().count() > 0;
    let misread: BTreeSet<Str> = errors.filter_map(|finding| finding.step.clone()).collect();
    draft.misread = misread.into_iter().collect();
    for (path, mut finding) in misspelt {
        // The same file, whenever it was opened.
        if let Some(file) = sources.iter().position(|file| file.path == path) {
            finding.span.file = FileId(file as u32);
            diagnostics.push(finding);
        }
    }
    sort(diagnostics, sources);
    // What is read in several places, as an alias in YAML, is wrong in one.
    diagnostics.dedup_by(|a, b| a.code == b.code && a.span == b.span && a.message == b.message);
    loaded
}
