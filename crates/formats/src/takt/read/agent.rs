//! Reads the settings of the agent of a step.

use cuegate_flow::{
    Str,
    diagnostics::Diagnostic,
    model::{AgentKeys, Boundary},
};
use serde_json::Value;

use super::companions::Companions;
use super::completion::CompletionRetry;
use super::gates::{self, Gates};
use super::permission::{self, PermissionKeys};
use super::reports::{self, ReportDefinition};
use super::sections::{FacetText, Section, is_path};
use super::selection::{SelectableTexts, Selection};
use super::step::StepReader;
use super::team::{StepOfLeader, Team};
use super::tool_servers::read_tool_servers;
use crate::codes;
use crate::takt::spellings;
use crate::values::json::{Fields, Json, Kind, Text};

/// The settings of a step that asks an agent.
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
    /// Whether the agent is told not to commit.
    pub(crate) commits_nothing: bool,
    /// Whether each visit starts a new session.
    pub(crate) refresh: bool,
    /// The key of the session, if it is not that of the persona.
    pub(crate) session_key: Option<&'j str>,
    /// Rules for all steps.
    pub(crate) rules: Vec<FacetText>,
    pub(crate) model: Option<&'j str>,
    /// What says which agent is called.
    pub(crate) agent_keys: AgentKeys,
    /// The models from a number of visits on.
    pub(crate) promotions: Vec<(u32, Str)>,
    /// Whether the prompt contains the previous step's response.
    pub(crate) previous: bool,
    /// The reports that the step must write.
    pub(crate) reports: Vec<ReportDefinition>,
    /// The schema of the data that the answer must hold.
    pub(crate) structured: Option<StructuredOutput>,
    /// The quality gates.
    pub(crate) gates: Gates<'j>,
    /// How its work is completed.
    pub(crate) completion: Option<CompletionRetry>,
    /// The reviewers of its work.
    pub(crate) companions: Option<Companions>,
    /// Those who do its work, if the agent only splits it.
    pub(crate) team: Option<Box<Team<'j>>>,
}

/// The schema of the data in an answer.
pub(crate) struct StructuredOutput {
    pub(crate) schema: Value,
}

#[derive(Debug, Clone)]
pub(crate) struct Persona {
    /// The key in `personas`; `None` for an inline text.
    pub(crate) key: Option<Str>,
    /// Its text; `None` if it could not be read.
    pub(crate) body: Option<FacetText>,
}

/// A text with the key that refers to it.
#[derive(Debug, Clone)]
pub(crate) struct KeyedText {
    /// The key; `None` for an inline text.
    pub(crate) key: Option<Str>,
    pub(crate) body: FacetText,
}

/// What a step does whose file says nothing else.
const DO_THE_TASK: &str = "{task}";

impl<'j> AgentSettings<'j> {
    /// Sets the agent and the model where nothing is said, also for those who do the parts.
    pub(super) fn default_agent(&mut self, agent: Option<&Str>, model: Option<&'j str>) {
        self.agent_keys.agent = self.agent_keys.agent.take().or_else(|| agent.cloned());
        self.model = self.model.or(model);
        if let Some(team) = &mut self.team {
            team.part.default_agent(agent, model);
        }
    }
}

