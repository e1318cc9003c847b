//! Pools of texts, from which an agent selects those of a prompt.

use std::collections::BTreeMap;

use cuegate_flow::{
    Str,
    diagnostics::{Diagnostic, Span},
};

use super::tree::{as_list, build_text, items_of_list};
use super::{Composer, INSTALL, Layers};
use crate::codes;
use crate::source::files::join_path;
use crate::values::json::{Fields, Json};

/// The pools of a workflow by name.
pub(in crate::takt) type Pools = BTreeMap<String, Vec<PoolCandidate>>;

/// A candidate of a pool of texts.
#[derive(Debug, Clone)]
pub(in crate::takt) struct PoolCandidate {
    pub(in crate::takt) id: Json,
    pub(in crate::takt) description: Option<Json>,
    pub(in crate::takt) policies: Vec<FacetName>,
    pub(in crate::takt) knowledge: Vec<FacetName>,
}

/// The name of a text in a pool.
#[derive(Debug, Clone)]
pub(in crate::takt) struct FacetName {
    pub(in crate::takt) text: Str,
    pub(in crate::takt) span: Span,
    /// The path of its file, if the pool names one.
    pub(in crate::takt) path: Option<String>,
}

impl Composer<'_, '_, '_> {
    /// Reads the pools of texts of a workflow.
    pub(super) fn read_pools(&self, root: &Json, layers: &Layers, params: &BTreeMap<String, Json>) -> Pools {
        let mut pools = Pools::new();
        for pool in root.get("facet_pools").map(Json::pairs).unwrap_or_default() {
            let mut value = pool.value.clone();
            self.fill_params(&mut value, params);
            let candidates = match value.get("uses") {
                Some(uses) => self.read_outside_pool(uses, layers),
                None => value.get("candidates").map(|list| self.read_candidates(list)),
            };
            match candidates {
                Some(candidates) => _ = pools.insert(pool.key.to_string(), candidates),
                None => {
                    let message = format!("the pool `{}` has no `candidates`", pool.key);
                    let finding = Diagnostic::error(codes::MISSING_KEY, pool.key_span, message);
                    if !self.is_broken.get() {
                        self.files.loader.found.push(finding.hint("list them, or name a file with `uses`"));
                    }
                    self.mark_broken();
                }
            }
        }
        pools
    }

    /// Reads a pool that is a file of its own. Its names mean files beside it.
    fn read_outside_pool(&self, uses: &Json, layers: &Layers) -> Option<Vec<PoolCandidate>> {
        let name = uses.as_text()?.trim();
        let Some(path) = layers.find(self.files.loader, &["facet-pools"], name, &[".yaml", ".yml"]) else {
            let message = format!("the pool `{name}` is not found");
            let hint = format!("it is looked for in {}; {INSTALL}", layers.places("facet-pools", name));
            self.refuse(Diagnostic::error(codes::UNKNOWN_NAME, uses.span, message).hint(hint));
            return None;
        };
        let root = self.parse_used_file(&path)?;
        let folder = path.rsplit_once('/').map_or("", |(folder, _)| folder);
        let with_paths = |key: &str, names: Vec<FacetName>| -> Vec<FacetName> {
            let path_of = |name: &FacetName| {
                let written = root.get(key)?.get(name.text.trim())?.as_text()?;
                join_path(folder, written.trim())
            };
            names.into_iter().map(|name| FacetName { path: path_of(&name), ..name }).collect()
        };
        let all = root.get("candidates").map(|list| self.read_candidates(list))?;
        let with_paths = |candidate: PoolCandidate| PoolCandidate {
            policies: with_paths("policies", candidate.policies),
            knowledge: with_paths("knowledge", candidate.knowledge),
            ..candidate
        };
        Some(all.into_iter().map(with_paths).collect())
    }

    fn read_candidates(&self, list: &Json) -> Vec<PoolCandidate> {
        let candidate = |written: &Json| {
            self.check_candidate_keys(written);
            PoolCandidate {
                id: written.get("id").cloned().unwrap_or_else(|| build_text(String::new(), written.span)),
                description: written.get("description").cloned(),
                policies: self.read_facet_names(written, "policy"),
                knowledge: self.read_facet_names(written, "knowledge"),
            }
        };
        items_of_list(list).iter().map(candidate).collect()
    }

    /// Reports the keys of a candidate that nothing reads.
    fn check_candidate_keys(&self, written: &Json) {
        let found = &self.files.loader.found;
        let Some(fields) = Fields::of(written, "a candidate", None, found) else { return };
        for key in ["id", "description", "policy", "knowledge"] {
            fields.nullable(key);
        }
        fields.finish();
    }

    fn read_facet_names(&self, candidate: &Json, key: &str) -> Vec<FacetName> {
        let mut names = Vec::new();
        for item in candidate.get(key).map(as_list).unwrap_or_default() {
            match item.as_text() {
                Some(text) => names.push(FacetName { text: text.into(), span: item.span, path: None }),
                None => {
                    let message = format!("`{key}` of a candidate must hold texts only");
                    let finding = Diagnostic::error(codes::WRONG_TYPE, item.span, message);
                    self.refuse(finding.hint("name a text"));
                }
            }
        }
        names
    }
}
