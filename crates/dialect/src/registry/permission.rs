//! Permission modes.

use cuegate_flow::{Permission, Tools};

use crate::json::{Fields, Text};

const WORDS: [&str; 4] = ["default", "plan", "acceptEdits", "bypassPermissions"];

/// The `permissionMode` of an object, if it has a good one.
pub(crate) fn permission_of(fields: &Fields<'_, '_>) -> Option<Permission> {
    fields.one_of("permissionMode", &WORDS).map(|(word, _)| match word {
        "plan" => Permission::Plan,
        "acceptEdits" => Permission::AcceptEdits,
        "bypassPermissions" => Permission::BypassPermissions,
        _ => Permission::Default,
    })
}

/// The tools that a list allows; `"*"` in it allows all.
pub(crate) fn tools(list: &[Text<'_>]) -> Tools {
    if list.iter().any(|tool| tool.text == "*") {
        Tools::All
    } else {
        Tools::Only(list.iter().map(|tool| tool.text.into()).collect())
    }
}
