use std::collections::HashSet;

use crate::analysis::{graph, reachability::StepOutcomes};
use crate::checks::Code;
use crate::{
    diagnostics::Diagnostic,
    model::{Edge, Flow, Gate, Outcome, Step, StepId},
};

pub(in crate::checks) const CODE: Code = code!("unreachable-transition");

pub(in crate::checks) fn check_untaken_edges(
    flow: &Flow,
    yields: &StepOutcomes,
    found: &mut Vec<Diagnostic>,
) {
    for (at, step) in flow.steps.iter().enumerate() {
        let outcomes = yields.of_step(StepId(at as u32));
        let takeable = graph::takeable_edges_of_step(step);
        let of_rules: HashSet<&Outcome> = match &step.gate {
            Gate::Join { rules, .. } => rules.iter().map(|rule| &rule.outcome).collect(),
            _ => HashSet::new(),
        };
        for (index, edge) in step.edges.iter().enumerate().filter(|(_, edge)| !edge.implied) {
            let why = match outcomes.contains(&edge.on) {
                // For a rule over members, `join-never-fires` reports it.
                false if of_rules.contains(&edge.on) => continue,
                false => "nothing yields that outcome",
                true if takeable.binary_search(&index).is_ok() => continue,
                true if !edge.is_ever_open() => "it may be taken 0 times",
                true => "an earlier transition takes all of it",
            };
            if is_safety_net(edge, index, step) {
                let message = format!(
                    "`{}` on `{}` is a safety net: other rules take every answer",
                    step.name, edge.on
                );
                found.push(
                    Diagnostic::note(CODE.name, edge.span, message).step(&step.name).hint("it may stay"),
                );
                continue;
            }
            let message = format!("`{}` on `{}` is never taken: {why}", step.name, edge.on);
            found.push(
                Diagnostic::warning(CODE.name, edge.span, message)
                    .step(&step.name)
                    .hint("remove it, or correct what it waits for"),
            );
        }
    }
}

/// Whether an edge is the last one, for whatever the others leave over.
fn is_safety_net(edge: &Edge<StepId>, index: usize, step: &Step<StepId>) -> bool {
    index + 1 == step.edges.len() && matches!(&edge.on, Outcome::Named(name) if **name == *"otherwise")
}

#[cfg(test)]
mod tests {
    use crate::checks::testing::{draft, findings_of};
    use crate::model::{Counter, CounterId, Draft, EdgeBound, Outcome};

    fn said(change: impl FnOnce(&mut Draft)) -> Vec<String> {
        let mut draft = draft("a: next → b, next → c\nb: done → c\nc: done → end");
        change(&mut draft);
        findings_of(draft).into_iter().map(|found| format!("{}: {}", found.code, found.message)).collect()
    }

    #[test]
    fn found_and_mended() {
        let shadowed =
            "unreachable-transition: `a` on `next` is never taken: an earlier transition takes all of it";
        assert_eq!(said(|_| {}), [shadowed]);
        assert!(said(|draft| drop(draft.steps[0].edges.remove(1))).is_empty());
        let unknown = said(|draft| draft.steps[0].edges[1].on = Outcome::Named("other".into()));
        assert_eq!(
            unknown,
            ["unreachable-transition: `a` on `other` is never taken: nothing yields that outcome"]
        );
    }

    #[test]
    fn a_bound_of_nothing() {
        let closed = |draft: &mut Draft| {
            draft.counters.push(Counter { name: "times".into() });
            draft.steps[0].edges[0].bound = Some(EdgeBound { counter: CounterId(0), max: 0 });
            draft.steps[0].edges[0].to = crate::model::Target::Step(crate::checks::testing::name("c"));
            draft.steps[0].edges[1].to = crate::model::Target::Step(crate::checks::testing::name("b"));
        };
        assert_eq!(
            said(closed),
            ["unreachable-transition: `a` on `next` is never taken: it may be taken 0 times"]
        );
    }

    #[test]
    fn what_every_step_may_do_is_not_meant() {
        assert!(said(|draft| draft.steps[0].edges[1].implied = true).is_empty());
    }
}
