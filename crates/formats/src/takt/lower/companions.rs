//! Lowers `companion`: reviewers look at the work of a step before the run goes on, and its agent gets what they found, a
//! bounded number of times.

use cuegate_flow::model::{
    Act, AgentKeys, Ask, Counter, CounterId, Draft, Edge, EdgeBound, Fact, FieldPath, Gate, Handoff,
    JoinPattern, JoinRule, LimitKey, LimitTarget, Name, Outcome, OutcomeReader, Schema, SchemaId, Source,
    Step, Target, Template,
};
use serde_json::json;

use super::gate_steps::is_completion_claim;
use super::judge::{judge_ask, judge_step};
use super::selection::reads_only;
use super::{WorkflowLowering, build_empty_step};
use crate::takt::read::{AgentSettings, Companion, Companions, WorkflowStep};
use crate::takt::texts::instruction_template::ReadingStep;
use crate::takt::texts::prompt::{PromptBuilder, end_prompt_part, write_keyed_texts};
use crate::takt::texts::prompt_texts;

/// The fields of a review, and its verdicts.
const VERDICT: &str = "verdict";
const FINDINGS: &str = "findings";
const CLEAR: &str = "clear";
/// How often an agent gets findings in a visit. In TAKT nothing bounds it.
const ROUNDS_MAX: u32 = 3;

/// Inserts the reviewers before the target of every outcome that claims the step is done.
pub(in crate::takt) fn insert_companions(
    lowering: &WorkflowLowering<'_, '_, '_>,
    step: &WorkflowStep<'_>,
    asked: &AgentSettings<'_>,
    prompt: &Template,
    edges: &mut [Edge<Name>],
    draft: &mut Draft,
) {
    let Some(companions) = &asked.companions else { return };
    let name = step.name.text;
    draft.counters.push(Counter { name: format!("{name} companions").into() });
    let counter = CounterId(draft.counters.len() as u32 - 1);
    let turns = vec![LimitTarget::Counter(counter)];
    draft.keys.push(LimitKey {
        name: "companion_rounds".into(),
        span: None,
        value: ROUNDS_MAX,
        least: 0,
        turns,
    });
    draft.schemas.push(build_review_schema());
    let subject =
        ReviewSubject { lowering, step, asked, companions, schema: SchemaId(draft.schemas.len() as u32 - 1) };
    for (index, edge) in edges.iter_mut().enumerate().filter(|(_, edge)| is_completion_claim(&edge.to, name))
    {
        let number = index + 1;
        let reviews = Name::new(&format!("{name}@companions:{number}"), companions.span);
        let onward = std::mem::replace(&mut edge.to, Target::Step(reviews.clone()));
        let dangling = std::mem::take(&mut edge.dangling);
        let members: Vec<Name> = (companions.reviewers.iter())
            .map(|companion| {
                Name::new(&format!("{name}@companion:{}:{number}", companion.name), companions.span)
            })
            .collect();
        // Whose findings the agent gets.
        let moderator = Name::new(&format!("{name}@moderator:{number}"), companions.span);
        let sources = match companions.moderator {
            Some(_) => std::slice::from_ref(&moderator),
            None => &members[..],
        };
        let onward = |word: &str| Edge {
            resets: vec![counter],
            dangling: dangling.clone(),
            ..Edge::new(outcome_of(word), onward.clone(), edge.span)
        };
        let back = Edge {
            bound: Some(EdgeBound { counter, max: ROUNDS_MAX }),
            remedy: Some(build_follow_up(sources, prompt)),
            ..Edge::new(outcome_of(FINDINGS), Target::Step(Name::new(name, step.name.span)), edge.span)
        };
        let last = vec![back, onward(FINDINGS), onward(CLEAR)];
        let first = match companions.moderator {
            Some(_) => vec![
                Edge::new(outcome_of(FINDINGS), Target::Step(moderator.clone()), edge.span),
                onward(CLEAR),
            ],
            None => last.clone(),
        };
        for (companion, member) in companions.reviewers.iter().zip(&members) {
            let page = subject.begin_prompt(companion, prompt_texts::COMPANION);
            draft.steps.push(subject.build_review(companion, member, page));
        }
        draft.steps.push(Step {
            name: reviews.text.clone(),
            title: reviews.text,
            counts: false,
            act: Act::All { members: members.clone(), width: lowering.options.width.max(1) },
            gate: Gate::Join { rules: build_join(members.len()), judges: Vec::new() },
            boundary: reads_only(),
            when: None,
            edges: first,
            ..build_empty_step(step)
        });
        if let Some(companion) = &companions.moderator {
            let mut page = subject.begin_prompt(companion, prompt_texts::MODERATOR);
            page.text(prompt_texts::MODERATED);
            write_findings(&mut page, &members);
            let review = subject.build_review(companion, &moderator, page);
            draft.steps.push(Step { edges: last, ..review });
        }
    }
}

