//! The keys of steps that the reader of the older vocabulary does not know: those that mean what another key says, those
//! that are approximated, and those without effect.

use cuegate_flow::{
    diagnostics::{Diagnostic, Span},
    model::tools::only_writes,
};

use super::tree::{as_list, build_list, build_text, items_of_list, set_entry, set_key, take_key};
use super::workflow_keys::Pools;
use super::{Expander, Layers, SELECTIONS, get_mut};
use crate::codes;
use crate::values::json::{Entry, Json, Kind};

/// Keys of a step without effect: they choose providers and their options.
const WITHOUT_EFFECT: [&str; 6] =
    ["tags", "mcp_servers", "allow_git_commit", "requires_user_input", "concurrency", "selection"];

/// The key of a step whose leader splits its work, and in it the key of those who do the parts.
pub(in crate::takt) const TEAM: &str = "@team";
pub(in crate::takt) const PART: &str = "@part";

/// Tools by capability, for TAKT's own names.
const CAPABILITIES: [(&str, &[&str]); 3] = [
    ("readonly", &["Read", "Glob", "Grep", "Bash", "WebSearch", "WebFetch"]),
    ("edit", &["Read", "Glob", "Grep", "Edit", "Write", "Bash", "WebSearch", "WebFetch"]),
    ("enable-skills", &[]),
];

/// What the keys of a step refer to.
pub(super) struct StepSurroundings<'s> {
    pub(super) layers: &'s Layers,
    pub(super) pools: &'s Pools,
    /// The tools of steps that name none.
    pub(super) tools: Option<&'s Json>,
    /// The files of schemas by name.
    pub(super) schemas: Option<&'s Json>,
    /// What the names of the steps begin with.
    pub(super) prefix: &'s str,
    /// The index of the context.
    pub(super) scope: usize,
}

impl Expander<'_, '_> {
    /// Whether TAKT itself executes a step; then it is reported.
    pub(super) fn is_system(&mut self, step: &Json) -> bool {
        let word = |key: &str| step.get(key).and_then(Json::as_text);
        let what = if word("kind") == Some("system") || word("mode") == Some("system") {
            "system steps, which TAKT itself executes, are"
        } else if step.get("arpeggio").is_some() {
            "`arpeggio`, a step for each row of a file, is"
        } else {
            return false;
        };
        let span = step.get("name").map_or(step.span, |name| name.span);
        let hint = "do that work in a step with an agent, or outside of the workflow";
        self.refuse(
            Diagnostic::error(codes::UNSUPPORTED_YET, span, format!("{what} not supported yet")).hint(hint),
        );
        true
    }

    /// Rewrites the keys of a step and of its members.
    pub(super) fn step_keys(&mut self, step: &mut Json, around: &StepSurroundings<'_>) {
        let Some(parallel) = get_mut(step, "parallel") else {
            self.agent_keys(step, around, false);
            return;
        };
        if matches!(parallel.kind, Kind::Object(_)) {
            self.pool_of_members(step, around);
        }
        let others =
            ["capabilities", "provider_options", "promotion", "completion_retry", "review_completion"];
        for key in WITHOUT_EFFECT.into_iter().chain(others) {
            if let Some(entry) = take_key(step, key) {
                self.ignore(&entry);
            }
        }
        let Some(Json { kind: Kind::List(members), .. }) = get_mut(step, "parallel") else { return };
        let mut members = std::mem::take(members);
        for member in &mut members {
            if member.get(super::SCOPE).is_some() {
                continue;
            }
            take_key(member, "kind");
            self.agent_keys(member, around, true);
        }
        if let Some(parallel) = get_mut(step, "parallel") {
            parallel.kind = Kind::List(members);
        }
    }

