//! Called workflows as members of a parallel step. One that only runs agents in parallel is replaced by these agents: its
//! result follows from their outcomes, as the results of the parallel step do.

use std::collections::BTreeMap;

use cuegate_flow::diagnostics::{Diagnostic, Span};

use super::fragments::lists_of;
use super::selections::{SELECTIONS, add_selections};
use super::tree::{build_text, items_of_list, set_key};
use super::{Call, Expander, Layers, SCOPE, WorkflowNode, build_number, get_mut};
use crate::codes;
use crate::takt::movement::COMPLETE;
use crate::takt::routing::condition::{Condition, as_argument, parse_condition};
use crate::values::json::{Json, Kind};

/// A called workflow that was replaced by its agents.
struct Group {
    /// The selections among them.
    selections: Vec<Json>,
    /// The number of its agents.
    size: usize,
    /// The outcome that all of them have when it completes.
    complete: Option<String>,
    /// The outcome that one of them has when it returns a label.
    returns: BTreeMap<String, String>,
}

impl Expander<'_, '_> {
    /// Replaces called workflows among the members. Returns whether the step can run.
    pub(super) fn call_members(
        &mut self,
        step: &mut Json,
        layers: &Layers,
        call: &Call,
        rules: &[(String, Span)],
    ) -> bool {
        let is_call = |member: &Json| member.get("kind").and_then(Json::as_text) == Some("workflow_call");
        let Some(parallel) = get_mut(step, "parallel") else { return true };
        // `None` for a member that is an agent.
        let mut groups: Vec<Option<Group>> = Vec::new();
        let mut selections = Vec::new();
        for list in lists_of(parallel) {
            let mut all = Vec::new();
            for mut member in std::mem::take(list) {
                if !is_call(&member) {
                    groups.push(None);
                    all.push(member);
                    continue;
                }
                let name = member.get("name").and_then(Json::as_text).unwrap_or_default().trim().to_owned();
                let span = member.get("name").map_or(member.span, |name| name.span);
                let Some(node) = self.called(&mut member, &name, span, layers, call, rules) else {
                    return false;
                };
                let Some((agents, group)) = flatten_workflow(node) else {
                    let message =
                        format!("the called workflow `{name}` cannot be a member of a parallel step yet");
                    let hint = "only one that runs agents in parallel and nothing else can; call it in a step of its own";
                    self.refuse(Diagnostic::error(codes::UNSUPPORTED_YET, span, message).hint(hint));
                    return false;
                };
                selections.extend(group.selections.iter().cloned());
                groups.push(Some(group));
                all.extend(agents);
            }
            *list = all;
        }
        if groups.iter().all(Option::is_none) {
            return true;
        }
        add_selections(step, selections);
        let mut wrong: Vec<Span> = Vec::new();
        if let Some(Json { kind: Kind::List(rules), .. }) = get_mut(step, "rules") {
            for rule in rules {
                let Some(condition) = get_mut(rule, "condition") else { continue };
                let Some(written) = condition.as_text() else { continue };
                match rewrite_condition(written.trim(), &groups) {
                    Some(new) => *condition = build_text(new, condition.span),
                    None => wrong.push(condition.span),
                }
            }
        }
        for span in wrong {
            let message = "this condition on a called workflow is not supported yet".to_owned();
            let hint = "ask for `all` with `COMPLETE`, or for `any` with a label that it returns";
            self.refuse(Diagnostic::error(codes::UNSUPPORTED_YET, span, message).hint(hint));
        }
        true
    }
}

/// The agents of a workflow that is one parallel step, and what its results say of them.
fn flatten_workflow(node: WorkflowNode) -> Option<(Vec<Json>, Group)> {
    let [item] = &node.items[..] else { return None };
    if item.call.is_some() || !node.monitors.is_empty() {
        return None;
    }
    let mut agents = items_of_list(item.step.get("parallel")?).to_vec();
    for agent in agents.iter_mut().filter(|agent| agent.get(SCOPE).is_none()) {
        let span = agent.span;
        if let Some(name) = get_mut(agent, "name")
            && let Some(written) = name.as_text()
        {
            *name = build_text(format!("{}{}", node.prefix, written.trim()), name.span);
        }
        set_key(agent, SCOPE, build_number(node.scope, span));
    }
    let selections = item.step.get(SELECTIONS).map(items_of_list).unwrap_or_default().to_vec();
    let mut group = Group { selections, size: agents.len(), complete: None, returns: BTreeMap::new() };
    for rule in item.step.get("rules").map(items_of_list).unwrap_or_default() {
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
    (group.size > 0).then_some((agents, group))
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
        Condition::Text | Condition::Ai(_) | Condition::Field(..) | Condition::Otherwise => {
            Some(condition.to_owned())
        }
    }
}

fn quote_argument(word: &str) -> String {
    format!("\"{}\"", as_argument(word))
}
