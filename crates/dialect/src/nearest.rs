//! What a mistyped name was probably meant to be.

/// Names longer than this are not compared: nobody mistypes them by hand, and comparing is quadratic.
const NAME_CHARS_MAX: usize = 64;

/// The known name that differs least, when it differs little enough to be meant.
pub fn nearest<'n>(name: &str, known: impl IntoIterator<Item = &'n str>) -> Option<&'n str> {
    let length = name.chars().count();
    if length > NAME_CHARS_MAX {
        return None;
    }
    let limit = (length / 3).max(1);
    known
        .into_iter()
        .filter(|candidate| candidate.chars().count() <= NAME_CHARS_MAX)
        .map(|candidate| (distance(name, candidate), candidate))
        .filter(|(distance, _)| *distance <= limit)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

/// The sentence that goes into a hint: the nearest name, else the known ones.
pub(crate) fn suggestion(name: &str, known: &[&str]) -> String {
    match nearest(name, known.iter().copied()) {
        Some(near) => format!("did you mean `{near}`?"),
        None => format!("use one of {}", list(known)),
    }
}

/// Names in backticks, separated by commas.
pub(crate) fn list<T: AsRef<str>>(names: &[T]) -> String {
    let quoted: Vec<String> = names.iter().map(|name| format!("`{}`", name.as_ref())).collect();
    quoted.join(", ")
}

/// Levenshtein distance by characters, without regard to case.
fn distance(a: &str, b: &str) -> usize {
    let lower = |text: &str| text.chars().flat_map(char::to_lowercase).collect::<Vec<char>>();
    let (a, b) = (lower(a), lower(b));
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, left) in a.iter().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, right) in b.iter().enumerate() {
            let substitute = diagonal + usize::from(left != right);
            diagonal = row[j + 1];
            row[j + 1] = substitute.min(row[j] + 1).min(row[j + 1] + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::{nearest, suggestion};

    #[test]
    fn finds_what_was_meant() {
        assert_eq!(nearest("stepkind", ["stepId", "stepKind"]), Some("stepKind"));
        assert_eq!(nearest("zzz", ["stepId", "stepKind"]), None);
        assert_eq!(suggestion("zzz", &["a", "b"]), "use one of `a`, `b`");
        assert_eq!(nearest(&"x".repeat(100), [&*"x".repeat(99)]), None);
    }
}