    fn agent_keys(&mut self, step: &mut Json, around: &StepSurroundings<'_>, is_member: bool) {
        let &StepSurroundings { layers, tools: default, .. } = around;
        if !matches!(step.kind, Kind::Object(_)) {
            return;
        }
        for key in WITHOUT_EFFECT {
            if let Some(entry) = take_key(step, key) {
                self.ignore(&entry);
            }
        }
        if let Some(entry) = take_key(step, "mode") {
            self.ignore(&entry);
        }
        let has_tools = step.get("allowed_tools").is_some();
        self.tools(step, layers, default);
        if !has_tools {
            Self::edit(step);
        }
        self.texts_of_pools(step, around);
        self.leader(step, is_member);
        for key in ["companion", "companions"] {
            if let Some(entry) = take_key(step, key) {
                self.approximate(entry.key_span, "companions do not speak while an agent works".to_owned());
            }
        }
        self.structured_output(step, around.schemas, layers);
        if step.get("session").and_then(Json::as_text) == Some("compact")
            && let Some(entry) = take_key(step, "session")
        {
            self.ignore(&entry);
        }
        self.completion(step, is_member || step.get(TEAM).is_some());
        self.promotion(step);
        self.permission(step);
        self.gates(step);
        if let Some(contracts) = get_mut(step, "output_contracts")
            && let Some(Json { kind: Kind::List(reports), .. }) = get_mut(contracts, "report")
        {
            for report in reports {
                take_key(report, "use_judge");
            }
        }
        self.instruction(step);
    }

    /// The tools that capabilities allow.
    fn tools(&mut self, step: &mut Json, layers: &Layers, default: Option<&Json>) {
        let own = take_key(step, "capabilities");
        let options = take_key(step, "provider_options");
        if let Some(options) = &options {
            self.ignore(options);
            let tools = options.value.get("claude").and_then(|claude| claude.get("allowed_tools"));
            if let Some(tools) = tools.filter(|_| step.get("allowed_tools").is_none()) {
                let tools = tools.clone();
                set_key(step, "allowed_tools", tools);
            }
        }
        let Some(names) =
            own.as_ref().map(|own| &own.value).or(default).filter(|_| step.get("allowed_tools").is_none())
        else {
            return;
        };
        let mut tools: Option<Vec<Json>> = None;
        for name in as_list(names) {
            let Some(written) = name.as_text().map(str::trim) else { continue };
            let path = layers.find(self.desk, &["provider-options"], written, &[".yaml", ".yml"]);
            let preset = path.and_then(|path| self.parsed(&path));
            let listed = preset.as_ref().and_then(|preset| preset.get("claude")?.get("allowed_tools"));
            let known = CAPABILITIES.iter().find(|(known, _)| *known == written);
            if let Some(listed) = listed {
                // A later name wins.
                tools = Some(
                    items_of_list(listed)
                        .iter()
                        .map(|tool| build_text(tool.as_text().unwrap_or_default(), name.span))
                        .collect(),
                );
            } else if let Some((_, listed)) = known.filter(|(_, listed)| !listed.is_empty()) {
                tools = Some(listed.iter().map(|tool| build_text(*tool, name.span)).collect());
            } else if known.is_none() && preset.is_none() {
                let message = format!("the capability `{written}` is not found");
                let hint = format!("it is looked for in {}", layers.places("provider-options"));
                self.desk.found.left_out(name.span, message, &hint);
            }
        }
        if let Some(tools) = tools {
            let span = names.span;
            set_key(step, "allowed_tools", build_list(tools, span));
        }
    }

    /// A step whose capabilities hold a tool that only writes may change files, unless it says otherwise.
    fn edit(step: &mut Json) {
        let is_said = ["edit", "permission_mode"].iter().any(|key| step.get(key).is_some());
        let tools = step.get("allowed_tools").map(items_of_list).unwrap_or_default();
        let writing = tools.iter().find(|tool| tool.as_text().is_some_and(only_writes));
        if let Some(span) = writing.filter(|_| !is_said).map(|tool| tool.span) {
            set_key(step, "edit", Json { span, kind: Kind::Boolean(true) });
        }
    }

