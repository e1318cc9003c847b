use super::Code;
use crate::{diagnostics::Diagnostic, model::Draft};

pub(super) const CODE: Code = Code {
    name: "no-entry",
    page: "\
no-entry: nothing says where the flow begins

A run begins at the entry step. The definition names none that applies to it.

Name one: in a step registry `entryStep`, or `entryStepMapping` with the agent's verdict type; in a piece
`initial_movement`.
",
};

pub(super) fn check(draft: &Draft, found: &mut Vec<Diagnostic>) {
    // A dialect that knows more about the reason has reported it already and leaves no steps.
    if draft.entry.is_none() {
        found.push(
            Diagnostic::error(CODE.name, draft.span, format!("`{}` names no entry step", draft.name))
                .hint("name the step that a run begins with"),
        );
    }
}

#[cfg(test)]
mod tests {
    use crate::checks::testing::{codes_of, draft};

    #[test]
    fn found_and_mended() {
        let mut broken = draft("a: done → end");
        let entry = broken.entry.take();
        assert_eq!(codes_of(broken.clone()), ["no-entry"]);
        broken.entry = entry;
        assert!(codes_of(broken).is_empty());
    }
}
