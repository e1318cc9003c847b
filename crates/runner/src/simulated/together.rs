//! What the members of a parallel step say together, so that its rules come to what is wanted.

use std::collections::BTreeSet;

use cuegate_flow::{JoinPattern, JoinRule, Outcome};

/// What each member says so that a wanted rule's outcome is that of the first rule that fits; `None` wants that no rule
/// fits. `said` has for each member what it can say, what it had rather say first. `None` when there is no such way.
///
/// An exact search: rules about some member only take outcomes away, and each rule about all of them spoils one way.
pub(super) fn together(
    rules: &[JoinRule],
    said: &[Vec<Outcome>],
    wanted: Option<&Outcome>,
) -> Option<Vec<Outcome>> {
    let Some(wanted) = wanted else { return search(rules, said, wanted, rules.len()) };
    let places = (0..rules.len()).filter(|at| rules[*at].outcome == *wanted);
    places.into_iter().find_map(|at| match &rules[at].pattern {
        JoinPattern::All(outcome) => exactly(rules, said, wanted, &vec![outcome.clone(); said.len()]),
        JoinPattern::Each(outcomes) => exactly(rules, said, wanted, outcomes),
        JoinPattern::Any(outcomes) => {
            // Some member has one of these; the others say what they like.
            (0..said.len()).find_map(|member| {
                let one = said[member].iter().filter(|outcome| outcomes.contains(outcome));
                one.into_iter().find_map(|outcome| {
                    let mut said = said.to_vec();
                    said[member] = vec![outcome.clone()];
                    search(rules, &said, Some(wanted), at)
                })
            })
        }
    })
}

/// One certain way, where the members can say it and it comes to what is wanted.
fn exactly(
    rules: &[JoinRule],
    said: &[Vec<Outcome>],
    wanted: &Outcome,
    way: &[Outcome],
) -> Option<Vec<Outcome>> {
    let sayable = way.len() == said.len() && way.iter().zip(said).all(|(one, all)| all.contains(one));
    (sayable && joined(rules, way) == Some(wanted)).then(|| way.to_vec())
}

/// The first way that none of the rules before a place takes.
fn search(
    rules: &[JoinRule],
    said: &[Vec<Outcome>],
    wanted: Option<&Outcome>,
    before: usize,
) -> Option<Vec<Outcome>> {
    let taken: BTreeSet<&Outcome> = rules[..before]
        .iter()
        .filter_map(|rule| match &rule.pattern {
            JoinPattern::Any(outcomes) => Some(outcomes),
            _ => None,
        })
        .flatten()
        .collect();
    let free: Vec<Vec<&Outcome>> =
        said.iter().map(|all| all.iter().filter(|outcome| !taken.contains(outcome)).collect()).collect();
    if free.iter().any(Vec::is_empty) {
        return None;
    }
    let mut at = vec![0; free.len()];
    // Each rule about all members takes one way, so that one more than there are rules are enough.
    for _ in 0..=rules.len() {
        let way: Vec<Outcome> = at.iter().zip(&free).map(|(place, all)| all[*place].clone()).collect();
        if joined(rules, &way) == wanted {
            return Some(way);
        }
        // The next way, as numbers count.
        let next = (0..at.len()).rev().find(|member| at[*member] + 1 < free[*member].len())?;
        at[next] += 1;
        at[next + 1..].fill(0);
    }
    None
}

/// What the rules of a parallel step make of what its members said; `None` when no rule fits.
pub(super) fn joined<'r>(rules: &'r [JoinRule], said: &[Outcome]) -> Option<&'r Outcome> {
    let fits = |rule: &&JoinRule| match &rule.pattern {
        JoinPattern::All(wanted) => said.iter().all(|outcome| outcome == wanted),
        JoinPattern::Each(wanted) => wanted == said,
        JoinPattern::Any(wanted) => said.iter().any(|outcome| wanted.contains(outcome)),
    };
    rules.iter().find(fits).map(|rule| &rule.outcome)
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
    fn however_many_members_there_are() {
        let rules =
            [rule(JoinPattern::All(named("ok")), "all"), rule(JoinPattern::Any(vec![named("bad")]), "some")];
        for members in [1, 2, 8, 12, 40] {
            let said = vec![vec![named("bad"), named("ok"), named("odd")]; members];
            for wanted in [None, Some(named("all")), Some(named("some"))] {
                let found = together(&rules, &said, wanted.as_ref()).unwrap();
                assert_eq!(joined(&rules, &found), wanted.as_ref(), "{members}");
            }
        }
        assert_eq!(together(&rules, &[vec![named("bad")]], None), None);
    }

    /// What is found is right, and nothing that there is goes unfound: held against all ways there are.
    #[test]
    fn it_finds_a_way_where_there_is_one() {
        let words = ["a", "b", "c"].map(named);
        let mut seed = 7_u64;
        let mut roll = |below: usize| {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (seed >> 33) as usize % below
        };
        for _ in 0..500 {
            let members = 1 + roll(3);
            let said: Vec<Vec<Outcome>> = (0..members).map(|_| words[..1 + roll(3)].to_vec()).collect();
            let rules: Vec<JoinRule> = (0..roll(5))
                .map(|_| {
                    let pattern = match roll(3) {
                        0 => JoinPattern::All(words[roll(3)].clone()),
                        1 => JoinPattern::Each((0..members).map(|_| words[roll(3)].clone()).collect()),
                        _ => JoinPattern::Any(vec![words[roll(3)].clone()]),
                    };
                    rule(pattern, ["x", "y"][roll(2)])
                })
                .collect();
            let mut ways: Vec<Vec<Outcome>> = vec![Vec::new()];
            for all in &said {
                ways = ways
                    .iter()
                    .flat_map(|way| all.iter().map(|one| [way.clone(), vec![one.clone()]].concat()))
                    .collect();
            }
            for wanted in [None, Some(named("x")), Some(named("y"))] {
                let there = ways.iter().any(|way| joined(&rules, way) == wanted.as_ref());
                let found = together(&rules, &said, wanted.as_ref());
                assert_eq!(found.is_some(), there, "{rules:?} {said:?} {wanted:?}");
                assert!(found.is_none_or(|way| joined(&rules, &way) == wanted.as_ref()));
            }
        }
    }
}
