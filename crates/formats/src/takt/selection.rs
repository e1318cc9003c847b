//! Selections: an agent is asked which members work, or which texts a prompt has, before a step begins.

use cuegate_flow::{
    Str,
    diagnostics::{Diagnostic, Span},
    model::{
        Act, Ask, Boundary, Draft, Fact, FieldPath, Gate, Handoff, Name, Outcome, Permission, Piece, Role,
        Schema, SchemaId, SessionRule, Source, Step, Template, Tools,
    },
};
use serde_json::{Value, json};

use super::expand::{CANDIDATE, CANDIDATES, MAY_BE_EMPTY, SCOPE, SELECTIONS, SELECTOR, TEXTS};
use super::lower::WorkflowLowering;
use super::movement::{KeyedText, Persona, StepReader};
use super::texts::instruction_template::ReadingStep;
use super::texts::prompt::PromptBuilder;
use super::texts::prompt_texts;
use super::texts::sections::{FacetText, Section};
use crate::codes;
use crate::values::json::{Fields, Json, Kind, Text};

/// A selection before a step begins.
pub(crate) struct Selection<'j> {
    /// The name of the step that selects.
    name: &'j str,
    span: Span,
    candidates: Vec<SelectionCandidate<'j>>,
    /// Whether nothing at all may be selected.
    may_be_empty: bool,
    persona: Option<Persona>,
    instruction: Option<FacetText>,
    /// Reports that the selection depends on.
    reports: Vec<Text<'j>>,
    /// Whether what was selected once stays selected.
    stays: bool,
    /// The most candidates that may be selected.
    max: Option<u32>,
}

/// Something that can be selected.
struct SelectionCandidate<'j> {
    id: Str,
    description: Option<&'j str>,
}

/// Texts of a prompt that are there if a candidate is selected.
pub(crate) struct SelectableTexts {
    pub(crate) when: Source,
    pub(crate) policies: Vec<KeyedText>,
    pub(crate) knowledge: Vec<KeyedText>,
}

/// What the selection is for.
pub(super) struct SelectionSubject<'s> {
    pub(super) step: &'s str,
    /// The instruction of its agent.
    pub(super) instruction: Option<&'s FacetText>,
    pub(super) model: Option<Str>,
}

/// The value that is set if the candidate of a member is selected.
pub(super) fn source_of_candidate(item: &Json) -> Option<Source> {
    let candidate = item.get(CANDIDATE)?;
    let word = |key: &str| Some(Str::from(candidate.get(key)?.scalar_text()?.trim()));
    Some(Source::Handoff { step: word(SELECTOR)?, key: word("id")? })
}

impl StepReader<'_, '_, '_> {
    /// Reads the selections that are made before a step begins.
    pub(super) fn selections<'j>(&self, fields: &Fields<'j, '_>, item: &'j Json) -> Vec<Selection<'j>> {
        fields.shunned(SELECTIONS);
        fields.shunned(CANDIDATE);
        let Some(Json { kind: Kind::List(all), .. }) = item.get(SELECTIONS) else { return Vec::new() };
        let found = all.iter().filter_map(|one| self.selection(one, fields)).collect();
        self.sections.enter(item);
        found
    }

    fn selection<'j>(&self, item: &'j Json, step: &Fields<'j, '_>) -> Option<Selection<'j>> {
        let fields = Fields::of(item, "the selection", None, step.found)?;
        self.sections.enter(item);
        for key in [SCOPE, SELECTOR, CANDIDATES, MAY_BE_EMPTY] {
            fields.shunned(key);
        }
        let mode = fields.one_of("mode", &["replace", "cumulative"]);
        let reports = fields.texts("reports").unwrap_or_default();
        let max = fields.count("max_selected", 1).map(|(max, _)| max);
        let (mut persona, mut instruction) = (None, None);
        if let Some(selector) = fields.object("selector") {
            persona = selector.filled("persona").map(|reference| self.persona(reference, &selector));
            instruction = self.instruction(&selector);
            selector.finish();
        }
        fields.finish();
        let text = |key: &str| item.get(key).and_then(Json::as_text);
        let candidates = |list: &'j Json| match &list.kind {
            Kind::List(all) => all.iter().filter_map(read_candidate).collect(),
            _ => Vec::new(),
        };
        Some(Selection {
            name: text(SELECTOR)?,
            span: item.span,
            candidates: item.get(CANDIDATES).map(candidates).unwrap_or_default(),
            may_be_empty: matches!(item.get(MAY_BE_EMPTY).map(|of| &of.kind), Some(Kind::Boolean(true))),
            persona,
            instruction,
            reports,
            stays: matches!(mode, Some(("cumulative", _))),
            max,
        })
    }

    /// Reads the texts that may be selected.
    pub(super) fn selectable(&self, fields: &Fields<'_, '_>) -> Vec<SelectableTexts> {
        let Some(entry) = fields.shunned(TEXTS) else { return Vec::new() };
        let Kind::List(all) = &entry.value.kind else { return Vec::new() };
        let of = |item: &Json| {
            let fields = Fields::of(item, "a candidate", None, fields.found)?;
            let policies = self.list(&fields, "policy", Section::Policies);
            let knowledge = self.list(&fields, "knowledge", Section::Knowledge);
            Some(SelectableTexts { when: source_of_candidate(item)?, policies, knowledge })
        };
        all.iter().filter_map(of).collect()
    }
}

