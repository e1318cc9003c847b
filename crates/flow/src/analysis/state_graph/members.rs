//! Finds member outcomes for which the rules of a parallel step yield a wanted outcome.

use std::collections::BTreeSet;

use crate::model::{JoinPattern, JoinRule, Outcome};

/// How a member ends.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum MemberOutcome {
    /// With this outcome.
    Has(Outcome),
    /// Without an outcome: it failed or was blocked.
    Failed,
    /// It was not selected.
    Skipped,
}

impl MemberOutcome {
    /// The outcome that the member has.
    pub fn outcome(&self) -> Option<&Outcome> {
        match self {
            MemberOutcome::Has(outcome) => Some(outcome),
            MemberOutcome::Failed | MemberOutcome::Skipped => None,
        }
    }

    /// What a pattern with this outcome matches.
    fn wanted(outcome: &Outcome) -> MemberOutcome {
        match outcome {
            Outcome::None => MemberOutcome::Failed,
            outcome => MemberOutcome::Has(outcome.clone()),
        }
    }

    fn is(&self, wanted: &Outcome) -> bool {
        match self {
            MemberOutcome::Has(outcome) => outcome == wanted,
            MemberOutcome::Failed => *wanted == Outcome::None,
            MemberOutcome::Skipped => false,
        }
    }
}

/// The most combinations that are tried where members can be skipped.
const TRIES_MAX: usize = 4_096;

/// Outcomes of all members for which the first matching rule yields the wanted outcome; `None` as wanted outcome means
/// that no rule matches. `said`: the possible outcomes of each member, preferred ones first. Returns `None` when there
/// is no such combination. At least one member works.
///
/// An exact search where no member can be skipped: a rule about any member only removes outcomes, and each rule about
/// all members excludes one combination.
pub(super) fn find_member_outcomes(
    rules: &[JoinRule],
    said: &[Vec<MemberOutcome>],
    wanted: Option<&Outcome>,
) -> Option<Vec<MemberOutcome>> {
    let Some(wanted) = wanted else { return find_free_combination(rules, said, wanted, rules.len()) };
    let places = (0..rules.len()).filter(|at| rules[*at].outcome == *wanted);
    places.into_iter().find_map(|at| match &rules[at].pattern {
        JoinPattern::All(outcome) => {
            match_exact_combination(rules, said, wanted, &vec![outcome.clone(); said.len()])
        }
        JoinPattern::Each(all) => match_exact_combination(rules, said, wanted, all),
        JoinPattern::Any(any) => {
            // One member has one of these; the others have any outcome.
            (0..said.len()).find_map(|member| {
                let one = said[member].iter().filter(|said| is_any(any, said));
                one.into_iter().find_map(|one| {
                    let mut said = said.to_vec();
                    said[member] = vec![one.clone()];
                    find_free_combination(rules, &said, Some(wanted), at)
                })
            })
        }
    })
}

/// One given combination, if the members can have it and it yields the wanted outcome. Members may be skipped where that
/// is possible.
fn match_exact_combination(
    rules: &[JoinRule],
    said: &[Vec<MemberOutcome>],
    wanted: &Outcome,
    way: &[Outcome],
) -> Option<Vec<MemberOutcome>> {
    if way.len() != said.len() {
        return None;
    }
    let parts = |(outcome, all): (&Outcome, &Vec<MemberOutcome>)| {
        let parts = [MemberOutcome::wanted(outcome), MemberOutcome::Skipped];
        parts.into_iter().filter(|one| all.contains(one)).collect()
    };
    let parts: Vec<Vec<MemberOutcome>> = way.iter().zip(said).map(parts).collect();
    find_free_combination(rules, &parts, Some(wanted), 0)
}

/// The first combination that no rule before a given one matches.
fn find_free_combination(
    rules: &[JoinRule],
    said: &[Vec<MemberOutcome>],
    wanted: Option<&Outcome>,
    before: usize,
) -> Option<Vec<MemberOutcome>> {
    let taken: BTreeSet<&Outcome> = rules[..before]
        .iter()
        .filter_map(|rule| match &rule.pattern {
            JoinPattern::Any(outcomes) => Some(outcomes),
            _ => None,
        })
        .flatten()
        .collect();
    let is_free = |said: &&MemberOutcome| !taken.iter().any(|taken| said.is(taken));
    let free: Vec<Vec<&MemberOutcome>> =
        said.iter().map(|all| all.iter().filter(is_free).collect()).collect();
    if free.iter().any(Vec::is_empty) {
        return None;
    }
    let skips = said.iter().any(|all| all.contains(&MemberOutcome::Skipped));
    let tries = if skips { TRIES_MAX.max(rules.len()) } else { rules.len() };
    let mut at = vec![0; free.len()];
    // Each rule about all members matches one combination, so one more than the number of rules suffices.
    for _ in 0..=tries {
        let way: Vec<MemberOutcome> = at.iter().zip(&free).map(|(place, all)| all[*place].clone()).collect();
        if way.iter().any(|one| *one != MemberOutcome::Skipped) && outcome_of_rules(rules, &way) == wanted {
            return Some(way);
        }
        // The next combination, in counting order.
        let next = (0..at.len()).rev().find(|member| at[*member] + 1 < free[*member].len())?;
        at[next] += 1;
        at[next + 1..].fill(0);
    }
    None
}

