//! Reads the movements of a piece.

use cuegate_flow::{
    Str,
    diagnostics::{Diagnostic, Span},
    model::{Boundary, Permission, Source, Tools},
};
use serde_json::Value;

use super::completion::CompletionRetry;
use super::expand::{FILE, SCOPE};
use super::routing::rules;
use super::routing::rules::{Owner, Rule};
use super::selection::{self, SelectableTexts, Selection};
use super::team::Team;
use super::texts::sections::{FacetText, Section, Sections};
use super::weak_permissions;
use super::{gates, gates::Gates};
use super::{reports, reports::ReportDefinition};
use crate::codes;
use crate::source::tool_names;
use crate::values::json::{Fields, Json, Kind, Text};

/// A movement, or a member of a parallel movement.
pub(crate) struct Movement<'j> {
    pub(crate) name: Text<'j>,
    pub(crate) description: Option<&'j str>,
    pub(crate) does: StepAction<'j>,
    /// Its rules, in order.
    pub(crate) rules: Vec<Rule<'j>>,
    /// The selections before it begins.
    pub(crate) selections: Vec<Selection<'j>>,
    /// For a member: the value that is set if it is selected.
    pub(crate) when: Option<Source>,
}

/// What a movement does.
pub(crate) enum StepAction<'j> {
    /// Asks an agent.
    Asks(Box<AgentSettings<'j>>),
    /// Runs all members in parallel.
    Parallel(Vec<Movement<'j>>),
}

/// The settings of a movement that asks an agent.
pub(crate) struct AgentSettings<'j> {
    pub(crate) persona: Option<Persona>,
    /// The display name of the persona.
    pub(crate) title: Option<&'j str>,
    /// Policies for the prompt.
    pub(crate) policies: Vec<KeyedText>,
    /// Knowledge for the prompt.
    pub(crate) knowledge: Vec<KeyedText>,
    /// Texts for the prompt that may be selected.
    pub(crate) selectable: Vec<SelectableTexts>,
    /// The instruction; `None` if it could not be read.
    pub(crate) instruction: Option<FacetText>,
    /// What the agent may access.
    pub(crate) boundary: Boundary,
    /// Whether each visit starts a new session.
    pub(crate) refresh: bool,
    /// The key of the session, if it is not that of the persona.
    pub(crate) session_key: Option<&'j str>,
    /// Rules for all steps.
    pub(crate) rules: Vec<FacetText>,
    pub(crate) model: Option<&'j str>,
    /// The models from a number of visits on.
    pub(crate) promotions: Vec<(u32, Str)>,
    /// Whether the prompt contains the previous movement's response.
    pub(crate) previous: bool,
    /// The reports that the movement must write.
    pub(crate) reports: Vec<ReportDefinition>,
    /// The schema of the data that the answer must hold.
    pub(crate) structured: Option<StructuredOutput>,
    /// The quality gates.
    pub(crate) gates: Gates<'j>,
    /// How its work is completed.
    pub(crate) completion: Option<CompletionRetry>,
    /// Those who do its work, if the agent only splits it.
    pub(crate) team: Option<Box<Team<'j>>>,
}

/// The schema of the data in an answer.
pub(crate) struct StructuredOutput {
    pub(crate) schema: Value,
    /// The place of `structured_output`.
    pub(crate) span: Span,
}

pub(crate) struct Persona {
    /// The key in `personas`; `None` for an inline text.
    pub(crate) key: Option<Str>,
    /// Its text; `None` if it could not be read.
    pub(crate) body: Option<FacetText>,
}

/// A text with the key that refers to it.
pub(crate) struct KeyedText {
    /// The key; `None` for an inline text.
    pub(crate) key: Option<Str>,
    pub(crate) body: FacetText,
}

/// Context for reading movements.
pub(crate) struct StepReader<'r, 'd, 'f> {
    pub(crate) sections: &'r Sections<'d, 'f>,
    /// Whether a person can answer questions during the run.
    pub(crate) interactive: bool,
}

/// The target that completes the run.
pub(crate) const COMPLETE: &str = "COMPLETE";
/// The target that aborts the run.
pub(crate) const ABORT: &str = "ABORT";

/// The keys that configure an agent. A parallel movement cannot have them.
const ASKING: [&str; 19] = [
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
    "report",
    "answer_agent",
];

/// Whether a movement has an instruction for an agent.
fn is_asked(movement: &Json) -> bool {
    ["instruction", "instruction_template"].iter().any(|key| movement.get(key).is_some())
}

