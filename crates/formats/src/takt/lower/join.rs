//! The rules of a parallel step: conditions over the outcomes of its members.

use std::collections::{HashMap, HashSet};

use cuegate_flow::{
    diagnostics::Diagnostic,
    model::{JoinPattern, JoinRule, Outcome},
};

use super::NO_RULES;
use crate::codes;
use crate::findings::Findings;
use crate::suggest::{find_nearest_name, quote_names};
use crate::takt::read::WorkflowStep;
use crate::takt::routing::condition::{Condition, as_argument};
use crate::takt::routing::rules::{FAILED, Rule, name_of, outcome_of_rule};

/// The rules over members, in order.
pub(in crate::takt) fn build_join_rules(
    step: &WorkflowStep<'_>,
    members: &[WorkflowStep<'_>],
    found: &Findings,
) -> Vec<JoinRule> {
    let check = JoinRuleChecker { step, members, meanings: Meanings::of(members), found };
    let mut rules = Vec::new();
    for rule in &step.rules {
        if rule.hidden && !rule.interactive_only {
            continue;
        }
        let pattern = match &rule.kind {
            Condition::All(word) => check.all(rule, word),
            Condition::Each(words) => check.each(rule, words),
            Condition::Any(words) => check.any(rule, words),
            Condition::Text
            | Condition::Ai(_)
            | Condition::Field(..)
            | Condition::Otherwise
            | Condition::When { .. }
            | Condition::Answered => continue,
        };
        if !rule.hidden {
            rules.push(JoinRule { pattern, outcome: outcome_of_rule(rule) });
        }
    }
    rules
}

struct JoinRuleChecker<'c, 'j> {
    step: &'c WorkflowStep<'j>,
    members: &'c [WorkflowStep<'j>],
    meanings: Meanings<'c>,
    found: &'c Findings,
}

/// Maps the words in aggregate conditions to outcomes of members.
struct Meanings<'m> {
    /// For each word: the members that have it, in order, with the outcome it names in each.
    by_word: HashMap<&'m str, Vec<(usize, Outcome)>>,
}

impl<'m> Meanings<'m> {
    /// A word names the rule with this exact text, even if that rule is only for persons; otherwise the `ai("…")`
    /// rule with this inner text. A member without rules has the outcome `done` when it has answered.
    fn of(members: &'m [WorkflowStep<'_>]) -> Meanings<'m> {
        let mut by_word: HashMap<&'m str, Vec<(usize, Outcome)>> = HashMap::new();
        for (at, member) in members.iter().enumerate() {
            let written = member.rules.iter().map(|rule| (&*rule.condition.text, rule));
            let judged = member.rules.iter().map(|rule| (judged_text_of_rule(rule), rule));
            for (word, rule) in written.chain(judged) {
                let known = by_word.entry(word).or_default();
                if known.last().is_none_or(|(last, _)| *last != at) {
                    known.push((at, outcome_of_rule(rule)));
                }
            }
            if member.rules.is_empty() {
                by_word.entry(NO_RULES).or_default().push((at, outcome_of_word(NO_RULES)));
            }
        }
        Meanings { by_word }
    }

    fn of_word(&self, word: &str) -> &[(usize, Outcome)] {
        self.by_word.get(word).map_or(&[], Vec::as_slice)
    }

    /// The outcome that the word names in one member.
    fn of_member(&self, at: usize, word: &str) -> Option<&Outcome> {
        let all = self.of_word(word);
        all.binary_search_by_key(&at, |(member, _)| *member).ok().map(|at| &all[at].1)
    }
}

impl JoinRuleChecker<'_, '_> {
    fn all(&self, rule: &Rule<'_>, word: &str) -> JoinPattern {
        self.known(rule, word, None);
        let mut said = self.meanings.of_word(word).iter().map(|(_, own)| own);
        let first = said.next().cloned().unwrap_or_else(|| outcome_of_unmatched_word(word));
        if said.all(|other| *other == first) {
            return JoinPattern::All(first);
        }
        // For one member the word is a plain rule, for another an `ai("…")` rule, so their outcomes differ.
        let own = |at| {
            self.meanings.of_member(at, word).cloned().unwrap_or_else(|| outcome_of_unmatched_word(word))
        };
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
            let finding = Diagnostic::error(codes::INVALID_CONDITION, rule.condition.span, message);
            self.push(finding.hint("name one for each member, in their order, or one for all of them"));
        } else {
            for (at, word) in words.iter().enumerate() {
                self.known(rule, word, Some(at));
            }
        }
        let own = |(index, word): (usize, &String)| {
            self.meanings.of_member(index, word).cloned().unwrap_or_else(|| outcome_of_unmatched_word(word))
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
            let unknown = own.is_empty().then(|| outcome_of_unmatched_word(word));
            for own in own.iter().map(|(_, own)| own.clone()).chain(unknown) {
                if seen.insert(own.clone()) {
                    outcomes.push(own);
                }
            }
        }
        JoinPattern::Any(outcomes)
    }

    /// Reports a word that is no rule of the given member, or of any member.
    fn known(&self, rule: &Rule<'_>, word: &str, of: Option<usize>) {
        let members = of.map_or(self.members, |at| &self.members[at..=at]);
        let is_known = match of {
            Some(at) => self.meanings.of_member(at, word).is_some(),
            None => !self.meanings.of_word(word).is_empty(),
        };
        // A parallel step without members has its own finding.
        if members.is_empty() || is_known || word == FAILED {
            return;
        }
        let whose = match members {
            [member] => format!("`{}`", member.name.text),
            _ => "any member".to_owned(),
        };
        let message = format!("`{word}` is not a rule of {whose}");
        let texts: Vec<&str> = collect_conditions(members).collect();
        let hint = match find_nearest_name(word, texts.iter().copied()) {
            Some(near) => format!("did you mean `{}`?", as_argument(near)),
            None if texts.is_empty() => "give the members rules".to_owned(),
            None => {
                let texts: Vec<String> = texts.into_iter().map(as_argument).collect();
                format!("use one of {}", quote_names(&texts))
            }
        };
        self.push(Diagnostic::error(codes::UNKNOWN_NAME, rule.condition.span, message).hint(hint));
    }

    fn push(&self, finding: Diagnostic) {
        self.found.push(finding.step(self.step.name.text));
    }
}

/// The inner text of an `ai("…")` rule, else the condition as written.
fn judged_text_of_rule<'r>(rule: &'r Rule<'_>) -> &'r str {
    match &rule.kind {
        Condition::Ai(inner) => inner,
        _ => &rule.condition.text,
    }
}

/// The conditions of all members, without repetitions.
fn collect_conditions<'m>(members: &'m [WorkflowStep<'_>]) -> impl Iterator<Item = &'m str> {
    let mut seen = HashSet::new();
    let of = |member: &'m WorkflowStep<'_>| {
        let done = member.rules.is_empty().then_some(NO_RULES);
        member.rules.iter().map(judged_text_of_rule).chain(done)
    };
    members.iter().flat_map(of).filter(move |text| seen.insert(*text))
}

/// The outcome that a word means which is no rule of a member.
fn outcome_of_unmatched_word(word: &str) -> Outcome {
    if word == FAILED { Outcome::None } else { outcome_of_word(word) }
}

fn outcome_of_word(word: &str) -> Outcome {
    Outcome::Named(name_of(word))
}
