//! The messages of the Model Context Protocol that a server with tools needs. Source of the formats: the specification at
//! modelcontextprotocol.io, revisions 2024-11-05 to 2026-07-28.
//!
//! The official SDK would bring 22 crates for the five methods here, which are tested with the real clients.

use serde_json::{Value, json};

/// The revisions with a handshake that it speaks, newest first.
const VERSIONS: [&str; 4] = ["2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"];
/// The revision without a handshake.
const STATELESS: &str = "2026-07-28";

const METHOD_NOT_FOUND: i64 = -32601;
const INVALID_PARAMS: i64 = -32602;
const PARSE_ERROR: i64 = -32700;
const INVALID_REQUEST: i64 = -32600;

/// Answers the calls of clients.
pub trait ToolServer {
    /// The name under which clients know it.
    fn name(&self) -> &str;

    /// What a client should know of it as a whole.
    fn instructions(&self) -> String;

    /// Its tools, as `tools/list` has them.
    fn list_tools(&mut self) -> Vec<Value>;

    /// Calls a tool. `None`: there is none of this name.
    fn call_tool(&mut self, name: &str, arguments: &Value) -> Option<ToolReply>;
}

/// What a tool replies.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ToolReply {
    /// For the model.
    pub text: String,
    /// For programs.
    pub structured: Option<Value>,
    /// Whether the call failed, so that the model does something about it.
    pub is_error: bool,
}

/// Reacts to a line or a body. Returns the reply; `None` for notifications.
pub fn answer_message(server: &mut dyn ToolServer, text: &[u8]) -> Option<Value> {
    match serde_json::from_slice::<Value>(text) {
        // Only the revision of March 2025 has batches.
        Ok(Value::Array(messages)) if !messages.is_empty() => {
            let replies: Vec<Value> =
                messages.iter().filter_map(|message| answer_one(server, message)).collect();
            (!replies.is_empty()).then(|| replies.into())
        }
        Ok(message) => answer_one(server, &message),
        Err(error) => Some(error_reply(&Value::Null, PARSE_ERROR, &format!("not JSON: {error}"))),
    }
}

fn answer_one(server: &mut dyn ToolServer, message: &Value) -> Option<Value> {
    let id = message.get("id").filter(|id| id.is_string() || id.is_number());
    let method = message.get("method").and_then(Value::as_str);
    let (Some(id), Some(method)) = (id, method) else {
        // A notification, or an answer to a question that was never asked.
        let is_harmless =
            method.is_some() || message.get("result").is_some() || message.get("error").is_some();
        return (!is_harmless).then(|| error_reply(&Value::Null, INVALID_REQUEST, "not a request"));
    };
    let params = message.get("params").unwrap_or(&Value::Null);
    let result = match method {
        "initialize" => Ok(describe_server(server, params)),
        "server/discover" => Ok(discover_server(server)),
        "ping" => Ok(json!({})),
        "tools/list" => Ok(
            json!({ "tools": server.list_tools(), "resultType": "complete", "ttlMs": 0, "cacheScope": "private" }),
        ),
        "tools/call" => call_tool(server, params),
        _ => Err((METHOD_NOT_FOUND, format!("unknown method `{method}`"))),
    };
    Some(match result {
        Ok(result) => json!({ "jsonrpc": "2.0", "id": id, "result": result }),
        Err((code, why)) => error_reply(id, code, &why),
    })
}

fn call_tool(server: &mut dyn ToolServer, params: &Value) -> Result<Value, (i64, String)> {
    let name = params.get("name").and_then(Value::as_str).unwrap_or_default();
    let empty = json!({});
    let arguments = params.get("arguments").filter(|given| !given.is_null()).unwrap_or(&empty);
    let Some(reply) = server.call_tool(name, arguments) else {
        return Err((
            INVALID_PARAMS,
            format!("unknown tool `{name}`: `tools/list` names those that there are"),
        ));
    };
    let mut result = json!({
        "content": [{ "type": "text", "text": reply.text }], "isError": reply.is_error, "resultType": "complete",
    });
    if let Some(structured) = reply.structured {
        result["structuredContent"] = structured;
    }
    Ok(result)
}

fn server_info(server: &dyn ToolServer) -> Value {
    json!({ "name": server.name(), "version": env!("CARGO_PKG_VERSION") })
}

fn describe_server(server: &dyn ToolServer, params: &Value) -> Value {
    let wanted = params.get("protocolVersion").and_then(Value::as_str).unwrap_or_default();
    let version = VERSIONS.into_iter().find(|version| *version == wanted).unwrap_or(VERSIONS[0]);
    json!({
        "protocolVersion": version,
        "capabilities": { "tools": {} },
        "serverInfo": server_info(server),
        "instructions": server.instructions(),
    })
}

fn discover_server(server: &dyn ToolServer) -> Value {
    let versions: Vec<&str> = std::iter::once(STATELESS).chain(VERSIONS).collect();
    json!({
        "resultType": "complete",
        "supportedVersions": versions,
        "capabilities": { "tools": {} },
        "serverInfo": server_info(server),
        "instructions": server.instructions(),
        "ttlMs": 0,
        "cacheScope": "private",
        "_meta": { "io.modelcontextprotocol/serverInfo": server_info(server) },
    })
}

fn error_reply(id: &Value, code: i64, message: &str) -> Value {
    json!({ "jsonrpc": "2.0", "id": id, "error": { "code": code, "message": message } })
}
