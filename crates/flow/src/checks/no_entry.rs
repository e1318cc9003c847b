use super::Code;
use crate::{diagnostics::Diagnostic, model::Draft};

pub(super) const CODE: Code = Code {
    name: "no-entry",
    page: "\
no-entry: the flow has no entry step

What it means: A run begins at the entry step. The definition names none that applies to it: there is no
`entryStep`, and `entryStepMapping` has no entry for the verdict type of the agent.

Why it matters: A run would not know where to begin.

Example:
    \"verdict\": { \"type\": \"detect:graph\" }                          (agent)
    \"entryStepMapping\": { \"count:iteration\": \"initial.fix\" }       (registry)

Fix: Name the step: in a registry `entryStep` or the verdict type in `entryStepMapping`, in a TAKT
workflow `initial_step`.
",
};

pub(super) fn check_entry(draft: &Draft, found: &mut Vec<Diagnostic>) {
    // A format that knows the reason has already reported it and leaves no steps.
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
