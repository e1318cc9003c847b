//! `[agents]`: programs that are agents, and which agent is called for what.

use std::{collections::BTreeMap, fmt};

use cuegate_engine::AgentChoice;
use cuegate_provider::{driven::DrivenSettings, exec::ExecSettings};
use serde::{
    Deserialize, Deserializer,
    de::{DeserializeSeed, Error, MapAccess, SeqAccess, Visitor, value::MapAccessDeserializer},
};

use super::{
    agent_chain::{parse_chain, parse_choice},
    agent_roles::{AgentAssignment, AgentRole},
};
use crate::providers::is_known_agent;

/// `[agents]`.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct AgentsConfig {
    /// Programs that are agents, by name.
    pub programs: BTreeMap<String, AgentProgram>,
    /// Which agents are called for which role.
    pub(crate) roles: Vec<AgentAssignment>,
}

/// How a program of the user is called.
#[derive(Debug, Clone, PartialEq)]
pub enum AgentProgram {
    /// `exec`: it reads a request and prints events.
    Exec(Box<ExecSettings>),
    /// `command`: it speaks the Agent Client Protocol.
    Driven(Box<DrivenSettings>),
}

/// An agent or several, the next ones of which step in: `"claude"`, `["claude", "codex:gpt-5"]`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgentChain(pub Vec<AgentChoice>);

/// The value of a key of `[agents]`.
enum AgentEntry {
    Program(AgentProgram),
    Chain(Vec<AgentChoice>),
}

/// Reads a chain, or also a table with a program.
struct EntryVisitor {
    takes_program: bool,
}

impl<'de> Visitor<'de> for EntryVisitor {
    type Value = AgentEntry;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an agent such as `\"codex\"`, a list of agents")?;
        if self.takes_program { f.write_str(", or a table with `exec` or `command`") } else { Ok(()) }
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<AgentEntry, E> {
        parse_chain(text).map(AgentEntry::Chain).map_err(E::custom)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<AgentEntry, A::Error> {
        let mut chain = Vec::new();
        while let Some(item) = items.next_element::<String>()? {
            chain.push(parse_choice(&item).map_err(A::Error::custom)?);
        }
        match chain.is_empty() {
            true => Err(A::Error::custom("the list names no agent")),
            false => Ok(AgentEntry::Chain(chain)),
        }
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<AgentEntry, A::Error> {
        if !self.takes_program {
            return Err(A::Error::invalid_type(serde::de::Unexpected::Map, &self));
        }
        // Which keys there are depends on how it is called, so the table is looked at first.
        let table = toml::Table::deserialize(MapAccessDeserializer::new(map))?;
        let is_driven = table.contains_key("command");
        let wrong = |error: toml::de::Error| A::Error::custom(error.message());
        Ok(AgentEntry::Program(match is_driven {
            true => AgentProgram::Driven(Box::new(table.try_into().map_err(wrong)?)),
            false => AgentProgram::Exec(Box::new(table.try_into().map_err(wrong)?)),
        }))
    }
}

/// Reads the value of this key, so that what is wrong with the key has a place.
struct EntrySeed<'n> {
    name: &'n str,
}

impl<'de> DeserializeSeed<'de> for EntrySeed<'_> {
    type Value = AgentEntry;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<AgentEntry, D::Error> {
        let entry = deserializer.deserialize_any(EntryVisitor { takes_program: true })?;
        let checked = match &entry {
            AgentEntry::Program(settings) => check_program(self.name, settings),
            AgentEntry::Chain(_) if is_known_agent(self.name) => Err(format!(
                "`{0}` is an agent, not a role: name a step, a persona or a tag (`\"step:{0}\"` for a step of that name)",
                self.name
            )),
            AgentEntry::Chain(_) => AgentRole::parse(self.name).map(|_| ()),
        };
        checked.map_err(D::Error::custom)?;
        Ok(entry)
    }
}

impl<'de> Deserialize<'de> for AgentChain {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<AgentChain, D::Error> {
        match deserializer.deserialize_any(EntryVisitor { takes_program: false })? {
            AgentEntry::Chain(chain) => Ok(AgentChain(chain)),
            AgentEntry::Program(_) => Err(D::Error::custom("an agent is not a table here")),
        }
    }
}

struct AgentsVisitor;

impl<'de> Visitor<'de> for AgentsVisitor {
    type Value = AgentsConfig;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a table of roles and agents")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<AgentsConfig, A::Error> {
        let mut config = AgentsConfig::default();
        while let Some(name) = map.next_key::<String>()? {
            match map.next_value_seed(EntrySeed { name: &name })? {
                AgentEntry::Program(settings) => {
                    config.programs.insert(name, settings);
                }
                AgentEntry::Chain(chain) => {
                    let role = AgentRole::parse(&name).map_err(A::Error::custom)?;
                    config.roles.push(AgentAssignment { role, chain, ladder: Vec::new() });
                }
            }
        }
        Ok(config)
    }
}

impl<'de> Deserialize<'de> for AgentsConfig {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<AgentsConfig, D::Error> {
        deserializer.deserialize_map(AgentsVisitor)
    }
}

fn check_program(name: &str, program: &AgentProgram) -> Result<(), String> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
    if is_known_agent(name) {
        return Err(format!(
            "`{name}` is an agent that Cuegate knows: its settings are `[providers.{name}]`, and a program of yours needs \
             another name"
        ));
    }
    if name.is_empty() || !name.chars().all(is_plain) {
        return Err(format!("`{name}` is no name of an agent: write letters, digits, `-` and `_`"));
    }
    let (words, key) = match program {
        AgentProgram::Exec(settings) => (&settings.exec, "exec"),
        AgentProgram::Driven(settings) => (&settings.command, "command"),
    };
    match words.first().is_none_or(|program| program.trim().is_empty()) {
        true => {
            Err(format!("the agent `{name}` has no program: write `{key} = [\"PROGRAM\", \"ARGUMENT\"]`"))
        }
        false => Ok(()),
    }
}
