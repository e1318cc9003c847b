//! Lowers the steps of a workflow to the steps of a flow.

mod companions;
mod completion;
mod gate_steps;
mod join;
mod judge;
mod monitor_steps;
mod selection;
mod system;
mod team;

use std::collections::HashSet;

use cuegate_flow::{
    Str,
    diagnostics::{Diagnostic, Span},
    model::{
        Act, Ask, Boundary, CombinedFields, DanglingTarget, Draft, Edge, Ending, FieldPath, Gate, Handoff,
        LimitKey, LimitTarget, Limits, Name, Outcome, OutcomeReader, Param, ParamType, Permission, Role,
        Schema, SchemaId, SessionRule, Step, Target, Template, Tools,
    },
};

use self::judge::{JudgeSubject, parse_answer_path};
use super::options::{Phases, TaktOptions};
use super::read::{AgentSettings, StepAction, StructuredOutput, WorkflowDefinition, WorkflowStep};
use super::routing::condition::Condition;
use super::routing::predicate;
use super::routing::rules::{Rule, normalize_word, outcome_of_rule};
use super::routing::{ABORT, COMPLETE};
use super::texts::instruction_template::{ReadingStep as For, TextCompiler};
use super::texts::prompt::{Duty, Subject, WorkflowPrompts};
use super::texts::step_values::{LINES, TASK_PARTS, check_fields_of_rules, lines_key};
use super::{answer_schema, answer_schema::AnswerSchemaCache};
use crate::codes;
use crate::findings::Findings;
use crate::suggest::{find_nearest_name, or_hint};
use crate::values::json::Text;

/// The outcome of a member without rules.
pub(super) const NO_RULES: &str = "done";

/// Context for lowering a workflow.
pub(super) struct WorkflowLowering<'l, 'j, 'c> {
    pub(super) workflow: &'l WorkflowDefinition<'j>,
    pub(super) prompts: WorkflowPrompts<'l, 'c>,
    pub(super) options: &'l TaktOptions,
    pub(super) found: &'c Findings,
    names: HashSet<&'j str>,
    pub(super) schemas: AnswerSchemaCache,
}

/// The context of a step, or of a member of a parallel step.
pub(super) struct StepPlace<'p> {
    /// The parallel step, for a member.
    pub(super) parent: Option<&'p str>,
    /// The position among the steps, such as `2 of 9`.
    pub(super) position: Option<String>,
}

/// Lowers a workflow to a draft.
pub(super) fn lower_workflow(
    workflow: &WorkflowDefinition<'_>,
    options: &TaktOptions,
    compiler: &TextCompiler<'_>,
    draft: &mut Draft,
) {
    draft.limits = Limits { iterations_max: workflow.steps_max, is_endless: workflow.is_endless };
    let (key, span) = workflow.limit_key;
    draft.keys.push(LimitKey::new(
        key,
        span.unwrap_or(draft.span),
        workflow.steps_max,
        1,
        LimitTarget::Iterations,
    ));
    draft.params = options.set.iter().map(|name| param_of_set_name(name)).collect();
    let about = workflow
        .description
        .map(|text| format!(": {}", super::routing::rules::collapse_to_line(text)))
        .unwrap_or_default();
    let prompts =
        WorkflowPrompts { workflow: format!("{}{about}", workflow.name), compiler, phases: options.phases };
    let names = workflow.steps.iter().map(|step| step.name.text).collect();
    let schemas = AnswerSchemaCache::default();
    let lowering = WorkflowLowering { workflow, prompts, options, found: compiler.found, names, schemas };
    let count = workflow.steps.len();
    for (index, step) in workflow.steps.iter().enumerate() {
        let position = Some(format!("{} of {count}", index + 1));
        lowering.step(step, &StepPlace { parent: None, position }, draft);
    }
    for monitor in &workflow.monitors {
        monitor_steps::lower_monitor(&lowering, monitor, draft);
    }
    let guarded = |step: &Step<Name>| matches!(&step.act, Act::Ask(ask) if ask.guard.is_some());
    if draft.steps.iter().any(guarded) {
        gate_steps::add_gate_retry_limit(&lowering, draft, LimitTarget::Mends);
    }
    for (step, key) in compiler.values.handed() {
        let Some(giver) = draft.steps.iter_mut().find(|known| known.name == step) else { continue };
        // What it reads and does is its answer.
        let path = match &giver.act {
            Act::System(_) => key.to_string(),
            _ => format!("{}.{key}", answer_schema::STRUCTURED),
        };
        let is_part = TASK_PARTS.iter().any(|(part, _)| *key == *lines_key(part));
        if let Some(path) = FieldPath::parse(path.trim_end_matches(LINES)) {
            giver.handoff.push(Handoff { lines: is_part, ..Handoff::new(&key, path, giver.span) });
        }
    }
    // Runs last, because it depends on whether there were errors.
    lowering.enter(draft);
}

