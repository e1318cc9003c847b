//! Reads the steps of a workflow.

use cuegate_flow::{
    Str,
    diagnostics::{Diagnostic, Span},
    model::Source,
};

use super::agent::AgentSettings;
use super::sections::Sections;
use super::selection::Selection;
use super::system_step::{SystemSettings, check_kind_of_step, is_system_step};
use crate::codes;
use crate::takt::compose::{ComposedStep, ParsedFiles};
use crate::takt::notes::LoadNotes;
use crate::takt::routing::decisions::{Decision, SplitRules, split_rules};
use crate::takt::routing::rules::{self, Owner, Rule};
use crate::values::json::{Fields, Json, Kind, Text};

/// A step, or a member of a parallel step.
pub(crate) struct WorkflowStep<'j> {
    pub(crate) name: Text<'j>,
    pub(crate) description: Option<&'j str>,
    pub(crate) does: StepAction<'j>,
    /// Its rules, in order.
    pub(crate) rules: Vec<Rule<'j>>,
    /// The selections before it begins.
    pub(crate) selections: Vec<Selection<'j>>,
    /// For a member: the value that is set if it is selected.
    pub(crate) when: Option<Source>,
    /// What is decided after a label or an answer.
    pub(crate) decisions: Vec<Decision<'j>>,
    /// The time to wait before it, in milliseconds.
    pub(crate) delay_ms: u64,
    /// What the names of steps in its rules begin with: in the same call of a workflow, or in one around it.
    pub(crate) prefixes: Vec<String>,
}

impl<'j> WorkflowStep<'j> {
    /// Sets the agent and the model where the step says nothing.
    pub(super) fn default_agent(&mut self, agent: Option<&Str>, model: Option<&'j str>) {
        match &mut self.does {
            StepAction::Asks(settings) => settings.default_agent(agent, model),
            StepAction::Parallel(members) => {
                members.iter_mut().for_each(|member| member.default_agent(agent, model));
            }
            StepAction::System(_) => {}
        }
    }
}

/// What a step does.
pub(crate) enum StepAction<'j> {
    /// Asks an agent.
    Asks(Box<AgentSettings<'j>>),
    /// Runs all members in parallel.
    Parallel(Vec<WorkflowStep<'j>>),
    /// Is done by Cuegate itself.
    System(SystemSettings),
}

/// Context for reading steps.
pub(crate) struct StepReader<'r, 'd, 'f> {
    pub(crate) sections: &'r Sections<'d, 'f>,
    pub(crate) files: &'r ParsedFiles<'d, 'f>,
    pub(crate) notes: &'r LoadNotes<'d>,
    /// Whether a person can answer questions during the run.
    pub(crate) interactive: bool,
    /// The iteration limit of a workflow with `max_steps: infinite`.
    pub(crate) iterations_max: Option<u32>,
}

/// Keys that have no effect in any step.
const WITHOUT_EFFECT: [&str; 3] = ["requires_user_input", "concurrency", "selection"];

/// Keys that have no effect in a step without an agent.
const WITHOUT_EFFECT_WITHOUT_AGENT: [&str; 1] = ["mcp_servers"];

/// Keys of an agent that have no effect in a parallel step.
const WITHOUT_EFFECT_IN_PARALLEL: [&str; 7] = [
    "tags",
    "capabilities",
    "provider_options",
    "promotion",
    "completion_retry",
    "review_completion",
    "allow_git_commit",
];

/// The keys that configure an agent. A parallel step and a system step cannot have them.
pub(super) const OF_AGENT: [&str; 20] = [
    "structured_output",
    "persona",
    "persona_name",
    "policy",
    "knowledge",
    "instruction",
    "instruction_template",
    "edit",
    "permission_mode",
    "session",
    "pass_previous_response",
    "allowed_tools",
    "output_contracts",
    "quality_gates",
    "provider",
    "model",
    "agent",
    "agent_name",
    "report",
    "answer_agent",
];