impl StepReader<'_, '_, '_> {
    /// Reads one movement. Returns `None` if it has no usable name.
    pub(crate) fn movement<'j>(
        &self,
        item: &'j Json,
        piece: &Fields<'j, '_>,
        member: bool,
    ) -> Option<Movement<'j>> {
        let label = item.get("name").and_then(Json::as_text).map(str::trim);
        let what = match label {
            Some(name) => format!("the step `{name}`"),
            None => "a step".to_owned(),
        };
        let fields = Fields::of(item, &what, label, piece.found)?;
        self.sections.enter(item);
        fields.shunned(SCOPE);
        let name = fields.required("name").map(|name| Text { text: name.text.trim(), ..name });
        let step = name.map_or("", |name| name.text);
        let description = fields.text("description").map(|text| text.text);
        let selections = self.selections(&fields, item);
        let parallel = fields.entry("parallel");
        let does = match parallel {
            Some(entry) if member => {
                let message = "a member of a parallel step cannot be parallel itself";
                let finding = Diagnostic::error(codes::INVALID_VALUE, entry.key_span, message);
                fields.push(finding.hint("make it a step, or its members members of the parallel step"));
                StepAction::Asks(Box::new(self.asked(&fields, step)))
            }
            Some(entry) => {
                let members = fields.items("parallel");
                if matches!(entry.value.kind, Kind::List(_)) && members.is_empty() {
                    let hint = "add one, or remove `parallel`";
                    fields.invalid(entry.value.span, "`parallel` has no members", hint);
                }
                // Without members it is unclear whether the movement is meant to be parallel.
                match members.is_empty() && is_asked(item) {
                    true => StepAction::Asks(Box::new(self.asked(&fields, step))),
                    false => self.parallel(&fields, members),
                }
            }
            None => StepAction::Asks(Box::new(self.asked(&fields, step))),
        };
        // Its members may belong to other workflows.
        self.sections.enter(item);
        let owner = match (&does, member) {
            (StepAction::Parallel(_), _) => Owner::Parallel,
            (_, true) => Owner::Member,
            _ => Owner::Movement,
        };
        let rules = rules::read_rules(&fields, owner, self.interactive, step);
        if member {
            some_left(&fields, &rules);
        } else {
            check_rules(&fields, &rules);
        }
        fields.finish();
        let when = selection::source_of_candidate(item);
        Some(Movement { name: name?, description, does, rules, selections, when })
    }

    fn parallel<'j>(&self, fields: &Fields<'j, '_>, members: &'j [Json]) -> StepAction<'j> {
        fields.strays(&ASKING, "a parallel step has no agent of its own: give it to its members");
        let members = members.iter();
        StepAction::Parallel(members.filter_map(|item| self.movement(item, fields, true)).collect())
    }

    pub(super) fn asked<'j>(&self, fields: &Fields<'j, '_>, step: &str) -> AgentSettings<'j> {
        let sections = self.sections;
        let persona = fields.filled("persona").map(|reference| self.persona(reference, fields));
        let title = fields.filled("persona_name").map(|text| text.text);
        let policies = self.list(fields, "policy", Section::Policies);
        let knowledge = self.list(fields, "knowledge", Section::Knowledge);
        let selectable = self.selectable(fields);
        let instruction = self.instruction(fields);
        fields.misplaced(&["report"], "output_contracts");
        let refresh = has_session_refresh(fields);
        let session_key = fields.filled("session_key").map(|text| text.text.trim());
        let previous = fields.boolean("pass_previous_response").is_none_or(|(value, _)| value);
        let (permission, doubtful) = read_step_permission(fields, step);
        let boundary = Boundary { permission, tools: read_allowed_tools(fields) };
        let reports = reports::read_reports(fields, sections, step);
        let gates = gates::read_quality_gates(fields, step);
        let structured = read_structured_output(fields);
        let team = self.team(fields, step).map(Box::new);
        let completion = self.completion(fields);
        if !doubtful {
            weak_permissions::check_write_access(fields, step, &boundary, &gates);
        }
        let model = fields.filled("model").map(|text| text.text);
        let promotions = read_promotions(fields);
        if let Some(provider) = fields.filled("provider") {
            let statement = format!(
                "the step `{step}` names the provider `{}`; a run calls one agent for everything",
                provider.text
            );
            fields.found.left_out(
                provider.span,
                statement,
                "choose the agent of the run with `--provider`, and remove the key",
            );
        }
        fields.stray("answer_agent", "nothing reads it");
        AgentSettings {
            persona,
            title,
            policies,
            knowledge,
            selectable,
            instruction,
            boundary,
            refresh,
            session_key,
            rules: sections.rules(),
            model,
            promotions,
            previous,
            reports,
            structured,
            gates,
            completion,
            team,
        }
    }

    /// Reads the persona that a reference names.
    pub(super) fn persona(&self, reference: Text<'_>, fields: &Fields<'_, '_>) -> Persona {
        let reference = Text { text: reference.text.trim(), ..reference };
        let body = self.sections.resolve(Section::Personas, reference, fields);
        let inline = body.as_ref().is_some_and(|body| body.stem.is_none())
            && !self.sections.has(Section::Personas, reference.text);
        Persona { key: (!inline).then(|| reference.text.into()), body }
    }

    /// Reads a reference or a list of references.
    pub(super) fn list(
        &self,
        fields: &Fields<'_, '_>,
        key: &'static str,
        section: Section,
    ) -> Vec<KeyedText> {
        let Some(entry) = fields.entry(key) else { return Vec::new() };
        let references: Vec<Text<'_>> = match &entry.value.kind {
            Kind::Text(text) => vec![Text { text, span: entry.value.span }],
            Kind::List(_) => fields.texts(key).unwrap_or_default(),
            _ => {
                fields.wrong_type(key, &entry.value, "a key, or a list of keys");
                return Vec::new();
            }
        };
        references
            .into_iter()
            .filter_map(|reference| {
                let reference = Text { text: reference.text.trim(), ..reference };
                if reference.text.is_empty() {
                    fields.invalid(
                        reference.span,
                        format!("`{key}` is empty"),
                        "name a key, or leave it out",
                    );
                    return None;
                }
                let is_key = self.sections.has(section, reference.text);
                let body = self.sections.resolve(section, reference, fields)?;
                // A file that is named without a path is known by that name.
                let is_bare = !reference.text.contains('/') || reference.text.starts_with(FILE);
                let key = match &body.stem {
                    _ if is_key => Some(reference.text.into()),
                    Some(stem) if is_bare => Some(stem.clone()),
                    _ => None,
                };
                Some(KeyedText { key, body })
            })
            .collect()
    }

    /// Reads `instruction` or `instruction_template`; of both, the template holds.
    pub(super) fn instruction(&self, fields: &Fields<'_, '_>) -> Option<FacetText> {
        if let Some(entry) = fields.nullable("instruction")
            && matches!(entry.value.kind, Kind::List(_))
        {
            let all = fields.texts("instruction")?;
            if all.is_empty() {
                fields.invalid(entry.value.span, "`instruction` is empty", "name an instruction");
            }
            if let Some(empty) = all.iter().find(|text| text.text.trim().is_empty()) {
                fields.invalid(empty.span, "an instruction is empty", "name one, or write a text");
            }
            return self.sections.joined(Section::Instructions, &all, fields);
        }
        let key = fields.filled("instruction");
        let inline = fields.filled("instruction_template");
        if let (Some(_), Some(inline)) = (key, inline) {
            let message = "both `instruction` and `instruction_template` are given; the template holds";
            let finding = Diagnostic::warning(codes::CONFLICTING_KEYS, inline.span, message);
            fields.push(finding.hint("keep one of them"));
        }
        let key = key.map(|key| {
            let key = Text { text: key.text.trim_end(), ..key };
            self.sections.resolve(Section::Instructions, key, fields)
        });
        if let Some(body) = key.filter(|_| inline.is_none()) {
            return body;
        }
        match inline {
            // A path is read like an entry of `instructions`.
            Some(inline)
                if super::texts::sections::is_path(inline.text) && inline.text.trim().ends_with(".md") =>
            {
                let path = Text { text: inline.text.trim(), ..inline };
                self.sections.resolve(Section::Instructions, path, fields)
            }
            Some(inline) => Some(self.sections.inline(inline)),
            None => {
                if fields.nullable("instruction").is_none()
                    && fields.nullable("instruction_template").is_none()
                {
                    fields.missing("instruction");
                }
                None
            }
        }
    }
}

