use super::Code;
use crate::{Diagnostic, Name, nearest};

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
    match nearest(&name.text, known.iter().copied()) {
        Some(near) => finding.hint(format!("did you mean `{near}`?")),
        None => finding.hint("name a step of this definition"),
    }
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