fn read_candidate(item: &Json) -> Option<SelectionCandidate<'_>> {
    let id = item.get("id")?.scalar_text()?;
    Some(SelectionCandidate {
        id: id.trim().into(),
        description: item.get("description").and_then(Json::as_text).map(str::trim),
    })
}

/// Lowers the selections of a step to steps that are asked first. Returns their names.
pub(super) fn lower_selections(
    lowering: &WorkflowLowering<'_, '_, '_>,
    selections: &[Selection<'_>],
    of: &SelectionSubject<'_>,
    draft: &mut Draft,
) -> Vec<Name> {
    selections.iter().map(|selection| selection.lower(lowering, of, draft)).collect()
}

/// The fields of a selection.
const SELECTED: &str = "selected_ids";
const RATIONALE: &str = "rationale";

impl Selection<'_> {
    fn lower(
        &self,
        lowering: &WorkflowLowering<'_, '_, '_>,
        of: &SelectionSubject<'_>,
        draft: &mut Draft,
    ) -> Name {
        let mut seen: Vec<&str> = Vec::new();
        for candidate in &self.candidates {
            if seen.contains(&&*candidate.id) {
                let message = format!("the candidate `{}` is there twice", candidate.id);
                let finding = Diagnostic::error(codes::INVALID_VALUE, self.span, message).step(of.step);
                lowering.found.push(finding.hint("give each candidate an id of its own"));
            }
            seen.push(&candidate.id);
        }
        draft.schemas.push(self.schema());
        let body = self.persona.as_ref().and_then(|persona| persona.body.as_ref());
        let path = FieldPath::field(SELECTED);
        let handoff = |candidate: &SelectionCandidate<'_>| Handoff {
            item: Some(candidate.id.clone()),
            stays: self.stays,
            ..Handoff::new(&candidate.id, path.clone(), self.span)
        };
        draft.steps.push(Step {
            name: self.name.into(),
            title: self.name.into(),
            span: self.span,
            counts: false,
            act: Act::Ask(Ask {
                role: Role::Judge,
                prompt: self.prompt(lowering, of),
                system: body.map(|body| Template::text(&body.text)),
                schema: Some(SchemaId(draft.schemas.len() as u32 - 1)),
                model: of.model.clone(),
                later_models: Vec::new(),
                persona: self.persona.as_ref().and_then(|persona| persona.key.clone()),
                persona_names: body.and_then(|body| body.stem.clone()).into_iter().collect(),
                session: SessionRule::Fresh,
                reports: Vec::new(),
                fused: None,
                blocked_mark: None,
                guard: None,
            }),
            gate: Gate::Always(Outcome::Named("selected".into())),
            boundary: reads_only(),
            handoff: self.candidates.iter().map(handoff).collect(),
            inputs: Vec::new(),
            selectors: Vec::new(),
            when: None,
            edges: Vec::new(),
        });
        Name::new(self.name, self.span)
    }

    fn schema(&self) -> Schema {
        let ids: Vec<&str> = self.candidates.iter().map(|candidate| &*candidate.id).collect();
        let mut selected = json!({"type": "array", "items": {"type": "string", "enum": ids}});
        // With a cumulative selection nothing may have to be added; the engine refuses one that leaves nobody.
        if !self.may_be_empty && !self.stays {
            selected["minItems"] = 1.into();
        }
        if let Some(max) = self.max {
            selected["maxItems"] = max.into();
        }
        let schema: Value = json!({
            "type": "object",
            "properties": {SELECTED: selected, RATIONALE: {"type": "string"}},
            "required": [SELECTED, RATIONALE],
            "additionalProperties": false
        });
        Schema::new(schema).expect("a schema of these few keywords compiles, whatever the ids are")
    }

    fn prompt(&self, lowering: &WorkflowLowering<'_, '_, '_>, of: &SelectionSubject<'_>) -> Template {
        let mut page = PromptBuilder::default();
        page.text(prompt_texts::PLACE);
        page.text(&format!("- Workflow: {}\n- You select for: {}\n", lowering.prompts.piece, of.step));
        page.text("- Iteration ");
        page.pieces(vec![Piece::Value(Source::Fact(Fact::Iteration))]);
        page.text(" of at most ");
        page.pieces(vec![Piece::Value(Source::Fact(Fact::MaxIterations))]);
        page.text("; visit ");
        page.pieces(vec![Piece::Value(Source::Fact(Fact::Visit))]);
        page.text(" of this step\n");
        page.text(prompt_texts::MAY_READ);
        page.text(prompt_texts::CHANGED_FILES);
        page.text(prompt_texts::REPORT_DIR);
        page.pieces(vec![Piece::Value(Source::Fact(Fact::ReportDir))]);
        page.text("\n\n");
        let own = FacetText::built_in(prompt_texts::SELECT);
        let reader = |step| ReadingStep { step, monitor: false };
        let instruction =
            lowering.prompts.compiler.compile(self.instruction.as_ref().unwrap_or(&own), reader(self.name));
        lowering.prompts.write_instruction(&mut page, instruction, true);
        if let Some(body) = of.instruction {
            page.text(prompt_texts::SELECT_FOR);
            page.pieces(lowering.prompts.compiler.compile(body, reader(of.step)));
            super::texts::prompt::end_prompt_part(&mut page);
        }
        if !self.reports.is_empty() {
            page.text(prompt_texts::SELECT_REPORTS);
            for report in &self.reports {
                page.text(&format!("- {}\n", report.text.trim()));
            }
            page.text("\n");
        }
        page.text(prompt_texts::CANDIDATES);
        for candidate in &self.candidates {
            let about =
                candidate.description.map(super::routing::rules::collapse_to_line).unwrap_or_default();
            page.text(&format!("- `{}`: {about}\n", candidate.id));
            if self.stays {
                let source = Source::Handoff { step: self.name.into(), key: candidate.id.clone() };
                let body = vec![Piece::Text(prompt_texts::SELECTED_BEFORE.into())];
                page.pieces(vec![Piece::Filled { source, body }]);
            }
        }
        page.text("\n");
        page.text(prompt_texts::ANSWER);
        page.text(prompt_texts::ANSWER_FUSED);
        page.text(prompt_texts::SELECTED_IDS);
        page.text(if self.may_be_empty { prompt_texts::MAY_BE_EMPTY } else { "" });
        if let Some(max) = self.max {
            page.text(&format!("  At most {max}.\n"));
        }
        page.text(prompt_texts::RATIONALE);
        page.template()
    }
}

/// What a selector may do: read files, and see what has changed.
pub(super) fn reads_only() -> Boundary {
    let tools = ["Read", "Glob", "Grep", "Bash(git status:*)", "Bash(git diff:*)"];
    Boundary { permission: Permission::Plan, tools: Tools::Only(tools.map(Str::from).to_vec()) }
}
