use std::collections::BTreeSet;

use super::{
    Code, graph,
    live::{self, Yields},
    unmatched_join::tell,
};
use crate::{Act, Diagnostic, Flow, Gate, JoinPattern, JoinRule, Outcome, Step, StepId, Target};

pub(super) const CODE: Code = Code {
    name: "ambiguous-join",
    page: "\
ambiguous-join: two rules over members fit, and their order decides

Two rules with `any(…)` fit the same outcomes of the members, neither is about less than the other, and they
lead to different places. The one that stands first counts. Where it is the milder one, a member that says the
worse is passed over.

See that the rule that has to win stands first. Nothing has to change where it does.
",
};

pub(super) fn check(flow: &Flow, yields: &Yields, found: &mut Vec<Diagnostic>) {
    for step in &flow.steps {
        let (Gate::Join { rules, .. }, Act::All { members, .. }) = (&step.gate, &step.act) else { continue };
        let outcomes = yields.of_members(members);
        let counts: Vec<&JoinRule> = rules
            .iter()
            .enumerate()
            .filter(|(at, _)| live::fires(rules, *at, &outcomes))
            .map(|(_, rule)| rule)
            .collect();
        if let Some((first, second, case)) = overlap(step, &counts, &outcomes) {
            let told = tell(flow, members, &case);
            let message = format!(
                "`{}` and `{}` of `{}` both fit when {}: the first counts",
                first.outcome,
                second.outcome,
                step.name,
                told.join(", ")
            );
            let span =
                step.edges.iter().find(|edge| edge.on == first.outcome).map_or(step.span, |edge| edge.span);
            found.push(
                Diagnostic::note(CODE.name, span, message)
                    .step(&step.name)
                    .hint("see that the rule that has to win stands first"),
            );
        }
    }
}

/// Two rules that fit the same case, with it.
fn overlap<'r>(
    step: &Step<StepId>,
    rules: &[&'r JoinRule],
    members: &'r [BTreeSet<Outcome>],
) -> Option<(&'r JoinRule, &'r JoinRule, Vec<&'r Outcome>)> {
    for (at, second) in rules.iter().enumerate() {
        for first in &rules[..at] {
            if let (JoinPattern::Any(one), JoinPattern::Any(other)) = (&first.pattern, &second.pattern)
                && other.iter().any(|outcome| !one.contains(outcome))
                && one.iter().any(|outcome| !other.contains(outcome))
                && place(step, first) != place(step, second)
                && let Some(case) = both(one, other, members)
            {
                return Some((first, second, case));
            }
        }
    }
    None
}

/// Outcomes of all members of which one is of the first rule alone, and another one of the second alone.
fn both<'r>(
    one: &[Outcome],
    other: &[Outcome],
    members: &'r [BTreeSet<Outcome>],
) -> Option<Vec<&'r Outcome>> {
    let only = |member: &'r BTreeSet<Outcome>, wanted: &[Outcome], not: &[Outcome]| {
        member.iter().find(|outcome| wanted.contains(outcome) && !not.contains(outcome))
    };
    let of = |wanted: &[Outcome], not: &[Outcome], except: Option<usize>| {
        let mut all = members.iter().enumerate().filter(|(at, _)| Some(*at) != except);
        all.find_map(|(at, member)| Some((at, only(member, wanted, not)?)))
    };
    let all = (0..members.len()).find_map(|at| {
        let first = only(&members[at], one, other)?;
        Some(((at, first), of(other, one, Some(at))?))
    });
    let ((first, said), (second, also)) = all?;
    members
        .iter()
        .enumerate()
        .map(|(at, member)| match at {
            at if at == first => Some(said),
            at if at == second => Some(also),
            _ => member.iter().next(),
        })
        .collect()
}

/// Where a rule leads: the steps, or how the run ends.
fn place(step: &Step<StepId>, rule: &JoinRule) -> Option<(Vec<StepId>, Option<crate::Ending>)> {
    let edge = step.edges.iter().find(|edge| edge.on == rule.outcome)?;
    let ending = match &edge.to {
        Target::End(ending) => Some(ending.clone()),
        _ => None,
    };
    Some((graph::targets(&edge.to), ending))
}

#[cfg(test)]
mod tests {
    use super::super::testing::{findings_of, joined};
    use crate::{Ending, JoinPattern, Outcome, Target};

    fn any(word: &str) -> JoinPattern {
        JoinPattern::Any(vec![Outcome::Named(word.into())])
    }

    #[test]
    fn found_where_order_alone_decides() {
        let said = |apart: bool| -> Vec<String> {
            let mut draft = joined(vec![any("x"), any("y")], false);
            if apart {
                draft.steps[0].edges[1].to = Target::End(Ending::Aborted);
            }
            findings_of(draft).into_iter().map(|found| found.message).collect()
        };
        assert_eq!(
            said(true),
            ["`r0` and `r1` of `all` both fit when `a` says `x`, `b` says `y`: the first counts"]
        );
        assert!(said(false).is_empty(), "both lead to the same end");
    }

    #[test]
    fn the_special_before_the_general_is_meant() {
        let mut draft = joined(vec![JoinPattern::All(Outcome::Named("x".into())), any("x"), any("y")], false);
        draft.steps[0].edges[0].to = Target::End(Ending::Aborted);
        assert!(findings_of(draft).is_empty());
    }
}
