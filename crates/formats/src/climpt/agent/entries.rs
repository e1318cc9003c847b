//! Selects where runs begin: `entryStepMapping` by verdict type, else `entryStep`.

use cuegate_flow::diagnostics::Diagnostic;

use super::completion_type::VERDICT_TYPES;
use super::legacy::OLDER_TYPES;
use crate::climpt::generation::Generation;
use crate::codes;
use crate::suggest::{add_suggestion, find_nearest_name, format_suggestion};
use crate::values::json::{Fields, Text};

/// The verdict types and their names in the "complete" generation.
pub(crate) const COMPLETION_TYPES: [&str; 8] = {
    let mut words = [""; 8];
    let mut at = 0;
    while at < words.len() {
        words[at] = OLDER_TYPES[at].0;
        at += 1;
    }
    words
};

/// The verdict type that a `completionType` names, by its older or its newer name.
pub(crate) fn completion_type(word: &str) -> Option<&'static str> {
    let older = OLDER_TYPES.iter().find(|(older, _)| *older == word).map(|(_, newer)| *newer);
    older.or_else(|| VERDICT_TYPES.into_iter().find(|newer| *newer == word))
}

/// The name of a verdict type in the "complete" generation.
pub(crate) fn older_name(kind: &str) -> &str {
    OLDER_TYPES.iter().find(|(_, newer)| *newer == kind).map_or(kind, |(older, _)| older)
}

/// Reads `entryStepMapping`: verdict types by their newer names, and steps.
pub(crate) fn read_mapping<'j>(fields: &Fields<'j, '_>, generation: Generation) -> Vec<(&'j str, Text<'j>)> {
    let mut mapping: Vec<(&'j str, Text<'j>)> = Vec::new();
    for entry in fields.names("entryStepMapping") {
        let key: &'j str = &entry.key;
        let kind = match generation {
            Generation::Complete => completion_type(key),
            Generation::Closing | Generation::Check => VERDICT_TYPES.into_iter().find(|kind| *kind == key),
        };
        if kind.is_none() {
            report_unknown(key, entry.key_span, generation, fields);
        }
        let Some(text) = entry.value.as_text() else {
            fields.wrong_type(key, &entry.value, "the name of a step");
            continue;
        };
        if mapping.iter().any(|(known, _)| Some(*known) == kind) {
            let message = format!("`{key}` names a type that `entryStepMapping` has already");
            fields.inert(entry.key_span, message, "keep one of the two");
        }
        mapping.push((kind.unwrap_or(key), Text { text, span: entry.value.span }));
    }
    mapping
}

/// Reports a key of the mapping that is not a verdict type. Registries of the "complete" generation use domain names
/// there, which no run can have: no run starts by them, which deserves only a warning.
fn report_unknown(
    key: &str,
    span: cuegate_flow::diagnostics::Span,
    generation: Generation,
    fields: &Fields<'_, '_>,
) {
    if generation == Generation::Complete {
        let message = format!("unknown completion type `{key}` in `entryStepMapping`: no run begins by it");
        fields.push(match find_nearest_name(key, COMPLETION_TYPES) {
            Some(near) => Diagnostic::error(codes::UNKNOWN_NAME, span, message).did_you_mean(near),
            None => Diagnostic::warning(codes::UNKNOWN_NAME, span, message)
                .hint(format_suggestion(key, &COMPLETION_TYPES)),
        });
        return;
    }
    if let Some((_, now)) = OLDER_TYPES.iter().find(|(older, _)| *older == key) {
        let (older, this) = (Generation::Complete.name(), generation.name());
        let message =
            format!("`{key}` in `entryStepMapping` is a type of {older}, and this registry is of {this}");
        let hint = format!("it is called `{now}` now");
        fields.push(Diagnostic::error(codes::MIXED_GENERATIONS, span, message).hint(hint));
        return;
    }
    let message = format!("unknown verdict type `{key}` in `entryStepMapping`");
    let finding = Diagnostic::error(codes::UNKNOWN_NAME, span, message);
    fields.push(add_suggestion(finding, key, &VERDICT_TYPES));
}

/// The entry step of a run: the one mapped to its verdict type, else the general one.
pub fn entry_step<'e, T>(
    verdict_type: &str,
    mapping: impl IntoIterator<Item = (&'e str, T)>,
    entry_step: Option<T>,
) -> Option<T> {
    mapping.into_iter().find(|(key, _)| *key == verdict_type).map(|(_, step)| step).or(entry_step)
}

#[cfg(test)]
mod tests {
    use super::{completion_type, entry_step, older_name};

    #[test]
    fn completion_types_have_two_names() {
        for word in super::COMPLETION_TYPES {
            let newer = completion_type(word).unwrap();
            assert_eq!((older_name(newer), completion_type(newer)), (word, Some(newer)));
        }
        assert_eq!(completion_type("issue"), None);
    }

    #[test]
    fn the_mapping_wins_over_the_general_entry() {
        let mapping = [("poll:state", "a"), ("count:iteration", "b")];
        assert_eq!(entry_step("count:iteration", mapping, Some("c")), Some("b"));
        assert_eq!(entry_step("meta:custom", mapping, Some("c")), Some("c"));
        assert_eq!(entry_step("meta:custom", mapping, None), None);
    }
}
