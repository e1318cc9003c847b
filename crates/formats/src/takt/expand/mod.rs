//! Expands a workflow of the current vocabulary into the steps that run: fragments, parameters and called workflows. What
//! remains is a piece of the older vocabulary, with the places of everything in the files where it was written.

mod call_members;
mod fragments;
mod joined_steps;
mod layers;
mod parameters;
mod selections;
mod step_keys;
mod structured_output;
mod tree;
mod workflow_keys;

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use cuegate_flow::diagnostics::{Diagnostic, FileId, Span};

pub(in crate::takt) use self::joined_steps::{NAME, STAGE};
pub(in crate::takt) use self::layers::Layers;
pub(in crate::takt) use self::selections::{
    CANDIDATE, CANDIDATES, MAY_BE_EMPTY, SELECTIONS, SELECTOR, TEXTS,
};
pub(in crate::takt) use self::step_keys::{PART, TEAM};
use self::step_keys::{StepSurroundings, rewrite_always_rule, rule_keys};
use self::tree::{build_list, build_text, items_of_list, set_entry, set_key, take_key};
pub(in crate::takt) use self::workflow_keys::workflow_keys;
use super::movement::{ABORT, COMPLETE};
use crate::codes;
use crate::source::files::join_path;
use crate::source::loader::{LoadedFile, SourceLoader};
use crate::suggest;
use crate::values::json::{Entry, Json, Kind};
use crate::values::yaml;

/// The key by which an expanded step names its scope. No file can write it, because keys with `@` are taken out.
pub(in crate::takt) const SCOPE: &str = "@scope";
/// Begins a reference that is a path from the root of the files.
pub(in crate::takt) const FILE: &str = "@file:";

/// How deep workflows may call each other, and fragments use each other.
const DEPTH_MAX: usize = 64;
/// How many steps a workflow may expand to.
const STEPS_MAX: usize = 5_000;

/// A workflow with everything that it uses.
pub(in crate::takt) struct ExpandedWorkflow {
    /// The workflow, in the older vocabulary.
    pub(in crate::takt) piece: Json,
    /// The called workflows with their contexts; the first is the workflow itself.
    pub(in crate::takt) scopes: Vec<WorkflowScope>,
}

/// The context in which names in a step are resolved.
#[derive(Debug, Clone)]
pub(in crate::takt) struct WorkflowScope {
    /// The workflow that holds the step.
    pub(in crate::takt) root: Arc<Json>,
    pub(in crate::takt) folder: String,
    /// Where bare names are searched.
    pub(in crate::takt) layers: Layers,
    /// What names of its reports begin with, then those of its callers; the last is empty.
    pub(in crate::takt) prefixes: Vec<String>,
    /// The values of `{var:…}`.
    pub(in crate::takt) vars: BTreeMap<String, String>,
    /// The files with rules for every step.
    pub(in crate::takt) rules: Vec<(String, Span)>,
}

/// A workflow before its steps are joined: calls are resolved, targets are not.
struct WorkflowNode {
    scope: usize,
    prefix: String,
    initial: Option<String>,
    items: Vec<Item>,
    monitors: Vec<Json>,
}

