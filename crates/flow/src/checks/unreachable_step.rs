use super::Code;
use crate::analysis::reachability::Live;
use crate::{diagnostics::Diagnostic, model::Flow};

pub(super) const CODE: Code = Code {
    name: "unreachable-step",
    page: "\
unreachable-step: no run can come to this step

No path of transitions leads to it from the entry, nor from any other entry the definition names. It is dead
text, or a transition to it is missing.

Add the transition that was meant, or remove the step.
",
};

/// `live`: from the entry, and from any other one that the definition names.
pub(super) fn check(flow: &Flow, live: &Live, found: &mut Vec<Diagnostic>) {
    for (step, _) in flow.steps.iter().zip(&live.steps).filter(|(step, seen)| step.counts && !**seen) {
        found.push(
            Diagnostic::warning(CODE.name, step.span, format!("no run can come to `{}`", step.name))
                .step(&step.name)
                .hint("lead a transition to it, or remove it"),
        );
    }
}

#[cfg(test)]
mod tests {
    use crate::checks::testing::{codes_of, draft};

    #[test]
    fn found_and_mended() {
        assert_eq!(codes_of(draft("a: done → end\nb: done → end")), ["unreachable-step"]);
        assert!(codes_of(draft("a: done → b\nb: done → end")).is_empty());
    }
}
