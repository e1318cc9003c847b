//! Lowers a registry and its agent to a draft.

use std::collections::{BTreeSet, HashSet};

use cuegate_flow::{
    diagnostics::Diagnostic,
    model::{
        Act, Ask, Boundary, Conduct, DanglingTarget, Draft, Edge, Ending, Gate, LimitKey, LimitTarget,
        Limits, Name, Param, Reaction, Role, Schema, SchemaId, SessionRule, Source, Step, Target, Template,
    },
};

use super::agent::actions::HandlerFile;
use super::agent::definition::AgentDefinition;
use super::agent::entries::{entry_step, older_name};
use super::agent::parameters::{normalize_variable_name, same_name, set_parameter};
use super::agent::permission_mode::limit_permission;
use super::agent_paths::AgentFolder;
use super::completion_lowering::{check_verdict, lower_verdict, verdict_keys};
use super::generation::Generation;
use super::kinds::{Intent, StepKind};
use super::prompts::builtin::{SYSTEM, built_in};
use super::prompts::compile::PromptCompiler;
use super::prompts::files::{PromptFile, PromptFiles};
use super::prompts::front_matter::PromptUser;
use super::prompts::step_prompt::step_prompt;
use super::prompts::variables::{Inputs, PromptScope, Variables};
use super::registry::definition::RegistryDefinition;
use super::registry::gate_lowering::{LoweredGate, RegistryContext, lower_step_gate, outcome_of_intent};
use super::registry::index::StepIndex;
use super::registry::inputs::{DeclaredInput, HandoffNames, check_shadows, read_inputs};
use super::registry::section_targets::refuse_sections;
use super::registry::step_definition::StepDefinition;
use super::schemas::answer::AnswerSchemas;
use super::validation::lowering::{Validations, targets_of};
use super::validation::program::read_program;
use super::verdict_variables::told_by_validators;
use crate::codes;
use crate::source::loader::{LoadedFile, SourceLoader};
use crate::suggest::quote_names;
use crate::values::json::Text;

/// The model of steps when neither the step nor its agent names one (section 14 of the runner's guide, and the agent
/// guide). It is one vendor's name: a provider that does not know it uses its own default.
pub(super) const SYSTEM_MODEL: &str = "opus";

/// The session key that all asks of a run continue.
pub(super) const SESSION: &str = "run";

/// The inputs of lowering a draft.
pub(crate) struct Definition<'d, 'f, 'j> {
    pub(crate) agent: &'d AgentDefinition<'j>,
    pub(crate) registry: &'d RegistryDefinition<'j>,
    pub(crate) places: &'d AgentFolder<'d>,
    pub(crate) loader: &'d SourceLoader<'f>,
    /// Names given with `--set`.
    pub(crate) set: &'d [String],
}

/// The variables with the texts of the issue that a run works on.
pub const ISSUE_TEXTS: [&str; 4] = ["issue_title", "issue_body", "issue_comments", "issue_content"];

/// A draft, and whether a run of it needs the task text.
pub(crate) struct LoweredDraft {
    pub(crate) draft: Draft,
    pub(crate) needs_task: bool,
}

