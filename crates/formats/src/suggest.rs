//! "Did you mean" hints for mistyped names.

use cuegate_flow::diagnostics::Diagnostic;
pub(crate) use cuegate_flow::diagnostics::find_nearest_name;

/// A sentence for a hint: the nearest name, else the known names.
pub(crate) fn format_suggestion(name: &str, known: &[&str]) -> String {
    match find_nearest_name(name, known.iter().copied()) {
        Some(near) => format!("did you mean `{near}`?"),
        None => format!("use one of {}", quote_names(known)),
    }
}

/// Adds a suggestion to a finding about an unknown name.
pub(crate) fn add_suggestion(finding: Diagnostic, name: &str, known: &[&str]) -> Diagnostic {
    or_hint(finding, name, known.iter().copied(), || format!("use one of {}", quote_names(known)))
}

/// As [`add_suggestion`], with another hint if no name is near.
pub(crate) fn or_hint<'n>(
    finding: Diagnostic,
    name: &str,
    known: impl IntoIterator<Item = &'n str>,
    otherwise: impl FnOnce() -> String,
) -> Diagnostic {
    match find_nearest_name(name, known) {
        // An equal name is not a typo, whatever else is wrong with it.
        Some(near) if near != name => finding.did_you_mean(near),
        _ => finding.hint(otherwise()),
    }
}

/// The known key that an unknown one was probably meant to be: the nearest, else one that starts or ends with it
/// (`timeout` for `timeout_ms`, `tools` for `allowed_tools`), else its singular.
pub(crate) fn guess_key<'n>(word: &str, known: impl IntoIterator<Item = &'n str>) -> Option<&'n str> {
    let known: Vec<&str> = known.into_iter().collect();
    if let Some(near) = find_nearest_name(word, known.iter().copied()) {
        return Some(near);
    }
    let singular = word.strip_suffix("ies").map(|stem| format!("{stem}y"));
    let is_meant = |key: &&&str| singular.as_deref() == Some(**key) || is_part(word, key);
    let mut meant = known.iter().filter(is_meant);
    let first = *meant.next()?;
    meant.all(|other| *other == first).then_some(first)
}

/// Whether a word is the start or the end of a key. Short words match too many keys.
fn is_part(word: &str, key: &str) -> bool {
    if word.len() < 4 {
        return false;
    }
    let ends = |rest: &str| {
        let mut letters = word.chars();
        let capital = letters.next().map(|first| first.to_ascii_uppercase()).into_iter().chain(letters);
        rest.ends_with('_') || capital.eq(key[rest.len()..].chars())
    };
    let at_end = key.len().checked_sub(word.len()).filter(|at| *at > 0 && key.is_char_boundary(*at));
    let is_end = at_end.is_some_and(|at| key[at..].eq_ignore_ascii_case(word) && ends(&key[..at]));
    key.starts_with(word) || is_end
}

pub(crate) fn quote_names<T: AsRef<str>>(names: &[T]) -> String {
    let quoted: Vec<String> = names.iter().map(|name| format!("`{}`", name.as_ref())).collect();
    quoted.join(", ")
}

#[cfg(test)]
mod tests {
    use super::{format_suggestion, guess_key};

    #[test]
    fn known_names_are_listed_where_none_is_near() {
        assert_eq!(format_suggestion("zzz", &["a", "b"]), "use one of `a`, `b`");
        assert_eq!(format_suggestion("nxt", &["repeat", "next"]), "did you mean `next`?");
    }

    #[test]
    fn a_part_of_a_key_is_that_key() {
        let known =
            ["timeout_ms", "allowed_tools", "policy", "policyFile", "structuredGate", "format", "cycle"];
        let of = |word| guess_key(word, known);
        assert_eq!(
            (of("timeout"), of("tools"), of("gate")),
            (Some("timeout_ms"), Some("allowed_tools"), Some("structuredGate"))
        );
        assert_eq!((of("policies"), of("form"), of("cycl")), (Some("policy"), Some("format"), Some("cycle")));
        assert_eq!((of("ools"), of("ms"), of("mat"), of("file")), (None, None, None, Some("policyFile")));
        assert_eq!(guess_key("tools", ["tools_allowed", "tools_denied"]), None, "two begin with it");
    }
}
