//! Steps whose leader splits the work at run time: the leader names the parts of a batch, agents do them side by side, and
//! the leader is asked whether work is left. After the last batch the leader answers for the whole.

use cuegate_flow::{
    Str,
    model::{
        Act, Ask, Counter, CounterId, Draft, Edge, EdgeBound, FieldPath, Gate, Handoff, LimitKey,
        LimitTarget, Name, Outcome, OutcomeReader, Piece, Role, Schema, SchemaId, SessionRule, Source, Step,
        Target, Template,
    },
};
use serde_json::json;

use super::selection::reads_only;
use super::{StepPlace, WorkflowLowering, build_empty_step, session_key};
use crate::takt::read::{AgentSettings, StepAction, Team, WorkflowStep};
use crate::takt::texts::instruction_template;
use crate::takt::texts::prompt::{Duty, PromptBuilder, write_keyed_texts};
use crate::takt::texts::prompt_texts;
use crate::values::json::Text;

/// The fields of the leader's answer.
const DECISION: &str = "decision";
const PARTS: &str = "parts";
/// The leader's decisions.
const WORK: &str = "work";
const DONE: &str = "done";

/// Lowers a step with a team. Returns the step in which the parts are done.
pub(in crate::takt) fn lower_team(
    lowering: &WorkflowLowering<'_, '_, '_>,
    step: &WorkflowStep<'_>,
    asked: &AgentSettings<'_>,
    team: &Team<'_>,
    place: &StepPlace<'_>,
    draft: &mut Draft,
) -> Step<Name> {
    let name = step.name.text;
    let span = step.name.span;
    let (leader, closing) = (format!("{name}@leader"), format!("{name}@closing"));
    let further = team.batches - 1;
    let counter = (further > 0).then(|| {
        draft.counters.push(Counter { name: format!("{name} batches").into() });
        let counter = CounterId(draft.counters.len() as u32 - 1);
        let turns = vec![LimitTarget::Counter(counter)];
        draft.keys.push(LimitKey { name: "batches".into(), span: None, value: further, least: 0, turns });
        counter
    });
    let session = session_key(step, asked, place);
    let own_session = session.clone();
    draft.steps.push(build_leader_step(lowering, step, asked, team, &leader, session, draft.schemas.len()));
    draft.schemas.push(build_leader_schema(team.parts));
    let mut members = Vec::new();
    for number in 1..=team.parts {
        let source = Source::Handoff { step: leader.as_str().into(), key: handoff_key_of_part(number) };
        let name = format!("{name}@part:{number}");
        let part = WorkflowStep {
            name: Text { text: &name, span },
            description: None,
            does: StepAction::Parallel(Vec::new()),
            rules: Vec::new(),
            selections: Vec::new(),
            when: Some(source.clone()),
            decisions: Vec::new(),
            delay_ms: 0,
            prefixes: Vec::new(),
        };
        let place = StepPlace { parent: Some(step.name.text), position: None };
        let step = lowering.asks(&part, &team.part, &Duty::Part(source), &place, draft);
        draft.steps.push(Step { counts: false, ..step });
        members.push(Name::new(&name, span));
    }
    // The last word: which rule holds, and the reports.
    let mut last = lowering.asks(step, asked, &Duty::Closing, place, draft);
    if let Act::Ask(ask) = &mut last.act {
        // The conversation of the leader, also where each visit begins a new one.
        ask.session = SessionRule::Continue(own_session);
    }
    last.edges.iter_mut().for_each(|edge| edge.resets.extend(counter));
    draft.steps.push(Step {
        name: closing.as_str().into(),
        title: closing.as_str().into(),
        counts: false,
        selectors: Vec::new(),
        ..last
    });
    let to = |step: &str| Target::Step(Name::new(step, span));
    let work = Outcome::Named(WORK.into());
    let again = counter.map(|counter| Edge {
        bound: Some(EdgeBound { counter, max: further }),
        again: true,
        ..Edge::new(work.clone(), to(name), span)
    });
    let edges = again.into_iter().chain([
        Edge::new(work, to(&closing), span),
        Edge::new(Outcome::Named(DONE.into()), to(&closing), span),
    ]);
    let leader = Name::new(&leader, span);
    Step {
        act: Act::All { members, width: lowering.options.width.max(1) },
        gate: Gate::Join { rules: Vec::new(), judges: vec![leader.clone()] },
        boundary: team.part.boundary.clone(),
        edges: edges.collect(),
        selectors: vec![leader],
        ..build_empty_step(step)
    }
}