/// Lowers a definition to a draft.
pub(crate) fn lower_definition(definition: &Definition<'_, '_, '_>) -> LoweredDraft {
    let Definition { agent, registry, places, loader, set, .. } = definition;
    let files = &PromptFiles::new(registry, agent, places, loader);
    let mut draft = Draft::empty(name_of(agent, registry), registry.generation.dialect());
    draft.span = registry.span;
    draft.params = collect_params(agent, set);
    let own = draft.params.len();
    add_issue_texts(agent, &mut draft.params);
    draft.conduct = build_conduct(definition);
    draft.default_model = Some(SYSTEM_MODEL.into());
    let max = agent.verdict.iterations_max;
    draft.limits = Limits::new(max);
    let span = agent.verdict.iterations_span.or(agent.verdict.span).unwrap_or(draft.span);
    draft.keys.push(LimitKey::new("maxIterations", span, max, 1, LimitTarget::Iterations));

    let params = draft.params.clone();
    let told = [agent.told.clone(), told_by_validators(&registry.validators)].concat();
    let variables = Variables::new(&params, (&registry.steps, &registry.unread), &told);
    let compiler = PromptCompiler::new(loader, files, &variables, &registry.steps, agent.params_misread);
    if !registry.unread.is_empty() {
        // Their prompts may read any variable.
        compiler.reads.unreadable();
    }
    draft.verdict = lower_verdict(definition, &params, &compiler);
    verdict_keys(&agent.verdict.rule, &mut draft);
    let entries = set_draft_entries(definition, &mut draft);
    if !entries.iter().all(|entry| compiler.index.has(entry)) {
        // The prompt of a missing step may read any variable, too.
        compiler.reads.unreadable();
    }
    let kept = HandoffNames::of(&registry.steps);
    let inputs: Vec<(&str, Vec<DeclaredInput>)> = registry
        .steps
        .iter()
        .map(|step| (step.id, read_inputs(step.id, &step.inputs, (&kept, &compiler.index), &loader.found)))
        .collect();
    check_shadows(&inputs, &params, &loader.found);
    let lowering = StepLowering {
        agent,
        compiler: &compiler,
        world: &RegistryContext::new(&registry.steps, &entries),
        answers: AnswerSchemas::new(schema_bases(definition), loader),
        system: system_prompt(definition, &compiler),
    };
    lowering.lower(&registry.steps, &inputs, &mut draft);
    refuse_sections(&mut draft, &registry.steps, &loader.found);
    let is_agent_known = agent.is_written && !loader.found.has_errors();
    let validations =
        Validations { registry, compiler: &compiler, inputs: &inputs, entries: &entries, is_agent_known };
    validations.lower(&mut draft);
    draft.proofs = proof_steps_of_draft(&draft, &registry.steps);
    check_verdict(definition, &draft);
    files.report_unused(loader);
    files.report_missing(registry, agent, loader);
    compiler.outside.report(&mut draft, &compiler.reads, &loader.found);
    compiler.matters.report(&loader.found);
    compiler.reads.report(agent, &registry.steps, &inputs, &loader.found);
    let texts = draft.params.split_off(own);
    draft.params.extend(texts.into_iter().filter(|text| compiler.reads.reads_param(&text.name)));
    draft.reads = std::mem::take(&mut compiler.places.lock().all);
    let needs_task = needs_task(&draft, &registry.steps);
    LoweredDraft { draft, needs_task }
}

/// Adds the parameters with the texts of the issue, if runs work on one.
pub(crate) fn add_issue_texts(agent: &AgentDefinition<'_>, params: &mut Vec<Param>) {
    for name in ISSUE_TEXTS.iter().filter(|_| agent.conduct.issue.is_some()) {
        if !params.iter().any(|param| same_name(&param.name, name)) {
            params.push(set_parameter(name));
        }
    }
}

/// The name of a definition: the agent's, else the registry's.
pub(crate) fn name_of<'j>(agent: &AgentDefinition<'j>, registry: &RegistryDefinition<'j>) -> &'j str {
    agent.name.or(registry.agent_id.map(|id| id.text)).unwrap_or("agent")
}