/// All combinations of outcomes.
pub(crate) fn enumerate_combinations(
    said: &[Vec<MemberOutcome>],
) -> impl Iterator<Item = Vec<MemberOutcome>> {
    let mut at = (!said.iter().any(Vec::is_empty)).then(|| vec![0; said.len()]);
    std::iter::from_fn(move || {
        let places = at.take()?;
        let way = places.iter().zip(said).map(|(place, all)| all[*place].clone()).collect();
        let next = (0..places.len()).rev().find(|member| places[*member] + 1 < said[*member].len());
        at = next.map(|next| {
            let mut places = places;
            places[next] += 1;
            places[next + 1..].fill(0);
            places
        });
        Some(way)
    })
}

/// The outcome of the first rule that matches; `None` when no rule matches.
pub(super) fn outcome_of_rules<'r>(rules: &'r [JoinRule], said: &[MemberOutcome]) -> Option<&'r Outcome> {
    first_match(rules, said).map(|at| &rules[at].outcome)
}

/// The index of the first rule that matches.
pub(crate) fn first_match(rules: &[JoinRule], said: &[MemberOutcome]) -> Option<usize> {
    let works = |said: &&MemberOutcome| **said != MemberOutcome::Skipped;
    let fits = |rule: &JoinRule| match &rule.pattern {
        JoinPattern::All(wanted) => said.iter().filter(works).all(|said| said.is(wanted)),
        JoinPattern::Each(wanted) => {
            let mut each = said.iter().zip(wanted).filter(|(said, _)| works(said));
            wanted.len() == said.len() && each.all(|(said, wanted)| said.is(wanted))
        }
        JoinPattern::Any(wanted) => said.iter().any(|said| is_any(wanted, said)),
    };
    rules.iter().position(fits)
}

fn is_any(wanted: &[Outcome], said: &MemberOutcome) -> bool {
    wanted.iter().any(|wanted| said.is(wanted))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(text: &str) -> Outcome {
        Outcome::Named(text.into())
    }

    fn rule(pattern: JoinPattern, outcome: &str) -> JoinRule {
        JoinRule { pattern, outcome: named(outcome) }
    }

    #[test]
    fn works_for_any_number_of_members() {
        let rules =
            [rule(JoinPattern::All(named("ok")), "all"), rule(JoinPattern::Any(vec![named("bad")]), "some")];
        for members in [1, 2, 8, 12, 40] {
            let said =
                vec![["bad", "ok", "odd"].map(|word| MemberOutcome::Has(named(word))).to_vec(); members];
            for wanted in [None, Some(named("all")), Some(named("some"))] {
                let found = find_member_outcomes(&rules, &said, wanted.as_ref()).unwrap();
                assert_eq!(outcome_of_rules(&rules, &found), wanted.as_ref(), "{members}");
            }
        }
        let bad = vec![MemberOutcome::Has(named("bad"))];
        assert_eq!(find_member_outcomes(&rules, std::slice::from_ref(&bad), None), None);
        // A member without an outcome matches no rule.
        assert_eq!(
            find_member_outcomes(&rules, &[[bad, vec![MemberOutcome::Failed]].concat()], None),
            Some(vec![MemberOutcome::Failed])
        );
    }

    /// The search finds a valid combination exactly where an enumeration does.
    #[test]
    fn the_search_agrees_with_enumeration() {
        let words = ["a", "b", "c"].map(|word| MemberOutcome::Has(named(word)));
        let words = [words.to_vec(), vec![MemberOutcome::Failed, MemberOutcome::Skipped]].concat();
        let mut seed = 7_u64;
        let mut roll = |below: usize| {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (seed >> 33) as usize % below
        };
        for _ in 0..500 {
            let members = 1 + roll(3);
            let said: Vec<Vec<MemberOutcome>> =
                (0..members).map(|_| words[roll(3)..3 + roll(3)].to_vec()).collect();
            let said: Vec<Vec<MemberOutcome>> = said.into_iter().filter(|all| !all.is_empty()).collect();
            let mut word = || words[roll(4)].outcome().cloned().unwrap_or(Outcome::None);
            let rules: Vec<JoinRule> = (0..4)
                .map(|at| {
                    let pattern = match (at + members) % 3 {
                        0 => JoinPattern::All(word()),
                        1 => JoinPattern::Each((0..members).map(|_| word()).collect()),
                        _ => JoinPattern::Any(vec![word()]),
                    };
                    rule(pattern, ["x", "y"][at % 2])
                })
                .collect();
            let mut ways: Vec<Vec<MemberOutcome>> = vec![Vec::new()];
            for all in &said {
                ways = ways
                    .iter()
                    .flat_map(|way| all.iter().map(|one| [way.clone(), vec![one.clone()]].concat()))
                    .collect();
            }
            ways.retain(|way| way.iter().any(|one| *one != MemberOutcome::Skipped));
            for wanted in [None, Some(named("x")), Some(named("y"))] {
                let there = ways.iter().any(|way| outcome_of_rules(&rules, way) == wanted.as_ref());
                let found = find_member_outcomes(&rules, &said, wanted.as_ref());
                assert_eq!(found.is_some(), there, "{rules:?} {said:?} {wanted:?}");
                assert!(found.is_none_or(|way| outcome_of_rules(&rules, &way) == wanted.as_ref()));
            }
        }
    }
}
