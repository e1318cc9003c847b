//! Answers that cannot be used: asked again as often as allowed, then the definition's fallback, else the end.

use cuegate_ask::AskKind;
use cuegate_flow::model::{Act, Permission, Step, StepId, Template};

use super::{
    Decider,
    answered::{AskScope, follow_up},
    exit_step::{self, StepResult},
    join,
};
use crate::{
    answers::{
        gate::{InvalidAnswer, fallback_of_step, message_of_missing_outcome, names_outcome},
        parsed_answer::ParsedAnswer,
    },
    completion::{OutsideWrites, TreeChange},
    event::Event,
    event_types::{AskContext, AskRequest, PromptPart},
    prompt::render_template,
    run::{PendingAsk, Work},
};

/// Asks again as often as allowed; then the definition's fallback holds, or the run fails.
pub(super) fn reject_answer(
    decider: &mut Decider<'_>,
    scope: &AskScope<'_>,
    bad: InvalidAnswer,
    answer: &ParsedAnswer<'_>,
) {
    let &AskScope { step, asked, member, ref asking } = scope;
    decider.emit(Event::AnswerRejected { step: asked.name.clone(), member, why: bad.why.clone() });
    if asking.repairs < decider.run.spending.repairs_max {
        let say = render_repair_prompt(&bad.why, asked, asking, decider);
        let follow = follow_up(decider, &say, answer);
        decider.request_ask(AskRequest {
            kind: AskKind::Repair,
            follow: Some(follow),
            ..asking.again(&step.name, member)
        });
        return;
    }
    if let Some(index) = member {
        let end = join::MemberEnd { why: Some(bad.why), ..join::MemberEnd::default() };
        join::member_ended(decider, index, &step.name, end);
        return;
    }
    let named = names_outcome(asked, answer);
    let decides = !matches!(asking.context, AskContext::Report(_) | AskContext::Select(_));
    if decides && fall_back(decider, step, &bad.why, named) {
        return;
    }
    let reason = match message_of_missing_outcome(asked).filter(|_| bad.absent) {
        Some(text) => format!("{} ({})", in_words(decider, asked, text), bad.why),
        None => format!("the answer of `{}` cannot be used: {}", asked.name, bad.why),
    };
    decider.fail(reason);
}

/// What a definition says of a step, as the run stands.
fn in_words(decider: &Decider<'_>, step: &Step<StepId>, text: &Template) -> String {
    let parts = render_template(&decider.run, step, text, None);
    parts
        .iter()
        .filter_map(|part| match part {
            PromptPart::Text(text) => Some(&**text),
            // Nothing that an agent wrote belongs into the definition's own words.
            _ => None,
        })
        .collect()
}

/// Takes the outcome that the definition falls back to, when it has one. `named` says whether the answer names an
/// outcome itself.
fn fall_back(decider: &mut Decider<'_>, step: &Step<StepId>, why: &str, named: bool) -> bool {
    if let Some(outcome) = fallback_of_step(step, decider.run.progress.iterations, named).cloned()
        && let Some(step) = decider.step(&step.name)
        && let Ok(way) = exit_step::find_transition(decider, step, outcome, None, &Default::default())
    {
        let result = StepResult { reason: Some(why.to_owned()), fallback: true, failure: None };
        exit_step::take_transition(decider, step, &way, result);
        return true;
    }
    false
}

fn render_repair_prompt(
    why: &str,
    asked: &Step<StepId>,
    asking: &PendingAsk,
    decider: &Decider<'_>,
) -> String {
    let mut say = format!("Your answer could not be used: {why}.\n\nAnswer again with all of it corrected.");
    if let Act::Ask(ask) = &asked.act
        && asking.context.owing().is_none()
        && let Some(schema) = ask.schema
    {
        say.push_str(" It has to be one JSON object of this JSON Schema:\n\n```json\n");
        say.push_str(&decider.flow.schema(schema).value().to_string());
        say.push_str("\n```\n");
    }
    say
}

/// No reader and no judge found an outcome.
pub(super) fn reject_unmatched_answer(decider: &mut Decider<'_>, step: &Step<StepId>, member: Option<u16>) {
    if member.is_none() && fall_back(decider, step, "no rule matched", false) {
        return;
    }
    match member {
        Some(index) => {
            let end = join::MemberEnd { why: Some("no rule matched".into()), ..join::MemberEnd::default() };
            join::member_ended(decider, index, &step.name, end);
        }
        None => decider.fail(format!("no rule of `{}` matched", step.name)),
    }
}

/// What an ask may do: a report is only told, whatever its step may.
pub(super) fn permission_of_ask(scope: &AskScope<'_>) -> Permission {
    match scope.asking.context {
        AskContext::Report(_) => Permission::Plan,
        AskContext::Own | AskContext::Judge(_) | AskContext::Select(_) => scope.asked.boundary.permission,
    }
}

/// Records changes that someone else made while a step had the tree read-only, and takes them out of what its ask did.
pub(super) fn without_others(
    decider: &mut Decider<'_>,
    asked: &Step<StepId>,
    member: Option<u16>,
    seen: Option<TreeChange>,
) -> Option<TreeChange> {
    let seen = seen?;
    let beside_writers = member.is_some() && siblings_may_write(decider);
    if !seen.by_others
        || !seen.lost.is_empty()
        || !seen.trespassed.is_empty()
        || beside_writers
        || decider.run.tree.as_ref() == Some(&seen.tree)
    {
        return Some(seen);
    }
    let mut paths = seen.changed;
    if let Some(before) = decider.run.tree.as_ref().filter(|_| paths.is_empty()) {
        let moved = if before.head != seen.tree.head { "HEAD" } else { "refs" };
        paths.push(moved.to_owned());
    }
    decider.emit(Event::ChangedByOthers { step: asked.name.clone(), paths, tree: seen.tree });
    None
}

