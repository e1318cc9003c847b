//! Lowers a check flow: each step becomes a work step and a check step, connected by counted edges.

use cuegate_flow::{
    Str,
    diagnostics::Span,
    model::{
        Act, Ask, Boundary, Counter, CounterId, Draft, Edge, EdgeBound, Ending, FieldPath, Gate, LimitKey,
        LimitTarget, Limits, Name, Outcome, OutcomeReader, Role, Schema, SchemaId, SessionRule, Step, Target,
        Template, Verdict,
    },
};

use super::prompt_files::CheckFlowPrompts;
use super::response_format::{MESSAGE, RESULT, list_result_words, outcome_of_failure, outcome_of_pass};
use super::steps::{CheckFlow, CheckedStep};
use super::transitions::CheckTransition;
use crate::climpt::generation::Generation;
use crate::climpt::lower::{
    Definition, LoweredDraft, SESSION, SYSTEM_MODEL, add_issue_texts, build_conduct, collect_params,
    needs_task, system_prompt,
};
use crate::climpt::prompts::compile::PromptCompiler;
use crate::climpt::prompts::files::PromptFiles;
use crate::climpt::prompts::variables::Variables;
use crate::climpt::registry::definition::RegistryDefinition;

/// The maximum number of executions in a run (“Limitations” of the document).
pub(crate) const EXECUTIONS_MAX: u32 = 100;

/// The outcome of work: done. The check decides whether it passes.
const DONE: &str = "done";

/// Lowers a check flow. The registry of `definition` has no effect here; `limit` is the agent's own limit.
pub(crate) fn lower_check_flow(
    flow: &CheckFlow<'_>,
    definition: &Definition<'_, '_, '_>,
    limit: Option<u32>,
) -> LoweredDraft {
    let Definition { agent, places, loader, set, .. } = definition;
    let mut draft = Draft::empty(agent.name.unwrap_or("agent"), Generation::Check.dialect());
    draft.span = flow.span;
    draft.params = collect_params(agent, set);
    let own = draft.params.len();
    add_issue_texts(agent, &mut draft.params);
    draft.conduct = build_conduct(definition);
    draft.verdict = Verdict::Flow;
    draft.default_model = Some(SYSTEM_MODEL.into());
    let max = limit.unwrap_or(EXECUTIONS_MAX);
    draft.limits = Limits::new(max);
    draft.keys.push(LimitKey::new(
        "maxIterations",
        agent.verdict.iterations_span.or(agent.verdict.span).unwrap_or(flow.span),
        max,
        1,
        LimitTarget::Iterations,
    ));
    set_flow_entry(flow, definition, &mut draft);

    let none = RegistryDefinition { span: flow.span, ..RegistryDefinition::default() };
    let files = PromptFiles::new(&none, agent, places, loader);
    let given = draft.params.clone();
    let variables = Variables::new(&given, (&[], &[]), &agent.told);
    let compiler = PromptCompiler::new(loader, &files, &variables, &[], agent.params_misread);
    let prompts = CheckFlowPrompts::new(flow, agent, places, &compiler);
    let system = system_prompt(definition, &compiler);
    for step in &flow.steps {
        let (prompt, check) = prompts.of(step);
        let lowering = CheckedStepLowering { step, definition, system: &system };
        lowering.lower(prompt, check, &mut draft);
    }
    if flow.steps.is_empty() {
        compiler.reads.unreadable();
    }
    prompts.report_unused(flow);
    compiler.outside.report(&mut draft, &compiler.reads, &loader.found);
    compiler.matters.report(&loader.found);
    compiler.reads.report_unread_params(agent, &loader.found);
    let texts = draft.params.split_off(own);
    draft.params.extend(texts.into_iter().filter(|text| compiler.reads.reads_param(&text.name)));
    draft.reads = std::mem::take(&mut compiler.places.lock().all);
    let needs_task = needs_task(&draft, &[]);
    LoweredDraft { draft, needs_task }
}

