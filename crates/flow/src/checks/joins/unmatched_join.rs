use std::collections::{BTreeSet, HashSet};

use crate::analysis::{
    join_rules::{COMBINATIONS_MAX, RuleCombinations},
    reachability::{StepOutcomes, mark_optional_members},
    state_graph::{MemberOutcome, enumerate_combinations, first_match},
};
use crate::checks::Code;
use crate::{
    diagnostics::{Diagnostic, find_nearest_name},
    model::{Act, Flow, Gate, JoinPattern, JoinRule, Outcome, StepId},
};

pub(in crate::checks) const CODE: Code = code!("unmatched-join");

pub(in crate::checks) fn check_unmatched_cases(
    flow: &Flow,
    yields: &StepOutcomes,
    found: &mut Vec<Diagnostic>,
) {
    for step in &flow.steps {
        let (Gate::Join { rules, judges }, Act::All { members, .. }) = (&step.gate, &step.act) else {
            continue;
        };
        if !judges.is_empty() {
            continue;
        }
        let outcomes = yields.of_members(members);
        let found_case = match mark_optional_members(flow, members).contains(&true) {
            true => with_skipped(flow, members, rules, &outcomes),
            false => find_unmatched_case(rules, &outcomes).map(|case| (members.clone(), case)),
        };
        let Some((members, case)) = found_case else { continue };
        let told = describe_member_outcomes(flow, &members, &case);
        let message = format!("no rule of `{}` fits when {}", step.name, told.join(", "));
        let hint = match find_misspelt_outcome(rules, &case) {
            Some((at, said, near)) => {
                let member = &flow.step(members[at]).name;
                format!(
                    "add a rule for that: the run fails there; or is `{said}` of `{member}` meant to be `{near}`?"
                )
            }
            None => "add a rule for that: the run fails there".to_owned(),
        };
        found.push(Diagnostic::warning(CODE.name, step.span, message).step(&step.name).hint(hint));
    }
}

/// A case that no rule matches, with the members that work in it; `None` if there is none, or too many cases to try.
fn with_skipped<'o>(
    flow: &Flow,
    members: &[StepId],
    rules: &[JoinRule],
    outcomes: &'o [BTreeSet<Outcome>],
) -> Option<(Vec<StepId>, Vec<&'o Outcome>)> {
    let optional = mark_optional_members(flow, members);
    let said: Vec<Vec<MemberOutcome>> = outcomes
        .iter()
        .zip(&optional)
        .map(|(own, optional)| {
            let named = own.iter().filter(|outcome| is_named(outcome)).cloned().map(MemberOutcome::Has);
            named.chain(optional.then_some(MemberOutcome::Skipped)).collect()
        })
        .collect();
    let count = said.iter().try_fold(1_usize, |count, all| count.checked_mul(all.len()))?;
    if count > COMBINATIONS_MAX {
        return None;
    }
    let works = |way: &Vec<MemberOutcome>| way.iter().any(|one| *one != MemberOutcome::Skipped);
    let way = enumerate_combinations(&said).find(|way| works(way) && first_match(rules, way).is_none())?;
    let said = members.iter().zip(outcomes).zip(&way).filter_map(|((member, own), said)| {
        let outcome = said.outcome()?;
        Some((*member, own.iter().find(|known| *known == outcome)?))
    });
    Some(said.unzip())
}

fn is_named(outcome: &Outcome) -> bool {
    matches!(outcome, Outcome::Named(_))
}

/// The outcomes for which one member suffices.
fn outcomes_of_any_rules(rules: &[JoinRule]) -> HashSet<&Outcome> {
    let any = rules.iter().filter_map(|rule| match &rule.pattern {
        JoinPattern::Any(any) => Some(any),
        _ => None,
    });
    any.flatten().collect()
}

/// The member whose outcome no rule names, although a rule names a similar one.
fn find_misspelt_outcome(rules: &[JoinRule], case: &[&Outcome]) -> Option<(usize, String, String)> {
    let of = |rule: &JoinRule| match &rule.pattern {
        JoinPattern::All(outcome) => vec![outcome.to_string()],
        JoinPattern::Each(all) | JoinPattern::Any(all) => all.iter().map(ToString::to_string).collect(),
    };
    let named: BTreeSet<String> = rules.iter().flat_map(of).collect();
    case.iter().enumerate().find_map(|(at, outcome)| {
        let said = outcome.to_string();
        let near = (!named.contains(&said))
            .then(|| find_nearest_name(&said, named.iter().map(String::as_str)))??;
        Some((at, said.clone(), near.to_owned()))
    })
}

