//! The servers whose tools an agent gets, as its program takes them.

use std::{collections::BTreeSet, env, ffi::OsString};

use cuegate_ask::{McpServer, McpTransport};
use serde_json::{Map, Value, json};

/// The value of a variable of this process.
fn read_variable(name: &str) -> Option<String> {
    env::var(name).ok()
}

/// A server with the values of the variables that it names.
pub(crate) fn expand_server(server: &McpServer) -> McpServer {
    McpServer { name: server.name.clone(), transport: server.transport.expand(&read_variable) }
}

/// The variables that servers name, with their values, for a program that replaces them by itself.
pub(crate) fn list_named_variables(servers: &[McpServer]) -> impl Iterator<Item = (OsString, OsString)> {
    let names: BTreeSet<String> =
        servers.iter().flat_map(|server| server.transport.list_variables()).collect();
    names.into_iter().filter_map(|name| Some((name.clone().into(), env::var_os(name)?)))
}

/// The object `mcpServers` of settings, as most programs have it. `change` makes of an entry what the program takes.
pub(crate) fn describe_servers(
    servers: &[McpServer],
    change: fn(&McpTransport, &mut Value),
) -> Map<String, Value> {
    let entries = servers.iter().map(|server| {
        let mut entry = json!(server.transport);
        change(&server.transport, &mut entry);
        (server.name.clone(), entry)
    });
    entries.collect()
}
