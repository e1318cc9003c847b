//! Keys of steps that were changed while everything else goes on calling the step as it calls itself.

use cuegate_flow::diagnostics::{Diagnostic, Span};

use crate::lints;
use crate::source::findings::Findings;
use crate::values::json::{Entry, Json, Kind};

/// Where the steps of a registry stand, and those that answer before a step completes the run.
const SECTIONS: [&str; 3] = ["steps", "validationSteps", "completionSteps"];

/// Says of each step that calls itself otherwise than its key does which of the two is wrong, where all others agree:
/// then the key is read as what they say.
/// `own` is the key under which a step calls itself.
pub(crate) fn check_keys(registry: &Json, own: &str, found: &Findings) {
    for section in SECTIONS {
        let Some(Kind::Object(steps)) = registry.get(section).map(|steps| &steps.kind) else { continue };
        for entry in steps {
            let Some(written) = entry.value.get(own).filter(|written| written.as_text() != Some(&entry.key))
            else {
                continue;
            };
            let Some(id) =
                written.as_text().filter(|id| !steps.iter().any(|other| other.key.as_ref() == *id))
            else {
                continue;
            };
            let is_named = |id: &str| is_named(registry, (section, own), id);
            if is_named(id) && !is_named(&entry.key) {
                replace(entry, id, written.span, found);
            }
        }
    }
}

fn replace(entry: &Entry, id: &str, written: Span, found: &Findings) {
    let own = |known: &Diagnostic| known.code == lints::STEP_ID_MISMATCH && known.span == written;
    if found.take(own).is_empty() {
        return;
    }
    let message =
        format!("the step of key `{}` calls itself `{id}`, and so does all that names it", entry.key);
    let finding = Diagnostic::error(lints::STEP_ID_MISMATCH, entry.key_span, message);
    found.push(finding.step(&entry.key).meant(id));
}

/// Whether something of a registry names a step of a section: leads to it, begins with it, reads what it leaves, or is
/// another section's step of this name.
fn is_named(registry: &Json, (section, own): (&str, &str), id: &str) -> bool {
    let others = SECTIONS.iter().filter(|other| **other != section);
    let mut others = others.filter_map(|other| registry.get(other));
    others.any(|steps| steps.get(id).is_some()) || says(registry, own, id)
}

fn says(json: &Json, own: &str, id: &str) -> bool {
    match &json.kind {
        Kind::Text(text) => {
            text.strip_prefix(id).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
        }
        Kind::List(items) => items.iter().any(|item| says(item, own, id)),
        // What a schema is called is no name of a step.
        Kind::Object(entries) => entries
            .iter()
            .filter(|entry| ![own, "outputSchemaRef"].contains(&&*entry.key))
            .any(|entry| says(&entry.value, own, id)),
        _ => false,
    }
}
