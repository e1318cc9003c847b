//! `agent.json` as written.

use cuegate_flow::{
    diagnostics::Span,
    model::{Conduct, Param, Permission, Tools},
};

use super::actions::HandlerFile;
use super::completion_type::VerdictSettings;
use super::parameters::read_parameters;
use super::runner::{WorktreeSettings, read_runner};
use crate::climpt::verdict_variables::VerdictVariables;
use crate::findings::Findings;
use crate::source::loaded::LogRule;
use crate::values::json::{Fields, Json, Kind, Text};

/// An agent as written, completed with the defaults of the runner reference.
#[derive(Debug)]
pub(crate) struct AgentDefinition<'j> {
    /// Whether there is an `agent.json`.
    pub(crate) is_written: bool,
    /// Its name, if it is valid.
    pub(crate) name: Option<&'j str>,
    /// Its display name.
    pub(crate) title: Option<&'j str>,
    pub(crate) description: Option<&'j str>,
    /// Its parameters: values given at start.
    pub(crate) params: Vec<Param>,
    /// Whether there are parameters whose names could not be read.
    pub(crate) params_misread: bool,
    pub(crate) system_prompt: Option<Text<'j>>,
    /// Its registry, with the place where it is named.
    pub(crate) registry: (&'j str, Option<Span>),
    /// The second prompt base, searched after the registry's, with the place where it is named.
    pub(crate) fallback_dir: (&'j str, Option<Span>),
    pub(crate) schemas_base: Option<Text<'j>>,
    /// The default model of its steps.
    pub(crate) default_model: Option<&'j str>,
    /// When a run is complete.
    pub(crate) verdict: VerdictSettings<'j>,
    /// The widest permission of every step.
    pub(crate) permission: Permission,
    /// The place of the permission.
    pub(crate) permission_span: Option<Span>,
    /// The tools every step may use.
    pub(crate) tools: Tools,
    /// The texts that its settings provide to prompts.
    pub(crate) told: VerdictVariables,
    /// The settings of a whole run.
    pub(crate) conduct: Conduct,
    /// Programs that handle action blocks of answers.
    pub(crate) handler_files: Vec<HandlerFile<'j>>,
    /// The log folder of runs.
    pub(crate) logging: Option<LogRule>,
    /// Whether it works in its own worktree.
    pub(crate) worktree: WorktreeSettings<'j>,
}

impl Default for AgentDefinition<'_> {
    fn default() -> Self {
        AgentDefinition {
            is_written: false,
            name: None,
            title: None,
            description: None,
            params: Vec::new(),
            params_misread: false,
            system_prompt: None,
            registry: ("steps_registry.json", None),
            fallback_dir: ("prompts", None),
            schemas_base: None,
            default_model: None,
            verdict: VerdictSettings::default(),
            permission: Permission::Plan,
            permission_span: None,
            tools: Tools::All,
            told: VerdictVariables::new(),
            conduct: Conduct::default(),
            handler_files: Vec::new(),
            logging: None,
            worktree: WorktreeSettings::default(),
        }
    }
}

/// Reads an agent in the layout of the runner reference. `None` when it is not an object, which is reported.
pub(crate) fn read_agent<'j>(
    json: &'j Json,
    agent_dir: &str,
    found: &Findings,
) -> Option<AgentDefinition<'j>> {
    let fields = Fields::of(json, "the agent", None, found)?;
    let mut agent =
        AgentDefinition { is_written: true, params: read_parameters(&fields), ..AgentDefinition::default() };
    let written = fields.nullable("parameters");
    agent.params_misread = written.is_some_and(|entry| !matches!(entry.value.kind, Kind::Object(_)));
    fields.text("$schema");
    if let Some(version) = fields.text("version") {
        check_version(version, &fields);
    }
    agent.name = fields.required("name").and_then(|name| {
        let good = name.text.starts_with(|c: char| c.is_ascii_lowercase())
            && name.text.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-');
        if !good {
            let message = format!("`{}` is not a name for an agent", name.text);
            fields.invalid(name.span, message, "use lower-case letters, digits and hyphens, a letter first");
        }
        good.then_some(name.text)
    });
    agent.title = fields.required("displayName").map(|title| title.text);
    agent.description = fields.text("description").map(|description| description.text);
    match fields.object("runner") {
        Some(runner) => read_runner(runner, agent_dir, &mut agent),
        None if fields.entry("runner").is_none() => {
            fields.missing("runner");
            agent.verdict = VerdictSettings::unreadable();
        }
        None => agent.verdict = VerdictSettings::unreadable(),
    }
    fields.misplaced(&["flow", "verdict", "boundaries", "integrations", "execution"], "runner");
    fields.misplaced(&["systemPromptPath", "defaultModel", "askUserAutoResponse"], "runner.flow");
    fields.misplaced(&["allowedTools", "permissionMode", "sandbox"], "runner.boundaries");
    fields.finish();
    Some(agent)
}

/// Reports a version that is not written like `1.0.0`.
pub(crate) fn check_version(version: Text<'_>, fields: &Fields<'_, '_>) {
    if !is_semver(version.text) {
        let message = format!("`{}` is not a version", version.text);
        fields.invalid(version.span, message, "write it like `1.0.0`");
    }
}

fn is_semver(text: &str) -> bool {
    let parts: Vec<&str> = text.split('.').collect();
    parts.len() == 3
        && parts.iter().all(|part| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit()))
}
