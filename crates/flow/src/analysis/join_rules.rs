//! Which join rules can be the first to match.

use std::collections::{BTreeSet, HashMap, HashSet};

use crate::analysis::state_graph::{MemberOutcome, enumerate_combinations, first_match};
use crate::model::{JoinPattern, JoinRule, Outcome};

/// The most combinations of outcomes that are tried.
pub(crate) const COMBINATIONS_MAX: usize = 20_000;

/// The members of a join, each with one of its outcomes or none.
pub(crate) struct Members<'m> {
    outcomes: &'m [BTreeSet<Outcome>],
    /// Which of them can be skipped.
    optional: &'m [bool],
    /// The number of members that can have each outcome.
    having: HashMap<&'m Outcome, usize>,
}

/// The cases that earlier rules match.
#[derive(Default)]
struct TakenCases<'r> {
    /// The outcomes for which one member suffices.
    any: HashSet<&'r Outcome>,
    /// The combinations that all members must have.
    exactly: HashSet<MemberCombination<'r>>,
}

/// One outcome for each member.
#[derive(PartialEq, Eq, Hash)]
enum MemberCombination<'r> {
    /// There are no members.
    Nobody,
    Same(&'r Outcome),
    /// Different outcomes.
    Each(Vec<&'r Outcome>),
}

impl<'m> Members<'m> {
    /// The members with these possible outcomes; an optional member may be skipped.
    pub(crate) fn of(outcomes: &'m [BTreeSet<Outcome>], optional: &'m [bool]) -> Members<'m> {
        let mut having = HashMap::new();
        outcomes.iter().flatten().for_each(|outcome| *having.entry(outcome).or_default() += 1);
        // Every member can fail.
        having.insert(&Outcome::None, outcomes.len());
        Members { outcomes, optional, having }
    }

    /// By rule: whether it can be the first to match. Exact, but for many members some of which can be skipped, or rules
    /// about members that failed: then a rule that never matches may pass for one that does.
    pub(crate) fn firing(&self, rules: &[JoinRule]) -> Vec<bool> {
        if let Some(firing) = self.tried(rules) {
            return firing;
        }
        let mut taken = TakenCases::default();
        let mut firing = Vec::with_capacity(rules.len());
        for rule in rules {
            firing.push(self.fires(&rule.pattern, &taken));
            match &rule.pattern {
                JoinPattern::Any(any) => taken.any.extend(any),
                JoinPattern::All(_) | JoinPattern::Each(_) => {
                    taken.exactly.extend(self.exactly(&rule.pattern));
                }
            }
        }
        firing
    }

    /// The same by trying all combinations; `None` if that is not necessary, or if there are too many.
    fn tried(&self, rules: &[JoinRule]) -> Option<Vec<bool>> {
        let fails = |rule: &JoinRule| match &rule.pattern {
            JoinPattern::All(outcome) => *outcome == Outcome::None,
            JoinPattern::Each(all) | JoinPattern::Any(all) => all.contains(&Outcome::None),
        };
        if !self.optional.contains(&true) && !rules.iter().any(fails) {
            return None;
        }
        let said: Vec<Vec<MemberOutcome>> = self
            .outcomes
            .iter()
            .enumerate()
            .map(|(at, own)| {
                let named = own.iter().filter(|outcome| **outcome != Outcome::None).cloned();
                let skipped = self.is_optional(at).then_some(MemberOutcome::Skipped);
                named.map(MemberOutcome::Has).chain([MemberOutcome::Failed]).chain(skipped).collect()
            })
            .collect();
        let count = said.iter().try_fold(1_usize, |count, all| count.checked_mul(all.len()));
        if count.is_none_or(|count| count > COMBINATIONS_MAX) {
            return None;
        }
        let mut firing = vec![false; rules.len()];
        for way in enumerate_combinations(&said) {
            let works = way.iter().any(|one| *one != MemberOutcome::Skipped);
            if let Some(first) = first_match(rules, &way).filter(|_| works) {
                firing[first] = true;
            }
        }
        Some(firing)
    }

    /// Whether a rule can match on its own.
    pub(crate) fn fires_alone(&self, rule: &JoinRule) -> bool {
        self.fires(&rule.pattern, &TakenCases::default())
    }

    fn fires(&self, pattern: &JoinPattern, taken: &TakenCases<'_>) -> bool {
        let can = |outcome: &Outcome| self.having(outcome) > 0 && !taken.any.contains(outcome);
        match pattern {
            // The other members may have no outcome; then no rule about all members matches.
            JoinPattern::Any(any) if self.outcomes.len() > 1 => any.iter().any(can),
            JoinPattern::Any(any) if self.outcomes.len() == 1 => any
                .iter()
                .any(|outcome| can(outcome) && !taken.exactly.contains(&MemberCombination::Same(outcome))),
            JoinPattern::Any(_) => false,
            JoinPattern::All(_) | JoinPattern::Each(_) => self.exactly(pattern).is_some_and(|exactly| {
                let possible = match &exactly {
                    MemberCombination::Nobody => true,
                    MemberCombination::Same(outcome) => {
                        let mut all = (0..self.outcomes.len()).filter(|at| !self.is_optional(*at));
                        let has = |at: usize| self.has(at, outcome);
                        self.having(outcome) > 0 && all.all(has) && !taken.any.contains(outcome)
                    }
                    MemberCombination::Each(each) => {
                        let mut each = each.iter().enumerate();
                        let can = |at: usize, outcome| self.has(at, outcome) || self.is_optional(at);
                        each.all(|(at, outcome)| can(at, outcome) && !taken.any.contains(*outcome))
                    }
                };
                possible && !taken.exactly.contains(&exactly)
            }),
        }
    }

    fn is_optional(&self, at: usize) -> bool {
        self.optional.get(at).copied().unwrap_or(false)
    }

    fn has(&self, at: usize, outcome: &Outcome) -> bool {
        *outcome == Outcome::None || self.outcomes[at].contains(outcome)
    }

    fn having(&self, outcome: &Outcome) -> usize {
        self.having.get(outcome).copied().unwrap_or(0)
    }

    /// The combination that a rule about all members needs; `None` if it has another number of members.
    fn exactly<'r>(&self, pattern: &'r JoinPattern) -> Option<MemberCombination<'r>> {
        match pattern {
            JoinPattern::All(outcome) if !self.outcomes.is_empty() => Some(MemberCombination::Same(outcome)),
            JoinPattern::All(_) => Some(MemberCombination::Nobody),
            JoinPattern::Each(each) if each.len() == self.outcomes.len() => {
                Some(build_combination(each.iter().collect()))
            }
            JoinPattern::Each(_) | JoinPattern::Any(_) => None,
        }
    }
}

