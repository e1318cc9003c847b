//! What an agent selects before a step begins: members of a pool, and texts of a pool.

use cuegate_flow::diagnostics::{Diagnostic, Span};

use super::fragments::all_members;
use super::step_keys::StepSurroundings;
use super::tree::{build_list, build_text, items_of_list, set_key, take_key};
use super::{Expander, SCOPE, build_number, get_mut};
use crate::codes;
use crate::suggest::add_suggestion;
use crate::values::json::{Entry, Json, Kind};

/// The key of a step with the selections that are made before it begins.
pub(in crate::takt) const SELECTIONS: &str = "@selections";
/// The key of a member, or of a text, with the candidate that it works or is read for.
pub(in crate::takt) const CANDIDATE: &str = "@candidate";
/// The key of a step with the texts that may be selected.
pub(in crate::takt) const TEXTS: &str = "@texts";
/// The keys of a selection: its name, what can be selected, and whether nothing at all may be selected.
pub(in crate::takt) const SELECTOR: &str = "@selector";
pub(in crate::takt) const CANDIDATES: &str = "@candidates";
pub(in crate::takt) const MAY_BE_EMPTY: &str = "@may_be_empty";

/// A candidate of a pool of texts.
#[derive(Debug, Clone)]
pub(super) struct PoolCandidate {
    pub(super) id: Json,
    pub(super) description: Option<Json>,
    pub(super) policies: Vec<Json>,
    pub(super) knowledge: Vec<Json>,
}

impl Expander<'_, '_> {
    /// Replaces fixed members and a pool by one list, with the selection of those in the pool.
    pub(super) fn pool_of_members(&mut self, step: &mut Json, around: &StepSurroundings<'_>) {
        let Some(parallel) = get_mut(step, "parallel") else { return };
        let (span, fixed) =
            (parallel.span, parallel.get("fixed").map(items_of_list).unwrap_or_default().len());
        let mut members = all_members(parallel);
        let selection = take_key(parallel, "selection");
        let (key_span, written) = match selection {
            Some(entry) => (entry.key_span, entry.value),
            None => (span, Json { span, kind: Kind::Object(Vec::new()) }),
        };
        let known = ["fixed", "pool", "selection"];
        let unknown = parallel.pairs().iter().find(|entry| !known.contains(&&*entry.key));
        if let Some(entry) = unknown {
            let message = format!("unknown key `{}` in `parallel`", entry.key);
            let finding = Diagnostic::error(codes::UNKNOWN_KEY, entry.key_span, message);
            self.refuse(add_suggestion(finding, &entry.key, &known));
            return;
        }
        *parallel = build_list(Vec::new(), span);
        let name = selector_name_of_step(step, around);
        let mut candidates = Vec::new();
        for member in members.iter_mut().skip(fixed) {
            let Some(id) = member.get("name").cloned() else { continue };
            candidates.push(build_candidate(&id, member.get("description").cloned()));
            set_key(member, CANDIDATE, with_selector(&name, &id));
        }
        if !candidates.is_empty() {
            let entry = Entry { key: "selection".into(), key_span, value: written };
            self.select(step, entry, name, candidates, fixed > 0, around);
        }
        if let Some(parallel) = get_mut(step, "parallel") {
            *parallel = build_list(members, span);
        }
    }

