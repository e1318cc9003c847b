//! Reads the steps that TAKT itself does: what they read, and what they do.

use std::collections::HashSet;

use cuegate_flow::{
    Str,
    diagnostics::{Diagnostic, Span, find_nearest_name},
    model::{PullRequestFilter, ReadKind, SystemEffectKind, SystemRead},
};

use super::sections::FacetText;
use super::step::{OF_AGENT, StepReader};
use crate::codes;
use crate::values::json::{Fields, Json, Kind, Text};

/// What a system step does.
pub(crate) struct SystemSettings {
    pub(crate) reads: Vec<SystemRead>,
    pub(crate) effects: Vec<EffectSettings>,
}

/// An effect of a system step.
pub(crate) struct EffectSettings {
    /// The word of the format.
    pub(crate) name: &'static str,
    pub(crate) what: SystemEffectKind,
    /// Whether an agent settles conflicts.
    pub(crate) asks_agent: bool,
    /// Its values, as texts with placeholders.
    pub(crate) values: Vec<(Str, FacetText)>,
}

/// The effects by their words.
const EFFECTS: [(&str, SystemEffectKind); 6] = [
    ("enqueue_task", SystemEffectKind::Enqueue),
    ("comment_pr", SystemEffectKind::Comment),
    ("sync_with_root", SystemEffectKind::Sync),
    (RESOLVE, SystemEffectKind::Sync),
    ("merge_pr", SystemEffectKind::Merge),
    ("close_pr", SystemEffectKind::Close),
];
/// The effect in which an agent settles conflicts.
const RESOLVE: &str = "resolve_conflicts_with_ai";

/// The sources that each input can have.
const SOURCES: [(&str, &str); 9] = [
    ("task_context", "current_task"),
    ("branch_context", "current_task"),
    ("issue_context", "current_task"),
    ("pr_context", "current_branch"),
    ("task_queue_context", "current_project"),
    ("pr_list", "current_project"),
    ("pr_selection", "current_project"),
    ("issue_list", "current_project"),
    ("issue_selection", "current_project"),
];

/// Further keys of an agent, which a system step has none of.
const OF_AGENT_STEP: [&str; 4] = ["required_permission_mode", "session_key", "capabilities", "companion"];

/// Whether a step says that TAKT itself does it.
pub(in crate::takt) fn is_system_step(step: &Json) -> bool {
    ["kind", "mode"].iter().any(|key| step.get(key).and_then(Json::as_text).map(str::trim) == Some("system"))
}

/// Reports a step that is probably meant as a system step, but would ask an agent.
pub(super) fn check_kind_of_step(step: &Json, fields: &Fields<'_, '_>, is_member: bool) {
    for key in ["kind", "mode"] {
        let Some(entry) = step.entry(key) else { continue };
        let Some(word) = entry.value.as_text().map(str::trim) else { continue };
        if word == "system" && is_member {
            let message = "a member of a parallel step cannot be a system step";
            let finding = Diagnostic::error(codes::UNSUPPORTED_YET, entry.value.span, message);
            fields.push(finding.hint("put it before or after the parallel step"));
        } else if word != "system" && find_nearest_name(word, ["system"]).is_some() {
            let message = format!("`{word}` is no `{key}` of a step");
            fields.invalid(entry.value.span, message, "did you mean `system`?");
        }
    }
}

