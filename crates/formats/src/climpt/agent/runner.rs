//! Reads the `runner` of an agent: every key of the runner reference.

use cuegate_flow::{
    Str,
    model::{IssueClosure, IssueRule},
};

use super::actions::read_actions;
use super::completion_type::{VerdictSettings, fence_word_of_actions, read_verdict};
use super::definition::AgentDefinition;
use super::logging::read_logging;
use super::model_names::model_of;
use super::permission_mode::{check_tools, permission_of, tools_of_list};
use super::sandbox::read_sandbox;
use crate::climpt::verdict_variables::told_by_verdict;
use crate::source::loaded::FinalizeRule;
use crate::values::json::{Fields, Text};

/// Whether an agent works in its own worktree.
#[derive(Debug, Default)]
pub(crate) struct WorktreeSettings<'j> {
    /// Whether it is enabled.
    pub(crate) enabled: bool,
    /// The folder of worktrees.
    pub(crate) root: Option<&'j str>,
    /// What is done with the work of a completed run.
    pub(crate) finalize: FinalizeRule,
}

/// Reads `runner` into an agent that holds defaults.
pub(crate) fn read_runner<'j>(runner: Fields<'j, '_>, agent_dir: &str, agent: &mut AgentDefinition<'j>) {
    match runner.object("flow") {
        Some(flow) => read_flow(flow, agent),
        None if runner.entry("flow").is_none() => runner.missing("flow"),
        None => {}
    }
    if let Some(verdict) = runner.object("verdict") {
        agent.verdict = read_verdict(verdict, agent_dir, fence_word_of_actions(&runner));
        let verdict = runner.entry("verdict").map(|verdict| &verdict.value);
        agent.told.extend(verdict.map(told_by_verdict).unwrap_or_default());
    } else if runner.nullable("verdict").is_some() {
        agent.verdict = VerdictSettings::unreadable();
    }
    if let Some(boundaries) = runner.object("boundaries") {
        read_boundaries(boundaries, agent);
    }
    if let Some(integrations) = runner.object("integrations") {
        if let Some(github) = integrations.object("github") {
            read_github(github, agent);
        }
        integrations.finish();
    }
    if let Some(actions) = runner.object("actions") {
        agent.conduct.actions = read_actions(actions, agent_dir, &mut agent.handler_files);
    }
    read_execution(runner.object("execution"), agent);
    if let Some(logging) = runner.object("logging") {
        agent.logging = Some(read_logging(logging));
    }
    runner.misplaced(&["systemPromptPath", "prompts", "defaultModel", "askUserAutoResponse"], "runner.flow");
    runner.misplaced(&["allowedTools", "permissionMode", "sandbox"], "runner.boundaries");
    runner.finish();
}

fn read_flow<'j>(flow: Fields<'j, '_>, agent: &mut AgentDefinition<'j>) {
    agent.system_prompt = flow.required("systemPromptPath");
    if let Some(prompts) = flow.object("prompts") {
        if let Some(registry) = prompts.filled("registry") {
            agent.registry = (registry.text, Some(registry.span));
        }
        if let Some(fallback_dir) = prompts.filled("fallbackDir") {
            agent.fallback_dir = (fallback_dir.text, Some(fallback_dir.span));
        }
        prompts.finish();
    }
    if let Some(schemas) = flow.object("schemas") {
        agent.schemas_base = schemas.filled("base");
        agent.conduct.inspects = schemas.boolean("inspection").is_some_and(|(inspects, _)| inspects);
        schemas.finish();
    }
    agent.default_model = model_of(&flow, "defaultModel");
    agent.conduct.auto_response = flow.filled("askUserAutoResponse").map(|response| response.text.into());
    flow.finish();
}

