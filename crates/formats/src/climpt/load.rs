//! Loads an agent: `agent.json`, its registry, and every file they name.

use std::sync::Arc;

use cuegate_flow::{
    diagnostics::{Diagnostic, Span},
    model::Draft,
};

use super::agent::completion_type::{CompletionRule, SAFETY_DEFAULT};
use super::agent::definition::{AgentDefinition, read_agent};
use super::agent::legacy::modernize_agent;
use super::agent_paths::AgentFolder;
use super::generation::{Generation, detect_generation, is_piece_path};
use super::lower::{Definition, LoweredDraft, lower_definition, name_of};
use super::older::check_flow;
use super::registry::definition::{RegistryDefinition, read_registry};
use super::registry::later_keys::convert_later_keys;
use crate::Files;
use crate::codes;
use crate::findings::Findings;
use crate::source::files::{join_path, lies_in};
use crate::source::loaded::{AgentOptions, LoadedDefinition, RunSettings, WorktreeRule};
use crate::source::loader::SourceLoader;
use crate::values::json::Json;

/// Loads the agent in a folder, or a registry that is named instead, with the agent beside it.
///
/// Reads only through `files`, and the same files give the same result. Never fails: the findings hold the errors, and
/// the draft holds everything that could be read. If nothing could be read, the draft has no steps, and checking it as
/// a flow would report nothing new.
pub fn load_agent(files: &dyn Files, options: &AgentOptions) -> LoadedDefinition {
    let loader = SourceLoader::new(files);
    let mut draft = Draft::empty("agent", Generation::Closing.dialect());
    let mut run = RunSettings::default();
    if let Some((lowered, settings)) = load_definition(&loader, options) {
        (draft, run) = (lowered.draft, settings);
    }
    let (found, sources) = loader.into_parts();
    let (diagnostics, unsupported) = found.into_parts();
    run.unsupported = unsupported;
    LoadedDefinition { draft, diagnostics, sources, run }.sorted()
}

fn load_definition(loader: &SourceLoader<'_>, options: &AgentOptions) -> Option<(LoweredDraft, RunSettings)> {
    let Some(agent_dir) = join_path("", &options.agent_dir) else {
        let message = format!("`{}` leads out of the project", options.agent_dir);
        let span = loader.unread(&options.agent_dir);
        loader
            .found
            .push(Diagnostic::error(codes::ESCAPES_ROOT, span, message).hint("name a folder of the project"));
        return None;
    };
    let agent_json = match open_agent(loader, &agent_dir, options.registry.is_some())? {
        Some(json) => Some(modernize_agent(json, &loader.found)?),
        None => None,
    };
    let mut agent = match &agent_json {
        Some(modern) => read_agent(&modern.json, &agent_dir, &loader.found)?,
        None => AgentDefinition::default(),
    };
    if let Some(modern) = &agent_json {
        let runner = modern.json.get("runner");
        let place = |keys: &[&str]| {
            keys.iter()
                .fold(runner, |at, key| at.and_then(|at| at.get(key)).or(at))
                .unwrap_or(&modern.json)
                .span
        };
        if let Some(rule) = &agent.logging {
            let hint = "name a folder in `directory`, such as `logs`";
            let at = place(&["logging", "directory"]);
            check_folder(&rule.directory, "log files cannot be kept", (at, hint), loader);
        }
        // A folder outside the project is created or refused when the run begins.
        if let Some(root) =
            agent.worktree.root.filter(|_| agent.worktree.enabled).and_then(|root| join_path("", root))
        {
            let hint = "name a folder in `root`, such as `../worktrees`";
            let at = place(&["execution", "worktree", "root"]);
            check_folder(&root, "worktrees cannot be made", (at, hint), loader);
        }
    }
    let mut registry_json = open_registry(loader, &agent_dir, &agent, options)?;
    for entry in ["steps", "completionSteps"].iter().filter_map(|key| registry_json.get(key)) {
        for step in entry.pairs() {
            loader.found.about(Span { end: step.value.span.end, ..step.key_span }, &step.key);
        }
    }
    let step_flow = agent_json.as_ref().and_then(|modern| modern.step_flow);
    let generation = detect_generation(&registry_json, step_flow.map(|_| Generation::Check), loader)?;
    if let Some(modern) = &agent_json {
        check_flow::check_agent_completion(modern, generation, &loader.found);
    }
    if generation == Generation::Closing {
        registry_json = convert_later_keys(&registry_json, &loader.found);
    }
    if generation == Generation::Check {
        let limit =
            agent_json.as_ref().and_then(|modern| check_flow::written_limit(&modern.json, &loader.found));
        return load_check_flow(loader, &registry_json, &agent, &agent_dir, (&options.set, limit));
    }
    let registry = read_registry(&registry_json, generation, &loader.found)?;
    if generation == Generation::Complete {
        defaults_of_complete(&mut agent, &registry, &loader.found);
    }
    if let (Some(name), Some(id)) = (agent.name, registry.agent_id.filter(|id| Some(id.text) != agent.name)) {
        let message = format!("the registry belongs to `{}`, the agent is called `{name}`", id.text);
        loader.found.push(
            Diagnostic::error(codes::ID_MISMATCH, id.span, message).hint("make `agentId` and `name` equal"),
        );
    }
    let places = AgentFolder {
        agent_dir: &agent_dir,
        names: agent.name.into_iter().chain(registry.agent_id.map(|id| id.text)).collect(),
    };
    let definition =
        Definition { agent: &agent, registry: &registry, places: &places, loader, set: &options.set };
    let lowered = lower_definition(&definition);
    let settings = build_run_settings(&agent, name_of(&agent, &registry), &lowered, generation);
    Some((lowered, settings))
}

