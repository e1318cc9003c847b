//! Checks tool names, which all formats share.

use cuegate_flow::{diagnostics::Diagnostic, model::tools};

use crate::codes;
use crate::suggest::find_nearest_name;
use crate::values::json::{Fields, Text};

/// Reports entries that are no tool of any agent.
pub(crate) fn check_tool_names(list: &[Text<'_>], fields: &Fields<'_, '_>) {
    for entry in list {
        let name = tools::tool_name(entry.text);
        let (message, hint) = if !tools::is_tool(entry.text) {
            let hint = match find_nearest_name(name, tools::known_tools()) {
                Some(near) => format!("did you mean `{near}`?"),
                None => {
                    "use a name of Claude Code, such as `Read`, `Edit` or `Bash(git:*)`; a tool of an MCP \
                         server is `mcp__SERVER__TOOL`"
                        .to_owned()
                }
            };
            (format!("no agent has a tool `{name}`"), hint)
        } else if entry.text.trim() != entry.text {
            (
                format!("no agent has a tool `{}`", entry.text),
                format!("did you mean `{}`?", entry.text.trim()),
            )
        } else if entry.text.contains('(') && !entry.text.trim_end().ends_with(')') {
            (format!("the bracket in `{}` is never closed", entry.text), "add `)`".to_owned())
        } else {
            continue;
        };
        fields.push(Diagnostic::warning(codes::UNKNOWN_TOOL, entry.span, message).hint(hint));
    }
}