    /// A leader that splits its work: the settings of those who do the parts become a step within the step.
    fn leader(&mut self, step: &mut Json, is_member: bool) {
        let Some(mut leader) = take_key(step, "team_leader") else { return };
        if !matches!(leader.value.kind, Kind::Object(_)) {
            self.refuse(
                Diagnostic::error(codes::WRONG_TYPE, leader.value.span, "`team_leader` must be a mapping")
                    .hint("give it `max_concurrency` and `part_persona`"),
            );
            return;
        }
        for key in ["part_tags", "refill_threshold", "timeout_ms", "fail_on_part_error", "inspect_tools"] {
            if let Some(entry) = take_key(&mut leader.value, key) {
                self.ignore(&entry);
            }
        }
        if is_member {
            let message = "a member of a parallel step cannot be a `team_leader`";
            self.refuse(
                Diagnostic::error(codes::INVALID_VALUE, leader.key_span, message)
                    .hint("make it a step of its own"),
            );
            return;
        }
        let commands = step.get("quality_gates").map(items_of_list).unwrap_or_default();
        if let Some(command) = commands.iter().find(|gate| gate.get("command").is_some()) {
            let message = "commands as quality gates of a `team_leader` are not supported yet";
            self.refuse(
                Diagnostic::error(codes::UNSUPPORTED_YET, command.span, message)
                    .hint("check the work in a step that follows"),
            );
            return;
        }
        if step.get(SELECTIONS).is_some() {
            let message = "`dynamic_facets` of a `team_leader` is not supported yet";
            self.refuse(
                Diagnostic::error(codes::UNSUPPORTED_YET, leader.key_span, message)
                    .hint("name the texts with `policy` and `knowledge`"),
            );
            return;
        }
        let span = leader.key_span;
        let mut part = Json { span, kind: Kind::Object(Vec::new()) };
        for (key, of_part) in [("persona", "part_persona"), ("allowed_tools", "part_allowed_tools")] {
            let value = take_key(&mut leader.value, of_part).map(|entry| entry.value);
            if let Some(value) = value.or_else(|| step.get(key).cloned()) {
                set_key(&mut part, key, value);
            }
        }
        for key in ["policy", "knowledge", "model"] {
            if let Some(value) = step.get(key).cloned() {
                set_key(&mut part, key, value);
            }
        }
        let edit = take_key(step, "edit").map(|entry| entry.value);
        let edit = take_key(&mut leader.value, "part_edit").map(|entry| entry.value).or(edit);
        let edit = edit.unwrap_or(Json { span, kind: Kind::Boolean(false) });
        set_key(&mut part, "edit", edit);
        let own_mode = take_key(step, "required_permission_mode");
        if let Some(mode) = take_key(&mut leader.value, "part_permission_mode").or(own_mode) {
            set_key(&mut part, "required_permission_mode", mode.value);
        }
        self.permission(&mut part);
        set_key(&mut part, "session", build_text("refresh", span));
        set_key(&mut part, "instruction", build_text("Do your part of the work, and nothing else.", span));
        take_key(step, "permission_mode");
        take_key(step, "allowed_tools");
        set_key(step, "edit", Json { span, kind: Kind::Boolean(false) });
        if let Some(persona) = take_key(&mut leader.value, "persona") {
            set_key(step, "persona", persona.value);
        }
        set_key(&mut leader.value, PART, part);
        set_key(step, TEAM, leader.value);
    }

    /// Reads the older name of `completion_retry`, and leaves the key out of members and of steps with `team_leader`: the
    /// edges of those steps do not lead on from an answer of their own.
    fn completion(&mut self, step: &mut Json, is_left_out: bool) {
        const KEY: &str = "completion_retry";
        if let Some(mut older) = take_key(step, "review_completion") {
            older.key = KEY.into();
            set_entry(step, older);
        }
        if !is_left_out {
            return;
        }
        if let Some(entry) = take_key(step, KEY) {
            self.approximate(
                entry.key_span,
                "no judge looks whether the work of a member, or of a `team_leader`, is complete".to_owned(),
            );
        }
    }

    /// Models of later visits. An entry without a model is about a ladder outside of the workflow.
    fn promotion(&mut self, step: &mut Json) {
        let Some(mut promotion) = take_key(step, "promotion") else { return };
        let Kind::List(entries) = &mut promotion.value.kind else {
            set_entry(step, promotion);
            return;
        };
        for entry in entries.iter_mut() {
            for key in ["provider", "provider_options"] {
                take_key(entry, key);
            }
        }
        let is_ladder = |entry: &Json| matches!(entry.pairs(), [only] if &*only.key == "at");
        let count = entries.len();
        entries.retain(|entry| !is_ladder(entry));
        let (is_empty, has_ladder) = (entries.is_empty(), entries.len() < count);
        if has_ladder {
            self.ignore(&promotion);
        }
        if !is_empty {
            set_entry(step, promotion);
        }
    }