/// Validators and verification steps, which a run must pass before it is complete.
fn proof_steps_of_draft(draft: &Draft, steps: &[StepDefinition<'_>]) -> Vec<Name> {
    let of_kind = steps.iter().filter(|step| step.kind == Some(StepKind::Verification));
    let verifies: HashSet<&str> = of_kind.map(|step| step.id).collect();
    let proves = |step: &&Step<Name>| matches!(step.act, Act::Exec { .. }) || verifies.contains(&*step.name);
    draft.steps.iter().filter(proves).map(|step| Name::new(&step.name, step.span)).collect()
}

/// The settings of a whole run, including the programs that handle action blocks.
pub(crate) fn build_conduct(definition: &Definition<'_, '_, '_>) -> Conduct {
    let Definition { agent, loader, .. } = definition;
    let mut conduct = agent.conduct.clone();
    for HandlerFile { action, path, written } in &agent.handler_files {
        if let Some(program) = read_program(loader, path, written.span)
            && let Some(actions) = &mut conduct.actions
        {
            actions.handlers.push((action.clone(), Reaction::Exec(program)));
        }
    }
    conduct
}

pub(super) fn collect_params(agent: &AgentDefinition<'_>, set: &[String]) -> Vec<Param> {
    let mut params = agent.params.clone();
    // Values that the definition provides replace parameters that are not given: an empty value is not a missing one.
    let mut names: HashSet<String> =
        params.iter().map(|param| normalize_variable_name(&param.name).into_owned()).collect();
    for param in params.iter_mut().filter(|param| !param.required && param.default.is_none()) {
        let told = agent.told.iter().find(|(name, _)| same_name(name, &param.name));
        param.default = told.map(|(_, text)| text.clone());
    }
    for name in set {
        if names.insert(normalize_variable_name(name).into_owned()) {
            params.push(set_parameter(name));
        }
    }
    params
}

fn set_draft_entries<'j>(definition: &Definition<'_, '_, 'j>, draft: &mut Draft) -> Vec<&'j str> {
    let Definition { agent, registry, loader, .. } = definition;
    let kind = agent.verdict.kind;
    let mapping = registry.entry_mapping.iter().copied();
    let entry = agent.verdict.entry.or_else(|| entry_step(kind, mapping, registry.entry_step));
    let mut all: Vec<Text<'j>> = entry.into_iter().collect();
    for other in registry.entry_mapping.iter().map(|(_, step)| *step).chain(registry.entry_step) {
        if !all.iter().any(|known| known.text == other.text) {
            all.push(other);
        }
    }
    let name = |text: &Text<'_>| Name::new(text.text, text.span);
    match entry {
        Some(entry) => {
            draft.entry = Some(name(&entry));
            draft.other_entries = all.iter().skip(1).map(name).collect();
        }
        None => {
            // A verdict that failed to parse maps no entry, which has been reported.
            if !registry.entry_misread && !agent.verdict.is_unreadable() {
                loader.found.push(no_entry(kind, registry));
            }
            // Every step counts as entered, so that the flow check reports only other errors.
            let mut steps =
                registry.steps.iter().filter(|step| !step.section).map(|step| Name::new(step.id, step.span));
            draft.entry = steps.next();
            draft.other_entries = steps.collect();
        }
    }
    all.iter().map(|text| text.text).collect()
}

fn no_entry(kind: &str, registry: &RegistryDefinition<'_>) -> Diagnostic {
    if registry.generation == Generation::Complete {
        let kind = older_name(kind);
        // The wording of "Step Flow Design", "Entry step".
        let message = format!(
            "[StepFlow] No entry step configured for completionType \"{kind}\".\nDefine either \
             \"entryStepMapping.{kind}\" or \"entryStep\" in steps_registry.json."
        );
        return Diagnostic::error(codes::NO_ENTRY, registry.span, message)
            .hint("name the step that a run begins with");
    }
    Diagnostic::error(
        codes::NO_ENTRY,
        registry.span,
        format!("no entry step configured for the verdict type `{kind}`"),
    )
    .hint(format!("define either `entryStepMapping[\"{kind}\"]` or `entryStep`"))
}

fn schema_bases(definition: &Definition<'_, '_, '_>) -> Vec<String> {
    let Definition { agent, registry, places, loader, .. } = definition;
    schema_bases_of(registry, agent, places, loader)
}

