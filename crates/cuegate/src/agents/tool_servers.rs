//! Computes which agents get the tools of which servers: from cuegate.toml, from TAKT's `runtime.yaml`, and from the
//! steps themselves where TAKT's `config.yaml` allows it.

use std::{
    collections::BTreeMap,
    io,
    path::{Path, PathBuf},
};

use cuegate_flow::{
    Str,
    analysis::judges_of_gate,
    model::{Act, Ask, Flow, McpServer, McpTransport, Step, StepId},
};
use cuegate_provider::{is_secret, list_variables, redact_variables};
use cuegate_runner::{
    StateDir,
    sandbox::{find_link, kept_out_files},
};
use serde::{Deserialize, de::DeserializeOwned};

use super::{plan::list_asking_steps, planned_calls::PlannedCall};
use crate::Failure;
use crate::config::{AgentRole, Config};

/// The servers of a run.
#[derive(Debug, Default)]
pub(super) struct PlannedToolServers {
    /// The servers whose tools the agent of a step gets.
    pub(super) by_step: BTreeMap<Str, Vec<McpServer>>,
    /// What a user should know of them.
    pub(super) notes: Vec<String>,
}

/// TAKT's files, in a project or in the home folder.
const RUNTIME: &str = ".takt/runtime.yaml";
const CONFIG: &str = ".takt/config.yaml";

/// The section `mcp` of `runtime.yaml`.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct ServerSection {
    servers: BTreeMap<String, McpTransport>,
    defaults: ServerSet,
    targets: ServerTargets,
}

#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct ServerSet {
    servers: Vec<String>,
    exclude: Vec<String>,
}

#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct ServerTargets {
    personas: BTreeMap<String, ServerSet>,
    tags: BTreeMap<String, ServerSet>,
    steps: BTreeMap<String, ServerSet>,
    internal_agents: BTreeMap<String, ServerSet>,
}

#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default)]
struct ServersFile {
    mcp: Option<ServerSection>,
}

#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default)]
struct TaktConfigFile {
    workflow_mcp_servers: BTreeMap<String, bool>,
}

/// What TAKT's files say of servers.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct TaktServers {
    /// The file of the section.
    file: PathBuf,
    notes: Vec<String>,
    section: Option<ServerSection>,
    /// The types of servers that steps may name.
    allowed: BTreeMap<String, bool>,
}

/// Computes the servers of each step.
///
/// # Errors
/// When a step names servers beside `runtime.yaml`, and when a key is written out.
pub(super) fn plan_tool_servers(
    flow: &Flow,
    takt: &TaktServers,
    config: &Config,
) -> Result<PlannedToolServers, Failure> {
    let mut planned = PlannedToolServers { notes: takt.notes.clone(), ..PlannedToolServers::default() };
    for (step, ask) in list_asking_steps(flow) {
        let mut servers: Vec<McpServer> = Vec::new();
        let mut add = |server: McpServer| {
            if !servers.iter().any(|known| known.name == server.name) {
                servers.push(server);
            }
        };
        for own in &config.mcp.0 {
            if own.roles.is_empty() || own.roles.iter().any(|role| role.fit(step, ask).is_some()) {
                add(own.server.clone());
            }
        }
        takt.assign(step, ask).into_iter().for_each(&mut add);
        let named = &ask.agent_keys.tool_servers;
        if !named.is_empty() && takt.section.is_some() {
            return Err(Failure::usage(
                format!(
                    "`mcp_servers` of `{}` and `mcp` in `{}` exclude each other",
                    step.name,
                    takt.file.display()
                ),
                "move the servers of the step to `mcp.servers`, and name them under `mcp.targets.steps`",
            ));
        }
        for server in named {
            let kind = server.transport.as_str();
            if takt.allowed.get(kind) == Some(&true) {
                add(server.clone());
            } else {
                planned.notes.push(format!(
                    "`{}` gets no tools of `{}`: allow it by `workflow_mcp_servers: {{ {kind}: true }}` in \
                     `.takt/config.yaml`, or define it as `[mcp.{}]` in cuegate.toml",
                    step.name, server.name, server.name
                ));
            }
        }
        for server in &servers {
            check_keys(server)?;
        }
        if !servers.is_empty() {
            planned.by_step.insert(step.name.clone(), servers);
        }
    }
    // A judge goes on with the conversation of the step whose answer it judges, and has the same tools.
    for step in &flow.steps {
        for judge in judges_of_gate(&step.gate).map(|judge| flow.step(judge)) {
            let has_seat = matches!(&judge.act, Act::Ask(ask) if ask.agent_keys.seat.is_some());
            if !has_seat {
                let of_step = planned.by_step.get(&step.name).cloned();
                planned.by_step.remove(&judge.name);
                planned.by_step.extend(of_step.map(|servers| (judge.name.clone(), servers)));
            }
        }
    }
    Ok(planned)
}

