use crate::checks::Code;
use crate::{diagnostics::Diagnostic, model::Draft};

pub(in crate::checks) const CODE: Code = code!("no-entry");

pub(in crate::checks) fn check_entry(draft: &Draft, found: &mut Vec<Diagnostic>) {
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
