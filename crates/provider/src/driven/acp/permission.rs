//! What an agent may do when it asks.

use std::path::Path;

use agent_client_protocol_schema::v1::{
    PermissionOption, PermissionOptionKind, RequestPermissionOutcome, RequestPermissionRequest,
    RequestPermissionResponse, SelectedPermissionOutcome, ToolKind,
};
use cuegate_ask::Permission;
use serde_json::Value;

use crate::{answer_server::TOOL_NAME, driven::job::DriverJob};

/// Whether a request is granted. `kind` is that of the call as the agent announced it. A call of `submit_answer` always is.
pub(super) fn is_granted(
    job: &DriverJob,
    request: &RequestPermissionRequest,
    kind: Option<ToolKind>,
) -> bool {
    if is_answer_tool(request, kind) || is_of_tool_server(job, request, kind) {
        return true;
    }
    let fields = &request.tool_call.fields;
    let is_inside = || {
        fields
            .locations
            .iter()
            .flatten()
            .all(|location| location.path.starts_with(&job.folder) || location.path.is_relative())
    };
    let may_write = job.permission.may_write();
    match kind.or(fields.kind) {
        Some(ToolKind::Read | ToolKind::Search | ToolKind::Think | ToolKind::Fetch) => true,
        Some(ToolKind::Edit | ToolKind::Delete | ToolKind::Move) => {
            may_write && (job.permission == Permission::BypassPermissions || is_inside())
        }
        // A command may do anything, so it has to be held by something else: by the sandbox, whose tree is read-only for a
        // step that may not write, or by the list of tools.
        Some(ToolKind::Execute) => may_write || job.is_sandboxed || lists_shell(job.tools.as_deref()),
        _ => job.permission == Permission::BypassPermissions,
    }
}

/// Whether a request is for a tool of a server that the call has. Agents name the server before the tool or after it, in
/// parentheses: `NAME_tool`, `tool (NAME MCP Server)`, `mcp__NAME__tool`.
fn is_of_tool_server(job: &DriverJob, request: &RequestPermissionRequest, kind: Option<ToolKind>) -> bool {
    let fields = &request.tool_call.fields;
    let is_special = |kind: Option<ToolKind>| kind.is_some_and(|kind| kind != ToolKind::Other);
    if is_special(kind) || is_special(fields.kind) {
        return false;
    }
    let metas = [&request.meta, &request.tool_call.meta];
    let in_meta = metas.into_iter().flatten().flat_map(|meta| meta.values().filter_map(Value::as_str));
    let names: Vec<&str> = in_meta.chain(fields.title.as_deref()).collect();
    job.tool_servers.iter().any(|server| {
        let name = &server.name;
        let begins = [format!("{name}_"), format!("mcp__{name}__"), format!("mcp_{name}_")];
        let ends = format!(" ({name} MCP Server)");
        // A text with more words may be a command.
        let is_one = |text: &&str| {
            let tool = text.strip_suffix(&ends);
            let is_named = tool.is_some() || begins.iter().any(|start| text.starts_with(start));
            is_named && !tool.unwrap_or(text).contains(char::is_whitespace)
        };
        names.iter().any(is_one)
    })
}

/// Whether a request is for `submit_answer`. Agents name it in different places, and all call it a tool of no special kind: a
/// command, an edit or a path may have the name in it as well.
fn is_answer_tool(request: &RequestPermissionRequest, kind: Option<ToolKind>) -> bool {
    let fields = &request.tool_call.fields;
    let is_special = |kind: Option<ToolKind>| kind.is_some_and(|kind| kind != ToolKind::Other);
    if is_special(kind) || is_special(fields.kind) {
        return false;
    }
    let metas = [&request.meta, &request.tool_call.meta];
    let in_meta = metas
        .into_iter()
        .flatten()
        .any(|meta| meta.values().any(|value| value.as_str().is_some_and(|text| text.ends_with(TOOL_NAME))));
    // `submit_answer (cuegate MCP Server)`, `cuegate_submit_answer`
    let title = fields.title.as_deref().unwrap_or_default();
    let (name, rest) = title.split_once(' ').unwrap_or((title, ""));
    let is_name = name.chars().all(|c| c.is_ascii_alphanumeric() || "_-.:/".contains(c));
    let is_title = is_name && name.ends_with(TOOL_NAME) && (rest.is_empty() || rest.starts_with('('));
    in_meta || is_title
}