/// Refuses a key that is written out: runs keep their settings, and show them.
fn check_keys(server: &McpServer) -> Result<(), Failure> {
    let texts = server.transport.secrets();
    let is_login = |name: &str| {
        ["authorization", "cookie", "proxy-authorization"].contains(&name.to_lowercase().as_str())
    };
    let is_key = |name: &str, text: &str| is_secret(&name.replace('-', "_"), text) || is_login(name);
    match texts
        .iter()
        .find(|(name, text)| is_key(name, text) && !text.is_empty() && list_variables(text).is_empty())
    {
        None => Ok(()),
        Some((name, _)) => Err(Failure::usage(
            format!(
                "the MCP server `{}` has the value of `{name}` written out, and a run would keep it",
                server.name
            ),
            format!("export it as a variable, and write `{name}` with `${{VARIABLE}}`"),
        )),
    }
}

/// Checks that the agent of a call can use these servers. `transports` are the types that it can.
///
/// # Errors
/// When it cannot use the type of one, or a variable of one is not set.
pub(super) fn check_tool_servers(
    servers: &[McpServer],
    call: &PlannedCall<'_>,
    transports: &[&str],
) -> Result<(), Failure> {
    let agent = &call.choice.agent;
    for server in servers {
        let (name, kind) = (&server.name, server.transport.as_str());
        if !transports.contains(&kind) {
            let known: Vec<String> = transports.iter().map(|kind| format!("`{kind}`")).collect();
            return Err(Failure::usage(
                format!(
                    "{agent} cannot use the MCP server `{name}` of `{}`: it is of type `{kind}`",
                    call.step.name
                ),
                format!(
                    "{agent} can use {}; give the step another agent (`--agent ROLE=AGENT`)",
                    known.join(", ")
                ),
            ));
        }
        let missing = server.transport.list_variables().into_iter().find(|name| std::env::var(name).is_err());
        if let Some(missing) = missing {
            return Err(Failure {
                hint: Some(format!("export `{missing}`")),
                ..Failure::environment(format!(
                    "the variable `{missing}`, which the MCP server `{name}` names, is not set"
                ))
            });
        }
        let expanded = server.transport.expand(&|name| std::env::var(name).ok());
        if let Err(why) = expanded.check() {
            return Err(Failure::usage(
                format!("invalid MCP server `{name}`: {why}"),
                "correct it, or its variables",
            ));
        }
        redact_variables(server.transport.secrets().values().flat_map(|text| list_variables(text)));
    }
    Ok(())
}

impl TaktServers {
    /// Reads the files of the user and of the project. Of a section, that of the project replaces that of the user.
    ///
    /// # Errors
    /// When one cannot be read or understood.
    pub(super) fn read(root: &Path) -> Result<TaktServers, Failure> {
        let home = std::env::var_os("HOME").filter(|home| !home.is_empty()).map(PathBuf::from);
        // An agent that works, or was killed, may have created it.
        let kept_out = kept_out_files(StateDir::new(root).dir());
        let mut takt = TaktServers::default();
        for folder in home.iter().map(PathBuf::as_path).chain([root]) {
            let is_own = folder == root;
            let read_path = |name: &str| Some(folder.join(name)).filter(|path| !kept_out.contains(path));
            // An agent may put a file in the place of a link, or of what it leads to.
            let is_linked = |name: &str| is_own && find_link(root, Path::new(name)).is_some();
            let runtime: ServersFile = read_yaml(read_path(RUNTIME))?;
            if let Some(section) = runtime.mcp {
                section.check(&folder.join(RUNTIME), &mut takt.notes)?;
                if is_linked(RUNTIME) {
                    takt.notes.push(format!("the `mcp` of `{RUNTIME}` does not count: it is behind a link"));
                } else {
                    (takt.section, takt.file) = (Some(section), folder.join(RUNTIME));
                }
            }
            let config: TaktConfigFile = read_yaml(read_path(CONFIG))?;
            if !config.workflow_mcp_servers.is_empty() && is_linked(CONFIG) {
                takt.notes.push(format!(
                    "`workflow_mcp_servers` of `{CONFIG}` does not count: it is behind a link"
                ));
            } else {
                takt.allowed.extend(config.workflow_mcp_servers);
            }
        }
        Ok(takt)
    }