/// Whether a rule never counts only because an outcome of a member is misspelt, which `unmatched-join` reports.
pub(in crate::checks) fn is_slip(rule: &JoinRule, rules: &[JoinRule], members: &[BTreeSet<Outcome>]) -> bool {
    let slip = find_unmatched_case(rules, members).and_then(|case| find_misspelt_outcome(rules, &case));
    slip.is_some_and(|(at, _, near)| match &rule.pattern {
        JoinPattern::All(outcome) => outcome.to_string() == near,
        JoinPattern::Each(all) => all.get(at).is_some_and(|outcome| outcome.to_string() == near),
        JoinPattern::Any(_) => false,
    })
}

/// The outcome of each member, in words.
pub(in crate::checks) fn describe_member_outcomes(
    flow: &Flow,
    members: &[StepId],
    case: &[&Outcome],
) -> Vec<String> {
    let said = members.iter().zip(case);
    said.map(|(member, outcome)| format!("`{}` says `{outcome}`", flow.step(*member).name)).collect()
}

/// Outcomes of all members that no rule fits.
fn find_unmatched_case<'o>(rules: &[JoinRule], members: &'o [BTreeSet<Outcome>]) -> Option<Vec<&'o Outcome>> {
    let named = |outcome: &&Outcome| is_named(outcome);
    let taken = outcomes_of_any_rules(rules);
    let free: Vec<Vec<&Outcome>> = members
        .iter()
        .map(|all| all.iter().filter(named).filter(|outcome| !taken.contains(outcome)).collect())
        .collect();
    if free.is_empty() || free.iter().any(Vec::is_empty) {
        return None;
    }
    // Each remaining rule fits one of the remaining cases, so one more case than rules is enough.
    let (mut places, cases) = (vec![0; free.len()], RuleCombinations::of(rules, members));
    for _ in 0..=rules.len() {
        let case: Vec<&Outcome> = free.iter().zip(&places).map(|(all, at)| all[*at]).collect();
        if !cases.fit(&case) {
            return Some(case);
        }
        if !advance_case(&mut places, &free) {
            break;
        }
    }
    None
}

/// The next case; `false` after the last one.
pub(in crate::checks) fn advance_case(places: &mut [usize], free: &[Vec<&Outcome>]) -> bool {
    for (place, all) in places.iter_mut().zip(free) {
        *place += 1;
        if *place < all.len() {
            return true;
        }
        *place = 0;
    }
    false
}

#[cfg(test)]
mod tests {
    use crate::checks::testing::{findings_of, joined};
    use crate::model::{JoinPattern, Outcome};

    fn said(patterns: Vec<JoinPattern>, judged: bool) -> Vec<String> {
        let mut found = findings_of(joined(patterns, judged));
        found.retain(|found| found.code == "unmatched-join");
        found.into_iter().map(|found| found.message).collect()
    }

    fn named(word: &str) -> Outcome {
        Outcome::Named(word.into())
    }

    #[test]
    fn what_a_rule_nearly_names_may_be_meant() {
        let found = |word: &str| {
            let mut draft =
                joined(vec![JoinPattern::All(named(word)), JoinPattern::Any(vec![named("y")])], false);
            draft.steps[1].gate = draft.steps[2].gate.clone();
            if let crate::model::Gate::Readers(readers) = &mut draft.steps[1].gate
                && let crate::model::OutcomeReader::Field { words, .. } = &mut readers[0]
            {
                words.iter_mut().for_each(|(_, means)| {
                    if *means == named("x") {
                        *means = named("aproved");
                    }
                });
            }
            let found = findings_of(draft).into_iter().filter(|found| found.code.contains("join"));
            found.map(|found| (found.code, found.hint.unwrap_or_default())).collect::<Vec<_>>()
        };
        let meant =
            "add a rule for that: the run fails there; or is `aproved` of `a` meant to be `approved`?";
        assert_eq!(found("approved"), [("unmatched-join", meant.to_owned())], "and nothing else");
        let other = found("other");
        let codes: Vec<&str> = other.iter().map(|(code, _)| *code).collect();
        assert_eq!(codes, ["join-never-fires", "unmatched-join"], "{other:?}");
        assert_eq!(other[1].1, "add a rule for that: the run fails there");
    }

    #[test]
    fn a_case_that_is_left_is_shown() {
        let (all, other) = (JoinPattern::All(named("x")), JoinPattern::All(named("y")));
        let left = said(vec![all.clone(), other.clone()], false);
        assert_eq!(left, ["no rule of `all` fits when `a` says `y`, `b` says `x`"]);
        let each = |a, b| JoinPattern::Each(vec![named(a), named(b)]);
        assert!(said(vec![all.clone(), other, each("y", "x"), each("x", "y")], false).is_empty());
        assert!(said(vec![all.clone(), JoinPattern::Any(vec![named("y")])], false).is_empty());
        assert!(said(vec![all], true).is_empty(), "a judge is asked");
    }
}
