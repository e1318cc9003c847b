//! The members of a parallel step. A called workflow among them that only runs agents in parallel is replaced by these
//! agents: its result follows from their outcomes, as the results of the parallel step do.

use std::collections::BTreeMap;

use cuegate_flow::diagnostics::Diagnostic;

use super::tree::{build_text, get_mut, items_of_list};
use super::{
    ComposedSelection, ComposedStep, Composer, SelectionCandidate, Surroundings, WorkflowNode,
    is_workflow_call, name_of_step,
};
use crate::codes;
use crate::suggest::add_suggestion;
use crate::takt::routing::COMPLETE;
use crate::takt::routing::condition::{Condition, as_argument, parse_condition};
use crate::values::json::{Json, Kind};

/// A called workflow that was replaced by its agents.
struct Group {
    /// The selections among them.
    selections: Vec<ComposedSelection>,
    /// The number of its agents.
    size: usize,
    /// The outcome that all of them have when it completes.
    complete: Option<String>,
    /// The outcome that one of them has when it returns a label.
    returns: BTreeMap<String, String>,
}

impl Composer<'_, '_, '_> {
    /// Composes a step with its members, if it is parallel. Returns `None` after reporting that it cannot run.
    pub(super) fn compose_members(
        &mut self,
        source: Json,
        name: &str,
        around: &Surroundings<'_>,
    ) -> Option<ComposedStep> {
        let mut step = ComposedStep::new(source, around.scope);
        // `None` for a member that is an agent.
        let mut groups: Vec<Option<Group>> = Vec::new();
        let Some(parallel) = step.source.get("parallel").cloned() else { return Some(step) };
        match &parallel.kind {
            Kind::List(written) => {
                step.members = self.compose_member_list(written, &mut groups, around)?;
            }
            Kind::Object(_) => {
                let list = |key: &str| parallel.get(key).map(items_of_list).unwrap_or_default();
                step.members = self.compose_member_list(list("fixed"), &mut groups, around)?;
                let pool = self.compose_member_list(list("pool"), &mut groups, around)?;
                self.select_of_pool(&mut step, pool, &parallel, name, around);
            }
            // It has its own finding.
            _ => return Some(step),
        }
        for member in step.members.iter_mut().filter(|member| member.scope == around.scope) {
            member.add_name_prefix(&around.call.prefix);
        }
        // Those of called workflows are asked first.
        let of_groups: Vec<ComposedSelection> =
            groups.iter_mut().flatten().flat_map(|group| std::mem::take(&mut group.selections)).collect();
        step.selections.splice(0..0, of_groups);
        if groups.iter().any(Option::is_some) {
            self.rewrite_member_rules(&mut step.source, &groups);
        }
        Some(step)
    }

    /// Composes a list of members; called workflows are replaced by their agents.
    fn compose_member_list(
        &mut self,
        written: &[Json],
        groups: &mut Vec<Option<Group>>,
        around: &Surroundings<'_>,
    ) -> Option<Vec<ComposedStep>> {
        let mut all = Vec::new();
        for member in written {
            if !is_workflow_call(member) {
                groups.push(None);
                all.push(ComposedStep::new(member.clone(), around.scope));
                continue;
            }
            let (name, span) = name_of_step(member);
            let node = self.compose_call(&mut member.clone(), &name, span, around)?;
            let Some((agents, group)) = flatten_workflow(node) else {
                let message =
                    format!("the called workflow `{name}` cannot be a member of a parallel step yet");
                let finding = Diagnostic::error(codes::UNSUPPORTED_YET, span, message);
                let hint = "only one that runs agents in parallel and nothing else can; call it in a step of its own";
                self.refuse(finding.hint(hint));
                return None;
            };
            groups.push(Some(group));
            all.extend(agents);
        }
        Some(all)
    }

    /// Adds the members of a pool, and the selection among them.
    fn select_of_pool(
        &self,
        step: &mut ComposedStep,
        mut pool: Vec<ComposedStep>,
        parallel: &Json,
        name: &str,
        around: &Surroundings<'_>,
    ) {
        let known = ["fixed", "pool", "selection"];
        if let Some(entry) = parallel.pairs().iter().find(|entry| !known.contains(&&*entry.key)) {
            let message = format!("unknown key `{}` in `parallel`", entry.key);
            let finding = Diagnostic::error(codes::UNKNOWN_KEY, entry.key_span, message);
            self.refuse(add_suggestion(finding, &entry.key, &known));
            return;
        }
        let selector = format!("{}{name}@select", around.call.prefix);
        let mut candidates = Vec::new();
        for member in &mut pool {
            let description = member.source.get("description");
            let candidate = member.source.get("name").and_then(|id| SelectionCandidate::new(id, description));
            member.when = candidate.as_ref().map(|candidate| candidate.source(&selector));
            candidates.extend(candidate);
        }
        let none = || Json { span: parallel.span, kind: Kind::Object(Vec::new()) };
        let settings = parallel.get("selection").cloned().unwrap_or_else(none);
        if !candidates.is_empty() && !matches!(settings.kind, Kind::Object(_)) {
            let message = "`selection` must be a mapping";
            let finding = Diagnostic::error(codes::WRONG_TYPE, settings.span, message);
            self.refuse(finding.hint("give it `selector`"));
        } else if !candidates.is_empty() {
            let may_be_empty = !step.members.is_empty();
            let scope = around.scope;
            let name = selector;
            step.selections.push(ComposedSelection { name, settings, scope, candidates, may_be_empty });
        }
        step.members.extend(pool);
    }

    /// Rewrites rules over called workflows as rules over their agents.
    fn rewrite_member_rules(&self, step: &mut Json, groups: &[Option<Group>]) {
        let Some(Json { kind: Kind::List(rules), .. }) = get_mut(step, "rules") else { return };
        for rule in rules {
            let Some(condition) = get_mut(rule, "condition") else { continue };
            let Some(written) = condition.as_text() else { continue };
            match rewrite_condition(written.trim(), groups) {
                Some(new) => *condition = build_text(new, condition.span),
                None => {
                    let message = "this condition on a called workflow is not supported yet";
                    let finding = Diagnostic::error(codes::UNSUPPORTED_YET, condition.span, message);
                    let hint = "ask for `all` with `COMPLETE`, or for `any` with a label that it returns";
                    self.refuse(finding.hint(hint));
                }
            }
        }
    }
}