impl StepReader<'_, '_, '_> {
    /// Reads a step of a workflow. Returns `None` if it has no usable name.
    pub(crate) fn read_step<'j>(
        &self,
        step: &'j ComposedStep,
        workflow: &Fields<'j, '_>,
    ) -> Option<WorkflowStep<'j>> {
        self.read_step_or_member(step, workflow, false)
    }

    fn read_step_or_member<'j>(
        &self,
        composed: &'j ComposedStep,
        outer: &Fields<'j, '_>,
        is_member: bool,
    ) -> Option<WorkflowStep<'j>> {
        let item = &composed.source;
        let label = item.get("name").and_then(Json::as_text).map(str::trim);
        let what = match label {
            Some(name) => format!("the step `{name}`"),
            None => "a step".to_owned(),
        };
        let fields = Fields::of(item, &what, label, outer.found)?;
        self.sections.enter(composed.scope);
        fields.shunned("kind");
        self.ignore_keys(&fields, &WITHOUT_EFFECT);
        let name = fields.required("name").map(|name| Text { text: name.text.trim(), ..name });
        let step = name.map_or("", |name| name.text);
        let description = fields.text("description").map(|text| text.text);
        let read = |selection| self.read_member_selection(selection, &fields);
        let mut selections: Vec<_> = composed.selections.iter().filter_map(read).collect();
        self.sections.enter(composed.scope);
        let has =
            |key| matches!(fields.nullable(key), Some(entry) if !matches!(entry.value.kind, Kind::Null));
        let is_call = report_call_without_kind(&fields);
        let is_asked = !has("parallel") && !is_call;
        check_kind_of_step(item, &fields, is_member);
        let is_system = is_system_step(item) && !is_member;
        let does = match self.read_members(&fields, composed, is_member) {
            Some(members) => StepAction::Parallel(members),
            None if is_system => {
                self.ignore_keys(&fields, &WITHOUT_EFFECT_WITHOUT_AGENT);
                StepAction::System(self.read_system_step(&fields))
            }
            None => {
                let (settings, selection) = self.read_agent(&fields, step, is_member, is_asked);
                selections.extend(selection);
                StepAction::Asks(Box::new(settings))
            }
        };
        // Its members may belong to other workflows.
        self.sections.enter(composed.scope);
        let owner = match (&does, is_member) {
            (StepAction::Parallel(_), _) => Owner::Parallel,
            (StepAction::System(_), _) => Owner::System,
            (_, true) => Owner::Member,
            _ => Owner::Step,
        };
        let rules = rules::read_rules(&fields, owner, self.interactive, step);
        let delay_ms =
            if is_member { 0 } else { self.read_delay(&fields, matches!(does, StepAction::Parallel(_))) };
        if is_member {
            check_rules_without_person(&fields, &rules);
        } else {
            check_rules(&fields, &rules);
        }
        let SplitRules { asked: rules, decisions } = match &does {
            StepAction::Asks(settings) if !is_member => {
                let data = settings.structured.as_ref().map(|data| &data.schema);
                split_rules(rules, data, false, fields.found)
            }
            StepAction::Parallel(_) if !is_member => split_rules(rules, None, true, fields.found),
            _ => SplitRules { asked: rules, decisions: Vec::new() },
        };
        fields.finish();
        let prefixes = self.sections.prefixes();
        let when = composed.when.clone();
        Some(WorkflowStep {
            name: name?,
            description,
            does,
            rules,
            selections,
            when,
            decisions,
            delay_ms,
            prefixes,
        })
    }

    /// Reads the members of a parallel step. Returns `None` for a step with an agent.
    fn read_members<'j>(
        &self,
        fields: &Fields<'j, '_>,
        step: &'j ComposedStep,
        is_member: bool,
    ) -> Option<Vec<WorkflowStep<'j>>> {
        let entry = fields.entry("parallel")?;
        if is_member {
            let message = "a member of a parallel step cannot be parallel itself";
            let finding = Diagnostic::error(codes::INVALID_VALUE, entry.key_span, message);
            fields.push(finding.hint("make it a step, or its members members of the parallel step"));
            return None;
        }
        if !matches!(entry.value.kind, Kind::List(_) | Kind::Object(_)) {
            fields.wrong_type("parallel", &entry.value, "a list");
        } else if step.members.is_empty() {
            let hint = "add one, or remove `parallel`";
            fields.invalid(entry.value.span, "`parallel` has no members", hint);
        }
        // Without members it is unclear whether the step is meant to be parallel.
        let has_instruction =
            ["instruction", "instruction_template"].iter().any(|key| step.source.get(key).is_some());
        if step.members.is_empty() && has_instruction {
            return None;
        }
        self.ignore_keys(fields, &WITHOUT_EFFECT_IN_PARALLEL);
        self.ignore_keys(fields, &WITHOUT_EFFECT_WITHOUT_AGENT);
        fields.strays(&OF_AGENT, "a parallel step has no agent of its own: give it to its members");
        let read = |member| self.read_step_or_member(member, fields, true);
        Some(step.members.iter().filter_map(read).collect())
    }

    /// Notes keys that have no effect.
    pub(super) fn ignore_keys(&self, fields: &Fields<'_, '_>, keys: &[&'static str]) {
        keys.iter().filter_map(|key| fields.shunned(key)).for_each(|entry| self.notes.ignore_key(entry));
    }
}

/// Reports a step that names a workflow to call and does not say that it is a call. Returns whether it is one.
fn report_call_without_kind(fields: &Fields<'_, '_>) -> bool {
    let Some(call) = fields.shunned("call") else { return false };
    for key in ["args", "vars"] {
        fields.shunned(key);
    }
    let message = "unknown key `call` in a step that calls no workflow";
    let finding = Diagnostic::error(codes::UNKNOWN_KEY, call.key_span, message);
    fields.push(finding.hint("add `kind: workflow_call`, or remove `call`"));
    true
}

/// Reports a step without rules, or without a rule for headless runs.
fn check_rules(fields: &Fields<'_, '_>, rules: &[Rule<'_>]) {
    if fields.nullable("rules").is_none() {
        fields.missing("rules");
    } else if rules.is_empty() {
        if is_empty_list(fields, "rules") {
            fields.invalid(fields.opening(), "`rules` has no rule", "add one with `condition` and `next`");
        }
    } else {
        check_rules_without_person(fields, rules);
    }
}

/// Whether a key holds an empty list.
pub(super) fn is_empty_list(fields: &Fields<'_, '_>, key: &'static str) -> bool {
    let entry = fields.nullable(key);
    entry.is_some_and(|entry| matches!(&entry.value.kind, Kind::List(items) if items.is_empty()))
}

/// Reports rules that are all `interactive_only`: a headless run needs at least one.
pub(super) fn check_rules_without_person(fields: &Fields<'_, '_>, rules: &[Rule<'_>]) {
    if !rules.is_empty() && rules.iter().all(|rule| rule.hidden) {
        let message = "all rules are `interactive_only`, so none applies in an unattended run";
        let finding = Diagnostic::error(codes::MISSING_TRANSITION, rules_span(rules), message);
        fields.push(finding.hint("add a rule that holds without a person"));
    }
}

fn rules_span(rules: &[Rule<'_>]) -> Span {
    rules.first().map(|rule| rule.span).unwrap_or_default()
}