impl StepReader<'_, '_, '_> {
    /// Reads the settings of an agent, and the selection of its texts. `needs_instruction` says whether a step without an
    /// instruction is probably a mistake.
    pub(super) fn read_agent<'j>(
        &self,
        fields: &Fields<'j, '_>,
        step: &str,
        is_member: bool,
        needs_instruction: bool,
    ) -> (AgentSettings<'j>, Option<Selection<'j>>) {
        let sections = self.sections;
        self.ignore_keys(fields, &["mode"]);
        let persona = fields.filled(spellings::find_persona_key(fields));
        let persona = persona.map(|reference| self.read_persona(reference, fields));
        fields.shunned("agent_name");
        let title = spellings::find_renamed_entry(fields, "persona_name", &["agent_name"]).0;
        let title = fields.filled(title).map(|text| text.text);
        let policies = self.read_texts(fields, "policy", Section::Policies);
        let knowledge = self.read_texts(fields, "knowledge", Section::Knowledge);
        let (selectable, selection) = self.read_dynamic_facets(fields, step).unzip();
        let leads = fields.nullable("team_leader").is_some();
        let has_instruction =
            ["instruction", "instruction_template"].iter().any(|key| fields.nullable(key).is_some());
        let instruction = match has_instruction {
            true => self.read_instruction(fields),
            false => Some(self.default_instruction(fields, step, needs_instruction && !leads)),
        };
        let commits_nothing = matches!(fields.boolean("allow_git_commit"), Some((false, _)));
        let refresh = self.has_session_refresh(fields);
        let session_key = fields.filled("session_key").map(|text| text.text.trim());
        let previous = fields.boolean("pass_previous_response").is_none_or(|(value, _)| value);
        let tools = self.read_tool_list(fields);
        let keys = PermissionKeys::read(fields, tools.as_ref());
        let reports = reports::read_reports(fields, sections, step);
        let gates = gates::read_quality_gates(fields, step);
        let structured = self.read_structured_output(fields);
        let completion = self.read_completion(fields, is_member || leads);
        let companions = self.read_companions(fields, is_member || leads);
        let model = fields.filled("model").map(|text| text.text);
        let (promotions, promoted_at) = self.read_promotions(fields);
        let agent = fields.filled("provider").map(|provider| provider.text.into());
        let agent_keys = AgentKeys {
            agent,
            tags: read_tags(fields, "tags").unwrap_or_default(),
            written_as: Some(self.written_as(step)),
            seat: None,
            promoted_at,
            tool_servers: read_tool_servers(fields),
        };
        fields.stray("answer_agent", "nothing reads it");
        let mut settings = AgentSettings {
            persona,
            title,
            policies,
            knowledge,
            selectable: selectable.unwrap_or_default(),
            instruction,
            boundary: Boundary::default(),
            commits_nothing,
            refresh,
            session_key,
            rules: sections.rules(),
            model,
            agent_keys,
            promotions,
            previous,
            reports,
            structured,
            gates,
            completion,
            companions,
            team: None,
        };
        if leads {
            let has_selection = selection.is_some();
            let leader = StepOfLeader { name: step, is_member, has_selection, keys, tools };
            self.read_team(fields, leader, &mut settings);
            return (settings, selection);
        }
        let (boundary, is_questioned) = permission::read_boundary(fields, step, keys, tools.as_ref());
        settings.boundary = boundary;
        if !is_questioned {
            let (boundary, gates) = (&settings.boundary, &settings.gates);
            permission::check_write_access(fields, step, boundary, gates, tools.as_ref());
        }
        (settings, selection)
    }

    /// The instruction of a step that has none: to do the task.
    fn default_instruction(&self, fields: &Fields<'_, '_>, step: &str, needs_instruction: bool) -> FacetText {
        let span = fields.nullable("name").map_or(fields.span, |name| name.value.span);
        if needs_instruction && !step.is_empty() {
            let message = format!("`{step}` has no `instruction`; its agent gets the task alone");
            let finding = Diagnostic::warning(codes::MISSING_KEY, span, message);
            fields.push(finding.hint("write what the agent is to do"));
        }
        self.sections.inline(Text { text: DO_THE_TASK, span })
    }

    /// The workflow in which a step stands, and its name there.
    fn written_as(&self, step: &str) -> (Str, Str) {
        let scope = self.sections.scope();
        let workflow = scope.root.get("name").and_then(Json::as_text).unwrap_or_default().trim();
        let prefix = scope.prefixes.first().map_or("", String::as_str);
        (workflow.into(), step.strip_prefix(prefix).unwrap_or(step).into())
    }

    /// Reads the models of later visits, and the visits from which the next stage of a ladder in `runtime.yaml` is called:
    /// those of entries without a model.
    fn read_promotions(&self, fields: &Fields<'_, '_>) -> (Vec<(u32, Str)>, Vec<u32>) {
        let mut promoted_at = Vec::new();
        let mut one = |item: &Json| {
            let fields = Fields::of(item, "an entry of `promotion`", None, fields.found)?;
            let options = [fields.shunned("provider"), fields.shunned("provider_options")];
            let count = options.iter().flatten().count();
            if item.pairs().len() == count + 1 && fields.nullable("at").is_some() {
                promoted_at.extend(fields.count("at", 1).map(|(at, _)| at));
                return None;
            }
            let (at, model) = (fields.count("at", 1), fields.filled("model"));
            if at.is_none() && fields.nullable("at").is_none() {
                fields.missing("at");
            }
            fields.finish();
            Some((at?.0, model?.text.trim().into()))
        };
        let mut all: Vec<(u32, Str)> = fields.items("promotion").iter().filter_map(&mut one).collect();
        all.sort_by_key(|(at, _)| *at);
        promoted_at.sort_unstable();
        promoted_at.dedup();
        (all, promoted_at)
    }

    /// Whether each visit starts a new session.
    fn has_session_refresh(&self, fields: &Fields<'_, '_>) -> bool {
        match fields.nullable("session") {
            Some(entry) if entry.value.as_text() == Some("compact") => {
                self.notes.ignore_key(entry);
                false
            }
            _ => matches!(fields.one_of("session", &["continue", "refresh"]), Some(("refresh", _))),
        }
    }

    /// Reads the persona that a reference names.
    pub(super) fn read_persona(&self, reference: Text<'_>, fields: &Fields<'_, '_>) -> Persona {
        let reference = Text { text: reference.text.trim(), ..reference };
        let body = self.sections.resolve(Section::Personas, reference, fields);
        let inline = body.as_ref().is_some_and(|body| body.stem.is_none())
            && !self.sections.has(Section::Personas, reference.text);
        Persona { key: (!inline).then(|| reference.text.into()), body }
    }

    /// Reads a reference or a list of references.
    pub(super) fn read_texts(
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
        let mut texts = Vec::new();
        for reference in references {
            let reference = Text { text: reference.text.trim(), ..reference };
            if reference.text.is_empty() {
                let message = format!("`{key}` is empty");
                fields.invalid(reference.span, message, "name a key, or leave it out");
                continue;
            }
            texts.extend(self.read_keyed_text(reference, section, fields));
        }
        texts
    }

    /// Reads the text that a reference names.
    pub(super) fn read_keyed_text(
        &self,
        reference: Text<'_>,
        section: Section,
        fields: &Fields<'_, '_>,
    ) -> Option<KeyedText> {
        let is_key = self.sections.has(section, reference.text);
        let body = self.sections.resolve(section, reference, fields)?;
        // A file that is named without a path is known by that name.
        let key = match &body.stem {
            _ if is_key => Some(reference.text.into()),
            Some(stem) if !reference.text.contains('/') => Some(stem.clone()),
            _ => None,
        };
        Some(KeyedText { key, body })
    }

    /// Reads `instruction` or `instruction_template`; of both, the template holds.
    pub(super) fn read_instruction(&self, fields: &Fields<'_, '_>) -> Option<FacetText> {
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
            Some(inline) if is_path(inline.text) && inline.text.trim().ends_with(".md") => {
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

/// The tags by which settings choose the agent of a step; `None` if the key is missing.
pub(super) fn read_tags(fields: &Fields<'_, '_>, key: &'static str) -> Option<Vec<Str>> {
    fields.shunned(key);
    let tags = fields.texts(key)?;
    Some(tags.iter().map(|tag| tag.text.trim()).filter(|tag| !tag.is_empty()).map(Str::from).collect())
}
