//! What of a piece could not be read: what would have been named there is not unused, and not unwritten.

use std::collections::BTreeSet;

use cuegate_flow::diagnostics::{Severity, Span};

use super::sections::Section;
use crate::source::findings::Findings;
use crate::values::json::{Entry, Json, Kind};

/// What stands where nothing could be read, or nobody reads.
#[derive(Default)]
pub(super) struct Unread<'j> {
    /// The maps of which something may be meant there.
    pub(super) sections: Vec<Section>,
    /// Every text there.
    pub(super) texts: BTreeSet<&'j str>,
    /// Whether reports may be written there.
    pub(super) reports: bool,
}

impl<'j> Unread<'j> {
    /// Of a piece of which errors were found.
    pub(super) fn of(piece: &'j Json, found: &Findings) -> Unread<'j> {
        let mut unread = Unread::default();
        let places = error_places(piece.span, found);
        if !places.is_empty() {
            unread.walk(piece, &places, found, false);
        }
        unread
    }

    /// Looks for the places of errors: at a key, at its value, or at an item of a list.
    fn walk(&mut self, json: &'j Json, places: &BTreeSet<Span>, found: &Findings, in_contracts: bool) {
        match &json.kind {
            Kind::List(items) => items.iter().for_each(|item| self.walk(item, places, found, in_contracts)),
            Kind::Object(entries) => {
                let mut seen = BTreeSet::new();
                let is_rest = found.begins_in_doubt(json.span);
                for entry in entries {
                    // Of a key that stands twice the first is read, and who has no name cannot be read at all.
                    let again = !seen.insert(&*entry.key);
                    let in_contracts = in_contracts || &*entry.key == "output_contracts";
                    let is_item = |item: &Json| places.contains(&item.span);
                    let items = matches!(&entry.value.kind, Kind::List(items) if items.iter().any(is_item));
                    let is_wrong = places.contains(&entry.key_span) || places.contains(&entry.value.span);
                    if is_wrong || items || again || is_rest {
                        self.add(entry, in_contracts);
                    }
                    self.walk(&entry.value, places, found, in_contracts);
                }
            }
            _ => {}
        }
    }

    fn add(&mut self, entry: &'j Entry, in_contracts: bool) {
        let key = &*entry.key;
        self.sections.extend(Section::ALL.into_iter().filter(|section| section.user() == key));
        let is_more = matches!(entry.value.kind, Kind::Object(_) | Kind::List(_));
        // Who cannot be known by a name writes reports all the same.
        if in_contracts || is_more || key == "name" {
            self.reports = true;
        }
        if in_contracts {
            self.sections.push(Section::ReportFormats);
        }
        self.add_texts(&entry.value);
    }

    fn add_texts(&mut self, json: &'j Json) {
        match &json.kind {
            Kind::Text(text) => {
                self.texts.insert(text.trim());
            }
            Kind::List(items) => items.iter().for_each(|item| self.add_texts(item)),
            Kind::Object(entries) => entries.iter().for_each(|entry| self.add_texts(&entry.value)),
            _ => {}
        }
    }
}

/// Where in the file of a piece errors are that no other word is meant by: what is misspelt is read as what was meant.
fn error_places(piece: Span, found: &Findings) -> BTreeSet<Span> {
    found.places(|known| {
        known.span.file == piece.file && known.meant.is_none() && known.severity == Severity::Error
    })
}
