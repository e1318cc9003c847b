//! The keys of steps that the reader of the older vocabulary does not know: those that mean what another key says, those
//! that are approximated, and those without effect.

use cuegate_flow::diagnostics::{Diagnostic, Span};

use super::fragments::all_members;
use super::tree::{as_list, items, list, set, set_entry, take, text};
use super::workflow_keys::Pools;
use super::{Expander, Layers, get_mut};
use crate::lints;
use crate::values::json::{Entry, Json, Kind};

/// Keys of a step without effect: they choose providers and their options.
const WITHOUT_EFFECT: [&str; 9] = [
    "tags",
    "promotion",
    "mcp_servers",
    "allow_git_commit",
    "requires_user_input",
    "concurrency",
    "selection",
    "completion_retry",
    "review_completion",
];

/// Tools by capability, for TAKT's own names.
const CAPABILITIES: [(&str, &[&str]); 3] = [
    ("readonly", &["Read", "Glob", "Grep", "Bash", "WebSearch", "WebFetch"]),
    ("edit", &["Read", "Glob", "Grep", "Edit", "Write", "Bash", "WebSearch", "WebFetch"]),
    ("enable-skills", &[]),
];

/// What the keys of a step refer to.
pub(super) struct Surroundings<'s> {
    pub(super) layers: &'s Layers,
    pub(super) pools: &'s Pools,
    /// The tools of steps that name none.
    pub(super) tools: Option<&'s Json>,
    /// The files of schemas by name.
    pub(super) schemas: Option<&'s Json>,
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
            Diagnostic::error(lints::UNSUPPORTED_YET, span, format!("{what} not supported yet")).hint(hint),
        );
        true
    }

    /// Rewrites the keys of a step and of its members.
    pub(super) fn step_keys(&mut self, step: &mut Json, around: &Surroundings<'_>) {
        let Some(parallel) = get_mut(step, "parallel") else {
            self.agent_keys(step, around);
            return;
        };
        if matches!(parallel.kind, Kind::Object(_)) {
            let (members, span) = (all_members(parallel), parallel.span);
            let pool = parallel.get("pool").map(items).unwrap_or_default().len();
            if pool > 0 {
                self.approximate(span, "no selector is asked, all members of a pool run".to_owned());
            }
            if let Some(parallel) = get_mut(step, "parallel") {
                *parallel = list(members, span);
            }
        }
        for key in WITHOUT_EFFECT.into_iter().chain(["capabilities", "provider_options"]) {
            if let Some(entry) = take(step, key) {
                self.ignore(&entry);
            }
        }
        let Some(Json { kind: Kind::List(members), .. }) = get_mut(step, "parallel") else { return };
        let mut members = std::mem::take(members);
        for member in &mut members {
            if member.get(super::SCOPE).is_some() {
                continue;
            }
            take(member, "kind");
            self.agent_keys(member, around);
        }
        if let Some(parallel) = get_mut(step, "parallel") {
            parallel.kind = Kind::List(members);
        }
    }

    fn agent_keys(&mut self, step: &mut Json, around: &Surroundings<'_>) {
        let &Surroundings { layers, pools, tools: default, .. } = around;
        if !matches!(step.kind, Kind::Object(_)) {
            return;
        }
        for key in WITHOUT_EFFECT {
            if let Some(entry) = take(step, key) {
                self.ignore(&entry);
            }
        }
        if let Some(entry) = take(step, "mode") {
            self.ignore(&entry);
        }
        self.tools(step, layers, default);
        self.texts_of_pools(step, pools);
        self.leader(step);
        for key in ["companion", "companions"] {
            if let Some(entry) = take(step, key) {
                self.approximate(entry.key_span, "companions do not speak while an agent works".to_owned());
            }
        }
        self.structured_output(step, around.schemas, layers);
        if step.get("session").and_then(Json::as_text) == Some("compact")
            && let Some(entry) = take(step, "session")
        {
            self.ignore(&entry);
        }
        self.permission(step);
        self.gates(step);
        if let Some(contracts) = get_mut(step, "output_contracts")
            && let Some(Json { kind: Kind::List(reports), .. }) = get_mut(contracts, "report")
        {
            for report in reports {
                take(report, "use_judge");
            }
        }
        Self::instruction(step);
    }

    /// The tools that capabilities allow.
    fn tools(&mut self, step: &mut Json, layers: &Layers, default: Option<&Json>) {
        let own = take(step, "capabilities");
        let options = take(step, "provider_options");
        if let Some(options) = &options {
            self.ignore(options);
            let tools = options.value.get("claude").and_then(|claude| claude.get("allowed_tools"));
            if let Some(tools) = tools.filter(|_| step.get("allowed_tools").is_none()) {
                let tools = tools.clone();
                set(step, "allowed_tools", tools);
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
            let path = layers.find(self.desk, "provider-options", written, &[".yaml", ".yml"]);
            let preset = path.and_then(|path| self.parsed(&path));
            let listed = preset.as_ref().and_then(|preset| preset.get("claude")?.get("allowed_tools"));
            let known = CAPABILITIES.iter().find(|(known, _)| *known == written);
            if let Some(listed) = listed {
                // A later name wins.
                tools = Some(
                    items(listed)
                        .iter()
                        .map(|tool| text(tool.as_text().unwrap_or_default(), name.span))
                        .collect(),
                );
            } else if let Some((_, listed)) = known.filter(|(_, listed)| !listed.is_empty()) {
                tools = Some(listed.iter().map(|tool| text(*tool, name.span)).collect());
            } else if known.is_none() && preset.is_none() {
                let message = format!("the capability `{written}` is not found");
                let hint = format!("it is looked for in {}", layers.places("provider-options"));
                self.desk.found.left_out(name.span, message, &hint);
            }
        }
        if let Some(tools) = tools {
            let span = names.span;
            set(step, "allowed_tools", list(tools, span));
        }
    }

    /// The texts of a pool: without a selector the step gets all of them.
    fn texts_of_pools(&mut self, step: &mut Json, pools: &Pools) {
        let Some(facets) = take(step, "dynamic_facets") else { return };
        let named = facets.value.get("pool");
        let Some(name) = named.and_then(Json::as_text).map(str::trim) else {
            // A parameter without a value has its own finding.
            if !self.refused {
                self.refuse(
                    Diagnostic::error(lints::MISSING_KEY, facets.key_span, "`dynamic_facets` names no pool")
                        .hint("name one"),
                );
            }
            return;
        };
        let Some(pool) = pools.get(name) else {
            let span = named.map_or(facets.key_span, |named| named.span);
            self.refuse(
                Diagnostic::error(lints::UNKNOWN_NAME, span, format!("there is no pool `{name}`"))
                    .hint("add it to `facet_pools`"),
            );
            return;
        };
        for (key, which) in [("policy", 0), ("knowledge", 1)] {
            let mut all = step.get(key).map(as_list).unwrap_or_default();
            let known: Vec<String> =
                all.iter().filter_map(|name| name.as_text().map(str::to_owned)).collect();
            let mut seen = known;
            for candidate in pool {
                for name in if which == 0 { &candidate.0 } else { &candidate.1 } {
                    let written = name.as_text().unwrap_or_default().to_owned();
                    if !seen.contains(&written) {
                        seen.push(written);
                        all.push(name.clone());
                    }
                }
            }
            if !all.is_empty() {
                set(step, key, list(all, facets.value.span));
            }
        }
        self.approximate(
            facets.key_span,
            "no selector is asked, prompts contain all texts of a pool".to_owned(),
        );
    }

    /// A leader that splits its work: one agent does all of it.
    fn leader(&mut self, step: &mut Json) {
        let Some(leader) = take(step, "team_leader") else { return };
        let persona = ["part_persona", "persona"].iter().find_map(|key| leader.value.get(key));
        if let Some(persona) = persona.cloned() {
            set(step, "persona", persona);
        }
        if let Some(edit) = leader.value.get("part_edit").filter(|_| step.get("edit").is_none()).cloned() {
            set(step, "edit", edit);
        }
        if let Some(mode) = leader.value.get("part_permission_mode").cloned() {
            set(step, "required_permission_mode", mode);
        }
        if let Some(tools) = leader.value.get("part_allowed_tools").cloned() {
            set(step, "allowed_tools", tools);
        }
        self.approximate(
            leader.key_span,
            "the work of a `team_leader` is not split, one agent does all of it".to_owned(),
        );
    }

    /// The minimum of the permission.
    fn permission(&mut self, step: &mut Json) {
        let Some(required) = take(step, "required_permission_mode") else { return };
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
            take(gate, "name");
            let folder = take(gate, "cwd");
            let folder = folder.as_ref().and_then(|cwd| Some((cwd.value.as_text()?.trim(), cwd.value.span)));
            let Some((folder, _)) = folder.filter(|(folder, _)| !matches!(*folder, "" | "." | "./")) else {
                continue;
            };
            if let Some(command) = get_mut(gate, "command")
                && let Some(written) = command.as_text()
            {
                let quoted = folder.replace('\'', r"'\''");
                *command = text(format!("cd '{quoted}' && {{ {written}\n}}"), command.span);
            }
        }
    }

    /// A step without an instruction does the task.
    fn instruction(step: &mut Json) {
        let has = ["instruction", "instruction_template"].iter().any(|key| step.get(key).is_some());
        if !has {
            let span: Span = step.get("name").map_or(step.span, |name| name.span);
            set(step, "instruction", text("{task}", span));
        }
    }
}
