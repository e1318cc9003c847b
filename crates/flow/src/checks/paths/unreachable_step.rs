use crate::analysis::reachability::Reachability;
use crate::checks::Code;
use crate::{diagnostics::Diagnostic, model::Flow};

pub(in crate::checks) const CODE: Code = code!("unreachable-step");

/// `live`: reachability from the entry and from every other entry that the definition names.
pub(in crate::checks) fn check_unreachable_steps(
    flow: &Flow,
    live: &Reachability,
    found: &mut Vec<Diagnostic>,
) {
    for (step, _) in flow.steps.iter().zip(&live.steps).filter(|(step, seen)| step.counts && !**seen) {
        found.push(
            Diagnostic::warning(CODE.name, step.span, format!("`{}` is unreachable", step.name))
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
