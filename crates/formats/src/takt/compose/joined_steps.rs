//! Joins the steps of a workflow with those of the workflows that it calls: targets lead on.

use std::collections::BTreeMap;

use cuegate_flow::diagnostics::Diagnostic;

use super::tree::{build_text, get_mut, items_of_list, set_entry, take_key};
use super::{ComposedMonitor, ComposedStep, Composer, Item, WorkflowNode};
use crate::codes;
use crate::takt::routing::{ABORT, COMPLETE};
use crate::values::json::{Entry, Json, Kind};

/// Where the results of a called workflow lead.
#[derive(Default)]
struct Exits {
    complete: Option<String>,
    abort: Option<String>,
    returns: BTreeMap<String, String>,
    /// Whether nothing calls the workflow.
    is_root: bool,
}

/// The steps and monitors of a workflow and of all that it calls.
type JoinedSteps = (Vec<ComposedStep>, Vec<ComposedMonitor>);

impl Composer<'_, '_, '_> {
    /// Joins the steps of a workflow and of those that it calls.
    pub(super) fn join_steps(&self, node: WorkflowNode) -> JoinedSteps {
        let exits = Exits {
            complete: Some(COMPLETE.to_owned()),
            abort: Some(ABORT.to_owned()),
            is_root: true,
            ..Exits::default()
        };
        let mut joined = JoinedSteps::default();
        self.join_node(node, &exits, &mut joined);
        joined
    }

    /// Adds the steps of a workflow and of those that it calls. Returns the results that `exits` has no target for.
    fn join_node(&self, node: WorkflowNode, exits: &Exits, joined: &mut JoinedSteps) -> Vec<String> {
        let mut lacking = Vec::new();
        let targets: Vec<(String, Option<String>)> =
            node.items.iter().map(|item| (item.name.clone(), node.target_of(item))).collect();
        let route = NodeRoute { targets, prefix: &node.prefix, exits };
        let stages: BTreeMap<String, Vec<String>> = node
            .items
            .iter()
            .filter_map(|item| Some((item.name.clone(), item.call.as_ref()?.step_names())))
            .collect();
        for Item { name, span, mut step, call } in node.items {
            let Some(inner) = call else {
                lacking.extend(route.retarget_rules(&mut step.source));
                joined.0.push(step);
                continue;
            };
            let mut lacks = self.join_node(inner, &route.exits_of_call(&step.source), joined);
            lacks.sort();
            lacks.dedup();
            for label in lacks {
                let message =
                    format!("`{name}` has no rule for the result `{label}` of the workflow that it calls");
                let finding = Diagnostic::error(codes::MISSING_TRANSITION, span, message).step(&name);
                self.files.loader.found.push(finding.hint(format!("add a rule with `condition: {label}`")));
            }
        }
        for mut monitor in node.monitors {
            route.complete_monitor(&mut monitor, &stages);
            joined.1.push(monitor);
        }
        lacking
    }
}

/// Where the rules of one workflow lead.
struct NodeRoute<'r> {
    /// The target that the name of each step stands for; `None` for a call of a workflow without steps.
    targets: Vec<(String, Option<String>)>,
    prefix: &'r str,
    exits: &'r Exits,
}

impl NodeRoute<'_> {
    /// Where the results of the workflow lead that a step with these rules calls.
    fn exits_of_call(&self, step: &Json) -> Exits {
        let mut own = Exits { abort: self.exits.abort.clone(), ..Exits::default() };
        for rule in step.get("rules").map(items_of_list).unwrap_or_default() {
            let Some(label) = rule.get("condition").and_then(Json::as_text).map(str::trim) else {
                continue;
            };
            let Some(target) = self.target_of_rule(rule) else { continue };
            match label {
                COMPLETE => own.complete = Some(target),
                ABORT => own.abort = Some(target),
                label => _ = own.returns.insert(label.to_owned(), target),
            }
        }
        own
    }

    /// Rewrites the targets of the rules of a step or a judge. Returns the results that the caller has no rule for.
    fn retarget_rules(&self, step: &mut Json) -> Vec<String> {
        let mut lacking = Vec::new();
        let Some(Json { kind: Kind::List(rules), .. }) = get_mut(step, "rules") else { return lacking };
        for rule in rules {
            let has_target =
                ["next", "return"].iter().any(|key| rule.get(key).is_some_and(|to| to.as_text().is_some()));
            if !has_target {
                continue;
            }
            let target = self.target_of_rule(rule);
            let written = take_key(rule, "return").or_else(|| take_key(rule, "next"));
            let Some(Entry { key_span, value, .. }) = written else { continue };
            let to = target.unwrap_or_else(|| {
                lacking.push(value.as_text().unwrap_or_default().trim().to_owned());
                ABORT.to_owned()
            });
            set_entry(rule, Entry { key: "next".into(), key_span, value: build_text(to, value.span) });
        }
        lacking
    }

    /// The target of a rule; `None` if the caller has no rule for it.
    fn target_of_rule(&self, rule: &Json) -> Option<String> {
        if let Some(label) = rule.get("return").and_then(Json::as_text) {
            return match self.exits.is_root {
                // Nothing calls it: its result is that of the run.
                true => self.exits.complete.clone(),
                false => self.exits.returns.get(label.trim()).cloned(),
            };
        }
        let next = rule.get("next").and_then(Json::as_text)?.trim();
        match next {
            COMPLETE => self.exits.complete.clone(),
            ABORT => self.exits.abort.clone(),
            next => match self.targets.iter().find(|(name, _)| name == next) {
                Some((_, target)) => target.clone(),
                // It has its own finding.
                None => Some(format!("{}{next}", self.prefix)),
            },
        }
    }

    /// Puts the prefix of the workflow before the names in a monitor, and adds the steps of each called workflow that it
    /// names.
    fn complete_monitor(&self, monitor: &mut ComposedMonitor, stages: &BTreeMap<String, Vec<String>>) {
        for key in ["cycle", "ignore_steps"] {
            let Some(Json { kind: Kind::List(names), .. }) = get_mut(&mut monitor.source, key) else {
                continue;
            };
            for name in names {
                // A value that is no text has its own finding.
                let Some(written) = name.as_text().map(str::trim) else { continue };
                let full = format!("{}{written}", self.prefix);
                if let Some(steps) = stages.get(written) {
                    monitor.stages.insert(full.clone(), steps.clone());
                }
                *name = build_text(full, name.span);
            }
        }
        if let Some(judge) = get_mut(&mut monitor.source, "judge") {
            // A judge that returns a result without a rule aborts.
            self.retarget_rules(judge);
        }
    }
}
