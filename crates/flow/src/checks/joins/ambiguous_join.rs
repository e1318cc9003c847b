use std::collections::{BTreeSet, HashMap, HashSet};

use super::unmatched_join::{advance_case, describe_member_outcomes};
use crate::analysis::join_rules::{Members, RuleCombinations};
use crate::analysis::{
    graph,
    reachability::{StepOutcomes, mark_optional_members},
};
use crate::checks::Code;
use crate::{
    diagnostics::Diagnostic,
    model::{Act, Flow, Gate, JoinPattern, JoinRule, Outcome, Step, StepId, Target},
};

pub(in crate::checks) const CODE: Code = code!("ambiguous-join");

pub(in crate::checks) fn check_rule_overlaps(
    flow: &Flow,
    yields: &StepOutcomes,
    found: &mut Vec<Diagnostic>,
) {
    for step in &flow.steps {
        let (Gate::Join { rules, .. }, Act::All { members, .. }) = (&step.gate, &step.act) else { continue };
        let outcomes = yields.of_members(members);
        let firing = Members::of(&outcomes, &mark_optional_members(flow, members)).firing(rules);
        let counts: Vec<&JoinRule> =
            rules.iter().zip(firing).filter(|(_, fires)| *fires).map(|(rule, _)| rule).collect();
        if let Some((first, second, case)) = find_rule_overlap(step, &counts, &outcomes) {
            let told = describe_member_outcomes(flow, members, &case);
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
                    .hint("put the rule that has to win first"),
            );
        }
    }
}

/// How many members and rules the search examines per rule before it gives up: two that fit are usually among the
/// first.
const WORK_MAX: usize = 64;

/// Two rules that fit the same case, and that case.
fn find_rule_overlap<'r>(
    step: &Step<StepId>,
    rules: &[&'r JoinRule],
    members: &'r [BTreeSet<Outcome>],
) -> Option<(&'r JoinRule, &'r JoinRule, Vec<&'r Outcome>)> {
    let places = number_rule_targets(step, rules);
    let size: usize = members.iter().map(BTreeSet::len).sum();
    let mut work = WORK_MAX * (rules.len() + size) + 10_000;
    // All rules before the first one that leads elsewhere have the same target.
    let apart = places.iter().position(|place| *place != places[0]).unwrap_or(places.len());
    for (at, second) in rules.iter().enumerate().skip(apart) {
        let others = rules[..at].iter().zip(&places).enumerate();
        let elsewhere = others.filter(|(_, (_, place))| **place != places[at]);
        for (before, (first, _)) in elsewhere {
            let (JoinPattern::Any(one), JoinPattern::Any(other)) = (&first.pattern, &second.pattern) else {
                continue;
            };
            work = work.checked_sub(1 + one.len().max(other.len()))?;
            if other.iter().any(|outcome| !one.contains(outcome))
                && one.iter().any(|outcome| !other.contains(outcome))
            {
                work =
                    work.checked_sub(rules[..before].iter().map(|rule| count_named_outcomes(rule)).sum())?;
                if let Some(case) = find_common_case((one, other), &rules[..before], members, &mut work) {
                    return Some((first, second, case));
                }
                work = work.checked_sub(size)?;
            }
        }
    }
    None
}

/// How many outcomes a rule names.
fn count_named_outcomes(rule: &JoinRule) -> usize {
    match &rule.pattern {
        JoinPattern::All(_) => 1,
        JoinPattern::Each(all) | JoinPattern::Any(all) => all.len(),
    }
}