/// Files that changed although the step may not write, and what no step may remove from the repository.
///
/// A parallel group is looked at as a whole: where one member may write, nobody can say whose edits they are.
pub(super) fn find_boundary_violations(
    decider: &Decider<'_>,
    scope: &AskScope<'_>,
    seen: Option<&TreeChange>,
) -> Vec<String> {
    let permission = permission_of_ask(scope);
    let Some(seen) = seen else { return Vec::new() };
    if !seen.lost.is_empty() {
        return seen.lost.clone();
    }
    if !seen.trespassed.is_empty() {
        return seen.trespassed.clone();
    }
    let beside_writers = scope.member.is_some() && siblings_may_write(decider);
    if permission.may_write() || beside_writers {
        let place = &decider.run.started().place;
        return seen.changed.iter().filter(|path| place.forbids(path)).cloned().collect();
    }
    let mut paths = seen.changed.clone();
    paths.retain(|path| !seen.spared.contains(path));
    if let Some(before) = &decider.run.tree {
        if before.head != seen.tree.head {
            paths.push("HEAD".to_owned());
        } else if before.refs != seen.tree.refs && !decider.run.started().place.owned {
            // Other branches of a repository that a run works beside are other people's to move.
            paths.push("refs".to_owned());
        }
    }
    paths
}

fn siblings_may_write(decider: &Decider<'_>) -> bool {
    let Some(Work::Joining(members)) = decider.run.progress.node.as_ref().map(|node| &node.work) else {
        return false;
    };
    members
        .iter()
        .filter(|member| !member.skipped)
        .any(|member| decider.step(&member.step).is_some_and(|step| step.boundary.permission.may_write()))
}

/// Records changes of the main checkout. Returns those that the agent made, which are against the boundary of every step:
/// they are not undone, because the checkout is the user's.
pub(super) fn record_outside(
    decider: &mut Decider<'_>,
    asked: &Step<StepId>,
    outside: Option<OutsideWrites>,
) -> Vec<String> {
    let Some(OutsideWrites { by_agent, by_others, more }) = outside else { return Vec::new() };
    if !by_others.is_empty() {
        decider.emit(Event::MainCheckoutChanged { step: asked.name.clone(), paths: by_others, more });
    }
    if !by_agent.is_empty() {
        let permission = asked.boundary.permission;
        decider.emit(Event::BoundaryViolated {
            step: asked.name.clone(),
            permission,
            paths: by_agent.clone(),
        });
    }
    by_agent
}

/// Rejects an answer whose agent wrote to the main checkout.
pub(super) fn reject_outside_writes(
    decider: &mut Decider<'_>,
    scope: &AskScope<'_>,
    paths: &[String],
    answer: &ParsedAnswer<'_>,
) {
    let named: Vec<String> = paths.iter().take(10).map(|path| format!("`{path}`")).collect();
    let why = format!(
        "`{}` wrote outside of its working folder `{}`: {}; these changes were not undone",
        scope.asked.name,
        decider.run.started().place.work,
        named.join(", ")
    );
    reject_answer(decider, scope, InvalidAnswer::wrong(why), answer);
}

/// An ask wrote where writing is not allowed.
pub(super) fn reject_boundary_violation(
    decider: &mut Decider<'_>,
    scope: &AskScope<'_>,
    (paths, seen): (Vec<String>, Option<TreeChange>),
    answer: &ParsedAnswer<'_>,
) {
    let (asked, permission) = (scope.asked, permission_of_ask(scope));
    let named: Vec<String> = paths.iter().take(10).map(|path| format!("`{path}`")).collect();
    let why = format!(
        "`{}` may not write (permission `{}`), but changed {}",
        asked.name,
        permission.as_str(),
        named.join(", ")
    );
    if seen.as_ref().is_some_and(|seen| !seen.lost.is_empty()) {
        let why =
            format!("`{}` removed from the repository what git needs: {}", asked.name, named.join(", "));
        decider.emit(Event::BoundaryViolated { step: asked.name.clone(), permission, paths });
        decider.fail(why);
        return;
    }
    if let Some(seen) = seen.as_ref().filter(|seen| !seen.trespassed.is_empty()) {
        let named = paths.iter().take(10).cloned().collect::<Vec<_>>().join(", ");
        let why = format!(
            "`{}` changed what is not its own in the repository; it was put back as far as git can: {named}",
            asked.name
        );
        decider.emit(Event::BoundaryViolated { step: asked.name.clone(), permission, paths });
        // Its files and the commits of its branch were not put back.
        let (changed_files, tree) = (seen.changed.clone(), seen.tree.clone());
        decider.emit(Event::TreeSeen { changed_files, tree });
        decider.fail(why);
        return;
    }
    decider.emit(Event::BoundaryViolated { step: asked.name.clone(), permission, paths });
    // What the run owns is restored and asked again; in a person's own tree nothing is undone.
    if decider.run.started().place.owned {
        reject_answer(decider, scope, InvalidAnswer::wrong(why), answer);
        return;
    }
    // What was done there is kept in sight, so that it can be undone.
    if let Some(TreeChange { tree, changed, .. }) = seen {
        decider.emit(Event::TreeSeen { changed_files: changed, tree });
    }
    decider.fail(why);
}
