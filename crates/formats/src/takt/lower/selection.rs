//! Lowers selections: an agent is asked which members work, or which texts a prompt has, before a step begins.

use cuegate_flow::{
    Str,
    diagnostics::Diagnostic,
    model::{
        Act, AgentKeys, Ask, Boundary, Draft, Fact, FieldPath, Gate, Handoff, Name, Outcome, Permission,
        Piece, Role, Schema, SchemaId, SessionRule, Source, Step, Template, Tools,
    },
};
use serde_json::{Value, json};

use super::WorkflowLowering;
use crate::codes;
use crate::takt::compose::SelectionCandidate;
use crate::takt::read::FacetText;
use crate::takt::read::Selection;
use crate::takt::texts::instruction_template::ReadingStep;
use crate::takt::texts::prompt::PromptBuilder;
use crate::takt::texts::prompt_texts;

/// What the selection is for.
pub(in crate::takt) struct SelectionSubject<'s> {
    pub(in crate::takt) step: &'s str,
    /// The instruction of its agent.
    pub(in crate::takt) instruction: Option<&'s FacetText>,
    pub(in crate::takt) model: Option<Str>,
}

/// Lowers the selections of a step to steps that are asked first. Returns their names.
pub(in crate::takt) fn lower_selections(
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
        let handoff = |candidate: &SelectionCandidate| Handoff {
            item: Some(candidate.id.clone()),
            lines: false,
            stays: self.stays,
            ..Handoff::new(&candidate.id, path.clone(), self.span)
        };
        draft.steps.push(Step {
            name: self.name.as_str().into(),
            title: self.name.as_str().into(),
            span: self.span,
            counts: false,
            act: Act::Ask(Ask {
                role: Role::Judge,
                prompt: self.prompt(lowering, of),
                system: body.map(|body| Template::text(&body.text)),
                schema: Some(SchemaId(draft.schemas.len() as u32 - 1)),
                model: of.model.clone(),
                later_models: Vec::new(),
                agent_keys: AgentKeys { seat: Some("selector".into()), ..AgentKeys::default() },
                persona: self.persona.as_ref().and_then(|persona| persona.key.clone()),
                persona_names: body.and_then(|body| body.stem.clone()).into_iter().collect(),
                session: SessionRule::Fresh,
                reports: Vec::new(),
                fused: None,
                blocked_mark: None,
                delay_ms: 0,
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
        Name::new(&self.name, self.span)
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
        page.text(&format!("- Workflow: {}\n- You select for: {}\n", lowering.prompts.workflow, of.step));
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
            lowering.prompts.compiler.compile(self.instruction.as_ref().unwrap_or(&own), reader(&self.name));
        lowering.prompts.write_instruction(&mut page, instruction, true);
        if let Some(body) = of.instruction {
            page.text(prompt_texts::SELECT_FOR);
            page.pieces(lowering.prompts.compiler.compile(body, reader(of.step)));
            crate::takt::texts::prompt::end_prompt_part(&mut page);
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
            let about = candidate
                .description
                .as_deref()
                .map(crate::takt::routing::rules::collapse_to_line)
                .unwrap_or_default();
            page.text(&format!("- `{}`: {about}\n", candidate.id));
            if self.stays {
                let source = Source::Handoff { step: self.name.as_str().into(), key: candidate.id.clone() };
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
pub(in crate::takt) fn reads_only() -> Boundary {
    let tools = ["Read", "Glob", "Grep", "Bash(git status:*)", "Bash(git diff:*)"];
    Boundary { permission: Permission::Plan, tools: Tools::Only(tools.map(Str::from).to_vec()) }
}