struct Item {
    name: String,
    span: Span,
    step: Json,
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

/// Where the results of a called workflow lead.
#[derive(Default)]
struct Exits {
    complete: Option<String>,
    abort: Option<String>,
    returns: BTreeMap<String, String>,
    /// Whether nothing calls the workflow.
    is_root: bool,
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

pub(super) struct Expander<'d, 'f> {
    desk: &'d SourceLoader<'f>,
    scopes: Vec<WorkflowScope>,
    parsed: HashMap<String, Option<Arc<Json>>>,
    /// The files of the workflows that are being called, innermost last.
    stack: Vec<String>,
    steps: usize,
    /// Keys without effect by file, with the first place of each.
    ignored: BTreeMap<FileId, BTreeMap<String, Span>>,
    /// What runs in another way than in TAKT, with the first place.
    approximations: Vec<(String, Span)>,
    /// Whether something was found that cannot run.
    refused: bool,
}

/// Expands a workflow. Returns `None` after reporting something that cannot run at all.
pub(in crate::takt) fn expand_workflow(
    root: &Json,
    path: &str,
    desk: &SourceLoader<'_>,
) -> Option<ExpandedWorkflow> {
    let mut expander = Expander {
        desk,
        scopes: Vec::new(),
        parsed: HashMap::new(),
        stack: vec![path.to_owned()],
        steps: 0,
        ignored: BTreeMap::new(),
        approximations: Vec::new(),
        refused: false,
    };
    let mut piece = root.clone();
    let node = expander.node(
        Arc::new(root.clone()),
        path,
        Call { prefixes: vec![String::new()], ..Call::default() },
    );
    let exits = Exits {
        complete: Some(COMPLETE.to_owned()),
        abort: Some(ABORT.to_owned()),
        is_root: true,
        ..Exits::default()
    };
    let (mut steps, mut monitors) = (Vec::new(), Vec::new());
    expander.emit(&node, &exits, &mut steps, &mut monitors);
    expander.workflow_keys(&mut piece);
    expander.tell_ignored(piece.span.file);
    expander.tell_approximations(piece.span.file);
    if expander.refused {
        return None;
    }
    for key in ["steps", "movements"] {
        if let Some(entry) = take_key(&mut piece, key) {
            let span = entry.value.span;
            // A value that is no list has its own finding.
            let value =
                if matches!(entry.value.kind, Kind::List(_)) { build_list(steps, span) } else { entry.value };
            set_entry(&mut piece, Entry { value, ..entry });
            break;
        }
    }
    if let Some(entry) = take_key(&mut piece, "loop_monitors") {
        let span = entry.value.span;
        let value =
            if matches!(entry.value.kind, Kind::List(_)) { build_list(monitors, span) } else { entry.value };
        set_entry(&mut piece, Entry { value, ..entry });
    } else if let Some(first) = monitors.first() {
        let span = first.span;
        set_key(&mut piece, "loop_monitors", build_list(monitors, span));
    }
    let key = ["initial_step", "initial_movement"].into_iter().find(|key| piece.get(key).is_some());
    // The document of pieces requires the key; TAKT and its later documents do not.
    if let (None, Some(first), true) = (key, node.entry(), piece.get("movements").is_some()) {
        let message = format!("`initial_movement` is missing; a run starts with the first step, `{first}`");
        let finding = Diagnostic::warning(codes::MISSING_KEY, piece.span, message);
        desk.found.push(finding.hint(format!("write `initial_movement: {first}`")));
    }
    if let Some(entry) = node.entry() {
        let written = key.and_then(|key| piece.get(key));
        // A value that is no text, or an unknown name, has its own finding.
        let is_known = written.is_none_or(|value| {
            value.as_text().is_some_and(|name| node.items.iter().any(|item| item.name == name.trim()))
        });
        if is_known {
            let span = written.map_or(piece.span, |value| value.span);
            set_key(&mut piece, key.unwrap_or("initial_step"), build_text(entry, span));
        }
    }
    Some(ExpandedWorkflow { piece, scopes: expander.scopes })
}

impl Expander<'_, '_> {
    /// Reads a workflow and what it calls.
    fn node(&mut self, root: Arc<Json>, path: &str, call: Call) -> WorkflowNode {
        let folder = path.rsplit_once('/').map_or("", |(folder, _)| folder).to_owned();
        let layers = Layers::of(&folder, self.desk);
        let mut rules = call.rules.clone();
        self.rules_of_all_steps(&root, &layers, &mut rules);
        let scope = self.scopes.len();
        self.scopes.push(WorkflowScope {
            root: root.clone(),
            folder,
            layers: layers.clone(),
            prefixes: call.prefixes.clone(),
            vars: call.vars.clone(),
            rules: rules.clone(),
        });
        let params = self.bind(&root, &call);
        let pools = self.pools(&root, &layers, &params);
        let default_tools = root.get("capabilities").cloned();
        let mut node = WorkflowNode {
            scope,
            prefix: call.prefix.clone(),
            initial: ["initial_step", "initial_movement"]
                .iter()
                .find_map(|key| Some(root.get(key)?.as_text()?.trim().to_owned())),
            items: Vec::new(),
            monitors: root.get("loop_monitors").map(|all| items_of_list(all).to_vec()).unwrap_or_default(),
        };
        for monitor in &mut node.monitors {
            self.fill(monitor, &params);
        }
        let written = ["steps", "movements"].iter().find_map(|key| root.get(key));
        for item in written.map(items_of_list).unwrap_or_default() {
            let mut step = item.clone();
            if !matches!(step.kind, Kind::Object(_)) {
                node.items.push(Item { name: String::new(), span: step.span, step, call: None });
                continue;
            }
            self.fill(&mut step, &params);
            let Some(mut step) = self.with_fragments(step, &layers, 0) else { continue };
            let name = step.get("name").and_then(Json::as_text).unwrap_or_default().trim().to_owned();
            let span = step.get("name").map_or(step.span, |name| name.span);
            self.steps += 1;
            if self.steps > STEPS_MAX {
                if self.steps == STEPS_MAX + 1 {
                    let message = format!("the workflow expands to more than {STEPS_MAX} steps");
                    self.refuse(
                        Diagnostic::error(codes::INVALID_VALUE, span, message).hint("call fewer workflows"),
                    );
                }
                break;
            }
            if self.is_system(&step) {
                continue;
            }
            if step.get("kind").and_then(Json::as_text) == Some("workflow_call") {
                let inner = self.called(&mut step, &name, span, &layers, &call, &rules);
                if let Some(inner) = inner {
                    node.items.push(Item { name, span, step, call: Some(inner) });
                }
                continue;
            }
            take_key(&mut step, "kind");
            rule_keys(&mut step);
            rewrite_always_rule(&mut step);
            if !self.call_members(&mut step, &layers, &call, &rules) {
                continue;
            }
            let surroundings = StepSurroundings {
                layers: &layers,
                pools: &pools,
                tools: default_tools.as_ref(),
                schemas: root.get("schemas"),
                prefix: &call.prefix,
                scope,
            };
            self.step_keys(&mut step, &surroundings);
            node.items.push(Item { name, span, step, call: None });
        }
        node
    }

