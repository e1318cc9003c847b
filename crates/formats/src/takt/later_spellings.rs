//! Keys that later versions of the piece format added. Keys that only renamed an existing one are accepted. New
//! features are rejected by name, so that the author does not mistake the finding for a typo.

use cuegate_flow::diagnostics::Diagnostic;

use crate::lints;
use crate::source::findings::Findings;
use crate::values::json::{Entry, Fields, Json, Kind, Text};

pub(super) const PIECE: &[&str] = &[
    "all_steps",
    "args",
    "companions",
    "facet_pools",
    "finding_contract",
    "params",
    "piece_config",
    "provider_options",
    "returns",
    "runtime",
    "schemas",
    "subworkflow",
    "vars",
    "workflow_config",
];

pub(super) const MOVEMENT: &[&str] = &[
    "allow_git_commit",
    "arpeggio",
    "args",
    "call",
    "capabilities",
    "companions",
    "completion_retry",
    "concurrency",
    "delay_before_ms",
    "dynamic_facets",
    "effects",
    "fixed",
    "kind",
    "mcp_servers",
    "mode",
    "pool",
    "promotion",
    "provider_options",
    "required_permission_mode",
    "requires_user_input",
    "session_key",
    "structured_output",
    "system_inputs",
    "tags",
    "team_leader",
    "uses",
    "with",
];

pub(super) const RULE: &[&str] = &["return", "when"];

pub(super) const MONITOR: &[&str] = &["ignore_steps"];

pub(super) const REPORT: &[&str] = &["use_judge"];

pub(super) const GATE: &[&str] = &["cwd"];

/// Reports every key that only later versions have, and returns whether there is one. Such a piece is not checked
/// further: the keys that seem missing or unknown are spelled in the newer form.
pub(super) fn refuse(piece: &Json, found: &Findings) -> bool {
    let mut refused = Vec::new();
    keys(piece, PIECE, &mut refused);
    for movement in ["movements", "steps"].iter().flat_map(|key| items(piece, key)) {
        of_movement(movement, &mut refused);
        items(movement, "parallel").iter().for_each(|member| of_movement(member, &mut refused));
    }
    for monitor in items(piece, "loop_monitors") {
        keys(monitor, MONITOR, &mut refused);
        let rules = monitor.get("judge").into_iter().flat_map(|judge| items(judge, "rules"));
        rules.for_each(|rule| keys(rule, RULE, &mut refused));
    }
    for entry in &refused {
        let message =
            format!("`{}` belongs to a later version of the format, which is not supported yet", entry.key);
        let finding = Diagnostic::error(lints::UNSUPPORTED_YET, entry.key_span, message);
        found.push(finding.hint("do without it, or wait for a version that supports it"));
    }
    !refused.is_empty()
}

fn of_movement<'j>(movement: &'j Json, refused: &mut Vec<&'j Entry>) {
    keys(movement, MOVEMENT, refused);
    // In later versions members and rules can be computed.
    let computed = ["parallel", "rules"].iter().filter_map(|key| movement.entry(key));
    refused.extend(computed.filter(|entry| matches!(entry.value.kind, Kind::Object(_))));
    items(movement, "rules").iter().for_each(|rule| keys(rule, RULE, refused));
    items(movement, "quality_gates").iter().for_each(|gate| keys(gate, GATE, refused));
    let reports = movement.get("output_contracts").into_iter().flat_map(|owed| items(owed, "report"));
    reports.for_each(|report| keys(report, REPORT, refused));
}

fn keys<'j>(of: &'j Json, later: &[&str], refused: &mut Vec<&'j Entry>) {
    refused.extend(of.pairs().iter().filter(|entry| later.contains(&&*entry.key)));
}

pub(super) fn items<'j>(of: &'j Json, key: &str) -> &'j [Json] {
    match of.get(key).map(|list| &list.kind) {
        Some(Kind::List(items)) => items,
        _ => &[],
    }
}

/// Looks up a key by its name, then by its later names.
pub(super) fn renamed<'j>(
    fields: &Fields<'j, '_>,
    key: &'static str,
    later: &[&'static str],
) -> (&'static str, Option<&'j Entry>) {
    let names = std::iter::once(key).chain(later.iter().copied());
    let mut written = names.filter_map(|name| Some((name, fields.nullable(name)?)));
    let Some((name, entry)) = written.next() else { return (key, None) };
    for (other, entry) in written {
        let message = format!("`{other}` and `{name}` mean the same");
        let finding = Diagnostic::error(lints::CONFLICTING_KEYS, entry.key_span, message);
        fields.push(finding.hint("remove one of them"));
    }
    (name, Some(entry))
}

/// Whether a condition is a predicate over the run's state: `when(…)`, optionally after a label.
pub(super) fn is_predicate(condition: &str) -> bool {
    condition.starts_with("when(") || condition.contains("&& when(")
}

/// Reports a predicate condition as unsupported.
pub(super) fn refuse_predicate(condition: Text<'_>, owner: &Fields<'_, '_>) {
    let message = "`when(…)` belongs to a later version of the format, which is not supported yet";
    let finding = Diagnostic::error(lints::UNSUPPORTED_YET, condition.span, message);
    owner.push(finding.hint("write the condition as a text, or as `ai(\"…\")`"));
}