fn set_flow_entry(flow: &CheckFlow<'_>, definition: &Definition<'_, '_, '_>, draft: &mut Draft) {
    draft.entry =
        definition.agent.verdict.entry.or(flow.entry).map(|entry| Name::new(entry.text, entry.span));
    if draft.entry.is_none() {
        // The missing entry has been reported; every step counts as entered, so that only other errors are found.
        let mut steps = flow.steps.iter().map(|step| Name::new(step.id, step.span));
        draft.entry = steps.next();
        draft.other_entries = steps.collect();
    }
}

/// The name of a step's check in the flow.
pub(crate) fn check_name(step: &str) -> String {
    format!("{step}/check")
}

struct CheckedStepLowering<'l, 'd, 'f, 'j> {
    step: &'l CheckedStep<'j>,
    definition: &'l Definition<'d, 'f, 'j>,
    system: &'l Option<Template>,
}

/// The counters of a step: executions in a round, and rounds.
struct Counters {
    min: CounterId,
    max: CounterId,
    retries: CounterId,
}

impl Counters {
    fn round(&self) -> Vec<CounterId> {
        vec![self.min, self.max]
    }

    fn all(&self) -> Vec<CounterId> {
        vec![self.min, self.max, self.retries]
    }
}

impl CheckedStepLowering<'_, '_, '_, '_> {
    fn lower(&self, prompt: Template, check_prompt: Template, draft: &mut Draft) {
        let step = self.step;
        let counters = Counters {
            min: add_counter(draft, format!("first executions of {}", step.id)),
            max: add_counter(draft, format!("further executions of {}", step.id)),
            retries: add_counter(draft, format!("retries of {}", step.id)),
        };
        let check_name = check_name(step.id);
        let again = |on: Outcome, counter, times: u32, span| {
            let bound = Some(EdgeBound { counter, max: times });
            Edge { bound, again: true, ..Edge::new(on, build_step_target(step.id, span), span) }
        };
        let done = Outcome::Named(DONE.into());
        let mut edges = Vec::new();
        if step.min > 1 {
            edges.push(again(done.clone(), counters.min, step.min - 1, step.span));
        }
        edges.push(Edge::new(done.clone(), build_step_target(&check_name, step.span), step.span));
        self.push(step.id, Role::Work, prompt, None, Gate::Always(done), edges, draft);

        let Some(check) = &step.check else {
            // This has been reported; the flow check would only repeat it.
            let end = Edge::new(outcome_of_pass(), Target::End(Ending::Aborted), step.span);
            self.push(
                &check_name,
                Role::Check,
                check_prompt,
                None,
                Gate::Always(outcome_of_pass()),
                vec![end],
                draft,
            );
            return;
        };
        let mut edges = Vec::new();
        edges.extend(self.way(check.on_pass.as_ref(), outcome_of_pass(), &counters, check.span));
        if step.max > step.min {
            let times = step.max - step.min;
            let turn = LimitTarget::Counter(counters.max);
            let span = step.max_span.unwrap_or(step.span);
            draft.keys.push(LimitKey::new("iterations.max", span, step.max, step.min, turn));
            let further = again(outcome_of_failure(), counters.max, times, check.span);
            edges.push(Edge { label: Some("retry".into()), ..further });
        }
        edges.extend(self.way(check.on_fail.as_ref(), outcome_of_failure(), &counters, check.span));
        for way in [&check.on_pass, &check.on_fail].into_iter().flatten() {
            if let CheckTransition::Retry { max: Some(max), max_span, .. } = way {
                let turn = LimitTarget::Counter(counters.retries);
                // 0 would mean no limit, so the minimum is 1.
                draft.keys.push(LimitKey::new("maxRetries", max_span.unwrap_or(check.span), *max, 1, turn));
            }
        }
        let schema = Schema::new(check.format.schema.clone()).ok().map(|schema| {
            draft.schemas.push(schema);
            SchemaId(draft.schemas.len() as u32 - 1)
        });
        self.push(&check_name, Role::Check, check_prompt, schema, build_check_gate(), edges, draft);
    }