/// The folders searched for the schemas of a registry.
pub(super) fn schema_bases_of(
    registry: &RegistryDefinition<'_>,
    agent: &AgentDefinition<'_>,
    places: &AgentFolder<'_>,
    loader: &SourceLoader<'_>,
) -> Vec<String> {
    let written = registry.schemas_base.or(agent.schemas_base);
    let (base, span) = written.map_or(("schemas", registry.span), |base| (base.text, base.span));
    let bases = places.candidates(base, span, &loader.found);
    if let (Some(winner), Some(other)) = (registry.schemas_base, agent.schemas_base)
        && places.candidates(other.text, other.span, &loader.found) != bases
    {
        let message =
            format!("`{}` has no effect: the registry's `schemasBase` is `{}`", other.text, winner.text);
        loader.found.push(
            Diagnostic::warning(codes::UNUSED_KEY, other.span, message)
                .hint("remove `schemas.base`, or `schemasBase` from the registry"),
        );
    }
    bases
}

pub(super) fn system_prompt(
    definition: &Definition<'_, '_, '_>,
    compiler: &PromptCompiler<'_, '_, '_>,
) -> Option<Template> {
    let Definition { agent, places, loader, .. } = definition;
    let Some(written) = agent.system_prompt else {
        // An agent without a system prompt is an error. A registry alone uses the built-in one.
        if agent.is_written {
            compiler.reads.unreadable();
            return None;
        }
        let file = built_in(SYSTEM, definition.registry.span, None, compiler.variables, loader)?;
        return Some(compiler.compile(&file, PromptScope::System, PromptUser::System).template);
    };
    let candidates = places.candidates(written.text, written.span, &loader.found);
    for path in &candidates {
        match loader.page(path) {
            LoadedFile::Text { file, text } => {
                let file = PromptFile { path: path.clone(), file, text, by: 0 };
                return Some(compiler.compile(&file, PromptScope::System, PromptUser::System).template);
            }
            LoadedFile::Missing => {}
            LoadedFile::Faulty => {
                compiler.reads.unreadable();
                return None;
            }
        }
    }
    compiler.reads.unreadable();
    if !candidates.is_empty() {
        let message = format!("there is no system prompt {}", quote_names(&candidates));
        loader.found.push(
            Diagnostic::error(codes::MISSING_PROMPT, written.span, message)
                .hint("write it, or correct the path"),
        );
    }
    None
}

/// The state shared by lowering each step.
struct StepLowering<'l, 'c, 'f, 'j> {
    agent: &'l AgentDefinition<'j>,
    compiler: &'l PromptCompiler<'c, 'f, 'j>,
    world: &'l RegistryContext<'l, 'j>,
    answers: AnswerSchemas<'c, 'f>,
    system: Option<Template>,
}

