//! TAKT's `runtime.yaml`: which provider and model its steps use. Read from the project and from the home folder, as TAKT
//! does; see "Runtime Provider Configuration" in its documentation.

use std::{
    collections::BTreeMap,
    io,
    path::{Path, PathBuf},
};

use cuegate_engine::AgentChoice;
use serde::Deserialize;

use super::plan::agent_of_takt_name;
use crate::Failure;
use crate::config::{AgentAssignment, AgentRole};

/// What `runtime.yaml` says.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct RuntimeRoles {
    /// The agent of everything else.
    pub(crate) usual: Option<AgentChoice>,
    pub(crate) assignments: Vec<AgentAssignment>,
    /// What is not followed.
    pub(crate) notes: Vec<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct RuntimeFile {
    provider: Option<ProviderSection>,
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
    options: Option<serde::de::IgnoredAny>,
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

/// Reads the files of a project for a workflow. `is_known` tells whether there is an agent of a name.
///
/// # Errors
/// When a file cannot be read, or names a profile that does not exist.
pub(crate) fn read_runtime_roles(
    root: &Path,
    workflow: &str,
    is_known: &dyn Fn(&str) -> bool,
) -> Result<RuntimeRoles, Failure> {
    let home = std::env::var_os("HOME").filter(|home| !home.is_empty()).map(PathBuf::from);
    let mut merged: Option<ProviderSection> = None;
    let mut files = Vec::new();
    for folder in home.iter().map(PathBuf::as_path).chain([root]) {
        let path = folder.join(".takt/runtime.yaml");
        let Some(section) = read_section(&path)? else { continue };
        files.push(format!("`{}`", path.display()));
        merged = Some(match merged {
            Some(outer) => merge_sections(outer, section),
            None => section,
        });
    }
    let Some(section) = merged else { return Ok(RuntimeRoles::default()) };
    read_roles(section, root, workflow, is_known).map_err(|failure| Failure {
        message: format!("{}: {}", files.join(", "), failure.message),
        ..failure
    })
}

fn read_section(path: &Path) -> Result<Option<ProviderSection>, Failure> {
    let text = match crate::text_file::read_text(path) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
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
    Ok(file.provider)
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
fn select_set(section: &ProviderSection, root: &Path) -> (Option<RuntimeTarget>, RuntimeTargets) {
    let root = std::fs::canonicalize(root).unwrap_or_else(|_| root.to_owned());
    let is_root = |key: &str| {
        let path = match (key.strip_prefix("~/"), std::env::var_os("HOME")) {
            (Some(rest), Some(home)) => Path::new(&home).join(rest),
            _ => PathBuf::from(key),
        };
        std::fs::canonicalize(&path).unwrap_or(path) == root
    };
    let name = section.directories.iter().find(|(key, _)| is_root(key)).map(|(_, name)| name);
    let set = name.and_then(|name| section.assignments.get(name));
    let defaults = set.and_then(|set| set.defaults.clone()).or_else(|| section.defaults.clone());
    let targets = set.and_then(|set| set.targets.clone()).or_else(|| section.targets.clone());
    (defaults, targets.unwrap_or_default())
}

fn read_roles(
    section: ProviderSection,
    root: &Path,
    workflow: &str,
    is_known: &dyn Fn(&str) -> bool,
) -> Result<RuntimeRoles, Failure> {
    let mut roles = RuntimeRoles::default();
    let (defaults, targets) = select_set(&section, root);
    let mut resolver = ProfileResolver { section: &section, is_known, notes: Vec::new() };
    if let Some(target) = &defaults {
        roles.usual = resolver.resolve(target)?;
    }
    let of_step = |name: &str| {
        let (of, step) = name.rsplit_once('/')?;
        (of == workflow).then(|| AgentRole::Step(step.to_owned()))
    };
    let named = targets.steps.iter().filter_map(|(name, target)| Some((of_step(name)?, target)));
    let tags = targets.tags.iter().map(|(name, target)| (AgentRole::Tag(name.clone()), target));
    let personas = targets.personas.iter().map(|(name, target)| (AgentRole::Persona(name.clone()), target));
    for (role, target) in named.chain(tags).chain(personas) {
        if let Some(choice) = resolver.resolve(target)? {
            roles.assignments.push(AgentAssignment { role, chain: vec![choice] });
        }
    }
    if !targets.internal_agents.is_empty() {
        let note = "`internal_agents` of runtime.yaml is not followed: `judge` in `[agents]` of cuegate.toml names the agent \
                    of judges";
        resolver.notes.push(note.to_owned());
    }
    roles.notes = resolver.notes;
    roles.notes.sort_unstable();
    roles.notes.dedup();
    Ok(roles)
}

/// Looks up the agent that a profile names, through the profiles that it extends.
struct ProfileResolver<'s> {
    section: &'s ProviderSection,
    is_known: &'s dyn Fn(&str) -> bool,
    notes: Vec<String>,
}

impl ProfileResolver<'_> {
    fn resolve(&mut self, target: &RuntimeTarget) -> Result<Option<AgentChoice>, Failure> {
        if let Some(profile) = &target.profile {
            return self.resolve_profile(profile);
        }
        if let Some(LadderStage::Name(profile) | LadderStage::Table { profile }) = target.ladder.first() {
            if target.ladder.len() > 1 {
                self.notes.push("of a `ladder` in runtime.yaml the first stage is used".to_owned());
            }
            return self.resolve_profile(profile);
        }
        let Some(pool) = &target.pool else { return Ok(None) };
        self.notes.push("of a `pool` in runtime.yaml the `fallback_profile` is used".to_owned());
        let pools = self.section.auto_routing.as_ref().map(|routing| &routing.pools);
        let fallback = pools.and_then(|pools| pools.get(pool)?.fallback_profile.clone());
        fallback.map_or(Ok(None), |profile| self.resolve_profile(&profile))
    }

    fn resolve_profile(&mut self, name: &str) -> Result<Option<AgentChoice>, Failure> {
        let (mut provider, mut model) = (None, None);
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
            if profile.options.is_some() {
                self.notes.push("`options` of profiles in runtime.yaml are not passed on".to_owned());
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
        Ok(Some(AgentChoice { agent: agent.to_owned(), model }))
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
    medium: { provider: claude-sdk, model: sonnet, options: { effort: low } }
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
        let roles = read_roles(section, Path::new("/"), "default", &|name| name != "cursor").unwrap();
        let usual = roles.usual.iter().map(|usual| format!("usual={usual}"));
        let assigned = roles.assignments.iter().map(|one| format!("{}={}", one.role, one.chain[0]));
        usual.chain(assigned).chain(roles.notes.iter().map(|note| note[..24].to_owned())).collect()
    }

    #[test]
    fn profiles_become_agents_of_steps_tags_and_personas() {
        insta::assert_snapshot!(shown(section(TEXT)).join("\n"), @r"
        usual=claude:sonnet
        step:plan=claude:opus
        tag:review=codex
        persona:coder=claude:opus
        `internal_agents` of run
        `options` of profiles in
        of a `ladder` in runtime
        of a `pool` in runtime.y
        unknown agent `cursor` i
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
        ] {
            let failure = read_roles(section(text), Path::new("/"), "w", &|_| true).unwrap_err();
            assert_eq!(failure.message, why);
        }
    }
}
