//! What hints say a mistyped name was probably meant to be.

use cuegate_flow::Diagnostic;
pub(crate) use cuegate_flow::nearest;

/// The sentence that goes into a hint: the nearest name, else the known ones.
pub(crate) fn suggestion(name: &str, known: &[&str]) -> String {
    match nearest(name, known.iter().copied()) {
        Some(near) => format!("did you mean `{near}`?"),
        None => format!("use one of {}", list(known)),
    }
}

/// A finding about a name that there is not, with the name that was probably meant.
pub(crate) fn suggested(finding: Diagnostic, name: &str, known: &[&str]) -> Diagnostic {
    or_hint(finding, name, known.iter().copied(), || format!("use one of {}", list(known)))
}

/// The same; where there is no near name it says what to do instead.
pub(crate) fn or_hint<'n>(
    finding: Diagnostic,
    name: &str,
    known: impl IntoIterator<Item = &'n str>,
    otherwise: impl FnOnce() -> String,
) -> Diagnostic {
    match nearest(name, known) {
        // What is there is not misspelt, whatever is wrong with it.
        Some(near) if near != name => finding.meant(near),
        _ => finding.hint(otherwise()),
    }
}

/// Names in backticks, separated by commas.
pub(crate) fn list<T: AsRef<str>>(names: &[T]) -> String {
    let quoted: Vec<String> = names.iter().map(|name| format!("`{}`", name.as_ref())).collect();
    quoted.join(", ")
}

#[cfg(test)]
mod tests {
    use super::suggestion;

    #[test]
    fn known_names_are_listed_where_none_is_near() {
        assert_eq!(suggestion("zzz", &["a", "b"]), "use one of `a`, `b`");
        assert_eq!(suggestion("nxt", &["repeat", "next"]), "did you mean `next`?");
    }
}