impl StepReader<'_, '_, '_> {
    /// Reads what a system step does.
    pub(super) fn read_system_step(&self, fields: &Fields<'_, '_>) -> SystemSettings {
        for key in ["kind", "mode"] {
            fields.shunned(key);
        }
        fields.strays(&[&OF_AGENT[..], &OF_AGENT_STEP].concat(), "a system step has no agent");
        fields.shunned("tags");
        let mut reads: Vec<SystemRead> = Vec::new();
        for item in fields.items("system_inputs") {
            reads.extend(read_input(item, &reads, fields));
        }
        let mut seen = HashSet::new();
        let effects = fields.items("effects").iter().filter_map(|item| {
            let effect = self.read_effect(item, fields)?;
            if !seen.insert(effect.name) {
                let message = format!("`{}` is there twice", effect.name);
                fields.invalid(item.span, message, "put the second one into a step of its own");
                return None;
            }
            Some(effect)
        });
        SystemSettings { reads, effects: effects.collect() }
    }

    /// The time to wait before a step, in milliseconds.
    pub(super) fn read_delay(&self, fields: &Fields<'_, '_>, is_parallel: bool) -> u64 {
        if let Some(entry) = fields.nullable("delay_before_ms").filter(|_| is_parallel) {
            let message = "`delay_before_ms` before a parallel step is not supported yet";
            let finding = Diagnostic::error(codes::UNSUPPORTED_YET, entry.key_span, message);
            fields.push(finding.hint("put a system step with the wait before it"));
        }
        fields.count("delay_before_ms", 0).map_or(0, |(delay, _)| delay.into())
    }

    fn read_effect(&self, item: &Json, outer: &Fields<'_, '_>) -> Option<EffectSettings> {
        let fields = Fields::of(item, "an effect", None, outer.found)?;
        let words = EFFECTS.map(|(word, _)| word);
        fields.need("type");
        let (name, _) = fields.one_of("type", &words).or_else(|| {
            if fields.nullable("type").is_none() {
                fields.missing("type");
            }
            fields.shunned("type");
            None
        })?;
        let what = EFFECTS.iter().find(|(word, _)| *word == name)?.1;
        let mut values = Vec::new();
        if what == SystemEffectKind::Enqueue {
            self.read_enqueued_task(&fields, &mut values);
        } else {
            self.put_required(&fields, "pr", &mut values);
            if what == SystemEffectKind::Comment {
                self.put_required(&fields, "body", &mut values);
            }
        }
        fields.finish();
        Some(EffectSettings { name, what, asks_agent: name == RESOLVE, values })
    }

    fn read_enqueued_task(&self, fields: &Fields<'_, '_>, values: &mut Vec<(Str, FacetText)>) {
        let from_pull = fields.one_of("mode", &["new", "from_pr"]).is_some_and(|(mode, _)| mode == "from_pr");
        for key in ["workflow", "task"] {
            self.put_required(fields, key, values);
        }
        for key in ["branch", "title", "issue_number"] {
            self.put(fields, key, values);
        }
        match (from_pull, fields.nullable("pr")) {
            (true, None) => fields.missing("pr"),
            (true, Some(_)) => self.put(fields, "pr", values),
            (false, Some(pr)) => {
                fields.shunned("pr");
                fields.inert(pr.key_span, "`pr` has no effect with `mode: new`", "write `mode: from_pr`");
            }
            (false, None) => {}
        }
        for key in ["issue", "worktree"] {
            let Some(entry) = fields.nullable(key).filter(|_| from_pull) else { continue };
            fields.shunned(key);
            let message = format!("`{key}` has no effect with `mode: from_pr`");
            fields.inert(
                entry.key_span,
                message,
                "the task works on the branch of the pull request; remove it",
            );
        }
        if let Some(entry) = fields.nullable("issue").filter(|_| !from_pull) {
            match &entry.value.kind {
                Kind::Object(_) => {
                    if let Some(issue) = fields.object("issue") {
                        issue.boolean("create");
                        issue.texts("labels");
                        issue.finish();
                    }
                    let text = entry.value.to_value().to_string();
                    values.push(("issue".into(), self.literal(&text, entry.value.span)));
                }
                _ => self.put(fields, "issue", values),
            }
        }
        if let Some(tree) = fields.object("worktree").filter(|_| !from_pull) {
            let is_on = |key: &'static str| tree.boolean(key).is_some_and(|(value, _)| value);
            let wanted = [("enabled", "worktree"), ("auto_pr", "auto_pr"), ("draft_pr", "draft_pr")];
            let set: Vec<&str> =
                wanted.into_iter().filter(|(key, _)| is_on(key)).map(|(_, name)| name).collect();
            let is_managed = is_on("managed_pr");
            if set.first().is_some_and(|first| *first != "worktree") || (is_managed && set.is_empty()) {
                let message = "a pull request needs a working tree of its own";
                fields.invalid(tree.span, message, "add `enabled: true`");
            }
            for name in set.into_iter().chain(is_managed.then_some("managed_pr")) {
                values.push((name.into(), self.literal("true", tree.span)));
            }
            tree.finish();
        }
        if let Some(entry) = fields.nullable("base_branch") {
            match &entry.value.kind {
                Kind::Object(_) => {
                    let Some(base) = fields.object("base_branch") else { return };
                    if let Some(name) = base.required("name") {
                        values.push(("base_branch".into(), self.sections.inline(name)));
                    }
                    if let Some(make) = base.object("create_if_missing") {
                        if let Some(from) = make.required("from") {
                            values.push(("create_from".into(), self.sections.inline(from)));
                        }
                        if let Some((false, span)) = make.boolean("push") {
                            let hint =
                                "a branch that is not pushed is on one machine alone; write `push: true`";
                            make.invalid(span, "`push: false` is not supported", hint);
                        }
                        make.finish();
                    }
                    base.finish();
                }
                _ => self.put(fields, "base_branch", values),
            }
        }
    }

    fn literal(&self, text: &str, span: Span) -> FacetText {
        self.sections.inline(Text { text, span })
    }

    fn put_required(&self, fields: &Fields<'_, '_>, key: &'static str, values: &mut Vec<(Str, FacetText)>) {
        fields.need(key);
        if fields.nullable(key).is_none() {
            fields.missing(key);
            return;
        }
        self.put(fields, key, values);
    }

    /// Reads a text or a number.
    fn put(&self, fields: &Fields<'_, '_>, key: &'static str, values: &mut Vec<(Str, FacetText)>) {
        let Some(entry) = fields.entry(key) else { return };
        match entry.value.scalar_text().filter(|text| !text.trim().is_empty()) {
            Some(text) => values.push((key.into(), self.literal(&text, entry.value.span))),
            None => fields.wrong_type(key, &entry.value, "a text or a number"),
        }
    }
}

