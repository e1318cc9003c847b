use std::collections::BTreeSet;

use crate::analysis::{graph, reachability::StepOutcomes};
use crate::checks::Code;
use crate::{
    diagnostics::Diagnostic,
    model::{Flow, Outcome, StepId},
};

pub(in crate::checks) const CODE: Code = code!("missing-transition");

pub(in crate::checks) fn check_unhandled_outcomes(
    flow: &Flow,
    yields: &StepOutcomes,
    found: &mut Vec<Diagnostic>,
) {
    let asked_by_others = asked_by_others(flow);
    for (index, step) in flow.steps.iter().enumerate() {
        // The outcome of a member or a judge is read by the step that asked it; it needs no edges.
        if step.edges.is_empty() && asked_by_others[index] {
            continue;
        }
        let lead_on = || step.edges.iter().filter(|edge| edge.bound.is_none()).map(|edge| &edge.on);
        let many: Option<BTreeSet<&Outcome>> = (step.edges.len() > graph::FEW).then(|| lead_on().collect());
        let leads_on = |outcome: &&Outcome| match &many {
            Some(many) => many.contains(outcome),
            None => lead_on().any(|on| on == *outcome),
        };
        let nowhere = yields.of_step(StepId(index as u32)).iter().filter(|outcome| !leads_on(outcome));
        for outcome in nowhere {
            found.push(
                Diagnostic::error(
                    CODE.name,
                    step.span,
                    format!("`{}` can result in `{outcome}`, which leads nowhere", step.name),
                )
                .step(&step.name)
                .hint(format!("add a transition for `{outcome}`, or do not allow it")),
            );
        }
    }
}

/// Which steps are members, judges or selectors of other steps.
fn asked_by_others(flow: &Flow) -> Vec<bool> {
    let mut asked = vec![false; flow.steps.len()];
    for step in &flow.steps {
        if let crate::model::Act::All { members, .. } = &step.act {
            members.iter().for_each(|member| asked[member.0 as usize] = true);
        }
        let others = graph::judges_of_gate(&step.gate).chain(step.selectors.iter().copied());
        others.for_each(|other| asked[other.0 as usize] = true);
    }
    asked
}

#[cfg(test)]
mod tests {
    use crate::checks::testing::{codes_of, draft};

    #[test]
    fn reported_and_fixed() {
        let mut broken = draft("a: next → b, done → end\nb: done → end");
        let edge = broken.steps[0].edges.remove(1);
        assert_eq!(codes_of(broken.clone()), ["missing-transition"]);
        broken.steps[0].edges.push(edge);
        assert!(codes_of(broken).is_empty());
    }
}