/// Loads a check flow, with the values from `--set` and the agent's own limit.
fn load_check_flow(
    loader: &SourceLoader<'_>,
    registry: &Json,
    agent: &AgentDefinition<'_>,
    agent_dir: &str,
    (set, limit): (&[String], Option<u32>),
) -> Option<(LoweredDraft, RunSettings)> {
    let flow = check_flow::read_check_flow(registry, &loader.found)?;
    let places = AgentFolder { agent_dir, names: agent.name.into_iter().collect() };
    let none = RegistryDefinition::default();
    let definition = Definition { agent, registry: &none, places: &places, loader, set };
    let lowered = check_flow::lower_check_flow(&flow, &definition, limit);
    let settings = build_run_settings(agent, agent.name.unwrap_or("agent"), &lowered, Generation::Check);
    Some((lowered, settings))
}

/// Reports a folder whose path is a file: nothing can be written into it.
fn check_folder(folder: &str, what: &str, (at, hint): (Span, &str), loader: &SourceLoader<'_>) {
    let ends = folder.match_indices('/').map(|(at, _)| at).chain([folder.len()]);
    let Some(file) = ends.map(|end| &folder[..end]).find(|path| loader.is_file(path)) else { return };
    let message = format!("{what} in `{folder}`: `{file}` is a file");
    loader.found.push(Diagnostic::error(codes::INVALID_VALUE, at, message).hint(hint));
}

fn build_run_settings(
    agent: &AgentDefinition<'_>,
    name: &str,
    lowered: &LoweredDraft,
    generation: Generation,
) -> RunSettings {
    let what = if agent.name.is_some() { "Climpt agent" } else { "Climpt step registry" };
    RunSettings {
        format: format!("{what}, {}", generation.described()),
        agent: name.to_owned(),
        title: agent.title.unwrap_or(name).to_owned(),
        description: agent.description.unwrap_or_default().to_owned(),
        worktree: WorktreeRule {
            enabled: agent.worktree.enabled,
            root: agent.worktree.root.map(str::to_owned),
            finalize: agent.worktree.finalize.clone(),
        },
        log: agent.logging.clone(),
        needs_task: lowered.needs_task,
        unsupported: Vec::new(),
    }
}