impl WorkflowLowering<'_, '_, '_> {
    fn enter(&self, draft: &mut Draft) {
        let first = self.workflow.steps.first().map(|step| step.name);
        let from = format!("`{}`", self.workflow.first_key);
        let known = self.workflow.first.filter(|initial| match self.entered(*initial, &from) {
            Some(Target::Step(_)) => true,
            Some(_) => {
                let message = format!("`{}` is an end; a run cannot begin there", initial.text);
                let finding = Diagnostic::error(codes::UNKNOWN_TARGET, initial.span, message);
                self.found.push(finding.hint("name a step"));
                false
            }
            None => false,
        });
        // If the initial step is unknown, the first one replaces it, so that the remaining checks still run.
        let lost = self.workflow.first.filter(|_| known.is_none());
        draft.flaws.lost_entry = lost.map(|initial| DanglingTarget::to(initial.text));
        draft.entry = known.or(first).map(|text| Name::new(text.text, text.span));
        // Rules for persons are hidden now, but lead on in an interactive run.
        let hidden = self.workflow.steps.iter().flat_map(|step| &step.rules).filter(|rule| rule.hidden);
        let hidden = hidden.filter_map(|rule| rule.next);
        // After an error a step may only seem unreachable: its name was misspelled, or its rule was dropped.
        let all = self.workflow.steps.iter().map(|step| step.name);
        let others: Vec<Text<'_>> = if self.found.has_errors() { all.collect() } else { hidden.collect() };
        draft.other_entries = others
            .into_iter()
            .filter(|next| self.names.contains(next.text))
            .map(|next| Name::new(next.text, next.span))
            .collect();
    }

    /// Resolves a target name. Returns `None` after reporting an unknown name.
    pub(super) fn target(&self, next: Text<'_>, from: &str) -> Option<Target<Name>> {
        self.found_by_name(next, from, &[COMPLETE, ABORT], "name a step, `COMPLETE` or `ABORT`")
    }

    /// As [`Self::target`], for keys whose value should be a step: hints do not offer the ends, which still
    /// resolve.
    pub(super) fn entered(&self, next: Text<'_>, from: &str) -> Option<Target<Name>> {
        self.found_by_name(next, from, &[], "name a step")
    }

    fn found_by_name(&self, next: Text<'_>, from: &str, ends: &[&str], hint: &str) -> Option<Target<Name>> {
        match next.text {
            COMPLETE => return Some(Target::End(Ending::Completed)),
            ABORT => return Some(Target::End(Ending::Aborted)),
            _ => {}
        }
        let steps = &self.workflow.steps;
        if self.names.contains(next.text) {
            return Some(Target::Step(Name::new(next.text, next.span)));
        }
        let parent = steps.iter().find(|step| match &step.does {
            StepAction::Parallel(members) => members.iter().any(|member| member.name.text == next.text),
            StepAction::Asks(_) | StepAction::System(_) => false,
        });
        let unknown = |what: String| {
            let message = format!("{from} leads to {what}");
            Diagnostic::error(codes::UNKNOWN_TARGET, next.span, message)
        };
        let names = || steps.iter().map(|step| step.name.text).chain(ends.iter().copied());
        if self.workflow.nameless && parent.is_none() && find_nearest_name(next.text, names()).is_none() {
            return None;
        }
        self.found.push(match parent {
            Some(parent) => unknown(format!("`{}`, which is a member of a parallel step", next.text))
                .hint(format!("lead to `{}`, which has it", parent.name.text)),
            None => {
                let finding = unknown(format!("the undefined step `{}`", next.text));
                or_hint(finding, next.text, names(), || hint.to_owned())
            }
        });
        None
    }

    fn step(&self, step: &WorkflowStep<'_>, place: &StepPlace<'_>, draft: &mut Draft) {
        let at = draft.steps.len();
        let lowered = match &step.does {
            StepAction::Asks(asked) => match &asked.team {
                Some(team) => team::lower_team(self, step, asked, team, place, draft),
                None => self.asks(step, asked, &Duty::Whole, place, draft),
            },
            StepAction::Parallel(members) => self.parallel(step, members, draft),
            StepAction::System(settings) => self.system(step, settings, draft),
        };
        self.add_decisions(step, draft);
        // A step precedes the steps that were generated for it.
        draft.steps.insert(at, lowered);
    }

    pub(super) fn asks(
        &self,
        step: &WorkflowStep<'_>,
        asked: &AgentSettings<'_>,
        duty: &Duty,
        place: &StepPlace<'_>,
        draft: &mut Draft,
    ) -> Step<Name> {
        let name = step.name.text;
        let session = session_key(step, asked, place);
        let subject = Subject { step, asked, duty, position: place.position.clone() };
        let prompt = self.prompts.work(&subject);
        let model: Option<Str> = asked.model.map(Into::into);
        let judged = JudgeSubject {
            step: name,
            session: session.clone(),
            span: step.name.span,
            model: model.clone(),
            schemas: &self.schemas,
        };
        let judges = match self.is_settled(asked, &step.rules) {
            true => Vec::new(),
            false => judge::add_judges(&judged, &step.rules, draft),
        };
        let (gate, schema) = self.gate(step, asked, judges, draft);
        let mut edges = Vec::new();
        if place.parent.is_none() {
            edges = self.edges(name, &step.rules, draft);
            gate_steps::insert_gate_steps(self, step, asked, &prompt, &mut edges, draft);
            completion::insert_completion_judges(self, step, asked, &prompt, &mut edges, draft);
            companions::insert_companions(self, step, asked, &prompt, &mut edges, draft);
        }
        let of = selection::SelectionSubject {
            step: name,
            instruction: asked.instruction.as_ref(),
            model: model.clone(),
        };
        let selectors = selection::lower_selections(self, &step.selections, &of, draft);
        let persona = asked.persona.as_ref();
        let body = persona.and_then(|persona| persona.body.as_ref());
        let ask = Ask {
            role: Role::Work,
            prompt,
            system: body.map(|body| Template::text(&body.text)),
            schema,
            model,
            later_models: asked.promotions.clone(),
            agent_keys: asked.agent_keys.clone(),
            persona: persona.and_then(|persona| persona.key.clone()),
            persona_names: body.and_then(|body| body.stem.clone()).into_iter().collect(),
            // With other texts an agent begins anew.
            session: if asked.refresh || !asked.selectable.is_empty() {
                SessionRule::Renew(session)
            } else {
                SessionRule::Continue(session)
            },
            reports: asked.reports.iter().map(|report| self.prompts.report(report)).collect(),
            fused: (self.prompts.phases_of(asked) == Phases::Fused).then(|| CombinedFields {
                response: parse_answer_path(answer_schema::RESPONSE),
                reports: parse_answer_path(answer_schema::REPORTS),
                blocked: parse_answer_path(answer_schema::BLOCKED),
            }),
            blocked_mark: Some(super::texts::prompt_texts::BLOCKED_MARK.into()),
            delay_ms: step.delay_ms,
            guard: place.parent.and_then(|_| gate_steps::of_member(self, asked)),
        };
        Step {
            title: asked
                .title
                .map_or_else(|| name.to_owned(), super::routing::rules::collapse_to_line)
                .into(),
            act: Act::Ask(ask),
            gate,
            boundary: asked.boundary.clone(),
            edges,
            selectors,
            ..build_empty_step(step)
        }
    }

    /// Whether the step needs no judge: it has only one rule, and its answer is plain text.
    fn is_settled(&self, asked: &AgentSettings<'_>, rules: &[Rule<'_>]) -> bool {
        let mut eligible = rules.iter().filter(|rule| !rule.hidden);
        let only = eligible.next().filter(|_| eligible.next().is_none());
        self.prompts.phases_of(asked) == Phases::Separate
            && only.is_some_and(|rule| rule.kind == Condition::Text)
    }

    /// How the answer of a step becomes an outcome, and the schema of that answer.
    fn gate(
        &self,
        step: &WorkflowStep<'_>,
        asked: &AgentSettings<'_>,
        judges: Vec<Name>,
        draft: &mut Draft,
    ) -> (Gate<Name>, Option<SchemaId>) {
        let rules = &step.rules;
        let eligible: Vec<&Rule<'_>> = rules.iter().filter(|rule| !rule.hidden).collect();
        let texts: Vec<&Rule<'_>> =
            eligible.iter().copied().filter(|rule| rule.kind == Condition::Text).collect();
        let mut readers = Vec::new();
        let mut schema = None;
        let fused = self.prompts.phases_of(asked) == Phases::Fused;
        if fused {
            let mut words: Vec<(String, Outcome)> =
                texts.iter().map(|rule| (rule.outcome.to_string(), outcome_of_rule(rule))).collect();
            if !texts.is_empty() && texts.len() < eligible.len() {
                words.push((answer_schema::NONE.to_owned(), Outcome::None));
            }
            let enumeration: Vec<String> = words.iter().map(|(word, _)| word.clone()).collect();
            let reports: Vec<&str> = asked.reports.iter().map(|report| &*report.name).collect();
            let answer = match &asked.structured {
                None => self.schemas.fused(&enumeration, &reports),
                Some(data) => self.with_data(data, &eligible, (&enumeration, &reports), &mut readers),
            };
            draft.schemas.push(answer);
            schema = Some(SchemaId(draft.schemas.len() as u32 - 1));
            if !words.is_empty() {
                readers.push(OutcomeReader::Field {
                    path: parse_answer_path(answer_schema::OUTCOME),
                    words: words
                        .into_iter()
                        .map(|(word, outcome)| (normalize_word(&word), outcome))
                        .collect(),
                    reasons: Vec::new(),
                });
            }
        }
        if rules.is_empty() {
            // Only members may have no rules; such a member's answer is its result.
            return (Gate::Always(Outcome::Named(NO_RULES.into())), schema);
        }
        if let Some(rule) = eligible.first().filter(|_| self.is_settled(asked, rules)) {
            return (Gate::Always(outcome_of_rule(rule)), schema);
        }
        if let [rule] = eligible.as_slice()
            && rule.kind == Condition::Answered
        {
            return (Gate::Always(outcome_of_rule(rule)), schema);
        }
        // Hidden and judged rules keep their numbers, but the step cannot choose them.
        if fused && !texts.is_empty() {
            let own = |rule: &Rule<'_>| !rule.hidden && rule.kind == Condition::Text;
            let numbered = rules
                .iter()
                .map(|rule| if own(rule) { outcome_of_rule(rule) } else { Outcome::None })
                .collect();
            readers.extend(judge::build_tag_readers(step.name.text, numbered));
        }
        // In separate phases the prompt mentions no tags: a tag in the answer is a quotation, and the judge decides.
        readers.extend(judges.into_iter().map(|step| OutcomeReader::Judge { step }));
        (Gate::Readers(readers), schema)
    }

    /// The schema of an answer with data, and the readers of the rules that the data decide.
    fn with_data(
        &self,
        data: &StructuredOutput,
        rules: &[&Rule<'_>],
        (outcomes, reports): (&[String], &[&str]),
        readers: &mut Vec<OutcomeReader<Name>>,
    ) -> Schema {
        let read: Vec<String> = rules
            .iter()
            .filter_map(|rule| match &rule.kind {
                // The first segment is `structured` itself.
                Condition::Field(path, _) => path.segments().get(1).map(ToString::to_string),
                _ => None,
            })
            .collect();
        let read: Vec<&str> = read.iter().map(String::as_str).collect();
        let schema = answer_schema::with_data(outcomes, reports, data.schema.clone(), &read);
        // Otherwise the rules were split, and a step of its own decides.
        check_fields_of_rules(rules, &data.schema, self.found);
        readers.extend(predicate::build_predicate_readers(rules, &schema).into_iter().flatten());
        schema
    }

    fn parallel(
        &self,
        step: &WorkflowStep<'_>,
        members: &[WorkflowStep<'_>],
        draft: &mut Draft,
    ) -> Step<Name> {
        let name = step.name.text;
        for member in members {
            self.step(member, &StepPlace { parent: Some(name), position: None }, draft);
        }
        let judged = JudgeSubject {
            step: name,
            session: name.into(),
            span: step.name.span,
            model: None,
            schemas: &self.schemas,
        };
        let rest: Vec<Rule<'_>> = step.rules.iter().map(without_aggregates).collect();
        let judges = judge::add_judges(&judged, &rest, draft);
        let rules = join::build_join_rules(step, members, self.found);
        let permission = members.iter().map(permission_of_member).max().unwrap_or(Permission::Plan);
        let of = selection::SelectionSubject { step: name, instruction: None, model: None };
        let selectors = selection::lower_selections(self, &step.selections, &of, draft);
        Step {
            act: Act::All {
                members: members.iter().map(|member| Name::new(member.name.text, member.name.span)).collect(),
                width: self.options.width.max(1),
            },
            gate: Gate::Join { rules, judges },
            boundary: Boundary { permission, tools: Tools::All },
            edges: self.edges(name, &step.rules, draft),
            selectors,
            ..build_empty_step(step)
        }
    }

    /// The edges for rules. A rule that asks a person leads through an extra step.
    pub(super) fn edges(&self, step: &str, rules: &[Rule<'_>], draft: &mut Draft) -> Vec<Edge<Name>> {
        let mut edges = Vec::new();
        if rules.iter().all(|rule| rule.hidden) {
            // The missing target has its own finding; the run ends there instead.
            let done = Outcome::Named(NO_RULES.into());
            let dangling = vec![DanglingTarget::unread()];
            let to = Target::End(Ending::Completed);
            edges.push(Edge { dangling, ..Edge::new(done, to, Span::default()) });
        }
        for (index, rule) in rules.iter().enumerate() {
            // The missing target has its own finding; the run ends there instead.
            let decided = rule.decision.map(|decision| {
                Target::Step(Name::new(&system::name_of_decision(step, decision), rule.span))
            });
            let to = decided.or_else(|| {
                rule.next.and_then(|next| self.target(next, &format!("`{step}` on `{}`", rule.outcome)))
            });
            if rule.hidden {
                continue;
            }
            let dangling = match (&to, rule.next) {
                (Some(_), _) => Vec::new(),
                (None, Some(next)) => vec![DanglingTarget::to(next.text)],
                (None, None) => vec![DanglingTarget::unread()],
            };
            let to = to.unwrap_or(Target::End(Ending::Completed));
            let mut edge = Edge { dangling, ..Edge::new(outcome_of_rule(rule), to, rule.span) };
            if rule.asks_person {
                let name = format!("{step}@person:{}", index + 1);
                let on = edge.on.clone();
                let asks = Target::Step(add_person_step(&name, rule, edge, draft));
                edge = Edge::new(on, asks, rule.span);
            }
            edges.push(edge);
        }
        edges
    }

    /// Compiles an instruction with its placeholders.
    pub(super) fn compile(
        &self,
        body: &super::read::FacetText,
        step: &str,
    ) -> Vec<cuegate_flow::model::Piece> {
        self.prompts.compiler.compile(body, For { step, monitor: true })
    }
}

/// A parameter set with `--set`.
fn param_of_set_name(name: &str) -> Param {
    Param {
        name: name.into(),
        flag: "".into(),
        kind: ParamType::Text,
        required: false,
        default: None,
        rule: Default::default(),
        description: "given with `--set`".into(),
        span: Span::default(),
    }
}

/// The name and place of a step; what it does is left open.
pub(super) fn build_empty_step(step: &WorkflowStep<'_>) -> Step<Name> {
    let name: Str = step.name.text.into();
    Step {
        name: name.clone(),
        title: name,
        span: step.name.span,
        counts: true,
        act: Act::All { members: Vec::new(), width: 1 },
        gate: Gate::Exit,
        boundary: Boundary::default(),
        handoff: Vec::new(),
        inputs: Vec::new(),
        selectors: Vec::new(),
        when: step.when.clone(),
        edges: Vec::new(),
    }
}

/// Adds a step that asks a person and then continues.
fn add_person_step(name: &str, rule: &Rule<'_>, then: Edge<Name>, draft: &mut Draft) -> Name {
    let answered = Outcome::Named("answered".into());
    let question = rule.appendix.map_or(&*rule.condition.text, str::trim_end);
    draft.steps.push(Step {
        name: name.into(),
        title: name.into(),
        span: rule.span,
        counts: false,
        act: Act::Person { question: Template::text(question) },
        gate: Gate::Always(answered.clone()),
        boundary: Boundary { permission: Permission::Plan, tools: Tools::All },
        handoff: Vec::new(),
        inputs: Vec::new(),
        selectors: Vec::new(),
        when: None,
        edges: vec![Edge { on: answered, ..then }],
    });
    Name::new(name, rule.span)
}

/// The session key of a step: its persona's, else its own; each member has a separate one.
pub(super) fn session_key(step: &WorkflowStep<'_>, asked: &AgentSettings<'_>, place: &StepPlace<'_>) -> Str {
    let name = step.name.text;
    if let Some(key) = asked.session_key {
        return key.into();
    }
    match (place.parent, asked.persona.as_ref().and_then(|persona| persona.key.as_ref())) {
        (Some(parent), _) => format!("{parent}/{name}").into(),
        (None, Some(key)) => key.clone(),
        (None, None) => name.into(),
    }
}

/// The rule as judges see it: aggregate conditions are decided without a judge.
fn without_aggregates<'j>(rule: &Rule<'j>) -> Rule<'j> {
    Rule { hidden: rule.hidden || rule.kind.is_aggregate(), ..rule.clone() }
}

fn permission_of_member(member: &WorkflowStep<'_>) -> Permission {
    match &member.does {
        StepAction::Asks(asked) => asked.boundary.permission,
        StepAction::Parallel(_) | StepAction::System(_) => Permission::Plan,
    }
}
