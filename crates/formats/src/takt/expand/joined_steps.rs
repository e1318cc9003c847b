//! Joins the steps of a workflow with those of the workflows that it calls: names get prefixes, targets lead on.

use cuegate_flow::diagnostics::Diagnostic;

use super::tree::{build_list, build_text, items_of_list, set_entry, set_key, take_key};
use super::{Exits, Expander, SCOPE, WorkflowNode, build_number, get_mut};
use crate::codes;
use crate::takt::movement::{ABORT, COMPLETE};
use crate::values::json::{Entry, Json, Kind};

/// The key by which a step names the results that its caller has no rule for.
const LACKS: &str = "@lacks";

impl Expander<'_, '_> {
    /// Joins the steps of a workflow and of those that it calls: names get prefixes, targets lead on.
    pub(super) fn emit(
        &mut self,
        node: &WorkflowNode,
        exits: &Exits,
        steps: &mut Vec<Json>,
        monitors: &mut Vec<Json>,
    ) {
        for item in &node.items {
            let mut step = item.step.clone();
            let Some(inner) = &item.call else {
                self.lead_on(&mut step, node, exits);
                name_it(&mut step, node);
                if let Some(Json { kind: Kind::List(members), .. }) = get_mut(&mut step, "parallel") {
                    members.iter_mut().for_each(|member| name_it(member, node));
                }
                steps.push(step);
                continue;
            };
            let mut own = Exits { abort: exits.abort.clone(), ..Exits::default() };
            for rule in step.get("rules").map(items_of_list).unwrap_or_default() {
                let Some(label) = rule.get("condition").and_then(Json::as_text).map(str::trim) else {
                    continue;
                };
                let Some(target) = self.target(rule, node, exits) else { continue };
                match label {
                    COMPLETE => own.complete = Some(target),
                    ABORT => own.abort = Some(target),
                    label => _ = own.returns.insert(label.to_owned(), target),
                }
            }
            let found = steps.len();
            self.emit(inner, &own, steps, monitors);
            // Results without a rule are found while the steps of the called workflow are joined.
            let mut lacking: Vec<String> = Vec::new();
            for step in &mut steps[found..] {
                if let Some(entry) = take_key(step, LACKS) {
                    lacking.extend(
                        items_of_list(&entry.value).iter().filter_map(Json::as_text).map(str::to_owned),
                    );
                }
            }
            lacking.sort();
            lacking.dedup();
            for label in lacking {
                let message = format!(
                    "`{}` has no rule for the result `{label}` of the workflow that it calls",
                    item.name
                );
                let finding =
                    Diagnostic::error(codes::MISSING_TRANSITION, item.span, message).step(&item.name);
                self.desk.found.push(finding.hint(format!("add a rule with `condition: {label}`")));
            }
        }
        for monitor in &node.monitors {
            let mut monitor = monitor.clone();
            self.monitor(&mut monitor, node, exits);
            monitors.push(monitor);
        }
    }

    /// Rewrites the targets of the rules of a step or a judge.
    fn lead_on(&mut self, step: &mut Json, node: &WorkflowNode, exits: &Exits) {
        let mut lacks: Vec<Json> = Vec::new();
        let Some(rules) = get_mut(step, "rules") else { return };
        let Kind::List(rules) = &mut rules.kind else { return };
        for rule in rules {
            let has_target =
                ["next", "return"].iter().any(|key| rule.get(key).is_some_and(|to| to.as_text().is_some()));
            if !has_target {
                continue;
            }
            let target = self.target(rule, node, exits);
            let written = take_key(rule, "return").or_else(|| take_key(rule, "next"));
            let Some(written) = written else { continue };
            let label = written.value.as_text().unwrap_or_default().trim().to_owned();
            let span = written.value.span;
            let to = target.unwrap_or_else(|| {
                lacks.push(build_text(label, span));
                ABORT.to_owned()
            });
            set_entry(
                rule,
                Entry { key: "next".into(), key_span: written.key_span, value: build_text(to, span) },
            );
        }
        if !lacks.is_empty() {
            let span = step.span;
            set_key(step, LACKS, build_list(lacks, span));
        }
    }

    /// The target of a rule; `None` if the caller has no rule for it.
    fn target(&self, rule: &Json, node: &WorkflowNode, exits: &Exits) -> Option<String> {
        if let Some(label) = rule.get("return").and_then(Json::as_text) {
            return match exits.is_root {
                // Nothing calls it: its result is that of the run.
                true => exits.complete.clone(),
                false => exits.returns.get(label.trim()).cloned(),
            };
        }
        let next = rule.get("next").and_then(Json::as_text)?.trim();
        match next {
            COMPLETE => exits.complete.clone(),
            ABORT => exits.abort.clone(),
            next => match node.items.iter().find(|item| item.name == next) {
                Some(item) => node.target_of(item),
                // It has its own finding.
                None => Some(format!("{}{next}", node.prefix)),
            },
        }
    }

    /// Rewrites a monitor: a called workflow in its cycle becomes the stage of all its steps.
    fn monitor(&mut self, monitor: &mut Json, node: &WorkflowNode, exits: &Exits) {
        for key in ["cycle", "ignore_steps"] {
            let Some(Json { kind: Kind::List(names), .. }) = get_mut(monitor, key) else { continue };
            for name in names {
                // A value that is no text has its own finding.
                let Some(written) = name.as_text().map(str::trim).map(str::to_owned) else { continue };
                let (span, prefixed) = (name.span, format!("{}{written}", node.prefix));
                let item = node.items.iter().find(|item| item.name == written);
                *name = match item.and_then(|item| item.call.as_ref()) {
                    Some(call) => {
                        let steps =
                            call.step_names().into_iter().map(|step| build_text(step, span)).collect();
                        let mut stage = Json { span, kind: Kind::Object(Vec::new()) };
                        set_key(&mut stage, NAME, build_text(prefixed, span));
                        set_key(&mut stage, STAGE, build_list(steps, span));
                        stage
                    }
                    None => build_text(prefixed, span),
                };
            }
        }
        let span = monitor.span;
        set_key(monitor, SCOPE, build_number(node.scope, span));
        if let Some(judge) = get_mut(monitor, "judge") {
            self.lead_on(judge, node, exits);
            take_key(judge, LACKS);
        }
    }
}

/// The keys of a stage of a monitor that is a called workflow.
pub(in crate::takt) const NAME: &str = "name";
pub(in crate::takt) const STAGE: &str = "@stage";

/// Gives a step or a member its full name and its scope. A member of a called workflow has them already.
fn name_it(step: &mut Json, node: &WorkflowNode) {
    if step.get(SCOPE).is_some() {
        return;
    }
    let span = step.span;
    if let Some(name) = get_mut(step, "name")
        && let Some(written) = name.as_text()
    {
        *name = build_text(format!("{}{}", node.prefix, written.trim()), name.span);
    }
    set_key(step, SCOPE, build_number(node.scope, span));
}
