//! The prompts, copied as they are. What they tell an agent to decide is theirs to say anew.

use super::{Migration, Source};
use crate::desk::Page;
use crate::files::lies_in;

/// Words that agents were told and that mean nothing now.
const WORDS: [&str; 2] = ["complete", "escalate"];

/// Copies every prompt that was read.
pub(super) fn migrate(read: &[String], source: &Source<'_, '_, '_>, migration: &mut Migration) {
    let found = &source.desk.found;
    let mut bases: Vec<String> = Vec::new();
    if let Some(base) = source.registry.prompts_base {
        bases.extend(source.places.candidates(base.text, base.span, found));
    }
    bases.extend(source.places.candidates(source.agent.fallback_dir.0, source.registry.span, found));
    let system = source.agent.system_prompt.and_then(|written| {
        let candidates = source.places.candidates(written.text, written.span, found);
        candidates.into_iter().find(|path| read.contains(path))
    });
    for base in bases.iter().map(String::as_str) {
        for path in read.iter().filter(|path| lies_in(path, base) && !is_document(path)) {
            let relative = path[base.len()..].trim_start_matches('/');
            copy(path, &format!("prompts/{relative}"), source, migration);
        }
    }
    match system {
        Some(path) => copy(&path, "system.md", source, migration),
        None => migration.files.push(("system.md".to_owned(), String::new())),
    }
}

/// Whether a file is a part of the definition that is written anew.
fn is_document(path: &str) -> bool {
    path.ends_with(".json") || path.ends_with(".yml")
}

/// Copies a prompt; the first of two that come to the same place is the one that was found first.
fn copy(path: &str, to: &str, source: &Source<'_, '_, '_>, migration: &mut Migration) {
    if migration.files.iter().any(|(known, _)| known == to) {
        return;
    }
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
    migration.files.push((to.to_owned(), text.to_string()));
}
