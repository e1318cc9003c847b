//! Keys that later versions of the piece format added. Keys that only renamed an existing one are accepted. New
//! features are rejected by name, so that the author does not mistake the finding for a typo.

use cuegate_flow::diagnostics::Diagnostic;

use crate::lints;
use crate::values::json::{Entry, Fields, Json, Kind};

pub(super) const REPORT: &[&str] = &["use_judge"];

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
