//! Front matters that are none by a slip: without a second line of `---`, or without the blank behind a colon.

use std::collections::BTreeSet;

use cuegate_flow::diagnostics::{Diagnostic, Span};

use super::files::PromptFile;
use super::front_matter::KEYS;
use crate::lints;
use crate::source::findings::Findings;
use crate::templates::FrontMatter;

/// Reports a file that begins as with a front matter, which is part of the prompt all the same.
pub(crate) fn check_slips(file: &PromptFile, matter: &FrontMatter<'_>, found: &Findings) {
    if matter.matter.is_some() || matter.fault.is_some() {
        return;
    }
    let mut lines = file.text.split_inclusive('\n');
    let Some(first) = lines.next().filter(|line| line.trim_end() == "---") else { return };
    let mut at = first.len();
    let mut keys: Vec<(&str, usize, bool)> = Vec::new();
    let mut is_closed = false;
    for line in lines {
        is_closed = line.trim_end() == "---";
        if is_closed || line.trim().is_empty() {
            break;
        }
        keys.extend(key_of(line).map(|(key, apart)| (key, at, apart)));
        at += line.len();
    }
    let warn = |at: usize, length: usize, message: String, hint: &str| {
        let span = Span { file: file.file, start: at as u32, end: (at + length) as u32 };
        found.push(Diagnostic::warning(lints::INVALID_FRONT_MATTER, span, message).hint(hint));
    };
    let path = &file.path;
    match keys.first() {
        None => {}
        // One such line may be a sentence below a rule, where its key is a word of everyday.
        Some(_) if !is_closed && distinct(&keys) < 2 && !keys.iter().any(|(key, ..)| is_no_word(key)) => {}
        Some(_) if !is_closed => {
            let message =
                format!("the front matter of `{path}` has no end, so that it is part of the prompt");
            warn(0, 3, message, "write a line of `---` after it");
        }
        Some((key, at, _)) if keys.iter().all(|(_, _, apart)| !apart) => {
            let message = format!(
                "`{key}:` has no blank behind it, so that the front matter of `{path}` is part of the prompt"
            );
            warn(*at, key.len() + 1, message, "write a blank behind the colon");
        }
        Some(_) => {}
    }
}

/// Whether nobody begins a sentence with a key.
fn is_no_word(key: &str) -> bool {
    key.contains(char::is_uppercase)
}

/// How many different keys there are.
fn distinct(keys: &[(&str, usize, bool)]) -> usize {
    keys.iter().map(|(key, ..)| key).collect::<BTreeSet<_>>().len()
}

/// A key in a front matter that is no YAML because no blank follows its colon.
pub(crate) fn joined(file: &PromptFile) -> Option<(&str, usize)> {
    let mut lines = file.text.split_inclusive('\n');
    let mut at = lines.next()?.len();
    for line in lines.take_while(|line| line.trim_end() != "---") {
        if let Some((key, false)) = key_of(line) {
            return Some((key, at));
        }
        at += line.len();
    }
    None
}

/// The key that a line begins with, and whether a blank or nothing follows on its colon.
fn key_of(line: &str) -> Option<(&str, bool)> {
    let (key, rest) = line.split_once(':')?;
    KEYS.contains(&key).then(|| (key, rest.is_empty() || rest.starts_with(char::is_whitespace)))
}
