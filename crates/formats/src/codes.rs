//! The codes of findings about definitions; `docs/findings/CODE.md` is the manual page of each. The checks are part of
//! the readers; `tests/findings/codes/CODE.md` has the cases.

use cuegate_flow::checks::Code;

/// Defines the constants and the list of codes.
macro_rules! codes {
    ($($constant:ident = $name:literal,)*) => {
        $(pub(crate) const $constant: &str = $name;)*

        /// Every code, in order.
        const ALL: &[Code] = &[$(Code {
            name: $name,
            page: include_str!(concat!("../../../docs/findings/", $name, ".md")),
        }),*];
    };
}

codes! {
    CHECK_DECIDES_NOTHING = "check-decides-nothing",
    CONFLICTING_KEYS = "conflicting-keys",
    DUPLICATE_ITEM = "duplicate-item",
    DUPLICATE_KEY = "duplicate-key",
    ENDLESS_SECTION = "endless-section",
    ESCAPES_ROOT = "escapes-root",
    FAILURE_COMPLETES = "failure-completes",
    FRONT_MATTER_MISMATCH = "front-matter-mismatch",
    HANDLER_UNSTARTABLE = "handler-unstartable",
    ID_MISMATCH = "id-mismatch",
    IMPOSSIBLE_SCHEMA = "impossible-schema",
    INTENT_NOT_OF_KIND = "intent-not-of-kind",
    INVALID_CONDITION = "invalid-condition",
    INVALID_JSON = "invalid-json",
    INVALID_VALUE = "invalid-value",
    INVALID_YAML = "invalid-yaml",
    MALFORMED_TEMPLATE = "malformed-template",
    MISSING_EDIT = "missing-edit",
    MISSING_KEY = "missing-key",
    MISSING_PROMPT = "missing-prompt",
    MIXED_GENERATIONS = "mixed-generations",
    MIXED_PERMISSIONS = "mixed-permissions",
    REPORT_NAME = "report-name",
    RESERVED_FLAG = "reserved-flag",
    SCHEMA_GATE_MISMATCH = "schema-gate-mismatch",
    SELF_NEXT = "self-next",
    SHADOWED_VARIABLE = "shadowed-variable",
    TOO_DEEP = "too-deep",
    UNDECLARED_VARIABLE = "undeclared-variable",
    UNKNOWN_KEY = "unknown-key",
    UNKNOWN_MODEL = "unknown-model",
    UNKNOWN_NAME = "unknown-name",
    UNKNOWN_PLACEHOLDER = "unknown-placeholder",
    UNKNOWN_TOOL = "unknown-tool",
    UNREADABLE_FILE = "unreadable-file",
    UNRESOLVED_SCHEMA = "unresolved-schema",
    UNSUPPORTED_YET = "unsupported-yet",
    UNUSED_DEFINITION = "unused-definition",
    UNUSED_KEY = "unused-key",
    UNUSED_VARIABLE = "unused-variable",
    VERDICT_NEVER_HOLDS = "verdict-never-holds",
    WEAK_PERMISSION = "weak-permission",
    WRONG_DIRECTION = "wrong-direction",
    WRONG_TYPE = "wrong-type",
}

// The flow check defines these codes and their pages. The readers report them too where they know the cause better,
// or where the flow does not contain the text.

/// An outcome without a target.
pub(crate) const MISSING_TRANSITION: &str = "missing-transition";
/// A transition that no run takes.
pub(crate) const UNREACHABLE_TRANSITION: &str = "unreachable-transition";
/// A report that is read before any step can have written it.
pub(crate) const UNWRITTEN_REPORT: &str = "unwritten-report";
/// A handoff value that no earlier step provides.
pub(crate) const UNASSIGNED_VALUE: &str = "unassigned-value";
/// A run that completes without its validators.
pub(crate) const CLOSURE_SKIPPED: &str = "closure-skipped";
/// A monitor whose cycle is unreachable.
pub(crate) const MONITOR_NEVER_ACTS: &str = "monitor-never-acts";
/// No entry step.
pub(crate) const NO_ENTRY: &str = "no-entry";
/// An invalid step name.
pub(crate) const STEP_NAME: &str = "step-name";
/// A value that is used with the wrong type.
pub(crate) const TYPE_MISMATCH: &str = "type-mismatch";
/// A name that resolves to no step.
pub(crate) const UNKNOWN_TARGET: &str = "unknown-target";
/// An undefined variable.
pub(crate) const UNKNOWN_VARIABLE: &str = "unknown-variable";

/// Whether a code reports a syntax error in JSON.
pub(crate) fn is_of_json(code: &str) -> bool {
    code == INVALID_JSON
}

/// Whether a code reports a syntax error in YAML.
pub(crate) fn is_of_yaml(code: &str) -> bool {
    code == INVALID_YAML
}

/// Every code that loading a definition can report, besides `no-entry`, `step-name`, `unknown-target` and
/// `unknown-variable`, which the flow check defines.
pub fn list_codes() -> Vec<Code> {
    ALL.to_vec()
}

#[cfg(test)]
mod tests {
    use super::list_codes;

    #[test]
    fn every_code_is_unique_kebab_case_and_has_a_page() {
        let codes = list_codes();
        for pair in codes.windows(2) {
            assert!(pair[0].name < pair[1].name, "{} stands before {}", pair[0].name, pair[1].name);
        }
        for code in codes {
            let is_kebab = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
            assert!(code.name.bytes().all(is_kebab), "{}", code.name);
            assert!(code.page.starts_with(&format!("# {}: ", code.name)), "{}", code.name);
        }
    }
}
