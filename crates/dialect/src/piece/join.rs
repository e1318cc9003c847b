//! The rules of a parallel movement: what its members' outcomes have to look like.

use cuegate_flow::{Diagnostic, JoinPattern, JoinRule, Outcome};

use super::condition::{Condition, as_argument};
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
        let own: Vec<Option<Outcome>> = self.members.iter().map(|member| meant(member, word)).collect();
        let mut said = own.iter().flatten();
        let first = said.next().cloned().unwrap_or_else(|| outcome(word));
        if said.all(|other| *other == first) {
            return JoinPattern::All(first);
        }
        // One says it by itself, of another one a judge says it: they call it differently.
        JoinPattern::Each(own.into_iter().map(|own| own.unwrap_or_else(|| outcome(word))).collect())
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
        let own = |(index, word): (usize, &String)| {
            self.members.get(index).and_then(|member| meant(member, word)).unwrap_or_else(|| outcome(word))
        };
        JoinPattern::Each(words.iter().enumerate().map(own).collect())
    }

    fn any(&self, rule: &Rule<'_>, words: &[String]) -> JoinPattern {
        for word in words {
            self.known(rule, word, self.members);
        }
        let mut outcomes: Vec<Outcome> = Vec::new();
        for word in words {
            let mut own: Vec<Outcome> =
                self.members.iter().filter_map(|member| meant(member, word)).collect();
            if own.is_empty() {
                own.push(outcome(word));
            }
            for own in own {
                if !outcomes.contains(&own) {
                    outcomes.push(own);
                }
            }
        }
        JoinPattern::Any(outcomes)
    }

    /// Whether a word is a rule of one of some members; a finding when it is not.
    fn known(&self, rule: &Rule<'_>, word: &str, members: &[Movement<'_>]) -> bool {
        // Without members there is nothing that it could name, which has been said.
        if members.is_empty() || members.iter().any(|member| meant(member, word).is_some()) {
            return true;
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
        self.push(Diagnostic::error(codes::UNKNOWN_OUTCOME, rule.condition.span, message).hint(hint));
        false
    }

    fn push(&self, finding: Diagnostic) {
        self.found.push(finding.step(self.movement.name.text));
    }
}

/// What a member calls the rule that a word means, be it one for persons only: the rule of this text, else the one of
/// which a judge says whether this text holds. A member without rules is done when it has answered.
fn meant(member: &Movement<'_>, word: &str) -> Option<Outcome> {
    let written = member.rules.iter().find(|rule| rule.condition.text == word);
    let rule = written.or_else(|| member.rules.iter().find(|rule| judged(rule) == word));
    let done = member.rules.is_empty() && word == NO_RULES;
    rule.map(named).or_else(|| done.then(|| outcome(NO_RULES)))
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
    let mut seen = Vec::new();
    let of = |member: &'m Movement<'_>| {
        let done = member.rules.is_empty().then_some(NO_RULES);
        member.rules.iter().map(judged).chain(done)
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