fn read_input(item: &Json, before: &[SystemRead], outer: &Fields<'_, '_>) -> Option<SystemRead> {
    let fields = Fields::of(item, "an entry of `system_inputs`", None, outer.found)?;
    for key in ["type", "as"] {
        fields.need(key);
    }
    let words = SOURCES.map(|(word, _)| word);
    let kind = fields.one_of("type", &words);
    if fields.nullable("type").is_none() {
        fields.missing("type");
    }
    fields.shunned("type");
    let name = fields.required("as");
    if let Some((kind, _)) = kind {
        let source = SOURCES.iter().find(|(word, _)| *word == kind).map_or("", |(_, source)| source);
        fields.one_of("source", &[source]);
    } else {
        fields.shunned("source");
    }
    let filter = fields.object("where").map(read_filter).unwrap_or_default();
    let without_own = fields.boolean("exclude_current_task").is_some_and(|(value, _)| value);
    let except = fields.filled("exclude_selected_from");
    if let Some(except) = except
        && !before.iter().any(|read| *read.name == *except.text && read.what == ReadKind::NextIssue)
    {
        let message = format!("no earlier `issue_selection` of this step is called `{}`", except.text);
        let finding = Diagnostic::error(codes::UNKNOWN_NAME, except.span, message);
        fields.push(finding.hint("name the `as` of one before it"));
    }
    fields.finish();
    let name = name?;
    if before.iter().any(|read| *read.name == *name.text.trim()) {
        let message = format!("`{}` is there twice", name.text.trim());
        outer.invalid(name.span, message, "give it another name");
        return None;
    }
    let what = match kind?.0 {
        "task_context" => ReadKind::Task,
        "branch_context" => ReadKind::Branch,
        "pr_context" => ReadKind::PullRequest,
        "issue_context" => ReadKind::Issue,
        "task_queue_context" => ReadKind::Queue { without_own },
        "pr_list" => ReadKind::PullRequests(filter),
        "pr_selection" => ReadKind::NextPullRequest(filter),
        "issue_list" => ReadKind::Issues { except: except.map(|except| except.text.into()) },
        _ => ReadKind::NextIssue,
    };
    Some(SystemRead { name: name.text.trim().into(), what })
}

fn read_filter(fields: Fields<'_, '_>) -> PullRequestFilter {
    let text = |key: &'static str| fields.filled(key).map(|text| Str::from(text.text.trim()));
    let flag = |key: &'static str| fields.boolean(key).map(|(value, _)| value);
    let labels = fields.texts("labels").unwrap_or_default();
    let filter = PullRequestFilter {
        author: text("author"),
        base: text("base_branch"),
        head: text("head_branch"),
        labels: labels.iter().map(|label| label.text.trim().into()).collect(),
        is_managed: flag("managed_by_takt"),
        is_own: flag("same_repository"),
        is_draft: flag("draft"),
    };
    fields.finish();
    filter
}
