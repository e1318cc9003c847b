//! Lowers `completion_retry`: a judge looks whether the work of a step is complete, and has the rest done a bounded number
//! of times.

use cuegate_flow::model::{
    AgentKeys, Ask, Counter, CounterId, Draft, Edge, EdgeBound, Fact, FieldPath, Gate, Handoff, LimitKey,
    LimitTarget, Name, Outcome, OutcomeReader, Piece, Schema, SchemaId, Source, Step, Target, Template,
};
use serde_json::json;

use super::WorkflowLowering;
use super::gate_steps::is_completion_claim;
use super::judge::{judge_ask, judge_step};
use crate::takt::read::{AgentSettings, CompletionRetry, WorkflowStep};
use crate::takt::texts::instruction_template::ReadingStep as For;
use crate::takt::texts::prompt::{PromptBuilder, end_prompt_part};
use crate::takt::texts::prompt_texts;

/// The judge's fields and outcomes.
const COMPLETE: &str = "complete";
const INCOMPLETE: &str = "incomplete";
const RESULT: &str = "result";
const MISSING: &str = "missing";

/// Inserts the judge of `completion_retry` before the target of every outcome that claims the step is done.
pub(in crate::takt) fn insert_completion_judges(
    lowering: &WorkflowLowering<'_, '_, '_>,
    step: &WorkflowStep<'_>,
    asked: &AgentSettings<'_>,
    prompt: &Template,
    edges: &mut [Edge<Name>],
    draft: &mut Draft,
) {
    let Some(completion) = asked.completion.as_ref().filter(|completion| completion.max > 0) else { return };
    let name = step.name.text;
    draft.counters.push(Counter { name: format!("{name} completion").into() });
    let counter = CounterId(draft.counters.len() as u32 - 1);
    let span = completion.max_span.unwrap_or(step.name.span);
    draft.keys.push(LimitKey::new("max_retry", span, completion.max, 0, LimitTarget::Counter(counter)));
    draft.schemas.push(build_completion_schema());
    let schema = SchemaId(draft.schemas.len() as u32 - 1);
    for (index, edge) in edges.iter_mut().enumerate().filter(|(_, edge)| is_completion_claim(&edge.to, name))
    {
        let judge = Name::new(&format!("{name}@complete:{}", index + 1), edge.span);
        let to = std::mem::replace(&mut edge.to, Target::Step(judge.clone()));
        let dangling = std::mem::take(&mut edge.dangling);
        let on = |word: &str| Outcome::Named(word.into());
        let again = |word: &str, max: u32| Edge {
            bound: Some(EdgeBound { counter, max }),
            remedy: Some(build_retry_prompt(lowering, completion, &judge, name, prompt)),
            ..Edge::new(on(word), Target::Step(Name::new(name, step.name.span)), edge.span)
        };
        let onward = |word: &str| Edge {
            resets: vec![counter],
            dangling: dangling.clone(),
            ..Edge::new(on(word), to.clone(), edge.span)
        };
        let mut out = Vec::new();
        if completion.min > 0 {
            out.push(again(COMPLETE, completion.min));
        }
        out.extend([onward(COMPLETE), again(INCOMPLETE, completion.max), onward(INCOMPLETE)]);
        let words = [COMPLETE, INCOMPLETE].map(|word| (word.into(), on(word))).to_vec();
        let readers = vec![
            OutcomeReader::Field {
                path: FieldPath::field(RESULT),
                words,
                reasons: vec![FieldPath::field(MISSING)],
            },
            // Without a judgement the work counts as it is.
            OutcomeReader::Fallback(on(COMPLETE)),
        ];
        let ask = Ask {
            agent_keys: AgentKeys { seat: Some("review-completion-judge".into()), ..AgentKeys::default() },
            ..judge_ask(build_completion_prompt(lowering, step, asked), schema)
        };
        let lowered = judge_step(judge.text.clone(), edge.span, ask, Gate::Readers(readers));
        let missing = Handoff::new(MISSING, FieldPath::field(MISSING), edge.span);
        draft.steps.push(Step { handoff: vec![missing], edges: out, ..lowered });
    }
}

fn build_completion_schema() -> Schema {
    let schema = json!({
        "type": "object",
        "properties": {RESULT: {"type": "string", "enum": [COMPLETE, INCOMPLETE]}, MISSING: {"type": "string"}},
        "required": [RESULT, MISSING],
        "additionalProperties": false
    });
    Schema::new(schema).expect("a schema of these few keywords compiles")
}

/// What the judge is asked.
fn build_completion_prompt(
    lowering: &WorkflowLowering<'_, '_, '_>,
    step: &WorkflowStep<'_>,
    asked: &AgentSettings<'_>,
) -> Template {
    let mut page = PromptBuilder::default();
    page.text(prompt_texts::COMPLETION);
    if let Some(body) = &asked.instruction {
        page.text(prompt_texts::COMPLETION_TOLD);
        let reader = For { step: step.name.text, monitor: false };
        page.pieces(lowering.prompts.compiler.compile(body, reader));
        end_prompt_part(&mut page);
    }
    page.filled(prompt_texts::TASK, Source::Task);
    page.filled(prompt_texts::COMPLETION_ANSWER, Source::Fact(Fact::PreviousResponse));
    for report in &asked.reports {
        page.text(&format!("# {}\n\n", report.name));
        page.pieces(vec![Piece::Value(Source::Report(report.name.clone()))]);
        end_prompt_part(&mut page);
    }
    page.text(prompt_texts::ANSWER);
    page.text(prompt_texts::ANSWER_FUSED);
    page.text(prompt_texts::COMPLETION_FIELDS);
    page.template()
}

/// The prompt of a retry: what the judge found missing, the `retry_instruction`, and the prompt of the step.
fn build_retry_prompt(
    lowering: &WorkflowLowering<'_, '_, '_>,
    completion: &CompletionRetry,
    judge: &Name,
    step: &str,
    prompt: &Template,
) -> Template {
    let mut page = PromptBuilder::default();
    let missing = Source::Handoff { step: judge.text.clone(), key: MISSING.into() };
    page.filled(prompt_texts::COMPLETION_MISSING, missing);
    if let Some(body) = &completion.instruction {
        page.text(prompt_texts::COMPLETION_RETRY);
        page.pieces(lowering.prompts.compiler.compile(body, For { step, monitor: false }));
        end_prompt_part(&mut page);
    }
    page.text(prompt_texts::COMPLETION_REPEATED);
    page.pieces(prompt.pieces.clone());
    page.template()
}
