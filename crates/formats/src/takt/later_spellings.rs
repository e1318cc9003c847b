//! What later versions of the piece format added. Its spellings are read where they mean the same; what is new is
//! refused by name, so that nobody takes it for a typing error.

use cuegate_flow::diagnostics::Diagnostic;

use crate::lints;
use crate::values::json::{Entry, Fields, Text};

/// New keys of a piece.
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

/// New keys of a movement.
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

/// New keys of a rule.
pub(super) const RULE: &[&str] = &["return", "when"];

/// New keys of a monitor.
pub(super) const MONITOR: &[&str] = &["ignore_steps"];

/// New keys of a report.
pub(super) const REPORT: &[&str] = &["use_judge"];

/// New keys of a quality gate.
pub(super) const GATE: &[&str] = &["cwd"];

/// Refuses what is there of some keys.
pub(super) fn refuse(fields: &Fields<'_, '_>, keys: &[&'static str]) {
    for key in keys {
        if let Some(entry) = fields.shunned(key) {
            let message =
                format!("`{key}` came with a later version of the format, which is not supported yet");
            let finding = Diagnostic::error(lints::UNSUPPORTED_YET, entry.key_span, message);
            fields.push(finding.hint("do without it, or wait for a version that supports it"));
        }
    }
}

/// A key by its name, else by one of its later names, which a note says.
pub(super) fn renamed<'j>(
    fields: &Fields<'j, '_>,
    key: &'static str,
    later: &[&'static str],
) -> (&'static str, Option<&'j Entry>) {
    let names = std::iter::once(key).chain(later.iter().copied());
    let mut written = names.filter_map(|name| Some((name, fields.nullable(name)?)));
    let Some((name, entry)) = written.next() else { return (key, None) };
    if name != key {
        let message = format!("`{name}` is read as `{key}`");
        let note = Diagnostic::note(lints::LATER_SPELLING, entry.key_span, message);
        fields.push(note.hint(format!("`{key}` is the word of the piece schema reference")));
    }
    for (other, entry) in written {
        let message = format!("`{other}` and `{name}` mean the same");
        let finding = Diagnostic::error(lints::DUPLICATE_KEY, entry.key_span, message);
        fields.push(finding.hint("remove one of them"));
    }
    (name, Some(entry))
}

/// Whether a condition is a predicate over the run's state: `when(…)`, perhaps after a label.
pub(super) fn is_predicate(condition: &str) -> bool {
    condition.starts_with("when(") || condition.contains("&& when(")
}

/// Refuses such a condition.
pub(super) fn refuse_predicate(condition: Text<'_>, owner: &Fields<'_, '_>) {
    let message = "`when(…)` came with a later version of the format, which is not supported yet";
    let finding = Diagnostic::error(lints::UNSUPPORTED_YET, condition.span, message);
    owner.push(finding.hint("write the condition as a text, or as `ai(\"…\")`"));
}
