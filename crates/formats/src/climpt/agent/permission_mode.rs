//! Reads permission modes and tool lists.

use cuegate_flow::{
    diagnostics::{Diagnostic, Span},
    model::{Boundary, Permission, Tools, tools},
};

use crate::codes;
use crate::findings::Findings;
use crate::source::tool_names;
use crate::suggest;
use crate::values::json::{Fields, Text};

const WORDS: [&str; 4] = ["default", "plan", "acceptEdits", "bypassPermissions"];

/// The `permissionMode` of an object and its place, if it is valid.
pub(crate) fn permission_of(fields: &Fields<'_, '_>) -> Option<(Permission, Span)> {
    let (word, span) = fields.one_of("permissionMode", &WORDS)?;
    let permission = match word {
        "plan" => Permission::Plan,
        "acceptEdits" => Permission::AcceptEdits,
        "bypassPermissions" => Permission::BypassPermissions,
        _ => Permission::Default,
    };
    if permission == Permission::Default {
        fields.push(
            Diagnostic::warning(
                codes::WEAK_PERMISSION,
                span,
                "`default` asks a person before each action, and an unattended run has none: writing is denied",
            )
            .hint("use `acceptEdits` for what writes, `plan` for what only reads"),
        );
    }
    Some((permission, span))
}

/// The permission of a step: the more restrictive of its own and the agent's. A wider one is reported.
pub(crate) fn limit_permission(
    own: Option<(Permission, Span)>,
    at_most: Permission,
    step: &str,
    found: &Findings,
) -> Permission {
    let Some((own, span)) = own else { return at_most };
    if own > at_most {
        let (own, at_most) = (own.as_str(), at_most.as_str());
        let message = format!("`{step}` asks for `{own}`, but its agent may do `{at_most}` at most");
        found.push(Diagnostic::warning(codes::WEAK_PERMISSION, span, message).step(step).hint(format!(
            "write `{own}` in `{}`, or remove the permission of the step",
            found.name("runner.boundaries")
        )));
    }
    own.min(at_most)
}

/// The tools that a list allows. `"*"` allows all, so the other entries are reported.
pub(crate) fn tools_of_list(list: &[Text<'_>], fields: &Fields<'_, '_>) -> Tools {
    tool_names::check_tool_names(list, fields);
    if list.iter().any(|tool| tool.text == "*") {
        if let Some(other) = list.iter().find(|tool| tool.text != "*") {
            let message = format!("`{}` in `allowedTools` has no effect: `*` allows every tool", other.text);
            fields.inert(other.span, message, "remove `*`, or everything else");
        }
        Tools::All
    } else {
        Tools::Only(list.iter().map(|tool| tool.text.into()).collect())
    }
}

/// Reports write-only tools of an agent that may not write: a step may have less permission than its agent, never more.
/// Also reports a tool list without write tools when files may be changed.
pub(crate) fn check_tools(
    (list, span): (&[Text<'_>], Span),
    permission: Permission,
    fields: &Fields<'_, '_>,
) {
    if permission.may_write() {
        let is_idle = !list.iter().any(|tool| tool.text == "*" || tools::can_write(tool.text));
        if is_idle {
            let message = format!(
                "no tool of `allowedTools` can change files, though `permissionMode` is `{}`",
                permission.as_str()
            );
            let finding = Diagnostic::warning(codes::WEAK_PERMISSION, span, message);
            fields.push(finding.hint("add `Edit`, `Write` or `Bash`, or write `plan`"));
        }
        return;
    }
    let writing: Vec<&Text<'_>> = list.iter().filter(|tool| tools::only_writes(tool.text)).collect();
    let Some(first) = writing.first().filter(|_| permission == Permission::Plan) else { return };
    let names: Vec<&str> = writing.iter().map(|tool| tool.text).collect();
    let does = if names.len() == 1 { "does" } else { "do" };
    let message =
        format!("{} {does} nothing but write, and `permissionMode` is `plan`", suggest::quote_names(&names));
    fields.push(
        Diagnostic::warning(codes::WEAK_PERMISSION, first.span, message)
            .hint("write `acceptEdits`, or remove what writes"),
    );
}

/// Whether a step's permission is known to be too narrow for changing files, and no other finding reports it yet.
pub(crate) fn is_too_weak(boundary: &Boundary) -> bool {
    !boundary.can_write() && boundary.permission != Permission::Default
}
