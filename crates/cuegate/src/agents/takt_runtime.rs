//! TAKT's `runtime.yaml`: which provider and model its steps use. Read from the project and from the home folder, as TAKT
//! does; see "Runtime Provider Configuration" in its documentation.

use std::{
    collections::BTreeMap,
    io,
    path::{Path, PathBuf},
};

use cuegate_engine::AgentChoice;
use cuegate_runner::{StateDir, sandbox::kept_out_files};
use serde::Deserialize;

use super::{plan::agent_of_takt_name, tool_servers::TaktServers};
use crate::Failure;
use crate::config::{AgentAssignment, AgentRole};

/// What `runtime.yaml` says.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct RuntimeRoles {
    /// The agent of everything else.
    pub(crate) usual: Option<AgentChoice>,
    /// The further stages of its ladder.
    pub(crate) usual_ladder: Vec<AgentChoice>,
    pub(crate) assignments: Vec<AgentAssignment>,
    /// The servers whose tools agents get.
    pub(crate) servers: TaktServers,
    /// What is not followed.
    pub(crate) notes: Vec<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct RuntimeFile {
    /// Every file has it, and it says nothing.
    version: Option<serde::de::IgnoredAny>,
    provider: Option<ProviderSection>,
    /// Read where a workflow is loaded.
    companion: Option<serde::de::IgnoredAny>,
    /// Read where the servers of agents are.
    mcp: Option<serde::de::IgnoredAny>,
    /// Sections that are not followed: `loop_analysis`.
    #[serde(flatten)]
    others: BTreeMap<String, serde::de::IgnoredAny>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct ProviderSection {
    defaults: Option<RuntimeTarget>,
    profiles: BTreeMap<String, RuntimeProfile>,
    targets: Option<RuntimeTargets>,
    assignments: BTreeMap<String, RuntimeSet>,
    directories: BTreeMap<String, String>,
    auto_routing: Option<AutoRouting>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct RuntimeSet {
    defaults: Option<RuntimeTarget>,
    targets: Option<RuntimeTargets>,
}

#[derive(Debug, Default, Clone, Deserialize)]
#[serde(default)]
struct RuntimeTargets {
    personas: BTreeMap<String, RuntimeTarget>,
    tags: BTreeMap<String, RuntimeTarget>,
    steps: BTreeMap<String, RuntimeTarget>,
    internal_agents: BTreeMap<String, RuntimeTarget>,
    companions: BTreeMap<String, RuntimeTarget>,
}

#[derive(Debug, Default, Clone, Deserialize)]
#[serde(default)]
struct RuntimeTarget {
    profile: Option<String>,
    ladder: Vec<LadderStage>,
    pool: Option<String>,
}

/// A stage of a ladder: the name of a profile, alone or under `profile`.
#[derive(Debug, Clone, Deserialize)]
#[serde(untagged)]
enum LadderStage {
    Name(String),
    Table { profile: String },
}

#[derive(Debug, Default, Clone, Deserialize)]
#[serde(default)]
struct RuntimeProfile {
    provider: Option<String>,
    model: Option<String>,
    extends: Option<String>,
    options: BTreeMap<String, serde_json::Value>,
    #[serde(flatten)]
    others: BTreeMap<String, serde::de::IgnoredAny>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct AutoRouting {
    pools: BTreeMap<String, RuntimePool>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct RuntimePool {
    fallback_profile: Option<String>,
}

/// The options that say how much a model thinks, of Codex and of Claude Code.
const EFFORT_KEYS: [&str; 2] = ["reasoning_effort", "effort"];

/// What TAKT calls agents for itself. Nobody talks with its `assistant` before a run of ours.
const SEATS: [&str; 3] = ["selector", "loop-judge", "review-completion-judge"];

/// Reads the files of the user and of a project, which are in `root`. `project` is the folder that they are those of: another
/// one where they were copied. `is_known` tells whether there is an agent of a name.
///
/// # Errors
/// When a file cannot be read, or names a profile that does not exist.
pub(crate) fn read_runtime_roles(
    root: &Path,
    project: &Path,
    is_known: &dyn Fn(&str) -> bool,
) -> Result<RuntimeRoles, Failure> {
    let home = std::env::var_os("HOME").filter(|home| !home.is_empty()).map(PathBuf::from);
    let mut merged: Option<ProviderSection> = None;
    let (mut files, mut notes) = (Vec::new(), Vec::new());
    // An agent that works, or was killed, may have created it.
    let kept_out = kept_out_files(StateDir::new(root).dir());
    for folder in home.iter().map(PathBuf::as_path).chain([root]) {
        let path = folder.join(".takt/runtime.yaml");
        if kept_out.contains(&path) {
            continue;
        }
        let (section, others) = read_section(&path)?;
        notes.extend(others.into_iter().map(|name| format!("`{name}` of runtime.yaml is not followed")));
        let Some(section) = section else { continue };
        files.push(format!("`{}`", path.display()));
        merged = Some(match merged {
            Some(outer) => merge_sections(outer, section),
            None => section,
        });
    }
    let mut roles = match merged {
        None => RuntimeRoles::default(),
        Some(section) => read_roles(section, project, is_known).map_err(|failure| Failure {
            message: format!("{}: {}", files.join(", "), failure.message),
            ..failure
        })?,
    };
    roles.notes.extend(notes);
    Ok(roles)
}

/// The section about providers, and the names of others that are not followed.
fn read_section(path: &Path) -> Result<(Option<ProviderSection>, Vec<String>), Failure> {
    let text = match crate::text_file::read_text(path) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok((None, Vec::new())),
        Err(error) => {
            return Err(Failure::usage(
                format!("failed to read `{}`: {error}", path.display()),
                "make the file readable, or name the agent with `--provider`",
            ));
        }
    };
    let file: RuntimeFile = serde_saphyr::from_str(&text).map_err(|error| {
        let error = error.to_string();
        let first = error.lines().next().unwrap_or_default();
        Failure::usage(
            format!("failed to read `{}`: {first}", path.display()),
            "correct the file, or name the agent with `--provider`: then it is not read",
        )
    })?;
    Ok((file.provider, file.others.into_keys().collect()))
}

/// The section of the project over that of the user.
fn merge_sections(outer: ProviderSection, mut inner: ProviderSection) -> ProviderSection {
    let mut profiles = outer.profiles;
    profiles.append(&mut inner.profiles);
    let mut assignments = outer.assignments;
    assignments.append(&mut inner.assignments);
    let mut directories = outer.directories;
    directories.append(&mut inner.directories);
    ProviderSection {
        defaults: inner.defaults.or(outer.defaults),
        profiles,
        targets: inner.targets.or(outer.targets),
        assignments,
        directories,
        auto_routing: inner.auto_routing.or(outer.auto_routing),
    }
}

/// The defaults and targets that a folder is assigned, else those of the section.
///
/// # Errors
/// When the folder is assigned what is not defined.
fn select_set(
    section: &ProviderSection,
    root: &Path,
) -> Result<(Option<RuntimeTarget>, RuntimeTargets), Failure> {
    let root = std::fs::canonicalize(root).unwrap_or_else(|_| root.to_owned());
    let is_root = |key: &str| {
        let path = match (key.strip_prefix("~/"), std::env::var_os("HOME")) {
            (Some(rest), Some(home)) => Path::new(&home).join(rest),
            _ => PathBuf::from(key),
        };
        std::fs::canonicalize(&path).unwrap_or(path) == root
    };
    let name = section.directories.iter().find(|(key, _)| is_root(key)).map(|(_, name)| name);
    let set = match name {
        Some(name) => Some(section.assignments.get(name).ok_or_else(|| {
            Failure::usage(
                format!("`directories` names the undefined assignment `{name}`"),
                "define it under `provider.assignments`, or name the agent with `--provider`",
            )
        })?),
        None => None,
    };
    let defaults = set.and_then(|set| set.defaults.clone()).or_else(|| section.defaults.clone());
    let targets = set.and_then(|set| set.targets.clone()).or_else(|| section.targets.clone());
    Ok((defaults, targets.unwrap_or_default()))
}

fn read_roles(
    section: ProviderSection,
    root: &Path,
    is_known: &dyn Fn(&str) -> bool,
) -> Result<RuntimeRoles, Failure> {
    let mut roles = RuntimeRoles::default();
    let (defaults, targets) = select_set(&section, root)?;
    let mut resolver = ProfileResolver { section: &section, is_known, notes: Vec::new() };
    if let Some(target) = &defaults {
        let mut stages = resolver.resolve(target)?.into_iter();
        roles.usual = stages.next();
        roles.usual_ladder = stages.collect();
    }
    // A step is named after the workflow that it stands in, be it called by another.
    let of_step = |name: &str| {
        let (workflow, step) = name.rsplit_once('/')?;
        Some(AgentRole::StepOf(workflow.to_owned(), step.to_owned()))
    };
    for name in targets.steps.keys().filter(|name| of_step(name).is_none()) {
        resolver.notes.push(format!("`{name}` in runtime.yaml names no step: write `WORKFLOW/STEP`"));
    }
    for name in targets.internal_agents.keys().filter(|name| !SEATS.contains(&name.as_str())) {
        resolver.notes.push(format!("unknown internal agent `{name}` in runtime.yaml: it is not followed"));
    }
    let named = targets.steps.iter().filter_map(|(name, target)| Some((of_step(name)?, target)));
    let tags = targets.tags.iter().map(|(name, target)| (AgentRole::Tag(name.clone()), target));
    let personas = targets.personas.iter().map(|(name, target)| (AgentRole::Persona(name.clone()), target));
    let seats = targets.internal_agents.iter().map(|(name, target)| (AgentRole::Seat(name.clone()), target));
    let companions = targets.companions.iter();
    let companions = companions.map(|(name, target)| (AgentRole::Seat(format!("companion:{name}")), target));
    for (role, target) in named.chain(tags).chain(personas).chain(seats).chain(companions) {
        let mut stages = resolver.resolve(target)?.into_iter();
        if let Some(choice) = stages.next() {
            roles.assignments.push(AgentAssignment { role, chain: vec![choice], ladder: stages.collect() });
        }
    }
    for note in resolver.notes {
        if !roles.notes.contains(&note) {
            roles.notes.push(note);
        }
    }
    Ok(roles)
}

/// Looks up the agent that a profile names, through the profiles that it extends.
struct ProfileResolver<'s> {
    section: &'s ProviderSection,
    is_known: &'s dyn Fn(&str) -> bool,
    notes: Vec<String>,
}

impl ProfileResolver<'_> {
    /// The agents of a target: one, or the stages of a ladder.
    fn resolve(&mut self, target: &RuntimeTarget) -> Result<Vec<AgentChoice>, Failure> {
        if let Some(profile) = &target.profile {
            return Ok(self.resolve_profile(profile)?.into_iter().collect());
        }
        if !target.ladder.is_empty() {
            let mut stages = Vec::new();
            for LadderStage::Name(profile) | LadderStage::Table { profile } in &target.ladder {
                stages.extend(self.resolve_profile(profile)?);
            }
            return Ok(stages);
        }
        let Some(pool) = &target.pool else {
            self.notes.push("a target in runtime.yaml names no profile: it is not followed".to_owned());
            return Ok(Vec::new());
        };
        let pools = self.section.auto_routing.as_ref().map(|routing| &routing.pools);
        let Some(known) = pools.and_then(|pools| pools.get(pool)) else {
            return Err(Failure::usage(
                format!("undefined pool `{pool}`"),
                "define it under `provider.auto_routing.pools`, or name the agent with `--provider`",
            ));
        };
        let Some(fallback) = known.fallback_profile.clone() else {
            self.notes.push(format!(
                "the pool `{pool}` in runtime.yaml has no `fallback_profile`: it is not followed"
            ));
            return Ok(Vec::new());
        };
        self.notes.push("of a `pool` in runtime.yaml the `fallback_profile` is used".to_owned());
        Ok(self.resolve_profile(&fallback)?.into_iter().collect())
    }

    fn resolve_profile(&mut self, name: &str) -> Result<Option<AgentChoice>, Failure> {
        let (mut provider, mut model, mut effort) = (None, None, None);
        let (mut next, mut seen) = (Some(name.to_owned()), Vec::new());
        while let Some(name) = next {
            if seen.contains(&name) {
                return Err(Failure::usage(
                    format!("the profile `{name}` extends itself"),
                    "correct its `extends`, or name the agent with `--provider`",
                ));
            }
            let Some(profile) = self.section.profiles.get(&name) else {
                return Err(Failure::usage(
                    format!("undefined profile `{name}`"),
                    "define it under `provider.profiles`, or name the agent with `--provider`",
                ));
            };
            provider = provider.or_else(|| profile.provider.clone());
            model = model.or_else(|| profile.model.clone());
            let named = EFFORT_KEYS.into_iter().find_map(|key| profile.options.get(key)?.as_str());
            effort = effort.or_else(|| named.map(str::to_owned));
            let options = profile.options.keys().filter(|key| !EFFORT_KEYS.contains(&key.as_str()));
            let options = options.map(|key| format!("`options.{key}`"));
            let unread: Vec<String> =
                options.chain(profile.others.keys().map(|key| format!("`{key}`"))).collect();
            if !unread.is_empty() {
                let keys = unread.join(", ");
                self.notes.push(format!("{keys} of the profile `{name}` in runtime.yaml: not passed on"));
            }
            next = profile.extends.clone();
            seen.push(name);
        }
        let Some(provider) = provider else { return Ok(None) };
        let agent = agent_of_takt_name(&provider);
        if !(self.is_known)(agent) {
            self.notes.push(format!("unknown agent `{provider}` in runtime.yaml: it is not followed"));
            return Ok(None);
        }
        Ok(Some(AgentChoice { agent: agent.to_owned(), model, effort }))
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::{ProviderSection, RuntimeFile, merge_sections, read_roles};

    const TEXT: &str = "
version: 1
provider:
  defaults: { profile: medium }
  profiles:
    medium: { provider: claude-sdk, model: sonnet, options: { effort: low, network_access: true } }
    high: { extends: medium, model: opus }
    other: { provider: codex }
    far: { provider: cursor }
  targets:
    personas: { coder: { profile: high } }
    tags: { review: { ladder: [other, high] }, edit: { profile: far } }
    steps: { default/plan: { pool: p }, another/plan: { profile: other } }
    internal_agents: { selector: { profile: other } }
  auto_routing: { pools: { p: { fallback_profile: high } } }
";

    fn section(text: &str) -> ProviderSection {
        serde_saphyr::from_str::<RuntimeFile>(text).unwrap().provider.unwrap()
    }

    fn shown(section: ProviderSection) -> Vec<String> {
        let roles = read_roles(section, Path::new("/"), &|name| name != "cursor").unwrap();
        let usual = roles.usual.iter().map(|usual| format!("usual={usual}"));
        let assigned = roles.assignments.iter().map(|one| {
            let ladder: String = one.ladder.iter().map(|stage| format!(" then {stage}")).collect();
            format!("{}={}{ladder}", one.role, one.chain[0])
        });
        usual.chain(assigned).chain(roles.notes.iter().cloned()).collect()
    }

    #[test]
    fn profiles_become_agents_of_steps_tags_and_personas() {
        insta::assert_snapshot!(shown(section(TEXT)).join("\n"), @r"
        usual=claude:sonnet#low
        step:another/plan=codex
        step:default/plan=claude:opus#low
        tag:review=codex then claude:opus#low
        persona:coder=claude:opus#low
        internal:selector=codex
        `options.network_access` of the profile `medium` in runtime.yaml: not passed on
        of a `pool` in runtime.yaml the `fallback_profile` is used
        unknown agent `cursor` in runtime.yaml: it is not followed
        ");
    }

    #[test]
    fn the_project_precedes_the_user() {
        let project = "provider: { defaults: { profile: x }, profiles: { x: { provider: codex } } }";
        let merged = merge_sections(section(TEXT), section(project));
        assert_eq!(shown(merged)[0], "usual=codex");
    }

    #[test]
    fn an_undefined_or_endless_profile_is_an_error() {
        for (text, why) in [
            ("provider: { defaults: { profile: x } }", "undefined profile `x`"),
            (
                "provider: { defaults: { profile: a }, profiles: { a: { extends: a } } }",
                "the profile `a` extends itself",
            ),
            (
                "provider: { defaults: { profile: a }, profiles: { a: {} }, directories: { /: none } }",
                "`directories` names the undefined assignment `none`",
            ),
        ] {
            let failure = read_roles(section(text), Path::new("/"), &|_| true).unwrap_err();
            assert_eq!(failure.message, why);
        }
    }
}