    /// The servers of a step: the defaults and those of its targets, without those that one of these excludes.
    fn assign(&self, step: &Step<StepId>, ask: &Ask) -> Vec<McpServer> {
        let Some(section) = &self.section else { return Vec::new() };
        let ServerTargets { personas, tags, steps, internal_agents } = &section.targets;
        let of_step = |name: &str| {
            let (workflow, step) = name.rsplit_once('/')?;
            Some(AgentRole::StepOf(workflow.to_owned(), step.to_owned()))
        };
        let personas = personas.iter().map(|(name, set)| (Some(AgentRole::Persona(name.clone())), set));
        let tags = tags.iter().map(|(name, set)| (Some(AgentRole::Tag(name.clone())), set));
        let seats = internal_agents.iter().map(|(name, set)| (Some(AgentRole::Seat(name.clone())), set));
        let steps = steps.iter().map(|(name, set)| (of_step(name), set));
        let targets = personas.chain(tags).chain(steps).chain(seats);
        let fitting =
            targets.filter(|(role, _)| role.as_ref().is_some_and(|role| role.fit(step, ask).is_some()));
        let sets: Vec<&ServerSet> =
            std::iter::once(&section.defaults).chain(fitting.map(|(_, set)| set)).collect();
        let is_excluded = |name: &String| sets.iter().any(|set| set.exclude.contains(name));
        let names = sets.iter().flat_map(|set| &set.servers).filter(|name| !is_excluded(name));
        names
            .filter_map(|name| {
                Some(McpServer { name: name.clone(), transport: section.servers.get(name)?.clone() })
            })
            .collect()
    }
}

impl ServerSection {
    /// Checks the names in it. `notes` gets what names nothing.
    ///
    /// # Errors
    /// When a server is undefined, or its name is none.
    fn check(&self, file: &Path, notes: &mut Vec<String>) -> Result<(), Failure> {
        let ServerTargets { personas, tags, steps, internal_agents } = &self.targets;
        let targets = [personas, tags, steps, internal_agents].into_iter().flat_map(BTreeMap::values);
        let sets = std::iter::once(&self.defaults).chain(targets);
        for name in sets.flat_map(|set| set.servers.iter().chain(&set.exclude)) {
            if !self.servers.contains_key(name) {
                return Err(Failure::usage(
                    format!("undefined MCP server `{name}` in `{}`", file.display()),
                    "define it under `mcp.servers`",
                ));
            }
        }
        for name in self.servers.keys() {
            McpServer::check_name(name)
                .map_err(|why| Failure::usage(why, format!("rename it in `{}`", file.display())))?;
        }
        let wrong = steps.keys().filter(|name| !name.contains('/'));
        notes.extend(
            wrong.map(|name| format!("`{name}` in runtime.yaml names no step: write `WORKFLOW/STEP`")),
        );
        Ok(())
    }
}

/// Reads a file of TAKT; a missing one says nothing.
fn read_yaml<T: DeserializeOwned + Default>(path: Option<PathBuf>) -> Result<T, Failure> {
    let Some(path) = path else { return Ok(T::default()) };
    let text = match crate::text_file::read_text(&path) {
        Ok(text) if text.trim().is_empty() => return Ok(T::default()),
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(T::default()),
        Err(error) => {
            let message = format!("failed to read `{}`: {error}", path.display());
            return Err(Failure::usage(message, "make the file readable"));
        }
    };
    serde_saphyr::from_str(&text).map_err(|error| {
        let error = error.to_string();
        let first = error.lines().next().unwrap_or_default();
        Failure::usage(format!("failed to read `{}`: {first}", path.display()), "correct the file")
    })
}