fn lists_shell(tools: Option<&[String]>) -> bool {
    let is_shell = |tool: &String| matches!(tool.split('(').next(), Some("Bash" | "bash" | "shell"));
    tools.is_some_and(|tools| tools.iter().any(is_shell))
}

/// The reply: the option that holds for this once. Nothing is ever allowed for later.
pub(super) fn select_option(options: &[PermissionOption], granted: bool) -> RequestPermissionResponse {
    let wanted = if granted { PermissionOptionKind::AllowOnce } else { PermissionOptionKind::RejectOnce };
    let option = options.iter().find(|option| option.kind == wanted);
    RequestPermissionResponse::new(match option {
        Some(option) => {
            RequestPermissionOutcome::Selected(SelectedPermissionOutcome::new(option.option_id.clone()))
        }
        None => RequestPermissionOutcome::Cancelled,
    })
}

/// What a tool call is about, for people.
pub(super) fn target_of_call(input: Option<&Value>, title: &str, folder: &Path) -> String {
    let input = input.unwrap_or(&Value::Null);
    let keys = ["command", "filePath", "file_path", "path", "filepath", "pattern", "query", "url"];
    let named = keys.iter().find_map(|key| input.get(*key)?.as_str());
    let target = named.unwrap_or(title);
    let inside = Path::new(target).strip_prefix(folder).ok().and_then(Path::to_str);
    crate::program::wording::shorten_target(inside.unwrap_or(target))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_a_tool_of_a_named_server_is_one() {
        let job: DriverJob = serde_json::from_value(json!({
            "name": "x", "command": [], "env": {}, "prompt": "", "permission": "plan", "folder": "/w", "scratch": "/s",
            "is_sandboxed": false, "answer": "none", "answer_server": [],
            "tool_servers": [{ "name": "press", "transport": { "command": "p" } }],
        }))
        .unwrap();
        let is_of_server = |call: Value| {
            let mut call = call;
            call["toolCallId"] = "c1".into();
            let request = json!({ "sessionId": "s1", "toolCall": call, "options": [] });
            is_of_tool_server(&job, &serde_json::from_value(request).unwrap(), None)
        };
        for title in ["press_stamp", "mcp__press__stamp", "stamp (press MCP Server)"] {
            assert!(is_of_server(json!({ "title": title, "kind": "other" })), "{title}");
            assert!(!is_of_server(json!({ "title": title, "kind": "execute" })), "{title}");
        }
        for title in ["pressed_stamp", "other_stamp", "rm -rf x (press MCP Server)", "press_stamp && rm x"] {
            assert!(!is_of_server(json!({ "title": title })), "{title}");
        }
    }

    #[test]
    fn only_a_call_of_the_answer_tool_is_one() {
        let is_answer = |call: Value, announced: Option<ToolKind>| {
            let mut call = call;
            call["toolCallId"] = "c1".into();
            let request = json!({ "sessionId": "s1", "toolCall": call, "options": [] });
            is_answer_tool(&serde_json::from_value(request).unwrap(), announced)
        };
        for call in [
            json!({ "title": "submit_answer (cuegate MCP Server)", "kind": "other" }),
            json!({ "title": "submit_answer", "kind": "other" }),
            json!({ "title": "cuegate_submit_answer" }),
            json!({ "title": "{\"ok\":true}", "kind": "other", "_meta": { "toolName": "mcp__cuegate__submit_answer" } }),
        ] {
            assert!(
                is_answer(call.clone(), None) && is_answer(call.clone(), Some(ToolKind::Other)),
                "{call}"
            );
            assert!(!is_answer(call.clone(), Some(ToolKind::Execute)), "{call}");
        }
        for call in [
            json!({ "title": "submit_answer", "kind": "execute" }),
            json!({ "title": "Delete submit_answer", "kind": "delete" }),
            json!({ "title": "rm notes; submit_answer" }),
            json!({ "title": "submit_answer; rm notes" }),
            json!({ "title": "submit_answer && rm notes" }),
        ] {
            assert!(!is_answer(call.clone(), None), "{call}");
        }
    }
}
