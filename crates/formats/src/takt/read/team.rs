//! Reads `team_leader`: a step whose agent only splits the work, and who does the parts.

use cuegate_flow::{
    diagnostics::{Diagnostic, Span},
    model::AgentKeys,
};

use super::agent::{AgentSettings, read_tags};
use super::gates::Gates;
use super::permission::{self, PermissionKeys, ToolList};
use super::step::StepReader;
use crate::codes;
use crate::values::json::{Fields, Kind, Text};

/// The most batches of a visit. TAKT has no such limit.
const BATCHES_MAX: u32 = 5;
/// The most parts of a batch, as in TAKT.
const PARTS_MAX: u32 = 3;

/// What each of those who do the parts is told.
const DO_THE_PART: &str = "Do your part of the work, and nothing else.";

/// Keys of a leader without effect.
const WITHOUT_EFFECT: [&str; 4] = ["refill_threshold", "timeout_ms", "fail_on_part_error", "inspect_tools"];

/// Those who do the work of a step whose agent only splits it.
pub(crate) struct Team<'j> {
    /// The most parts that are done at the same time.
    pub(crate) parts: u32,
    /// The most parts of the first batch.
    pub(crate) first: Option<u32>,
    /// The most batches of a visit, at least 1.
    pub(crate) batches: u32,
    pub(crate) part: AgentSettings<'j>,
    pub(crate) span: Span,
}

/// What the keys of a step say of those who do the parts.
pub(super) struct StepOfLeader<'s> {
    pub(super) name: &'s str,
    pub(super) is_member: bool,
    /// Whether an agent selects texts for it.
    pub(super) has_selection: bool,
    pub(super) keys: PermissionKeys,
    pub(super) tools: Option<ToolList>,
}

impl StepReader<'_, '_, '_> {
    /// Reads the leader of a step into its `settings`, with the team that does the work.
    pub(super) fn read_team<'j>(
        &self,
        fields: &Fields<'j, '_>,
        step: StepOfLeader<'_>,
        settings: &mut AgentSettings<'j>,
    ) {
        let Some(entry) = fields.shunned("team_leader") else { return };
        settings.boundary = permission::boundary_of_leader();
        if !matches!(entry.value.kind, Kind::Object(_)) {
            let message = "`team_leader` must be a mapping";
            let finding = Diagnostic::error(codes::WRONG_TYPE, entry.value.span, message);
            self.notes.refuse(finding.hint("give it `max_concurrency` and `part_persona`"));
            return;
        }
        let refuse = |finding: Diagnostic, hint: &str| self.notes.refuse(finding.hint(hint));
        if step.is_member {
            let message = "a member of a parallel step cannot be a `team_leader`";
            return refuse(
                Diagnostic::error(codes::INVALID_VALUE, entry.key_span, message),
                "make it a step of its own",
            );
        }
        if let Some(command) = settings.gates.commands.first() {
            let message = "commands as quality gates of a `team_leader` are not supported yet";
            let hint = "check the work in a step that follows";
            return refuse(Diagnostic::error(codes::UNSUPPORTED_YET, command.span, message), hint);
        }
        if step.has_selection {
            let message = "`dynamic_facets` of a `team_leader` is not supported yet";
            let hint = "name the texts with `policy` and `knowledge`";
            return refuse(Diagnostic::error(codes::UNSUPPORTED_YET, entry.key_span, message), hint);
        }
        let Some(leader) = Fields::of(&entry.value, "`team_leader`", Some(step.name), fields.found) else {
            return;
        };
        self.ignore_keys(&leader, &WITHOUT_EFFECT);
        let part = self.read_part(&leader, &step, settings, entry.key_span);
        if let Some(persona) = leader.filled("persona") {
            settings.persona = Some(self.read_persona(persona, &leader));
        }
        let count = |key| leader.count(key, 1);
        let written = [count("max_concurrency"), count("max_parts")].into_iter().flatten().next();
        if let Some((_, span)) = written.filter(|(parts, _)| *parts > PARTS_MAX) {
            let message = format!("a `team_leader` has at most {PARTS_MAX} parts at a time");
            leader.invalid(span, message, "write a number up to that");
        }
        let first = count("initial_max_parts").map(|(first, _)| first);
        let total = count("max_total_parts").map_or(u32::MAX, |(total, _)| total);
        leader.finish();
        let parts = written.map_or(PARTS_MAX, |(parts, _)| parts.min(PARTS_MAX)).min(total);
        // Full batches do not exceed the total.
        let batches = BATCHES_MAX.min(total / parts);
        settings.team = Some(Box::new(Team { parts, first, batches, part, span: entry.value.span }));
    }

    /// Reads the settings of those who do the parts: those of the step, unless the leader says otherwise.
    fn read_part<'j>(
        &self,
        leader: &Fields<'j, '_>,
        step: &StepOfLeader<'_>,
        settings: &AgentSettings<'j>,
        span: Span,
    ) -> AgentSettings<'j> {
        let persona = match leader.filled("part_persona") {
            Some(persona) => Some(self.read_persona(persona, leader)),
            None => settings.persona.clone(),
        };
        let tools =
            permission::read_listed_tools(leader, "part_allowed_tools").or_else(|| step.tools.clone());
        let edit = leader.boolean("part_edit").or(step.keys.edit).unwrap_or((false, span));
        let mode = permission::read_mode(leader, "part_permission_mode").or(step.keys.required);
        let keys = step.keys.for_part(edit, mode);
        let (boundary, is_questioned) = permission::read_boundary(leader, step.name, keys, tools.as_ref());
        if !is_questioned {
            permission::check_write_access(leader, step.name, &boundary, &Gates::default(), tools.as_ref());
        }
        let own_tags = read_tags(leader, "part_tags");
        let tags = own_tags.unwrap_or_else(|| settings.agent_keys.tags.clone());
        AgentSettings {
            persona,
            title: None,
            policies: settings.policies.clone(),
            knowledge: settings.knowledge.clone(),
            selectable: Vec::new(),
            instruction: Some(self.sections.inline(Text { text: DO_THE_PART, span })),
            boundary,
            commits_nothing: settings.commits_nothing,
            refresh: true,
            session_key: None,
            rules: self.sections.rules(),
            model: settings.model,
            agent_keys: AgentKeys { tags, promoted_at: Vec::new(), ..settings.agent_keys.clone() },
            promotions: Vec::new(),
            previous: true,
            reports: Vec::new(),
            structured: None,
            gates: Gates::default(),
            completion: None,
            companions: None,
            team: None,
        }
    }
}
