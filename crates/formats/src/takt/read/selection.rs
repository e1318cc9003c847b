//! Reads what an agent selects before a step begins: members of a pool, or texts of a pool.

use cuegate_flow::{
    diagnostics::{Diagnostic, Span},
    model::Source,
};

use super::agent::{KeyedText, Persona};
use super::sections::{FacetText, Section};
use super::step::StepReader;
use crate::codes;
use crate::takt::compose::{ComposedSelection, FacetName, PoolCandidate, SelectionCandidate};
use crate::values::json::{Fields, Text};

/// A selection before a step begins.
pub(crate) struct Selection<'j> {
    /// The name of the step that selects.
    pub(crate) name: String,
    pub(crate) span: Span,
    pub(crate) candidates: Vec<SelectionCandidate>,
    /// Whether nothing at all may be selected.
    pub(crate) may_be_empty: bool,
    pub(crate) persona: Option<Persona>,
    pub(crate) instruction: Option<FacetText>,
    /// Reports that the selection depends on.
    pub(crate) reports: Vec<Text<'j>>,
    /// Whether what was selected once stays selected.
    pub(crate) stays: bool,
    /// The most candidates that may be selected.
    pub(crate) max: Option<u32>,
}

/// Texts of a prompt that are there if a candidate is selected.
pub(crate) struct SelectableTexts {
    pub(crate) when: Source,
    pub(crate) policies: Vec<KeyedText>,
    pub(crate) knowledge: Vec<KeyedText>,
}

impl StepReader<'_, '_, '_> {
    /// Reads a selection among members.
    pub(super) fn read_member_selection<'j>(
        &self,
        selection: &'j ComposedSelection,
        step: &Fields<'j, '_>,
    ) -> Option<Selection<'j>> {
        let fields = Fields::of(&selection.settings, "the selection", None, step.found)?;
        self.sections.enter(selection.scope);
        let read = Selection {
            name: selection.name.clone(),
            span: selection.settings.span,
            candidates: selection.candidates.clone(),
            may_be_empty: selection.may_be_empty,
            ..self.read_selection(fields)
        };
        Some(read)
    }

    /// Reads the settings of a selection; what it selects is left empty.
    fn read_selection<'j>(&self, fields: Fields<'j, '_>) -> Selection<'j> {
        let mode = fields.one_of("mode", &["replace", "cumulative"]);
        let reports = fields.texts("reports").unwrap_or_default();
        let max = fields.count("max_selected", 1).map(|(max, _)| max);
        let (mut persona, mut instruction) = (None, None);
        if let Some(selector) = fields.object("selector") {
            persona = selector.filled("persona").map(|reference| self.read_persona(reference, &selector));
            instruction = self.read_instruction(&selector);
            selector.finish();
        }
        let span = fields.span;
        fields.finish();
        Selection {
            name: String::new(),
            span,
            candidates: Vec::new(),
            may_be_empty: true,
            persona,
            instruction,
            reports,
            stays: matches!(mode, Some(("cumulative", _))),
            max,
        }
    }

    /// Reads the pool of `dynamic_facets`: its texts, and their selection.
    pub(super) fn read_dynamic_facets<'j>(
        &self,
        fields: &Fields<'j, '_>,
        step: &str,
    ) -> Option<(Vec<SelectableTexts>, Selection<'j>)> {
        let entry = fields.nullable("dynamic_facets")?;
        let named = entry.value.get("pool");
        let Some(name) = named.and_then(|named| named.as_text()).map(str::trim) else {
            // A parameter without a value has its own finding.
            let message = "`dynamic_facets` names no pool";
            self.notes
                .refuse(Diagnostic::error(codes::MISSING_KEY, entry.key_span, message).hint("name one"));
            return None;
        };
        let span = named.map_or(entry.key_span, |named| named.span);
        let scope = self.sections.scope();
        let Some(pool) = scope.pools.get(name) else {
            let message = format!("there is no pool `{name}`");
            let finding = Diagnostic::error(codes::UNKNOWN_NAME, span, message);
            self.notes.refuse(finding.hint("add it to `facet_pools`"));
            return None;
        };
        let has_id =
            |candidate: &PoolCandidate| candidate.id.scalar_text().is_some_and(|id| !id.trim().is_empty());
        let fault = match pool.iter().all(has_id) {
            _ if pool.is_empty() => Some(format!("the pool `{name}` has no candidates")),
            false => Some(format!("a candidate of the pool `{name}` has no `id`")),
            true => None,
        };
        if let Some(message) = fault {
            let hint = "give each candidate `id`, `description`, and `policy` or `knowledge`";
            self.notes.refuse(Diagnostic::error(codes::INVALID_VALUE, span, message).hint(hint));
            return None;
        }
        let selector = format!("{step}@select");
        let (mut candidates, mut texts) = (Vec::new(), Vec::new());
        for written in pool {
            let Some(candidate) = SelectionCandidate::new(&written.id, written.description.as_ref()) else {
                continue;
            };
            texts.push(SelectableTexts {
                when: candidate.source(&selector),
                policies: self.read_facets(&written.policies, Section::Policies, fields),
                knowledge: self.read_facets(&written.knowledge, Section::Knowledge, fields),
            });
            candidates.push(candidate);
        }
        let settings = Fields::of(&entry.value, "`dynamic_facets`", Some(step), fields.found)?;
        settings.shunned("pool");
        Some((texts, Selection { name: selector, candidates, ..self.read_selection(settings) }))
    }

    /// Reads the texts of a candidate.
    fn read_facets(&self, names: &[FacetName], section: Section, fields: &Fields<'_, '_>) -> Vec<KeyedText> {
        let read = |name: &FacetName| match &name.path {
            Some(path) => {
                let body = self.sections.file_at(path, name.span)?;
                Some(KeyedText { key: body.stem.clone(), body })
            }
            None => self.read_keyed_text(Text { text: name.text.trim(), span: name.span }, section, fields),
        };
        names.iter().filter_map(read).collect()
    }
}