    /// Reads the workflow that a step calls.
    fn called(
        &mut self,
        step: &mut Json,
        name: &str,
        span: Span,
        layers: &Layers,
        caller: &Call,
        rules: &[(String, Span)],
    ) -> Option<WorkflowNode> {
        let Some(entry) = take_key(step, "call") else {
            self.refuse(
                Diagnostic::error(codes::MISSING_KEY, span, format!("`call` is missing in `{name}`"))
                    .hint("name the workflow"),
            );
            return None;
        };
        let Some(target) = entry.value.as_text().map(|text| text.trim().to_owned()) else {
            // A parameter without a value has its own finding.
            if !matches!(entry.value.kind, Kind::Null) {
                self.refuse(
                    Diagnostic::error(codes::WRONG_TYPE, entry.value.span, "`call` must be text")
                        .hint("name a workflow"),
                );
            }
            self.refused = true;
            return None;
        };
        const ENDINGS: [&str; 2] = [".yaml", ".yml"];
        // A path is relative to the workflow that calls.
        let is_path = ["./", "../"].iter().any(|start| target.starts_with(start))
            || ENDINGS.iter().any(|ending| target.ends_with(ending));
        let path = if is_path {
            let own =
                self.stack.last().and_then(|path| path.rsplit_once('/')).map_or("", |(folder, _)| folder);
            let paths = ["", ".yaml", ".yml"].map(|ending| join_path(own, &format!("{target}{ending}")));
            paths.into_iter().flatten().find(|path| self.desk.is_file(path))
        } else {
            layers.find(self.desk, &["workflows", "pieces"], &target, &ENDINGS)
        };
        let Some(path) = path else {
            let message = format!("`{name}` calls the workflow `{target}`, which is not found");
            let hint = match is_path {
                true => "a path is relative to the workflow that calls, and stays in the project".to_owned(),
                false => format!("it is looked for in {}; {INSTALL}", layers.places("workflows")),
            };
            self.refuse(Diagnostic::error(codes::UNKNOWN_NAME, entry.value.span, message).hint(hint));
            return None;
        };
        if self.stack.contains(&path) || self.stack.len() >= DEPTH_MAX {
            let cycle: Vec<&str> = self.stack.iter().chain([&path]).map(|path| stem_of_path(path)).collect();
            let message = format!("workflows call each other in a cycle: {}", cycle.join(" → "));
            self.refuse(
                Diagnostic::error(codes::INVALID_VALUE, entry.value.span, message)
                    .hint("lead back to a step instead"),
            );
            return None;
        }
        let root = self.parsed(&path)?;
        let mut vars = caller.vars.clone();
        for entry in take_key(step, "vars").iter().flat_map(|vars| vars.value.pairs()) {
            if let Some(text) = entry.value.scalar_text() {
                vars.insert(entry.key.to_string(), text.to_string());
            }
        }
        let args = take_key(step, "args").map(|args| args.value.pairs().to_vec()).unwrap_or_default();
        let prefix = format!("{}{name}/", caller.prefix);
        let prefixes = std::iter::once(prefix.clone()).chain(caller.prefixes.iter().cloned()).collect();
        self.stack.push(path.clone());
        let call = Call { args, span: Some(entry.value.span), vars, prefix, prefixes, rules: rules.to_vec() };
        let node = self.node(root, &path, call);
        self.stack.pop();
        if node.items.is_empty() {
            let message = format!("the workflow `{target}` has no steps");
            self.refuse(
                Diagnostic::error(codes::INVALID_VALUE, entry.value.span, message).hint("add a step to it"),
            );
            return None;
        }
        Some(node)
    }

