//! `[mcp]`: servers whose tools agents get.

use std::collections::BTreeMap;

use cuegate_flow::model::{McpServer, McpTransport};
use serde::{Deserialize, Deserializer, de::Error as _};

use super::AgentRole;

/// `[mcp]`: the servers by name.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ToolServersConfig(pub(crate) Vec<ToolServerConfig>);

/// `[mcp.NAME]`.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ToolServerConfig {
    pub(crate) server: McpServer,
    /// The calls that get it; empty = all.
    pub(crate) roles: Vec<AgentRole>,
}

impl<'de> Deserialize<'de> for ToolServersConfig {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<ToolServersConfig, D::Error> {
        let tables: BTreeMap<String, toml::Table> = Deserialize::deserialize(deserializer)?;
        let read = |(name, table): (String, toml::Table)| {
            read_server(&name, table).map_err(|why| D::Error::custom(format!("in `[mcp.{name}]`: {why}")))
        };
        Ok(ToolServersConfig(tables.into_iter().map(read).collect::<Result<_, _>>()?))
    }
}

fn read_server(name: &str, mut table: toml::Table) -> Result<ToolServerConfig, String> {
    McpServer::check_name(name)?;
    let named = table.remove("for").map_or(Ok(Vec::new()), |named| {
        named.try_into::<Vec<String>>().map_err(|_| "`for` is a list of steps, personas and tags".to_owned())
    })?;
    let mut roles = Vec::new();
    for text in &named {
        match AgentRole::parse(text)? {
            AgentRole::Report => {
                return Err("a report is written by the agent of its step: name the step".to_owned());
            }
            role => roles.push(role),
        }
    }
    let transport: McpTransport =
        table.try_into().map_err(|error: toml::de::Error| error.message().to_owned())?;
    Ok(ToolServerConfig { server: McpServer { name: name.to_owned(), transport }, roles })
}
