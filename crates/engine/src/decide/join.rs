//! The members of a parallel step.

use cuegate_flow::{Gate, JoinPattern, JoinRule, Outcome, Str};

use super::{Decider, enter, leave};
use crate::{
    event::Event,
    run::{Member, Work},
};

/// A member is done; with the last one the join is evaluated, in definition order.
pub(super) fn member_ended(
    decider: &mut Decider<'_>,
    index: u16,
    step: &Str,
    outcome: Option<Outcome>,
    why: Option<String>,
    blocked: bool,
) {
    let outcome = outcome.map(|outcome| outcome.to_string().into());
    decider.emit(Event::MemberEnded { index, step: step.clone(), outcome, why, blocked });
    let Some(Work::Joining(members)) = decider.run.node.as_ref().map(|node| &node.work) else { return };
    let members = members.clone();
    if members.iter().any(|member| member.ended.is_none()) {
        return;
    }
    let Some(parent) = decider.here() else { return };
    let Gate::Join(rules) = &parent.gate else { return };
    let matched = rules.iter().find(|rule| fits(rule, &members)).map(|rule| rule.outcome.clone());
    if let Some(outcome) = matched {
        match leave::way(decider, parent, outcome, None, &Default::default()) {
            Ok(way) => leave::go(decider, parent, &way, None, false, None),
            Err(bad) => decider.fail(bad.why),
        }
        return;
    }
    let ends: Vec<String> = members.iter().map(describe).collect();
    if members.iter().any(|member| member.blocked) {
        enter::ask_person(decider, &format!("no rule of `{}` matched: {}", parent.name, ends.join(", ")));
    } else {
        decider.fail(format!("no rule of `{}` matched: {}", parent.name, ends.join(", ")));
    }
}

fn describe(member: &Member) -> String {
    match &member.ended {
        Some(Some(outcome)) => format!("`{}` {outcome}", member.step),
        _ if member.blocked => format!("`{}` blocked", member.step),
        _ => format!("`{}` failed", member.step),
    }
}

fn fits(rule: &JoinRule, members: &[Member]) -> bool {
    let has = |member: &Member, wanted: &Outcome| matches!((&member.ended, wanted), (Some(Some(outcome)), Outcome::Named(name)) if outcome == name);
    match &rule.pattern {
        JoinPattern::All(wanted) => members.iter().all(|member| has(member, wanted)),
        JoinPattern::Each(wanted) => {
            wanted.len() == members.len()
                && members.iter().zip(wanted).all(|(member, wanted)| has(member, wanted))
        }
        JoinPattern::Any(wanted) => {
            members.iter().any(|member| wanted.iter().any(|wanted| has(member, wanted)))
        }
    }
}
