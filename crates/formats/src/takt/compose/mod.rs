//! Composes a workflow from everything that it uses: step fragments, parameters and called workflows. Each step keeps its
//! keys as its file has them; what composition knows of it are the other fields of [`ComposedStep`].

mod fragments;
mod joined_steps;
mod layers;
mod members;
mod parameters;
mod parsed_files;
mod pools;
mod step;
mod tree;

use std::cell::Cell;
use std::collections::BTreeMap;
use std::sync::Arc;

use cuegate_flow::diagnostics::{Diagnostic, Span};

pub use self::layers::read_takt_language;
pub(in crate::takt) use self::layers::{HOME, Layers};
pub(in crate::takt) use self::parsed_files::ParsedFiles;
pub(in crate::takt) use self::pools::{FacetName, PoolCandidate, Pools};
pub(in crate::takt) use self::step::{
    ComposedMonitor, ComposedSelection, ComposedStep, ComposedWorkflow, SelectionCandidate, WorkflowScope,
};
use self::tree::take_key;
pub(in crate::takt) use self::tree::{as_list, items_of_list};
use super::notes::LoadNotes;
use crate::codes;
use crate::source::files::join_path;
use crate::values::json::{Entry, Fields, Json, Kind};

/// How deep workflows may call each other, and fragments use each other.
const DEPTH_MAX: usize = 64;
/// How many steps a workflow may expand to.
const STEPS_MAX: usize = 5_000;

/// A workflow before its steps are joined: calls are resolved, targets are not.
struct WorkflowNode {
    prefix: String,
    initial: Option<String>,
    items: Vec<Item>,
    monitors: Vec<ComposedMonitor>,
}

struct Item {
    /// The name as written.
    name: String,
    span: Span,
    step: ComposedStep,
    call: Option<WorkflowNode>,
}

impl WorkflowNode {
    /// The step with which it begins.
    fn entry(&self) -> Option<String> {
        let named = |name: &String| self.items.iter().find(|item| item.name == *name);
        let first = self.initial.as_ref().and_then(named).or_else(|| self.items.first())?;
        self.target_of(first)
    }

    /// The names of all its steps, those of called workflows included.
    fn step_names(&self) -> Vec<String> {
        let of = |item: &Item| match &item.call {
            Some(call) => call.step_names(),
            None => vec![format!("{}{}", self.prefix, item.name)],
        };
        self.items.iter().flat_map(of).collect()
    }

    fn target_of(&self, item: &Item) -> Option<String> {
        match &item.call {
            Some(call) => call.entry(),
            None => Some(format!("{}{}", self.prefix, item.name)),
        }
    }
}

/// The values that a workflow is called with.
#[derive(Default)]
struct Call {
    args: Vec<Entry>,
    /// The place of the call; `None` for the workflow itself.
    span: Option<Span>,
    vars: BTreeMap<String, String>,
    prefix: String,
    prefixes: Vec<String>,
    rules: Vec<(String, Span)>,
}

/// What the names in the steps of one workflow refer to, while it is composed.
struct Surroundings<'s> {
    layers: &'s Layers,
    call: &'s Call,
    rules: &'s [(String, Span)],
    /// The index of its scope.
    scope: usize,
}

struct Composer<'c, 'd, 'f> {
    files: &'c ParsedFiles<'d, 'f>,
    notes: &'c LoadNotes<'d>,
    scopes: Vec<WorkflowScope>,
    /// The files of the workflows that are being called, innermost last.
    stack: Vec<String>,
    steps: usize,
    /// Whether something was found without which the steps mean something else.
    is_broken: Cell<bool>,
}