fn build_combination(each: Vec<&Outcome>) -> MemberCombination<'_> {
    match each.first() {
        None => MemberCombination::Nobody,
        Some(first) if each.iter().all(|other| other == first) => MemberCombination::Same(first),
        Some(_) => MemberCombination::Each(each),
    }
}

/// The combinations that rules about all members match, indexed for many lookups.
pub(crate) struct RuleCombinations<'r>(HashSet<MemberCombination<'r>>);

impl<'r> RuleCombinations<'r> {
    /// The combinations that some rules match for this number of members.
    pub(crate) fn of(
        rules: impl IntoIterator<Item = &'r JoinRule>,
        members: &'r [BTreeSet<Outcome>],
    ) -> RuleCombinations<'r> {
        let members = Members { outcomes: members, optional: &[], having: HashMap::new() };
        RuleCombinations(rules.into_iter().filter_map(|rule| members.exactly(&rule.pattern)).collect())
    }

    /// Whether one of the rules matches a combination of member outcomes.
    pub(crate) fn fit(&self, case: &[&Outcome]) -> bool {
        self.0.contains(&build_combination(case.to_vec()))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::Members;
    use crate::checks::testing::Dice;
    use crate::model::{JoinPattern, JoinRule, Outcome};

    fn word(dice: &mut Dice) -> Outcome {
        Outcome::Named(["x", "y", "z"][dice.below(3) as usize].into())
    }

    fn words(dice: &mut Dice, most: u64) -> Vec<Outcome> {
        (0..dice.below(most + 1)).map(|_| word(dice)).collect()
    }

    fn fits(pattern: &JoinPattern, said: &[Option<Outcome>]) -> bool {
        match pattern {
            JoinPattern::All(wanted) => said.iter().all(|said| said.as_ref() == Some(wanted)),
            JoinPattern::Each(each) => each.iter().map(Some).eq(said.iter().map(Option::as_ref)),
            JoinPattern::Any(any) => said.iter().flatten().any(|said| any.contains(said)),
        }
    }

    /// All combinations of member outcomes.
    fn cases(members: &[BTreeSet<Outcome>]) -> Vec<Vec<Option<Outcome>>> {
        let mut cases = vec![Vec::new()];
        for member in members {
            let said = || member.iter().cloned().map(Some).chain([None]);
            cases = cases
                .into_iter()
                .flat_map(|case: Vec<_>| said().map(move |said| [case.clone(), vec![said]].concat()))
                .collect();
        }
        cases
    }

    #[test]
    fn a_rule_fires_where_a_case_matches_no_earlier_rule() {
        let mut dice = Dice(11);
        for _ in 0..4_000 {
            let members: Vec<BTreeSet<Outcome>> =
                (0..1 + dice.below(3)).map(|_| words(&mut dice, 2).into_iter().collect()).collect();
            let pattern = |dice: &mut Dice| match dice.below(3) {
                0 => JoinPattern::All(word(dice)),
                1 => JoinPattern::Each(words(dice, 3)),
                _ => JoinPattern::Any(words(dice, 2)),
            };
            let rules: Vec<JoinRule> = (0..1 + dice.below(4))
                .map(|_| JoinRule { pattern: pattern(&mut dice), outcome: word(&mut dice) })
                .collect();
            let first = |case: &Vec<Option<Outcome>>| rules.iter().position(|rule| fits(&rule.pattern, case));
            let firsts: BTreeSet<usize> = cases(&members).iter().filter_map(first).collect();
            let told = Members::of(&members, &[]);
            let expected: Vec<bool> = (0..rules.len()).map(|rule| firsts.contains(&rule)).collect();
            assert_eq!(told.firing(&rules), expected, "{rules:?} {members:?}");
            for rule in &rules {
                assert_eq!(
                    told.fires_alone(rule),
                    cases(&members).iter().any(|case| fits(&rule.pattern, case))
                );
            }
        }
    }

    #[test]
    fn many_rules_over_many_members_are_indexed() {
        // Each rule is about one member and follows all others: a pairwise comparison would take a billion operations.
        let named = |at: usize| Outcome::Named(format!("r{at}").as_str().into());
        let count = 50_000;
        let members: Vec<BTreeSet<Outcome>> = (0..count).map(|at| BTreeSet::from([named(at)])).collect();
        let rules: Vec<JoinRule> = (0..count)
            .flat_map(|at| [JoinPattern::All(named(at)), JoinPattern::Any(vec![named(at)])])
            .map(|pattern| JoinRule { pattern, outcome: named(0) })
            .collect();
        let firing = Members::of(&members, &[]).firing(&rules);
        assert!(firing.iter().enumerate().all(|(at, fires)| *fires == (at % 2 == 1)));
    }
}