/// Reads the schema that replaced the name of one in `structured_output`.
fn read_structured_output(fields: &Fields<'_, '_>) -> Option<StructuredOutput> {
    let entry = fields.nullable("structured_output")?;
    Some(StructuredOutput { schema: entry.value.to_value(), span: entry.key_span })
}

/// Reads the models of later visits.
fn read_promotions(fields: &Fields<'_, '_>) -> Vec<(u32, Str)> {
    let one = |item: &Json| {
        let fields = Fields::of(item, "an entry of `promotion`", None, fields.found)?;
        let (at, model) = (fields.count("at", 1), fields.filled("model"));
        if at.is_none() && fields.nullable("at").is_none() {
            fields.missing("at");
        }
        fields.finish();
        Some((at?.0, model?.text.trim().into()))
    };
    let mut all: Vec<(u32, Str)> = fields.items("promotion").iter().filter_map(one).collect();
    all.sort_by_key(|(at, _)| *at);
    all
}

/// Whether each visit starts a new session.
fn has_session_refresh(fields: &Fields<'_, '_>) -> bool {
    matches!(fields.one_of("session", &["continue", "refresh"]), Some(("refresh", _)))
}

/// The permission of a movement: from its mode, else from `edit`; and whether a finding already questions it.
fn read_step_permission(fields: &Fields<'_, '_>, step: &str) -> (Permission, bool) {
    let mut is_questioned = fields.nullable("edit").is_none();
    let permission = read_permission(fields, step, &mut is_questioned);
    let is_misread = ["edit", "permission_mode"].iter().any(|key| fields.is_poisoned(key));
    (permission, is_questioned || is_misread)
}

