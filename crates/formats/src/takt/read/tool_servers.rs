//! `mcp_servers` of a step.

use cuegate_flow::{
    diagnostics::Diagnostic,
    model::{McpServer, McpTransport},
};

use crate::codes;
use crate::values::json::{Fields, Kind};

/// Reads the servers of a step. Whether they are started, settings decide.
pub(super) fn read_tool_servers(fields: &Fields<'_, '_>) -> Vec<McpServer> {
    let Some(entry) = fields.shunned("mcp_servers") else { return Vec::new() };
    if !matches!(entry.value.kind, Kind::Object(_) | Kind::Null) {
        fields.wrong_type("mcp_servers", &entry.value, "a map from names to servers");
        return Vec::new();
    }
    let mut servers = Vec::new();
    for server in entry.value.pairs() {
        let name = server.key.to_string();
        let problem = match McpServer::check_name(&name) {
            Err(problem) => problem,
            Ok(()) => match serde_json::from_value::<McpTransport>(server.value.to_value()) {
                Ok(transport) => {
                    servers.push(McpServer { name, transport });
                    continue;
                }
                Err(error) => error.to_string(),
            },
        };
        let message = format!("invalid MCP server `{}`: {problem}", server.key);
        let finding = Diagnostic::error(codes::INVALID_VALUE, server.key_span, message);
        fields.push(finding.hint("write `command`, `args` and `env`, or `type`, `url` and `headers`"));
    }
    servers
}