/// Outcomes of all members that no earlier rule fits, with one that only the first rule names and one that only the
/// second names.
fn find_common_case<'r>(
    (one, other): (&[Outcome], &[Outcome]),
    before: &[&'r JoinRule],
    members: &'r [BTreeSet<Outcome>],
    work: &mut usize,
) -> Option<Vec<&'r Outcome>> {
    let taken: HashSet<&Outcome> = before
        .iter()
        .filter_map(|rule| match &rule.pattern {
            JoinPattern::Any(any) => Some(any),
            JoinPattern::All(_) | JoinPattern::Each(_) => None,
        })
        .flatten()
        .collect();
    let free: Vec<Vec<&Outcome>> = members
        .iter()
        .map(|member| member.iter().filter(|outcome| !taken.contains(outcome)).collect())
        .collect();
    let of = |wanted: &[Outcome], not: &[Outcome]| -> Vec<(usize, &'r Outcome)> {
        let only = |outcome: &&&Outcome| wanted.contains(outcome) && !not.contains(outcome);
        let all = free.iter().enumerate();
        all.flat_map(|(at, member)| member.iter().filter(only).map(move |outcome| (at, *outcome))).collect()
    };
    let (first, second) = (of(one, other), of(other, one));
    let exactly = RuleCombinations::of(before.iter().copied(), members);
    for (at, said) in &first {
        for (beside, also) in second.iter().filter(|(beside, _)| beside != at) {
            let mut free = free.clone();
            (free[*at], free[*beside]) = (vec![*said], vec![*also]);
            if free.iter().any(Vec::is_empty) {
                return None;
            }
            let mut places = vec![0; free.len()];
            loop {
                let case: Vec<&Outcome> = free.iter().zip(&places).map(|(all, at)| all[*at]).collect();
                if !exactly.fit(&case) {
                    return Some(case);
                }
                *work = work.checked_sub(free.iter().map(Vec::len).sum())?;
                if !advance_case(&mut places, &free) {
                    break;
                }
            }
        }
    }
    None
}

/// A number for the target of each rule: a step, or an end of the run.
fn number_rule_targets(step: &Step<StepId>, rules: &[&JoinRule]) -> Vec<usize> {
    let edges = graph::by_outcome(step);
    let mut known: Vec<Option<(Vec<StepId>, Option<crate::model::Ending>)>> = Vec::new();
    let mut by_steps: HashMap<Vec<StepId>, Vec<usize>> = HashMap::new();
    let place = |rule: &&JoinRule| {
        let to = edges.get(&rule.outcome).map(|at| &step.edges[*at].to);
        let place = to.map(|to| {
            let ending = match to {
                Target::End(ending) => Some(ending.clone()),
                _ => None,
            };
            (graph::steps_of_target(to), ending)
        });
        let same =
            by_steps.entry(place.as_ref().map(|(steps, _)| steps.clone()).unwrap_or_default()).or_default();
        if let Some(number) = same.iter().find(|number| known[**number] == place) {
            return *number;
        }
        same.push(known.len());
        known.push(place);
        known.len() - 1
    };
    rules.iter().map(place).collect()
}

#[cfg(test)]
mod tests {
    use crate::checks::testing::{findings_of, joined};
    use crate::model::{Ending, JoinPattern, Outcome, Target};

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
    fn what_a_rule_before_them_takes_is_not_ambiguous() {
        let word = |word: &str| Outcome::Named(word.into());
        let each = |one: &str, other: &str| JoinPattern::Each(vec![word(one), word(other)]);
        let said = |patterns: Vec<JoinPattern>| {
            let mut draft = joined(patterns, false);
            for (edge, ending) in
                draft.steps[0].edges.iter_mut().zip([Ending::Aborted, Ending::Completed].iter().cycle())
            {
                edge.to = Target::End(ending.clone());
            }
            let found = findings_of(draft).into_iter().filter(|found| found.code == "ambiguous-join");
            found.map(|found| found.message).collect::<Vec<_>>()
        };
        assert!(said(vec![each("x", "y"), each("y", "x"), any("x"), any("y")]).is_empty());
        assert_eq!(
            said(vec![each("x", "y"), JoinPattern::All(word("x")), any("x"), any("y")]),
            ["`r2` and `r3` of `all` both fit when `a` says `y`, `b` says `x`: the first counts"]
        );
        assert!(said(vec![any("x"), any("x"), any("x"), any("y")]).len() == 1, "the first against the last");
    }

    #[test]
    fn the_special_before_the_general_is_meant() {
        let mut draft = joined(vec![JoinPattern::All(Outcome::Named("x".into())), any("x"), any("y")], false);
        draft.steps[0].edges[0].to = Target::End(Ending::Aborted);
        assert!(findings_of(draft).is_empty());
    }
}