fn read_permission(fields: &Fields<'_, '_>, step: &str, is_questioned: &mut bool) -> Permission {
    fields.need("edit");
    let edit = fields.boolean("edit");
    let edits = edit.is_some_and(|(value, _)| value);
    let mode = fields.one_of("permission_mode", &["readonly", "edit", "full"]);
    if fields.nullable("edit").is_none() {
        missing_edit(fields, step, mode.map(|(mode, _)| mode));
    }
    match mode {
        None if edits => Permission::AcceptEdits,
        None => Permission::Plan,
        Some(("readonly", span)) => {
            if edits {
                let hint = "remove one of them: the stricter one holds";
                fields.inert(span, "`edit: true` has no effect beside `permission_mode: readonly`", hint);
                *is_questioned = true;
            }
            Permission::Plan
        }
        Some((mode, span)) => {
            if let Some((false, _)) = edit {
                let message = format!("`permission_mode: {mode}` contradicts `edit: false`");
                let finding = Diagnostic::error(codes::CONFLICTING_KEYS, span, message);
                fields.push(finding.hint("say `edit: true`, or `permission_mode: readonly`"));
            }
            // Without `edit`, the mode alone allows changes to files.
            let wanted = if mode == "full" { Permission::BypassPermissions } else { Permission::AcceptEdits };
            if matches!(edit, Some((false, _))) { Permission::Plan } else { wanted }
        }
    }
}

/// Reports that `edit` is missing. The mode alone may still allow changes.
fn missing_edit(fields: &Fields<'_, '_>, step: &str, mode: Option<&str>) {
    if fields.is_broken() {
        return;
    }
    let what = match mode {
        Some("full") => "everything",
        Some("edit") => "files",
        _ => {
            let message = format!("`edit` is missing, so `{step}` may change nothing");
            let finding = Diagnostic::warning(codes::MISSING_EDIT, fields.opening(), message);
            fields.push(finding.hint("add `edit: true` or `edit: false`"));
            return;
        }
    };
    let mode = mode.unwrap_or_default();
    let message = format!("`edit` is missing; `permission_mode: {mode}` alone lets `{step}` change {what}");
    let finding = Diagnostic::warning(codes::MISSING_EDIT, fields.opening(), message);
    fields.push(finding.hint("add `edit: true`; or `edit: false`, and remove `permission_mode`"));
}

/// The tools that the agent may use.
fn read_allowed_tools(fields: &Fields<'_, '_>) -> Tools {
    let Some(tools) = fields.texts("allowed_tools") else { return Tools::All };
    tool_names::check_tool_names(&tools, fields);
    if tools.iter().any(|tool| tool.text == "*") {
        return Tools::All;
    }
    Tools::Only(tools.iter().map(|tool| tool.text.into()).collect())
}

/// Reports a movement without rules, or without a rule for headless runs.
fn check_rules(fields: &Fields<'_, '_>, rules: &[Rule<'_>]) {
    if fields.nullable("rules").is_none() {
        fields.missing("rules");
    } else if rules.is_empty() {
        if is_empty_list(fields, "rules") {
            fields.invalid(fields.opening(), "`rules` has no rule", "add one with `condition` and `next`");
        }
    } else {
        some_left(fields, rules);
    }
}

/// Whether a key holds an empty list.
pub(super) fn is_empty_list(fields: &Fields<'_, '_>, key: &'static str) -> bool {
    let entry = fields.nullable(key);
    entry.is_some_and(|entry| matches!(&entry.value.kind, Kind::List(items) if items.is_empty()))
}

/// Reports rules that are all `interactive_only`: a headless run needs at least one.
pub(super) fn some_left(fields: &Fields<'_, '_>, rules: &[Rule<'_>]) {
    if !rules.is_empty() && rules.iter().all(|rule| rule.hidden) {
        let message = "all rules are `interactive_only`, so none applies in an unattended run";
        let finding = Diagnostic::error(codes::MISSING_TRANSITION, rules_span(rules), message);
        fields.push(finding.hint("add a rule that holds without a person"));
    }
}

fn rules_span(rules: &[Rule<'_>]) -> Span {
    rules.first().map(|rule| rule.span).unwrap_or_default()
}