/// The agents of a workflow that is one parallel step, and what its results say of them.
fn flatten_workflow(mut node: WorkflowNode) -> Option<(Vec<ComposedStep>, Group)> {
    let item = node.items.pop().filter(|item| node.items.is_empty() && item.call.is_none())?;
    if !node.monitors.is_empty()
        || !matches!(item.step.source.get("parallel")?.kind, Kind::List(_) | Kind::Object(_))
    {
        return None;
    }
    let ComposedStep { source, members, selections, .. } = item.step;
    let mut group = Group { selections, size: members.len(), complete: None, returns: BTreeMap::new() };
    for rule in source.get("rules").map(items_of_list).unwrap_or_default() {
        let condition = parse_condition(rule.get("condition")?.as_text()?.trim()).ok()?;
        let to = |key: &str| rule.get(key).and_then(Json::as_text).map(str::trim);
        match (condition, to("next"), to("return")) {
            (Condition::All(word), Some(COMPLETE), None) => group.complete = Some(word),
            (Condition::Any(words), None, Some(label)) if words.len() == 1 => {
                group.returns.insert(label.to_owned(), words.into_iter().next()?);
            }
            // What the workflow does with a member that failed, its caller decides.
            (Condition::Any(words), ..) if words == ["error"] => {}
            _ => return None,
        }
    }
    (group.size > 0).then_some((members, group))
}

/// A condition on the members, as one on the agents. `None` if it cannot be said of them.
fn rewrite_condition(condition: &str, groups: &[Option<Group>]) -> Option<String> {
    let call = |name: &str, words: &[String]| {
        let words: Vec<String> = words.iter().map(|word| quote_argument(word)).collect();
        format!("{name}({})", words.join(", "))
    };
    let each = |words: &[String]| -> Option<Vec<String>> {
        let mut all = Vec::new();
        for (word, group) in words.iter().zip(groups) {
            match group {
                None => all.push(word.clone()),
                Some(group) if word == COMPLETE => {
                    all.extend(std::iter::repeat_n(group.complete.clone()?, group.size));
                }
                // What one of several agents said is no outcome of each.
                Some(group) if group.size == 1 => all.push(group.returns.get(word)?.clone()),
                Some(_) => return None,
            }
        }
        Some(all)
    };
    match parse_condition(condition).ok()? {
        Condition::All(word) => each(&vec![word; groups.len()]).map(|words| call("all", &words)),
        Condition::Each(words) if words.len() == groups.len() => {
            each(&words).map(|words| call("all", &words))
        }
        Condition::Each(_) => None,
        Condition::Any(words) => {
            let mut all: Vec<String> = Vec::new();
            for word in words {
                let meant = groups.iter().map(|group| match group {
                    None => Some(word.clone()),
                    Some(group) => group.returns.get(&word).cloned(),
                });
                for word in meant.flatten() {
                    if !all.contains(&word) {
                        all.push(word);
                    }
                }
            }
            (!all.is_empty()).then(|| call("any", &all))
        }
        // `when(…)` never parses to one of the last two here, and has its own finding.
        Condition::Text
        | Condition::Ai(_)
        | Condition::Field(..)
        | Condition::Otherwise
        | Condition::When { .. }
        | Condition::Answered => Some(condition.to_owned()),
    }
}

fn quote_argument(word: &str) -> String {
    format!("\"{}\"", as_argument(word))
}