    /// The minimum of the permission.
    fn permission(&mut self, step: &mut Json) {
        let Some(required) = take_key(step, "required_permission_mode") else { return };
        let edits = matches!(step.get("edit").map(|edit| &edit.kind), Some(Kind::Boolean(true)));
        let mode = required.value.as_text();
        // `edit: true` is more than `readonly`, and `edit: false` less than what the minimum asks for.
        let forbids = matches!(step.get("edit").map(|edit| &edit.kind), Some(Kind::Boolean(false)));
        let is_less = mode == Some("readonly") && edits || mode != Some("readonly") && forbids;
        if step.get("permission_mode").is_none() && !is_less {
            set_entry(step, Entry { key: "permission_mode".into(), ..required });
        }
    }

    /// Quality gates: a name is for people, a folder becomes part of the command.
    fn gates(&mut self, step: &mut Json) {
        let Some(Json { kind: Kind::List(gates), .. }) = get_mut(step, "quality_gates") else { return };
        for gate in gates {
            take_key(gate, "name");
            let folder = take_key(gate, "cwd");
            let folder = folder.as_ref().and_then(|cwd| Some((cwd.value.as_text()?.trim(), cwd.value.span)));
            let Some((folder, _)) = folder.filter(|(folder, _)| !matches!(*folder, "" | "." | "./")) else {
                continue;
            };
            if let Some(command) = get_mut(gate, "command")
                && let Some(written) = command.as_text()
            {
                let quoted = folder.replace('\'', r"'\''");
                *command = build_text(format!("cd '{quoted}' && {{ {written}\n}}"), command.span);
            }
        }
    }

    /// A step without an instruction does the task.
    fn instruction(&self, step: &mut Json) {
        let has = ["instruction", "instruction_template"].iter().any(|key| step.get(key).is_some());
        if !has {
            let span: Span = step.get("name").map_or(step.span, |name| name.span);
            let asks =
                ["parallel", "call", TEAM, PART, super::STAGE].iter().all(|key| step.get(key).is_none());
            if let Some(name) = step.get("name").and_then(Json::as_text).filter(|_| asks) {
                let message = format!("`{name}` has no `instruction`; its agent gets the task alone");
                let finding = Diagnostic::warning(codes::MISSING_KEY, span, message);
                self.desk.found.push(finding.hint("write what the agent is to do"));
            }
            set_key(step, "instruction", build_text("{task}", span));
        }
    }
}

/// Rewrites older spellings in rules: `when: EXPR` for `condition: when(EXPR)`, and `command_gates: skip` for
/// `quality_gates: false`.
pub(super) fn rule_keys(step: &mut Json) {
    if let Some(Json { kind: Kind::List(members), .. }) = get_mut(step, "parallel") {
        members.iter_mut().for_each(rule_keys);
    }
    let Some(Json { kind: Kind::List(rules), .. }) = get_mut(step, "rules") else { return };
    for rule in rules {
        // Both of them is a finding of the reader.
        if rule.get("condition").is_none()
            && let Some(when) = take_key(rule, "when")
        {
            let value = match when.value.scalar_text() {
                Some(expression) => build_text(format!("when({})", expression.trim()), when.value.span),
                None => when.value,
            };
            set_entry(rule, Entry { key: "condition".into(), value, ..when });
        }
        if rule.get("command_gates").and_then(Json::as_text) == Some("skip")
            && let Some(gates) = take_key(rule, "command_gates")
        {
            let value = Json { span: gates.value.span, kind: Kind::Boolean(false) };
            set_entry(rule, Entry { key: "quality_gates".into(), value, ..gates });
        }
    }
}

/// Rules that hold without a question become texts: the only one, or the one that holds if no other does.
pub(super) fn rewrite_always_rule(step: &mut Json) {
    let Some(Json { kind: Kind::List(rules), .. }) = get_mut(step, "rules") else { return };
    let is_always = |rule: &Json| {
        let condition = rule.get("condition").and_then(Json::as_text).unwrap_or_default();
        condition.chars().filter(|c| !c.is_whitespace()).eq("when(true)".chars())
    };
    let Some(at) = rules.iter().position(is_always) else { return };
    // What comes after it never holds.
    rules.truncate(at + 1);
    let is_predicate = |rule: &Json| {
        rule.get("condition")
            .and_then(Json::as_text)
            .is_some_and(crate::takt::routing::predicate::is_predicate)
    };
    // Together with other predicates it is decided by the structured answer.
    if at > 0 && rules[..at].iter().all(is_predicate) {
        return;
    }
    let meaning = if at == 0 { "done" } else { "none of the others holds" };
    if let Some(condition) = get_mut(&mut rules[at], "condition") {
        *condition = build_text(meaning, condition.span);
    }
}
