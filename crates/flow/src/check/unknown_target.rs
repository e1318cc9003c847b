use super::Code;
use crate::{Diagnostic, Name};

pub(super) const CODE: Code = Code {
    name: "unknown-target",
    page: "\
unknown-target: a name leads to no step

A transition, an entry, a member or a monitor names a step that the definition does not have, or one that is no
step of its flow, as the sections of a step registry, which only other prompts include. A run that came there
could not go on.

Correct the name, or define the step. The hint names the nearest one there is.
",
};

pub(super) fn finding(name: &Name, from: &str, known: &[&str]) -> Diagnostic {
    let message = format!("{from} leads to `{}`, which is no step", name.text);
    let finding = Diagnostic::error(CODE.name, name.span, message);
    match nearest(&name.text, known) {
        Some(near) => finding.hint(format!("did you mean `{near}`?")),
        None => finding.hint("name a step of this definition"),
    }
}

/// The known name that differs least, when it differs little enough to be meant.
pub(super) fn nearest<'n>(name: &str, known: &[&'n str]) -> Option<&'n str> {
    let length = name.chars().count();
    // One slip in a name of two letters makes half of another name.
    let mut limit = if length < 3 { 0 } else { length / 3 };
    let mut found = None;
    for candidate in known {
        // So many characters have to come or go at least.
        if candidate.chars().count().abs_diff(length) > limit {
            continue;
        }
        if let Some(distance) = distance(name, candidate, limit) {
            found = Some(*candidate);
            match distance {
                0 => break,
                // Only a nearer one is better.
                _ => limit = distance - 1,
            }
        }
    }
    found
}

/// Levenshtein distance by characters, where it is not over a limit.
fn distance(a: &str, b: &str, limit: usize) -> Option<usize> {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, left) in a.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, right) in b.iter().enumerate() {
            let substitute = diagonal + usize::from(left != *right);
            diagonal = row[j + 1];
            row[j + 1] = substitute.min(row[j] + 1).min(row[j + 1] + 1);
        }
        // No later row is less than the least of this one.
        if row.iter().all(|distance| *distance > limit) {
            return None;
        }
    }
    Some(row[b.len()]).filter(|distance| *distance <= limit)
}

#[cfg(test)]
mod tests {
    use super::super::testing::{draft, findings_of};

    #[test]
    fn found_with_the_nearest_name() {
        let found = findings_of(draft("fix: next → reviw\nreview: done → end"));
        assert_eq!(found[0].code, "unknown-target");
        assert_eq!(found[0].message, "`fix` on `next` leads to `reviw`, which is no step");
        assert_eq!(found[0].hint.as_deref(), Some("did you mean `review`?"));
        assert!(findings_of(draft("fix: next → review\nreview: done → end")).is_empty());
    }
}
