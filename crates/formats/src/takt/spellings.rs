//! The generations of the format: which one a definition is written for, and the older names of keys.

use cuegate_flow::diagnostics::Diagnostic;

use crate::codes;
use crate::values::json::{Entry, Fields, Json, Kind};

pub(super) fn items_of_key<'j>(of: &'j Json, key: &str) -> &'j [Json] {
    match of.get(key).map(|list| &list.kind) {
        Some(Kind::List(items)) => items,
        _ => &[],
    }
}

/// Finds the entry of a key by its name of today, then by its `older` names.
pub(super) fn find_renamed_entry<'j>(
    fields: &Fields<'j, '_>,
    key: &'static str,
    older: &[&'static str],
) -> (&'static str, Option<&'j Entry>) {
    let names = std::iter::once(key).chain(older.iter().copied());
    let mut written = names.filter_map(|name| Some((name, fields.nullable(name)?)));
    let Some((name, entry)) = written.next() else { return (key, None) };
    for (other, entry) in written {
        let message = format!("`{other}` and `{name}` mean the same");
        let finding = Diagnostic::error(codes::CONFLICTING_KEYS, entry.key_span, message);
        fields.push(finding.hint("remove one of them"));
    }
    (name, Some(entry))
}

/// The key that names the persona: before version 0.8, `agent`.
pub(super) fn find_persona_key(fields: &Fields<'_, '_>) -> &'static str {
    fields.shunned("agent");
    find_renamed_entry(fields, "persona", &["agent"]).0
}

/// Keys that steps had before version 0.8.
const OF_AGENTS: [&str; 3] = ["agent", "agent_name", "report"];
/// Keys that pieces got after version 0.8, up to 0.33.
const OF_PIECES: [&str; 3] = ["piece_config", "provider_options", "tags"];
/// Keys that their steps got.
const OF_MOVEMENTS: [&str; 3] = ["required_permission_mode", "team_leader", "provider_options"];

/// What a definition is, as `TAKT workflow`: the last version of the generation with its keys.
pub(super) fn describe_format(root: &Json) -> &'static str {
    let has = |of: &Json, keys: &[&str]| keys.iter().any(|key| of.get(key).is_some());
    let all = ["steps", "movements"].into_iter().flat_map(|key| items_of_key(root, key));
    let is_oldest = |step: &'_ Json| has(step, &OF_AGENTS);
    let mut with_members = all.flat_map(|step| std::iter::once(step).chain(items_of_key(step, "parallel")));
    if with_members.any(is_oldest) {
        return "TAKT workflow with the keys of 0.7";
    }
    if root.get("steps").is_some() {
        return "TAKT workflow";
    }
    let sections = ["personas", "policies", "knowledge", "instructions", "report_formats"];
    // A name without its section is a file of that name.
    let names = |step: &Json| {
        let of = |key: &str| step.get(key).is_some_and(|value| !matches!(value.kind, Kind::Null));
        of("persona") && !has(root, &sections)
    };
    let later = |step: &Json| has(step, &OF_MOVEMENTS) || names(step);
    let members = |step: &'_ Json| items_of_key(step, "parallel").iter().any(later);
    let is_later = has(root, &OF_PIECES)
        || items_of_key(root, "movements").iter().any(|step| later(step) || members(step));
    if is_later { "TAKT workflow with the keys of 0.33" } else { "TAKT workflow with the keys of 0.8" }
}
