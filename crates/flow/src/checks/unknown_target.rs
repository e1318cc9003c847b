use super::Code;
use crate::{
    diagnostics::{Diagnostic, find_nearest_name},
    model::Name,
};

pub(super) const CODE: Code = code!("unknown-target");

/// The finding, and whether there is a step with a similar name.
pub(super) fn build_target_finding(name: &Name, from: &str, known: &[&str]) -> (Diagnostic, bool) {
    let message = format!("{from} leads to the undefined step `{}`", name.text);
    let finding = Diagnostic::error(CODE.name, name.span, message);
    match find_nearest_name(&name.text, known.iter().copied()) {
        Some(near) => (finding.hint(format!("did you mean `{near}`?")), true),
        None => (finding.hint("name a step of this definition, or define it"), false),
    }
}

#[cfg(test)]
mod tests {
    use crate::checks::testing::{draft, findings_of};

    #[test]
    fn found_with_the_nearest_name() {
        let found = findings_of(draft("fix: next → reviw\nreview: done → end"));
        assert_eq!(found[0].code, "unknown-target");
        assert_eq!(found[0].message, "`fix` on `next` leads to the undefined step `reviw`");
        assert_eq!(found[0].hint.as_deref(), Some("did you mean `review`?"));
        assert!(findings_of(draft("fix: next → review\nreview: done → end")).is_empty());
        // One that is gone is gone once; several that are misspelt are several.
        let found = findings_of(draft("a: x → zzzzzz, y → zzzzzz, z → zzzzzz, u → bbbb\nbbb: done → end"));
        let said: Vec<&str> = found.iter().map(|found| found.message.as_str()).collect();
        let gone = "`a` on `x` leads to the undefined step `zzzzzz`; so do 2 more places";
        assert_eq!(said, [gone, "`a` on `u` leads to the undefined step `bbbb`"]);
    }
}
