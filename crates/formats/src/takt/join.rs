//! The rules of a parallel movement: what its members' outcomes have to look like.

use std::collections::{HashMap, HashSet};

use cuegate_flow::{
    diagnostics::Diagnostic,
    model::{JoinPattern, JoinRule, Outcome},
};

use super::condition::{Condition, as_argument};
use super::judge::named;
use super::lower::NO_RULES;
use super::movement::Movement;
use super::rules::{Rule, name_of};
use crate::lints;
use crate::source::findings::Findings;
use crate::source::suggest::{list, nearest};

/// The rules about members, in their order.
pub(super) fn rules(movement: &Movement<'_>, members: &[Movement<'_>], found: &Findings) -> Vec<JoinRule> {
    let check = Check { movement, members, meanings: Meanings::of(members), found };
    let mut rules = Vec::new();
    for rule in &movement.rules {
        let pattern = match &rule.kind {
            Condition::All(word) => check.all(rule, word),
            Condition::Each(words) => check.each(rule, words),
            Condition::Any(words) => check.any(rule, words),
            Condition::Text | Condition::Ai(_) => continue,
        };
        if !rule.hidden {
            rules.push(JoinRule { pattern, outcome: named(rule) });
        }
    }
    rules
}

struct Check<'c, 'j> {
    movement: &'c Movement<'j>,
    members: &'c [Movement<'j>],
    meanings: Meanings<'c>,
    found: &'c Findings,
}

/// What members call the rules that words mean.
struct Meanings<'m> {
    /// By word: the members that have it, in their order, and what each calls it.
    by_word: HashMap<&'m str, Vec<(usize, Outcome)>>,
}

impl<'m> Meanings<'m> {
    /// A word means the rule of this text, be it one for persons only, else the one of which a judge says whether this
    /// text holds. A member without rules is done when it has answered.
    fn of(members: &'m [Movement<'_>]) -> Meanings<'m> {
        let mut by_word: HashMap<&'m str, Vec<(usize, Outcome)>> = HashMap::new();
        for (at, member) in members.iter().enumerate() {
            let written = member.rules.iter().map(|rule| (rule.condition.text, rule));
            let judged = member.rules.iter().map(|rule| (judged(rule), rule));
            for (word, rule) in written.chain(judged) {
                let known = by_word.entry(word).or_default();
                if known.last().is_none_or(|(last, _)| *last != at) {
                    known.push((at, named(rule)));
                }
            }
            if member.rules.is_empty() {
                by_word.entry(NO_RULES).or_default().push((at, outcome(NO_RULES)));
            }
        }
        Meanings { by_word }
    }

    fn of_word(&self, word: &str) -> &[(usize, Outcome)] {
        self.by_word.get(word).map_or(&[], Vec::as_slice)
    }

    /// What one member calls it.
    fn of_member(&self, at: usize, word: &str) -> Option<&Outcome> {
        let all = self.of_word(word);
        all.binary_search_by_key(&at, |(member, _)| *member).ok().map(|at| &all[at].1)
    }
}

impl Check<'_, '_> {
    fn all(&self, rule: &Rule<'_>, word: &str) -> JoinPattern {
        self.known(rule, word, None);
        let mut said = self.meanings.of_word(word).iter().map(|(_, own)| own);
        let first = said.next().cloned().unwrap_or_else(|| outcome(word));
        if said.all(|other| *other == first) {
            return JoinPattern::All(first);
        }
        // One says it by itself, of another one a judge says it: they call it differently.
        let own = |at| self.meanings.of_member(at, word).cloned().unwrap_or_else(|| outcome(word));
        JoinPattern::Each((0..self.members.len()).map(own).collect())
    }

    fn each(&self, rule: &Rule<'_>, words: &[String]) -> JoinPattern {
        if words.len() != self.members.len() {
            let message = format!(
                "`{}` names {} outcomes for {} members",
                rule.condition.text,
                words.len(),
                self.members.len()
            );
            let finding = Diagnostic::error(lints::INVALID_CONDITION, rule.condition.span, message);
            self.push(finding.hint("name one for each member, in their order, or one for all of them"));
        } else {
            for (at, word) in words.iter().enumerate() {
                self.known(rule, word, Some(at));
            }
        }
        let own = |(index, word): (usize, &String)| {
            self.meanings.of_member(index, word).cloned().unwrap_or_else(|| outcome(word))
        };
        JoinPattern::Each(words.iter().enumerate().map(own).collect())
    }

    fn any(&self, rule: &Rule<'_>, words: &[String]) -> JoinPattern {
        for word in words {
            self.known(rule, word, None);
        }
        let (mut outcomes, mut seen) = (Vec::new(), HashSet::new());
        for word in words {
            let own = self.meanings.of_word(word);
            let unknown = own.is_empty().then(|| outcome(word));
            for own in own.iter().map(|(_, own)| own.clone()).chain(unknown) {
                if seen.insert(own.clone()) {
                    outcomes.push(own);
                }
            }
        }
        JoinPattern::Any(outcomes)
    }

    /// Says so when a word is no rule of a member, or of any.
    fn known(&self, rule: &Rule<'_>, word: &str, of: Option<usize>) {
        let members = of.map_or(self.members, |at| &self.members[at..=at]);
        let is_known = match of {
            Some(at) => self.meanings.of_member(at, word).is_some(),
            None => !self.meanings.of_word(word).is_empty(),
        };
        // Without members there is nothing that it could name, which has been said.
        if members.is_empty() || is_known {
            return;
        }
        let whose = match members {
            [member] => format!("`{}`", member.name.text),
            _ => "any member".to_owned(),
        };
        let message = format!("`{word}` is no rule of {whose}");
        let texts: Vec<&str> = conditions(members).collect();
        let hint = match nearest(word, texts.iter().copied()) {
            Some(near) => format!("did you mean `{}`?", as_argument(near)),
            None if texts.is_empty() => "give the members rules".to_owned(),
            None => {
                let texts: Vec<String> = texts.into_iter().map(as_argument).collect();
                format!("use one of {}", list(&texts))
            }
        };
        self.push(Diagnostic::error(lints::UNKNOWN_NAME, rule.condition.span, message).hint(hint));
    }

    fn push(&self, finding: Diagnostic) {
        self.found.push(finding.step(self.movement.name.text));
    }
}

/// What holds when a rule does, without the call around it.
fn judged<'r>(rule: &'r Rule<'_>) -> &'r str {
    match &rule.kind {
        Condition::Ai(inner) => inner,
        _ => rule.condition.text,
    }
}

/// What members can come to, each text once.
fn conditions<'m>(members: &'m [Movement<'_>]) -> impl Iterator<Item = &'m str> {
    let mut seen = HashSet::new();
    let of = |member: &'m Movement<'_>| {
        let done = member.rules.is_empty().then_some(NO_RULES);
        member.rules.iter().map(judged).chain(done)
    };
    members.iter().flat_map(of).filter(move |text| seen.insert(*text))
}

fn outcome(word: &str) -> Outcome {
    Outcome::Named(name_of(word))
}