/// Composes a workflow from what it uses. Returns `None` after reporting something that cannot run at all.
pub(in crate::takt) fn compose_workflow<'d>(
    root: &Json,
    path: &str,
    files: &ParsedFiles<'d, '_>,
    notes: &LoadNotes<'d>,
) -> Option<ComposedWorkflow> {
    let (scopes, stack) = (Vec::new(), vec![path.to_owned()]);
    let mut composer = Composer { files, notes, scopes, stack, steps: 0, is_broken: Cell::default() };
    let call = Call { prefixes: vec![String::new()], ..Call::default() };
    let node = composer.compose_node(Arc::new(root.clone()), path, call);
    let first = node.entry().filter(|_| {
        // A value that is no text, or an unknown name, has its own finding.
        let written = ["initial_step", "initial_movement"].iter().find_map(|key| root.get(key));
        written.is_none_or(|value| {
            value.as_text().is_some_and(|name| node.items.iter().any(|item| item.name == name.trim()))
        })
    });
    let (steps, monitors) = composer.join_steps(node);
    let is_whole = !composer.is_broken.get();
    is_whole.then_some(ComposedWorkflow { scopes: composer.scopes, steps, monitors, first })
}

impl<'d, 'f> Composer<'_, 'd, 'f> {
    /// Reports something without which the steps mean something else; what follows from it is not reported.
    fn refuse(&self, finding: Diagnostic) {
        self.mark_broken();
        self.notes.refuse(finding);
    }

    /// Records such a thing that has its own finding.
    fn mark_broken(&self) {
        self.is_broken.set(true);
        self.notes.mark_refused();
    }

    /// Reads a workflow and what it calls.
    fn compose_node(&mut self, root: Arc<Json>, path: &str, call: Call) -> WorkflowNode {
        let folder = path.rsplit_once('/').map_or("", |(folder, _)| folder).to_owned();
        let layers = Layers::of(&folder, self.files.loader);
        let mut rules = call.rules.clone();
        self.add_rules_of_all_steps(&root, &layers, &mut rules);
        let params = self.bind_params(&root, &call);
        let pools = self.read_pools(&root, &layers, &params);
        let scope = self.scopes.len();
        self.scopes.push(WorkflowScope {
            root: root.clone(),
            folder,
            layers: layers.clone(),
            prefixes: call.prefixes.clone(),
            vars: call.vars.clone(),
            rules: rules.clone(),
            pools,
        });
        let mut node = WorkflowNode {
            prefix: call.prefix.clone(),
            initial: ["initial_step", "initial_movement"]
                .iter()
                .find_map(|key| Some(root.get(key)?.as_text()?.trim().to_owned())),
            items: Vec::new(),
            monitors: Vec::new(),
        };
        for written in root.get("loop_monitors").map(items_of_list).unwrap_or_default() {
            let mut source = written.clone();
            self.fill_params(&mut source, &params);
            node.monitors.push(ComposedMonitor { source, scope, stages: BTreeMap::new() });
        }
        let around = Surroundings { layers: &layers, call: &call, rules: &rules, scope };
        let written = ["steps", "movements"].iter().find_map(|key| root.get(key));
        for item in written.map(items_of_list).unwrap_or_default() {
            let mut step = item.clone();
            if !matches!(step.kind, Kind::Object(_)) {
                let (name, span) = (String::new(), step.span);
                node.items.push(Item { name, span, step: ComposedStep::new(step, scope), call: None });
                continue;
            }
            self.fill_params(&mut step, &params);
            let Some(step) = self.with_fragments(step, &layers, 0) else { continue };
            let (name, span) = name_of_step(&step);
            self.steps += 1;
            if self.steps > STEPS_MAX {
                if self.steps == STEPS_MAX + 1 {
                    let message = format!("the workflow expands to more than {STEPS_MAX} steps");
                    let finding = Diagnostic::error(codes::INVALID_VALUE, span, message);
                    self.refuse(finding.hint("call fewer workflows"));
                }
                break;
            }
            node.items.extend(self.compose_item(step, name, span, &around));
        }
        node
    }

    /// Composes a step with its members, or the workflow that it calls. `None` if it cannot run.
    fn compose_item(
        &mut self,
        mut step: Json,
        name: String,
        span: Span,
        around: &Surroundings<'_>,
    ) -> Option<Item> {
        if self.refuse_arpeggio_step(&step) {
            return None;
        }
        if is_workflow_call(&step) {
            let call = self.compose_call(&mut step, &name, span, around)?;
            return Some(Item { name, span, step: ComposedStep::new(step, around.scope), call: Some(call) });
        }
        let mut step = self.compose_members(step, &name, around)?;
        step.add_name_prefix(&around.call.prefix);
        Some(Item { name, span, step, call: None })
    }

    /// Reports a step for each row of a file. Returns whether it is one. The other steps are read nevertheless.
    fn refuse_arpeggio_step(&mut self, step: &Json) -> bool {
        if step.get("arpeggio").is_none() {
            return false;
        }
        let span = step.get("name").map_or(step.span, |name| name.span);
        let message = "`arpeggio`, a step for each row of a file, is not supported yet";
        let finding = Diagnostic::error(codes::UNSUPPORTED_YET, span, message);
        self.notes.refuse(finding.hint("do that work in a step with an agent, or outside of the workflow"));
        true
    }

    /// Composes the workflow that a step calls.
    fn compose_call(
        &mut self,
        step: &mut Json,
        name: &str,
        span: Span,
        around: &Surroundings<'_>,
    ) -> Option<WorkflowNode> {
        self.check_call_keys(step, name);
        let Some(entry) = take_key(step, "call") else {
            let message = format!("`call` is missing in `{name}`");
            self.refuse(Diagnostic::error(codes::MISSING_KEY, span, message).hint("name the workflow"));
            return None;
        };
        let Some(target) = entry.value.as_text().map(|text| text.trim().to_owned()) else {
            // A parameter without a value has its own finding.
            if !matches!(entry.value.kind, Kind::Null) {
                let finding = Diagnostic::error(codes::WRONG_TYPE, entry.value.span, "`call` must be text");
                self.refuse(finding.hint("name a workflow"));
            }
            self.mark_broken();
            return None;
        };
        let path = self.find_called_workflow(&target, name, entry.value.span, around.layers)?;
        if self.stack.contains(&path) || self.stack.len() >= DEPTH_MAX {
            let cycle: Vec<&str> = self.stack.iter().chain([&path]).map(|path| stem_of_path(path)).collect();
            let message = format!("workflows call each other in a cycle: {}", cycle.join(" → "));
            let finding = Diagnostic::error(codes::INVALID_VALUE, entry.value.span, message);
            self.refuse(finding.hint("lead back to a step instead"));
            return None;
        }
        let root = self.parse_used_file(&path)?;
        let mut vars = around.call.vars.clone();
        for entry in take_key(step, "vars").iter().flat_map(|vars| vars.value.pairs()) {
            if let Some(text) = entry.value.scalar_text() {
                vars.insert(entry.key.to_string(), text.to_string());
            }
        }
        let args = take_key(step, "args").map(|args| args.value.pairs().to_vec()).unwrap_or_default();
        let prefix = format!("{}{name}/", around.call.prefix);
        let prefixes = std::iter::once(prefix.clone()).chain(around.call.prefixes.iter().cloned()).collect();
        self.stack.push(path.clone());
        let rules = around.rules.to_vec();
        let call = Call { args, span: Some(entry.value.span), vars, prefix, prefixes, rules };
        let node = self.compose_node(root, &path, call);
        self.stack.pop();
        if node.items.is_empty() {
            // Steps that were left out have their own findings.
            if !self.notes.is_refused() {
                let message = format!("the workflow `{target}` has no steps");
                let finding = Diagnostic::error(codes::INVALID_VALUE, entry.value.span, message);
                self.refuse(finding.hint("add a step to it"));
            }
            return None;
        }
        Some(node)
    }

    /// Reports the keys of a call, and of its rules, that nothing reads.
    fn check_call_keys(&self, step: &Json, name: &str) {
        let found = &self.files.loader.found;
        let check = |item: &Json, what: &str, keys: &[&'static str]| {
            let Some(fields) = Fields::of(item, what, Some(name), found) else { return };
            keys.iter().for_each(|key| _ = fields.nullable(key));
            fields.finish();
        };
        let keys = ["name", "description", "kind", "call", "args", "vars", "rules"];
        check(step, &format!("the step `{name}`"), &keys);
        for rule in step.get("rules").map(items_of_list).unwrap_or_default() {
            check(rule, "a rule", &["condition", "next", "return"]);
        }
    }

    /// Finds the file of the workflow that a step calls. Returns `None` after reporting that there is none.
    fn find_called_workflow(&self, target: &str, name: &str, span: Span, layers: &Layers) -> Option<String> {
        const ENDINGS: [&str; 2] = [".yaml", ".yml"];
        let loader = self.files.loader;
        // A path is relative to the workflow that calls.
        let is_path = ["./", "../"].iter().any(|start| target.starts_with(start))
            || ENDINGS.iter().any(|ending| target.ends_with(ending));
        let path = if is_path {
            let own =
                self.stack.last().and_then(|path| path.rsplit_once('/')).map_or("", |(folder, _)| folder);
            let paths = ["", ".yaml", ".yml"].map(|ending| join_path(own, &format!("{target}{ending}")));
            paths.into_iter().flatten().find(|path| loader.is_file(path))
        } else {
            layers.find(loader, &["workflows", "pieces"], target, &ENDINGS)
        };
        if path.is_none() {
            let message = format!("`{name}` calls the workflow `{target}`, which is not found");
            let hint = match is_path {
                true => "a path is relative to the workflow that calls, and stays in the project".to_owned(),
                false => format!("it is looked for in {}; {INSTALL}", layers.places("workflows", target)),
            };
            self.refuse(Diagnostic::error(codes::UNKNOWN_NAME, span, message).hint(hint));
        }
        path
    }

    /// Parses a file that the workflow uses. Without it nothing can run.
    fn parse_used_file(&self, path: &str) -> Option<Arc<Json>> {
        let parsed = self.files.parse(path);
        if parsed.is_none() {
            self.mark_broken();
        }
        parsed
    }

    /// Adds the files of `all_steps.rules` to those of the callers.
    fn add_rules_of_all_steps(&self, root: &Json, layers: &Layers, rules: &mut Vec<(String, Span)>) {
        let written = root.get("all_steps").and_then(|all| all.get("rules"));
        for rule in written.map(items_of_list).unwrap_or_default() {
            let name = rule.as_text().or_else(|| rule.get("ref")?.as_text()).map(str::trim);
            let Some(name) = name else {
                let message = "a rule for all steps has no name";
                let finding = Diagnostic::error(codes::WRONG_TYPE, rule.span, message);
                self.refuse(finding.hint("name its file"));
                continue;
            };
            match layers.find(self.files.loader, &["workflows/rules"], name, &[".md"]) {
                Some(path) if rules.iter().any(|(known, _)| *known == path) => {}
                Some(path) => rules.push((path, rule.span)),
                None => {
                    let message = format!("the rule `{name}` for all steps is not found");
                    let hint =
                        format!("it is looked for in {}; {INSTALL}", layers.places("workflows/rules", name));
                    self.refuse(Diagnostic::error(codes::UNKNOWN_NAME, rule.span, message).hint(hint));
                }
            }
        }
    }
}

/// Where to get what TAKT itself brings.
pub(in crate::takt) const INSTALL: &str = "definitions of TAKT itself are read from an installed one (`npm install -g takt`), or from `--builtins PATH`";

/// The name of a step as written, and its place.
fn name_of_step(step: &Json) -> (String, Span) {
    let name = step.get("name").and_then(Json::as_text).unwrap_or_default().trim().to_owned();
    (name, step.get("name").map_or(step.span, |name| name.span))
}

/// Whether a step, or a member, calls another workflow.
fn is_workflow_call(step: &Json) -> bool {
    step.get("kind").and_then(Json::as_text) == Some("workflow_call")
}

/// The name of a file without folders and ending.
fn stem_of_path(path: &str) -> &str {
    let name = path.rsplit('/').next().unwrap_or(path);
    name.rsplit_once('.').map_or(name, |(stem, _)| stem)
}
