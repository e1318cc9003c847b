use super::{Code, graph};
use crate::{Diagnostic, Flow, StepId};

pub(super) const CODE: Code = Code {
    name: "unreachable-step",
    page: "\
unreachable-step: no run can come to this step

No path of transitions leads to it from the entry, nor from any other entry the definition names. It is dead
text, or a transition to it is missing.

Add the transition that was meant, or remove the step.
",
};

pub(super) fn check(flow: &Flow, other_entries: &[StepId], found: &mut Vec<Diagnostic>) {
    let entries: Vec<StepId> = std::iter::once(flow.entry).chain(other_entries.iter().copied()).collect();
    let seen = graph::reachable(flow, &entries);
    for (step, _) in flow.steps.iter().zip(seen).filter(|(step, seen)| step.counts && !seen) {
        found.push(
            Diagnostic::warning(CODE.name, step.span, format!("no run can come to `{}`", step.name))
                .step(&step.name)
                .hint("lead a transition to it, or remove it"),
        );
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{codes_of, draft};

    #[test]
    fn found_and_mended() {
        assert_eq!(codes_of(draft("a: done → end\nb: done → end")), ["unreachable-step"]);
        assert!(codes_of(draft("a: done → b\nb: done → end")).is_empty());
    }
}
