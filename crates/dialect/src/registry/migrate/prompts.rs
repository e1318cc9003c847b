//! The prompts, copied as they are. What they tell an agent to decide is theirs to say anew.

use super::super::builtin::{self, built_in};
use super::super::variables::Variables;
use super::{Migration, Source};
use crate::desk::Page;
use crate::files::lies_in;

/// Words that agents were told and that mean nothing now.
const WORDS: [&str; 2] = ["complete", "escalate"];

/// What the system prompt is called where it lies in no folder of prompts.
pub(super) const SYSTEM: &str = "system.md";

/// Where the prompts that were read come to lie.
pub(super) struct Copies {
    /// From where, and to where in the new folder.
    files: Vec<(String, String)>,
    /// Where the system prompt comes to lie.
    pub(super) system: String,
}

/// Finds a place for every prompt that was read: one each, also for a system prompt among the others.
pub(super) fn plan(read: &[String], source: &Source<'_, '_, '_>) -> Copies {
    let found = &source.desk.found;
    let mut bases: Vec<String> = Vec::new();
    if let Some(base) = source.registry.prompts_base {
        bases.extend(source.places.candidates(base.text, base.span, found));
    }
    bases.extend(source.places.candidates(source.agent.fallback_dir.0, source.registry.span, found));
    let mut files: Vec<(String, String)> = Vec::new();
    for base in bases.iter().map(String::as_str) {
        for path in read.iter().filter(|path| lies_in(path, base) && !is_document(path)) {
            let to = format!("prompts/{}", path[base.len()..].trim_start_matches('/'));
            // The first of two that come to the same place is the one that was found first.
            if !files.iter().any(|(from, known)| *known == to || from == path) {
                files.push((path.clone(), to));
            }
        }
    }
    let system = system_of(read, source);
    let among = system.as_ref().and_then(|system| files.iter().find(|(from, _)| from == system));
    let place = among.map_or(SYSTEM.to_owned(), |(_, to)| to.clone());
    if let Some(system) = system.filter(|_| among.is_none()) {
        files.push((system, place.clone()));
    }
    Copies { files, system: place }
}

/// The file of the system prompt.
fn system_of(read: &[String], source: &Source<'_, '_, '_>) -> Option<String> {
    let written = source.agent.system_prompt?;
    let candidates = source.places.candidates(written.text, written.span, &source.desk.found);
    candidates.into_iter().find(|path| read.contains(path))
}

/// Copies them.
pub(super) fn migrate(copies: &Copies, source: &Source<'_, '_, '_>, migration: &mut Migration) {
    for (from, to) in &copies.files {
        copy(from, to, source, migration);
    }
    if !copies.files.iter().any(|(_, to)| *to == copies.system) {
        migration.put(&copies.system, built_in_system(source));
    }
}

/// Copies the system prompt alone.
pub(super) fn system(read: &[String], source: &Source<'_, '_, '_>, migration: &mut Migration) {
    let text = system_of(read, source).and_then(|path| match source.desk.page(&path) {
        Page::Text { text, .. } => Some(text.to_string()),
        _ => None,
    });
    migration.put(SYSTEM, text.unwrap_or_else(|| built_in_system(source)));
}

/// What a registry that stood alone told its agents.
fn built_in_system(source: &Source<'_, '_, '_>) -> String {
    let Source { agent, registry, desk, loaded, .. } = source;
    let variables = Variables::new(&loaded.draft.params, (&registry.steps, &registry.unread), &agent.told);
    built_in(builtin::SYSTEM, None, &variables, desk).map_or_else(String::new, |file| file.text.to_string())
}

/// Whether a file is a part of the definition that is written anew.
fn is_document(path: &str) -> bool {
    path.ends_with(".json") || path.ends_with(".yml")
}

/// Copies a prompt.
fn copy(path: &str, to: &str, source: &Source<'_, '_, '_>, migration: &mut Migration) {
    let Page::Text { text, .. } = source.desk.page(path) else { return };
    for (number, line) in text.lines().enumerate() {
        let quoted = |word: &str| ['"', '\'', '`'].iter().any(|q| line.contains(&format!("{q}{word}{q}")));
        if let Some(word) = WORDS.into_iter().find(|word| quoted(word)) {
            let what = match word {
                "complete" => "`handoff` in work steps and `closing` in closure steps",
                _ => "`abort`",
            };
            let text = format!("line {} says `{word}`: agents say {what} now", number + 1);
            migration.note(to, text, true);
        }
    }
    migration.put(to, text.to_string());
}
