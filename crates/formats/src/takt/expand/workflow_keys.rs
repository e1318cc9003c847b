//! The keys of a workflow besides its steps.

use std::collections::BTreeMap;

use cuegate_flow::diagnostics::{Diagnostic, Span};

use super::selections::PoolCandidate;
use super::tree::{as_list, build_text, items_of_list, set_key, take_key};
use super::{Expander, FILE, INSTALL, Layers, build_number};
use crate::codes;
use crate::source::files::join_path;
use crate::takt::load::ITERATIONS_MAX;
use crate::values::json::{Entry, Json, Kind};

/// Keys that choose providers and their options, or how TAKT asks for the task.
const WITHOUT_EFFECT: [&str; 7] = [
    "provider_options",
    "auto_routing",
    "rate_limit_fallback",
    "interactive_mode",
    "tags",
    "provider",
    "model",
];

/// Keys whose values are read before.
const READ: [&str; 6] = ["schemas", "subworkflow", "facet_pools", "all_steps", "capabilities", "vars"];

/// Keys with settings of TAKT's own runtime.
const CONFIG: [&str; 2] = ["workflow_config", "piece_config"];

/// The keys of a workflow that are read while it is expanded.
pub(in crate::takt) fn workflow_keys() -> impl Iterator<Item = &'static str> {
    WITHOUT_EFFECT.into_iter().chain(READ).chain(CONFIG)
}

/// The pools of texts by name.
pub(super) type Pools = BTreeMap<String, Vec<PoolCandidate>>;

impl Expander<'_, '_> {
    /// Takes the keys out of a workflow that its reader does not know.
    pub(super) fn workflow_keys(&mut self, piece: &mut Json) {
        for key in WITHOUT_EFFECT {
            if let Some(entry) = take_key(piece, key) {
                self.ignore(&entry);
            }
        }
        // The caller of a workflow limits it; alone it has the default limit.
        let limits = ["max_steps", "max_movements", "max_iterations"];
        if piece.get("subworkflow").is_some() && limits.iter().all(|key| piece.get(key).is_none()) {
            let span = piece.span;
            set_key(piece, "max_steps", build_number(ITERATIONS_MAX as usize, span));
        }
        for key in READ {
            take_key(piece, key);
        }
        for key in CONFIG {
            if let Some(entry) = take_key(piece, key) {
                self.prepared(&entry);
                self.ignore(&entry);
            }
        }
    }

    /// Scripts that TAKT runs before a workflow.
    fn prepared(&mut self, config: &Entry) {
        let scripts = config.value.get("runtime").and_then(|runtime| runtime.get("prepare"));
        let is_script = |json: &&Json| json.as_text().is_some_and(|text| !matches!(text, "node" | "gradle"));
        for script in scripts.map(items_of_list).unwrap_or_default().iter().filter(is_script) {
            self.desk.found.left_out(
                script.span,
                format!("`{}` is not run before the workflow", script.as_text().unwrap_or_default()),
                "prepare worktrees with `setup` in `[worktree]` of cuegate.toml",
            );
        }
    }

    /// The files of `all_steps.rules`, after those of the callers.
    pub(super) fn rules_of_all_steps(
        &mut self,
        root: &Json,
        layers: &Layers,
        rules: &mut Vec<(String, Span)>,
    ) {
        let written = root.get("all_steps").and_then(|all| all.get("rules"));
        for rule in written.map(items_of_list).unwrap_or_default() {
            let name = rule.as_text().or_else(|| rule.get("ref")?.as_text()).map(str::trim);
            let Some(name) = name else {
                self.refuse(
                    Diagnostic::error(codes::WRONG_TYPE, rule.span, "a rule for all steps has no name")
                        .hint("name its file"),
                );
                continue;
            };
            match layers.find(self.desk, &["workflows/rules"], name, &[".md"]) {
                Some(path) if rules.iter().any(|(known, _)| *known == path) => {}
                Some(path) => rules.push((path, rule.span)),
                None => {
                    let message = format!("the rule `{name}` for all steps is not found");
                    let hint = format!("it is looked for in {}; {INSTALL}", layers.places("workflows/rules"));
                    self.refuse(Diagnostic::error(codes::UNKNOWN_NAME, rule.span, message).hint(hint));
                }
            }
        }
    }

    /// Reads the pools of texts of a workflow.
    pub(super) fn pools(&mut self, root: &Json, layers: &Layers, params: &BTreeMap<String, Json>) -> Pools {
        let mut pools = Pools::new();
        for pool in root.get("facet_pools").map(Json::pairs).unwrap_or_default() {
            let mut value = pool.value.clone();
            self.fill(&mut value, params);
            let candidates = match value.get("uses") {
                Some(uses) => self.outside_pool(uses, layers),
                None => value.get("candidates").map(read_pool_candidates),
            };
            match candidates {
                Some(candidates) => _ = pools.insert(pool.key.to_string(), candidates),
                None => {
                    let message = format!("the pool `{}` has no `candidates`", pool.key);
                    let finding = Diagnostic::error(codes::MISSING_KEY, pool.key_span, message);
                    if !self.refused {
                        self.desk.found.push(finding.hint("list them, or name a file with `uses`"));
                    }
                    self.refused = true;
                }
            }
        }
        pools
    }

    /// Reads a pool that is a file of its own. Its names mean files beside it.
    fn outside_pool(&mut self, uses: &Json, layers: &Layers) -> Option<Vec<PoolCandidate>> {
        let name = uses.as_text()?.trim();
        let Some(path) = layers.find(self.desk, &["facet-pools"], name, &[".yaml", ".yml"]) else {
            let message = format!("the pool `{name}` is not found");
            let hint = format!("it is looked for in {}; {INSTALL}", layers.places("facet-pools"));
            self.refuse(Diagnostic::error(codes::UNKNOWN_NAME, uses.span, message).hint(hint));
            return None;
        };
        let root = self.parsed(&path)?;
        let folder = path.rsplit_once('/').map_or("", |(folder, _)| folder);
        let resolved = |key: &str, names: Vec<Json>| -> Vec<Json> {
            let path_of = |name: &Json| {
                let written = root.get(key)?.get(name.as_text()?.trim())?.as_text()?;
                join_path(folder, written.trim())
            };
            let mut names = names;
            for name in &mut names {
                if let Some(path) = path_of(name) {
                    name.kind = Kind::Text(format!("{FILE}{path}").into());
                }
            }
            names
        };
        let all = root.get("candidates").map(read_pool_candidates)?;
        let resolved = |candidate: PoolCandidate| PoolCandidate {
            policies: resolved("policies", candidate.policies),
            knowledge: resolved("knowledge", candidate.knowledge),
            ..candidate
        };
        Some(all.into_iter().map(resolved).collect())
    }
}

fn read_pool_candidates(list: &Json) -> Vec<PoolCandidate> {
    let of = |candidate: &Json, key: &str| candidate.get(key).map(as_list).unwrap_or_default();
    let candidate = |written: &Json| {
        let nameless = || build_text(String::new(), written.span);
        PoolCandidate {
            id: written.get("id").cloned().unwrap_or_else(nameless),
            description: written.get("description").cloned(),
            policies: of(written, "policy"),
            knowledge: of(written, "knowledge"),
        }
    };
    items_of_list(list).iter().map(candidate).collect()
}
