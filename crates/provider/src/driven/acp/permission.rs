//! What an agent may do when it asks.

use std::path::Path;

use agent_client_protocol_schema::v1::{
    PermissionOption, PermissionOptionKind, RequestPermissionOutcome, RequestPermissionRequest,
    RequestPermissionResponse, SelectedPermissionOutcome, ToolKind,
};
use cuegate_ask::Permission;
use serde_json::Value;

use crate::{answer_server::TOOL_NAME, driven::job::DriverJob};

/// Whether a request is granted. An agent that asks for its answer server always is.
pub(super) fn is_granted(
    job: &DriverJob,
    request: &RequestPermissionRequest,
    kind: Option<ToolKind>,
) -> bool {
    if is_answer_tool(request) {
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

/// Whether a request is for `submit_answer`. Agents name it in different places.
pub(super) fn is_answer_tool(request: &RequestPermissionRequest) -> bool {
    let title = request.tool_call.fields.title.as_deref().unwrap_or_default();
    let metas = [&request.meta, &request.tool_call.meta];
    let in_meta = metas
        .into_iter()
        .flatten()
        .any(|meta| meta.values().any(|value| value.as_str().is_some_and(|text| text.ends_with(TOOL_NAME))));
    // A path or a command may have the name in it as well, but then it has more beside it.
    let is_title =
        title.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_')).any(|word| word.ends_with(TOOL_NAME));
    in_meta || is_title && !matches!(request.tool_call.fields.kind, Some(ToolKind::Execute | ToolKind::Edit))
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
