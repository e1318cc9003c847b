//! The rules of a parallel movement: what its members' outcomes have to look like.

use cuegate_flow::{Diagnostic, JoinPattern, JoinRule, Outcome};

use super::condition::Condition;
use super::judge::named;
use super::lower::NO_RULES;
use super::movement::Movement;
use super::rules::{Rule, name_of};
use crate::codes;
use crate::findings::Findings;
use crate::nearest::{list, nearest};

/// The rules about members, in their order.
pub(super) fn rules(movement: &Movement<'_>, members: &[Movement<'_>], found: &Findings) -> Vec<JoinRule> {
    let check = Check { movement, members, found };
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
    found: &'c Findings,
}

impl Check<'_, '_> {
    fn all(&self, rule: &Rule<'_>, word: &str) -> JoinPattern {
        self.known(rule, word, self.members);
        JoinPattern::All(outcome(word))
    }

    fn each(&self, rule: &Rule<'_>, words: &[String]) -> JoinPattern {
        if words.len() != self.members.len() {
            let message = format!(
                "`{}` names {} outcomes for {} members",
                rule.condition.text,
                words.len(),
                self.members.len()
            );
            let finding = Diagnostic::error(codes::INVALID_CONDITION, rule.condition.span, message);
            self.push(finding.hint("name one for each member, in their order, or one for all of them"));
        } else {
            for (word, member) in words.iter().zip(self.members) {
                self.known(rule, word, std::slice::from_ref(member));
            }
        }
        JoinPattern::Each(words.iter().map(|word| outcome(word)).collect())
    }

    fn any(&self, rule: &Rule<'_>, words: &[String]) -> JoinPattern {
        for word in words {
            self.known(rule, word, self.members);
        }
        JoinPattern::Any(words.iter().map(|word| outcome(word)).collect())
    }

    /// Whether a word is a rule of one of some members; a finding when it is not.
    fn known(&self, rule: &Rule<'_>, word: &str, members: &[Movement<'_>]) -> bool {
        if members.iter().any(|member| has(member, word)) {
            return true;
        }
        let whose = match members {
            [member] => format!("`{}`", member.name.text),
            _ => "any member".to_owned(),
        };
        let message = format!("`{word}` is no rule of {whose}");
        let texts: Vec<&str> = conditions(members).collect();
        let hint = match nearest(word, texts.iter().copied()) {
            Some(near) => format!("did you mean `{near}`?"),
            None if texts.is_empty() => "give the members rules".to_owned(),
            None => format!("use one of {}", list(&texts)),
        };
        self.push(Diagnostic::error(codes::UNKNOWN_OUTCOME, rule.condition.span, message).hint(hint));
        false
    }

    fn push(&self, finding: Diagnostic) {
        self.found.push(finding.step(self.movement.name.text));
    }
}

/// Whether a member has a rule of this text, be it one for persons only.
fn has(member: &Movement<'_>, word: &str) -> bool {
    conditions(std::slice::from_ref(member)).any(|text| text == word)
}

/// The conditions of members, each once. One without rules is done when it has answered.
fn conditions<'m>(members: &'m [Movement<'_>]) -> impl Iterator<Item = &'m str> {
    let mut seen = Vec::new();
    let of = |member: &'m Movement<'_>| {
        let done = member.rules.is_empty().then_some(NO_RULES);
        member.rules.iter().map(|rule| rule.condition.text).chain(done)
    };
    members.iter().flat_map(of).filter(move |text| {
        let new = !seen.contains(text);
        seen.push(*text);
        new
    })
}

fn outcome(word: &str) -> Outcome {
    Outcome::Named(name_of(word))
}
