//! Compares the work of a movement with its permission.

use cuegate_flow::{
    diagnostics::Diagnostic,
    model::{Boundary, Tools, tools},
};

use super::gates::Gates;
use crate::codes;
use crate::suggest::quote_names;
use crate::values::json::{Fields, Kind};

/// Reports work that needs write access in a movement that has none.
pub(super) fn check_write_access(
    fields: &Fields<'_, '_>,
    step: &str,
    boundary: &Boundary,
    gates: &Gates<'_>,
) {
    if !boundary.permission.may_write() {
        writing_tools(fields, step);
    } else if let (Tools::Only(_), Some(entry)) = (&boundary.tools, fields.nullable("allowed_tools"))
        && !boundary.can_write()
    {
        let message = format!("`{step}` may change files, but no tool of `allowed_tools` can");
        let finding = Diagnostic::warning(codes::WEAK_PERMISSION, entry.value.span, message);
        fields.push(finding.hint("add `Edit`, `Write` or `Bash`, or say `edit: false`"));
        return;
    }
    if let Some(gate) = gates.commands.first().filter(|_| !boundary.can_write()) {
        let message = format!("`{step}` must fix what `{}` finds, but may not change files", gate.command);
        let finding = Diagnostic::warning(codes::WEAK_PERMISSION, gate.span, message);
        fields.push(finding.hint("say `edit: true`, or move the command to a step that may change files"));
    }
}

/// Reports tools that only write, in a movement without write access.
fn writing_tools(fields: &Fields<'_, '_>, step: &str) {
    let Some(Kind::List(items)) = fields.nullable("allowed_tools").map(|entry| &entry.value.kind) else {
        return;
    };
    let writing = items.iter().filter_map(|item| Some((item.as_text()?, item.span)));
    let writing: Vec<_> = writing.filter(|(tool, _)| tools::only_writes(tool)).collect();
    let Some((_, span)) = writing.first() else { return };
    let names: Vec<&str> = writing.iter().map(|(tool, _)| *tool).collect();
    let message = format!(
        "{} of `allowed_tools` may write nothing, as `{step}` may change nothing",
        quote_names(&names)
    );
    let finding = Diagnostic::warning(codes::WEAK_PERMISSION, *span, message);
    fields.push(finding.hint("remove it, or say `edit: true`"));
}