impl StepLowering<'_, '_, '_, '_> {
    /// Lowers the prompts and the answers of all steps.
    fn lower(&self, steps: &[StepDefinition<'_>], inputs: &[(&str, Vec<DeclaredInput>)], draft: &mut Draft) {
        let action = self.agent.conduct.issue.as_ref().map(|issue| issue.closure);
        let prompt = |(step, (_, inputs)): (&StepDefinition<'_>, &(&str, Vec<DeclaredInput>))| {
            Inputs::with(inputs, |inputs| step_prompt(step, PromptScope::Step(inputs), action, self.compiler))
        };
        let prompts: Vec<Template> = steps.iter().zip(inputs).map(prompt).collect();
        let answers = steps.iter().map(|step| self.answer(step));
        for (((step, (_, inputs)), prompt), answer) in steps.iter().zip(inputs).zip(prompts).zip(answers) {
            if let Some(answer) = answer {
                self.step(step, inputs, prompt, answer, draft);
            }
        }
    }

    /// Lowers the answer of a step and its transitions. A section is never asked for an answer.
    fn answer(&self, step: &StepDefinition<'_>) -> Option<(Option<Schema>, LoweredGate)> {
        (!step.section).then(|| {
            let schema = self.answers.schema(step);
            let gate = lower_step_gate(step, schema.as_ref(), self.world, &self.compiler.loader.found);
            (schema, gate)
        })
    }

    fn step(
        &self,
        step: &StepDefinition<'_>,
        inputs: &[DeclaredInput],
        prompt: Template,
        (schema, lowered): (Option<Schema>, LoweredGate),
        draft: &mut Draft,
    ) {
        let LoweredGate { gate, handoff, mut edges } = lowered;
        stand_in(step, &gate, &mut edges);
        let schema = schema.map(|schema| add_schema(schema, draft));
        let agent = self.agent;
        draft.steps.push(Step {
            name: step.id.into(),
            title: step.name.unwrap_or(step.id).into(),
            span: step.span,
            counts: true,
            act: Act::Ask(Ask {
                role: Role::Work,
                prompt,
                system: self.system.clone(),
                schema,
                model: step.model.or(agent.default_model).map(Into::into),
                later_models: Vec::new(),
                agent_keys: Default::default(),
                persona: None,
                persona_names: Vec::new(),
                session: SessionRule::Continue(SESSION.into()),
                reports: Vec::new(),
                fused: None,
                blocked_mark: None,
                delay_ms: 0,
                guard: None,
            }),
            gate,
            boundary: Boundary {
                permission: limit_permission(
                    step.permission,
                    agent.permission,
                    step.id,
                    &self.compiler.loader.found,
                ),
                tools: agent.tools.clone(),
            },
            handoff,
            inputs: inputs
                .iter()
                .filter(|declared| declared.is_readable())
                .map(|declared| declared.input.clone())
                .collect(),
            selectors: Vec::new(),
            when: None,
            edges,
        });
    }
}

fn add_schema(schema: Schema, draft: &mut Draft) -> SchemaId {
    draft.schemas.push(schema);
    SchemaId(draft.schemas.len() as u32 - 1)
}

/// Gives intents without a target an edge, and steps without a gate an exit. Both have been reported with their cause;
/// the flow check would only repeat them.
fn stand_in(step: &StepDefinition<'_>, gate: &Gate<Name>, edges: &mut Vec<Edge<Name>>) {
    let allowed = step.gate.iter().flat_map(|gate| gate.intents.iter().chain(&gate.fallback));
    for (intent, span) in allowed {
        if !edges.iter().any(|edge| edge.on == outcome_of_intent(*intent)) {
            let stands_in = Edge::new(outcome_of_intent(*intent), Target::End(Ending::Aborted), *span);
            edges.push(Edge { dangling: vec![DanglingTarget::unread()], ..stands_in });
        }
    }
    let reads_nothing = matches!(gate, Gate::Readers(readers) if readers.is_empty());
    if reads_nothing || step.transitions.is_none() {
        for edge in edges.iter_mut().filter(|edge| edge.on == outcome_of_intent(Intent::Abort)) {
            edge.implied = false;
        }
    }
}

/// Whether a step whose prompt needs the task text is reachable from the entry.
pub(super) fn needs_task(draft: &Draft, definitions: &[StepDefinition<'_>]) -> bool {
    let mut seen: BTreeSet<&str> = BTreeSet::new();
    let mut queue: Vec<&str> = draft.entry.iter().map(|entry| &*entry.text).collect();
    let index = StepIndex::of(draft.steps.iter().map(|step| &*step.name));
    let defined = StepIndex::new(definitions);
    while let Some(name) = queue.pop() {
        let Some(step) = index.place(name).map(|at| &draft.steps[at]) else { continue };
        if !seen.insert(name) {
            continue;
        }
        let reads = |template: &Template| template.sources().contains(&&Source::Task);
        let asks = match &step.act {
            Act::Ask(ask) => reads(&ask.prompt) || ask.system.as_ref().is_some_and(reads),
            _ => false,
        };
        let remedies = step.edges.iter().filter_map(|edge| edge.remedy.as_ref()).any(reads);
        let declared =
            defined.place(name).is_some_and(|at| matches!(definitions[at].uses_stdin, Some((true, _))));
        if asks || remedies || declared {
            return true;
        }
        queue.extend(targets_of(step).map(|target| &*target.text));
    }
    false
}