/// The leader, who names the parts and decides whether work is left.
fn build_leader_step(
    lowering: &WorkflowLowering<'_, '_, '_>,
    step: &WorkflowStep<'_>,
    asked: &AgentSettings<'_>,
    team: &Team<'_>,
    name: &str,
    session: Str,
    schema: usize,
) -> Step<Name> {
    let persona = asked.persona.as_ref();
    let body = persona.and_then(|persona| persona.body.as_ref());
    let path = |number: u32| FieldPath::parse(&format!("{PARTS}.{}", number - 1)).expect("a path");
    let word = |word: &str| (word.into(), Outcome::Named(word.into()));
    let decision = OutcomeReader::Field {
        path: FieldPath::field(DECISION),
        words: vec![word(WORK), word(DONE)],
        reasons: Vec::new(),
    };
    let ask = Ask {
        role: Role::Judge,
        prompt: build_leader_prompt(lowering, step, asked, team),
        system: body.map(|body| Template::text(&body.text)),
        schema: Some(SchemaId(schema as u32)),
        model: asked.model.map(Into::into),
        later_models: Vec::new(),
        agent_keys: asked.agent_keys.clone(),
        persona: persona.and_then(|persona| persona.key.clone()),
        persona_names: body.and_then(|body| body.stem.clone()).into_iter().collect(),
        session: if asked.refresh { SessionRule::Renew(session) } else { SessionRule::Continue(session) },
        reports: Vec::new(),
        fused: None,
        blocked_mark: None,
        delay_ms: 0,
        guard: None,
    };
    Step {
        name: name.into(),
        title: name.into(),
        span: team.span,
        counts: false,
        act: Act::Ask(ask),
        gate: Gate::Readers(vec![decision]),
        boundary: reads_only(),
        handoff: (1..=team.parts)
            .map(|number| Handoff::new(&handoff_key_of_part(number), path(number), team.span))
            .collect(),
        edges: Vec::new(),
        ..build_empty_step(step)
    }
}

fn handoff_key_of_part(number: u32) -> Str {
    format!("part_{number}").into()
}

fn build_leader_schema(parts: u32) -> Schema {
    let schema = json!({
        "type": "object",
        "properties": {
            DECISION: {"type": "string", "enum": [WORK, DONE]},
            PARTS: {"type": "array", "items": {"type": "string"}, "maxItems": parts}
        },
        "required": [DECISION, PARTS],
        "additionalProperties": false
    });
    Schema::new(schema).expect("a schema of these few keywords compiles")
}

fn build_leader_prompt(
    lowering: &WorkflowLowering<'_, '_, '_>,
    step: &WorkflowStep<'_>,
    asked: &AgentSettings<'_>,
    team: &Team<'_>,
) -> Template {
    let mut page = PromptBuilder::default();
    let name = step.name.text;
    write_keyed_texts(&mut page, prompt_texts::POLICY, &asked.policies);
    page.text(prompt_texts::PLACE);
    page.text(&format!("- Workflow: {}\n- You lead: {name}\n", lowering.prompts.workflow));
    page.text(prompt_texts::MAY_READ);
    page.text(prompt_texts::REPORT_DIR);
    page.pieces(vec![Piece::Value(Source::Fact(cuegate_flow::model::Fact::ReportDir))]);
    page.text("\n\n");
    write_keyed_texts(&mut page, prompt_texts::KNOWLEDGE, &asked.knowledge);
    let reader = instruction_template::ReadingStep { step: name, monitor: false };
    let compile = |body| lowering.prompts.compiler.compile(body, reader);
    let instruction = asked.instruction.as_ref().map_or_else(Vec::new, compile);
    lowering.prompts.write_instruction(&mut page, instruction, asked.previous);
    page.text(prompt_texts::PARTS_TITLE);
    page.text(prompt_texts::PARTS);
    page.text(&format!(
        "A batch has at most {} parts, and there are at most {} batches.\n",
        team.parts, team.batches
    ));
    if let Some(first) = team.first.filter(|first| *first < team.parts) {
        page.text(&format!("The first batch has at most {first}.\n"));
    }
    page.text("\n");
    page.text(prompt_texts::ANSWER);
    page.text(prompt_texts::ANSWER_FUSED);
    page.text(prompt_texts::PARTS_ANSWER);
    page.template()
}