    /// Replaces the pool of `dynamic_facets` by its texts, with their selection.
    pub(super) fn texts_of_pools(&mut self, step: &mut Json, around: &StepSurroundings<'_>) {
        let Some(mut facets) = take_key(step, "dynamic_facets") else { return };
        let named = take_key(&mut facets.value, "pool");
        let Some(name) = named.as_ref().and_then(|named| named.value.as_text()).map(str::trim) else {
            // A parameter without a value has its own finding.
            if !self.refused {
                self.refuse(
                    Diagnostic::error(codes::MISSING_KEY, facets.key_span, "`dynamic_facets` names no pool")
                        .hint("name one"),
                );
            }
            return;
        };
        let Some(pool) = around.pools.get(name) else {
            let span = named.as_ref().map_or(facets.key_span, |named| named.value.span);
            self.refuse(
                Diagnostic::error(codes::UNKNOWN_NAME, span, format!("there is no pool `{name}`"))
                    .hint("add it to `facet_pools`"),
            );
            return;
        };
        let fault = match pool
            .iter()
            .find(|candidate| candidate.id.scalar_text().is_none_or(|id| id.trim().is_empty()))
        {
            _ if pool.is_empty() => Some(format!("the pool `{name}` has no candidates")),
            Some(_) => Some(format!("a candidate of the pool `{name}` has no `id`")),
            None => None,
        };
        if let Some(message) = fault {
            let span = named.as_ref().map_or(facets.key_span, |named| named.value.span);
            self.refuse(
                Diagnostic::error(codes::INVALID_VALUE, span, message)
                    .hint("give each candidate `id`, `description`, and `policy` or `knowledge`"),
            );
            return;
        }
        let selector = selector_name_of_step(step, around);
        let (mut candidates, mut texts) = (Vec::new(), Vec::new());
        for PoolCandidate { id, description, policies, knowledge } in pool {
            candidates.push(build_candidate(id, description.clone()));
            let mut part = build_empty_object(id.span);
            set_key(&mut part, CANDIDATE, with_selector(&selector, id));
            set_key(&mut part, "policy", build_list(policies.clone(), id.span));
            set_key(&mut part, "knowledge", build_list(knowledge.clone(), id.span));
            texts.push(part);
        }
        set_key(step, TEXTS, build_list(texts, facets.value.span));
        self.select(step, facets, selector, candidates, true, around);
    }

    /// Adds a selection to a step.
    fn select(
        &mut self,
        step: &mut Json,
        written: Entry,
        name: String,
        candidates: Vec<Json>,
        may_be_empty: bool,
        around: &StepSurroundings<'_>,
    ) {
        let span = written.key_span;
        let mut selection = written.value;
        if !matches!(selection.kind, Kind::Object(_)) {
            let message = format!("`{}` must be a mapping", written.key);
            self.refuse(
                Diagnostic::error(codes::WRONG_TYPE, selection.span, message).hint("give it `selector`"),
            );
            return;
        }
        set_key(&mut selection, SELECTOR, build_text(name, span));
        set_key(&mut selection, SCOPE, build_number(around.scope, span));
        set_key(&mut selection, CANDIDATES, build_list(candidates, span));
        set_key(&mut selection, MAY_BE_EMPTY, Json { span, kind: Kind::Boolean(may_be_empty) });
        add_selections(step, vec![selection]);
    }
}

/// Adds selections to those of a step.
pub(super) fn add_selections(step: &mut Json, new: Vec<Json>) {
    let mut all = step.get(SELECTIONS).map(items_of_list).unwrap_or_default().to_vec();
    all.extend(new);
    if !all.is_empty() {
        let span = step.span;
        set_key(step, SELECTIONS, build_list(all, span));
    }
}

/// The name of the step that selects for a step.
fn selector_name_of_step(step: &Json, around: &StepSurroundings<'_>) -> String {
    let name = step.get("name").and_then(Json::as_text).unwrap_or_default().trim();
    format!("{}{name}@select", around.prefix)
}

fn build_candidate(id: &Json, description: Option<Json>) -> Json {
    let mut candidate = build_empty_object(id.span);
    set_key(&mut candidate, "id", id.clone());
    if let Some(description) = description {
        set_key(&mut candidate, "description", description);
    }
    candidate
}

fn with_selector(selector: &str, id: &Json) -> Json {
    let mut of = build_empty_object(id.span);
    set_key(&mut of, SELECTOR, build_text(selector, id.span));
    set_key(&mut of, "id", id.clone());
    of
}

fn build_empty_object(span: Span) -> Json {
    Json { span, kind: Kind::Object(Vec::new()) }
}