/// Applies the defaults of the "complete" generation, which differ from the runner reference: a run is complete where
/// its flow ends, after at most 20 iterations.
fn defaults_of_complete(
    agent: &mut AgentDefinition<'_>,
    registry: &RegistryDefinition<'_>,
    found: &Findings,
) {
    let verdict = &mut agent.verdict;
    let (kind_is_written, limit_is_written) = verdict.written;
    let kind = registry.completion_type.map_or("detect:graph", |(kind, _)| kind);
    if !kind_is_written {
        (verdict.kind, verdict.rule) = (kind, CompletionRule::Graph);
    } else if let Some((_, span)) = registry.completion_type.filter(|(other, _)| *other != verdict.kind) {
        let message = format!("`completionType` has no effect: the agent says `{}`", verdict.kind);
        found.push(Diagnostic::warning(codes::UNUSED_KEY, span, message).hint("remove one of the two"));
    }
    if !limit_is_written {
        verdict.iterations_max = SAFETY_DEFAULT;
        if verdict.kind == "count:iteration" && !verdict.is_unreadable() {
            verdict.rule = CompletionRule::Iterations(SAFETY_DEFAULT, None);
        }
    }
}

/// The agent's file; `Some(None)` when a registry was named and there is no agent beside it.
pub(super) fn open_agent(
    loader: &SourceLoader<'_>,
    agent_dir: &str,
    optional: bool,
) -> Option<Option<Arc<Json>>> {
    let path = join_path(agent_dir, "agent.json")?;
    match loader.json(&path) {
        Ok(None) if !optional => {
            let message = format!("there is no `{path}`");
            loader.found.push(
                Diagnostic::error(codes::UNREADABLE_FILE, loader.start_of(&path), message)
                    .hint("name a folder that holds an `agent.json`, or a registry file"),
            );
            None
        }
        Ok(json) => Some(json),
        Err(_) => None,
    }
}

/// The registry that was named, else the one that the agent names.
pub(super) fn open_registry(
    loader: &SourceLoader<'_>,
    agent_dir: &str,
    agent: &AgentDefinition<'_>,
    options: &AgentOptions,
) -> Option<Arc<Json>> {
    let agent_path = join_path(agent_dir, "agent.json")?;
    let (candidates, span, written) = match (&options.registry, agent.verdict.registry) {
        (Some(path), _) => (join_path("", path).into_iter().collect(), None, path.as_str()),
        // `detect:graph` names a registry in the agent's own folder; a path outside has been reported.
        (None, Some(named)) => {
            let path = join_path(agent_dir, named.text).filter(|path| lies_in(path, agent_dir));
            if let Some(span) = agent.registry.1.filter(|_| path.is_some() && agent.registry.0 != named.text)
            {
                let message =
                    format!("`{}` has no effect: the verdict names `{}`", agent.registry.0, named.text);
                loader.found.push(
                    Diagnostic::warning(codes::UNUSED_KEY, span, message)
                        .hint("remove this `registryPath`, or make both equal"),
                );
            }
            (path.into_iter().collect(), Some(named.span), named.text)
        }
        (None, None) => {
            let places = AgentFolder { agent_dir, names: agent.name.into_iter().collect() };
            let (registry, span) = agent.registry;
            let span = span.unwrap_or_else(|| loader.start_of(&agent_path));
            (places.candidates(registry, span, &loader.found), Some(span), registry)
        }
    };
    if options.registry.is_some() && candidates.is_empty() {
        let message = format!("`{written}` leads out of the project");
        let finding = Diagnostic::error(codes::ESCAPES_ROOT, loader.unread(written), message);
        loader.found.push(finding.hint("name a file of the project"));
    }
    for path in &candidates {
        if is_piece_path(path, span.unwrap_or_else(|| loader.start_of(path)), &loader.found) {
            return None;
        }
        match loader.json(path) {
            Ok(Some(json)) => return Some(json),
            Ok(None) => {}
            Err(_) => return None,
        }
    }
    if let Some(path) = candidates.first() {
        let at = span.unwrap_or_else(|| loader.start_of(path));
        let message = format!("there is no registry `{path}`");
        loader.found.push(
            Diagnostic::error(codes::UNREADABLE_FILE, at, message).hint("write it, or correct the path"),
        );
    }
    None
}