fn read_boundaries<'j>(boundaries: Fields<'j, '_>, agent: &mut AgentDefinition<'j>) {
    let allowed = boundaries.texts("allowedTools");
    if let Some(allowed) = &allowed {
        agent.tools = tools_of_list(allowed, &boundaries);
    }
    let permission = permission_of(&boundaries);
    if let Some((permission, span)) = permission {
        (agent.permission, agent.permission_span) = (permission, Some(span));
    }
    if let Some(allowed) = allowed
        && !boundaries.is_poisoned("permissionMode")
        && !boundaries.is_poisoned("allowedTools")
    {
        let span = boundaries.nullable("allowedTools").map_or(boundaries.span, |entry| entry.value.span);
        check_tools((&allowed, span), agent.permission, &boundaries);
    }
    if let Some(sandbox) = boundaries.object("sandbox") {
        agent.conduct.sandbox = read_sandbox(sandbox);
    }
    boundaries.finish();
}

fn read_github<'j>(github: Fields<'j, '_>, agent: &mut AgentDefinition<'j>) {
    if github.entry("enabled").is_none() {
        github.missing("enabled");
    }
    let written = github.boolean("enabled");
    let mut rule = IssueRule::default();
    let listed = |texts: Option<Vec<Text<'_>>>| -> Vec<Str> {
        texts.into_iter().flatten().map(|text| text.text.into()).collect()
    };
    if let Some(labels) = github.object("labels") {
        if let Some(label) = labels.text("requirements") {
            agent.told.push(("label_requirements", label.text.into()));
        }
        rule.in_progress = labels.filled("inProgress").map(|label| label.text.into());
        rule.blocked = labels.filled("blocked").map(|label| label.text.into());
        if let Some(completion) = labels.object("completion") {
            rule.add = listed(completion.texts("add"));
            rule.remove = listed(completion.texts("remove"));
            completion.finish();
        }
        labels.finish();
    }
    let action = github.one_of("defaultClosureAction", &IssueClosure::NAMES);
    rule.closure = IssueClosure::named(action.map_or("close", |(action, _)| action)).unwrap_or_default();
    if let Some((true, _)) = written {
        agent.conduct.issue = Some(rule);
    }
    github.finish();
}

fn read_execution<'j>(execution: Option<Fields<'j, '_>>, agent: &mut AgentDefinition<'j>) {
    let Some(execution) = execution else { return };
    if let Some(worktree) = execution.object("worktree") {
        if worktree.entry("enabled").is_none() {
            worktree.missing("enabled");
        }
        let written = worktree.boolean("enabled");
        worktree.switched_off(written);
        if let Some((enabled, _)) = written {
            agent.worktree.enabled = enabled;
        }
        agent.worktree.root = worktree.filled("root").map(|root| root.text);
        worktree.finish();
    }
    // The runner reference merges a worktree without `finalize` by default.
    agent.worktree.finalize.merge = true;
    if let Some(finalize) = execution.object("finalize") {
        let auto = finalize.boolean("autoMerge");
        let push = finalize.boolean("push").is_some_and(|(push, _)| push);
        let request = finalize.boolean("createPr").filter(|(request, _)| *request).map(|(_, span)| span);
        if !push && request.is_none() {
            finalize.stray("remote", "nothing is pushed; set `push` or `createPr`, or remove it");
        }
        if let (Some((true, span)), Some(_)) = (auto, request) {
            let message = "`autoMerge` has no effect: `createPr` proposes the change instead of merging it";
            finalize.inert(span, message, "remove one of them");
        }
        if request.is_none() {
            finalize.stray("prTarget", "nothing is proposed; set `createPr`, or remove it");
        }
        let remote = finalize.filled("remote").map_or("origin", |remote| remote.text);
        let into = finalize.filled("prTarget").map(|into| into.text.to_owned());
        finalize.finish();
        agent.worktree.finalize = FinalizeRule {
            merge: auto.is_none_or(|(merge, _)| merge) && request.is_none(),
            push: (push || request.is_some()).then(|| remote.to_owned()),
            pull_request: request.is_some(),
            into: into.filter(|_| request.is_some()),
        };
    }
    execution.finish();
}