    /// A parsed file, once.
    fn parsed(&mut self, path: &str) -> Option<Arc<Json>> {
        if let Some(known) = self.parsed.get(path) {
            return known.clone();
        }
        let read = match self.desk.page(path) {
            LoadedFile::Text { file, text } => yaml::parse(&text, file, &self.desk.found).map(Arc::new),
            LoadedFile::Missing | LoadedFile::Faulty => None,
        };
        let is_object = |json: &Arc<Json>| matches!(json.kind, Kind::Object(_));
        if let Some(other) = read.as_ref().filter(|json| !is_object(json)) {
            let message = format!("`{path}` holds no mapping");
            let finding = Diagnostic::error(codes::WRONG_TYPE, other.span, message);
            self.desk.found.push(finding.hint("write one, with keys and values"));
        }
        let read = read.filter(is_object);
        self.refused |= read.is_none();
        self.parsed.insert(path.to_owned(), read.clone());
        read
    }

    /// Reports something that cannot run; what follows from it is not reported.
    fn refuse(&mut self, finding: Diagnostic) {
        self.refused = true;
        self.desk.found.push(finding);
    }

    /// Notes a key without effect.
    fn ignore(&mut self, entry: &Entry) {
        let keys = self.ignored.entry(entry.key_span.file).or_default();
        keys.entry(entry.key.to_string()).or_insert(entry.key_span);
    }

    /// Notes something that runs in another way than in TAKT.
    fn approximate(&mut self, span: Span, statement: String) {
        if !self.approximations.iter().any(|(known, _)| *known == statement) {
            self.approximations.push((statement, span));
        }
    }

    /// Reports what runs in another way than in TAKT, as one finding.
    fn tell_approximations(&mut self, at: FileId) {
        let all = std::mem::take(&mut self.approximations);
        // A place in the workflow itself is shown before one in a file that it uses.
        let place =
            all.iter().map(|(_, span)| *span).min_by_key(|span| (span.file != at, span.file, span.start));
        let Some(place) = place else { return };
        let statements = all.into_iter().map(|(statement, _)| statement).collect();
        let hint = "nothing has to be done; docs/reference.md says what each of them means";
        self.desk.found.approximated(place, statements, hint);
    }

    /// Reports the keys without effect, once for the whole definition.
    fn tell_ignored(&mut self, at: FileId) {
        let mut keys: BTreeMap<&str, Span> = BTreeMap::new();
        for (key, span) in self.ignored.values().flatten() {
            let place = keys.entry(key).or_insert(*span);
            // A place in the workflow itself is shown before one in a file that it uses.
            if place.file != at && span.file == at {
                *place = *span;
            }
        }
        let Some(first) = keys.values().min_by_key(|span| (span.file != at, span.file, span.start)) else {
            return;
        };
        let names: Vec<&str> = keys.keys().copied().collect();
        let verb = if names.len() == 1 { "has" } else { "have" };
        let message = format!("{} {verb} no effect here", suggest::quote_names(&names));
        let finding = Diagnostic::note(codes::UNUSED_KEY, *first, message);
        self.desk.found.push(finding.hint("the agent of a run and its options are chosen in cuegate.toml"));
    }
}

/// Where to get what TAKT itself brings.
pub(in crate::takt) const INSTALL: &str = "definitions of TAKT itself are read from an installed one (`npm install -g takt`), or from `--builtins PATH`";

fn get_mut<'j>(of: &'j mut Json, key: &str) -> Option<&'j mut Json> {
    let Kind::Object(entries) = &mut of.kind else { return None };
    entries.iter_mut().find(|entry| *entry.key == *key).map(|entry| &mut entry.value)
}

fn build_number(n: usize, span: Span) -> Json {
    Json { span, kind: Kind::Number(n.into()) }
}

/// The name of a file without folders and ending.
fn stem_of_path(path: &str) -> &str {
    let name = path.rsplit('/').next().unwrap_or(path);
    name.rsplit_once('.').map_or(name, |(stem, _)| stem)
}