    /// The edges of a check result.
    fn way(
        &self,
        way: Option<&CheckTransition<'_>>,
        on: Outcome,
        counters: &Counters,
        span: Span,
    ) -> Vec<Edge<Name>> {
        let id = self.step.id;
        let edge = |target, label: &str| Edge {
            resets: counters.all(),
            label: Some(label.into()),
            ..Edge::new(on.clone(), target, span)
        };
        match way {
            // This has been reported with its cause; the flow still gets an edge.
            None => vec![edge(Target::End(Ending::Aborted), "fail")],
            Some(CheckTransition::Complete) => vec![edge(Target::End(Ending::Completed), "complete")],
            Some(CheckTransition::Next(next)) => vec![edge(build_step_target(next.text, next.span), "next")],
            Some(CheckTransition::Fallback(fallback)) => {
                vec![edge(build_step_target(fallback.text, fallback.span), "fallback")]
            }
            Some(CheckTransition::Retry { max, fallback, .. }) => {
                let bound = max.map(|max| EdgeBound { counter: counters.retries, max });
                let retry = edge(build_step_target(id, span), "retry");
                let mut edges = vec![Edge { bound, resets: counters.round(), ..retry }];
                match (max, fallback) {
                    (None, _) => {}
                    (Some(_), Some(fallback)) => {
                        edges.push(edge(build_step_target(fallback.text, fallback.span), "fallback"))
                    }
                    (Some(max), None) => {
                        let times = if *max == 1 { "1 retry".to_owned() } else { format!("{max} retries") };
                        let reason = format!("the check of `{id}` did not pass after {times}");
                        edges.push(edge(Target::End(Ending::Failed(reason.into())), "fail"));
                    }
                }
                edges
            }
        }
    }

    #[expect(
        clippy::too_many_arguments,
        reason = "the parts in which a step that works and one that checks differ"
    )]
    fn push(
        &self,
        name: &str,
        role: Role,
        prompt: Template,
        schema: Option<SchemaId>,
        gate: Gate<Name>,
        edges: Vec<Edge<Name>>,
        draft: &mut Draft,
    ) {
        let agent = self.definition.agent;
        let title = self.step.name.unwrap_or(self.step.id);
        let title: Str = match role {
            Role::Check => format!("{title}: check").into(),
            _ => title.into(),
        };
        draft.steps.push(Step {
            name: name.into(),
            title,
            span: self.step.span,
            counts: role == Role::Work,
            act: Act::Ask(Ask {
                role,
                prompt,
                system: self.system.clone(),
                schema,
                model: agent.default_model.map(Into::into),
                persona_names: Vec::new(),
                later_models: Vec::new(),
                agent_keys: Default::default(),
                persona: None,
                session: SessionRule::Continue(SESSION.into()),
                reports: Vec::new(),
                fused: None,
                blocked_mark: None,
                delay_ms: 0,
                guard: None,
            }),
            gate,
            boundary: Boundary { permission: agent.permission, tools: agent.tools.clone() },
            handoff: Vec::new(),
            inputs: Vec::new(),
            selectors: Vec::new(),
            when: None,
            edges,
        });
    }
}

/// The result of a check's answer: its field, else a word in its text, else failed.
fn build_check_gate() -> Gate<Name> {
    let path = |text: &str| FieldPath::parse(text);
    let field = path(RESULT).map(|path_to| OutcomeReader::Field {
        path: path_to,
        words: list_result_words(),
        reasons: path(MESSAGE).into_iter().collect(),
    });
    let said = OutcomeReader::Said { name: RESULT.into(), words: list_result_words() };
    Gate::Readers(field.into_iter().chain([said, OutcomeReader::Otherwise(outcome_of_failure())]).collect())
}

fn build_step_target(step: &str, span: Span) -> Target<Name> {
    Target::Step(Name::new(step, span))
}

fn add_counter(draft: &mut Draft, name: String) -> CounterId {
    draft.counters.push(Counter { name: name.into() });
    CounterId(draft.counters.len() as u32 - 1)
}