/// What is reviewed.
struct ReviewSubject<'s, 'j> {
    lowering: &'s WorkflowLowering<'s, 's, 's>,
    step: &'s WorkflowStep<'j>,
    asked: &'s AgentSettings<'j>,
    companions: &'s Companions,
    schema: SchemaId,
}

impl ReviewSubject<'_, '_> {
    /// The prompt of a reviewer without the end.
    fn begin_prompt(&self, companion: &Companion, what: &str) -> PromptBuilder {
        let reader = ReadingStep { step: self.step.name.text, monitor: false };
        let compile = |body| self.lowering.prompts.compiler.compile(body, reader);
        let mut page = PromptBuilder::default();
        write_keyed_texts(&mut page, prompt_texts::POLICY, &companion.policies);
        page.text(prompt_texts::PLACE);
        page.text(&format!("- Workflow: {}\n", self.lowering.prompts.workflow));
        page.text(prompt_texts::MAY_READ);
        page.text("\n");
        write_keyed_texts(&mut page, prompt_texts::KNOWLEDGE, &companion.knowledge);
        page.text(what);
        if let Some(body) = &companion.instruction {
            page.text(prompt_texts::INSTRUCTION);
            page.pieces(compile(body));
            end_prompt_part(&mut page);
        }
        if let Some(body) = &self.asked.instruction {
            page.text(prompt_texts::COMPANION_TOLD);
            page.pieces(compile(body));
            end_prompt_part(&mut page);
        }
        page.filled(prompt_texts::TASK, Source::Task);
        page.filled(prompt_texts::COMPLETION_ANSWER, Source::Fact(Fact::PreviousResponse));
        page
    }

    fn build_review(&self, companion: &Companion, name: &Name, mut page: PromptBuilder) -> Step<Name> {
        page.text(prompt_texts::ANSWER);
        page.text(prompt_texts::ANSWER_FUSED);
        page.text(prompt_texts::COMPANION_FIELDS);
        let body = companion.persona.as_ref().and_then(|persona| persona.body.as_ref());
        let ask = Ask {
            system: body.map(|body| Template::text(&body.text)),
            persona: companion.persona.as_ref().and_then(|persona| persona.key.clone()),
            persona_names: body.and_then(|body| body.stem.clone()).into_iter().collect(),
            agent_keys: AgentKeys {
                seat: Some(format!("companion:{}", companion.name).into()),
                ..AgentKeys::default()
            },
            ..judge_ask(page.template(), self.schema)
        };
        let words = [FINDINGS, CLEAR].map(|word| (word.into(), outcome_of(word))).to_vec();
        let readers = vec![
            OutcomeReader::Field {
                path: FieldPath::field(VERDICT),
                words,
                reasons: vec![FieldPath::field(FINDINGS)],
            },
            // A review that cannot be read stops no work.
            OutcomeReader::Fallback(outcome_of(CLEAR)),
        ];
        let span = self.companions.span;
        let findings = Handoff::new(FINDINGS, FieldPath::field(FINDINGS), span);
        let review = judge_step(name.text.clone(), span, ask, Gate::Readers(readers));
        Step { handoff: vec![findings], boundary: reads_only(), ..review }
    }
}

fn outcome_of(word: &str) -> Outcome {
    Outcome::Named(word.into())
}

/// Findings of one reviewer suffice. Each combination has a rule of its own, so that no reviewer is passed over: one whose
/// agent fails is asked again.
fn build_join(reviewers: usize) -> Vec<JoinRule> {
    (0..1_usize << reviewers)
        .map(|found| {
            let verdicts =
                (0..reviewers).map(|at| outcome_of(if found >> at & 1 == 1 { FINDINGS } else { CLEAR }));
            let outcome = outcome_of(if found == 0 { CLEAR } else { FINDINGS });
            JoinRule { pattern: JoinPattern::Each(verdicts.collect()), outcome }
        })
        .collect()
}

fn build_review_schema() -> Schema {
    let schema = json!({
        "type": "object",
        "properties": {VERDICT: {"type": "string", "enum": [FINDINGS, CLEAR]}, FINDINGS: {"type": "string"}},
        "required": [VERDICT, FINDINGS],
        "additionalProperties": false
    });
    Schema::new(schema).expect("a schema of these few keywords compiles")
}

/// Appends what these steps found.
fn write_findings(page: &mut PromptBuilder, from: &[Name]) {
    for step in from {
        let source = Source::Handoff { step: step.text.clone(), key: FINDINGS.into() };
        page.filled("", source);
    }
}

/// The prompt of a follow-up: the findings, then the prompt of the step.
fn build_follow_up(from: &[Name], prompt: &Template) -> Template {
    let mut page = PromptBuilder::default();
    page.text(prompt_texts::COMPANION_FOUND);
    write_findings(&mut page, from);
    page.text(prompt_texts::COMPANION_REPEATED);
    page.pieces(prompt.pieces.clone());
    page.template()
}
