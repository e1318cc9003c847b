//! The codes of findings about definitions. Each code has a file with its manual page and an example pair: a
//! definition that triggers only this code, and its fixed version.
//!
//! The checks are part of the readers; the head of each file names the place. [`ALL`] lists the files: a module that
//! is not in it is unused code, and a name that is not in it cannot be reported.

mod check_decides_nothing;
mod conflicting_keys;
mod duplicate_item;
mod duplicate_key;
mod endless_section;
mod escapes_root;
#[cfg(test)]
mod examples;
mod failure_completes;
#[cfg(test)]
mod flow_examples;
mod front_matter_mismatch;
mod handler_unstartable;
mod id_mismatch;
mod impossible_schema;
mod intent_not_of_kind;
mod invalid_condition;
mod invalid_json;
mod invalid_value;
mod invalid_yaml;
mod malformed_template;
mod missing_edit;
mod missing_key;
mod missing_prompt;
mod mixed_generations;
mod mixed_permissions;
mod report_name;
mod reserved_flag;
mod schema_gate_mismatch;
mod self_next;
mod shadowed_variable;
mod too_deep;
mod undeclared_variable;
mod unknown_key;
mod unknown_model;
mod unknown_name;
mod unknown_placeholder;
mod unknown_tool;
mod unreadable_file;
mod unresolved_schema;
mod unsupported_yet;
mod unused_definition;
mod unused_key;
mod unused_variable;
mod verdict_never_holds;
mod weak_permission;
mod wrong_direction;
mod wrong_type;

use cuegate_flow::checks::Code;
#[cfg(test)]
use examples::{
    Twins, twins_of_check_flow, twins_of_closing, twins_of_complete, twins_of_piece, twins_of_unguarded,
};

/// Collects the code of each file under the name that reports use.
macro_rules! all {
    ($($constant:ident = $module:ident,)*) => {
        $(pub(crate) const $constant: &str = $module::CODE.name;)*

        /// Every code with a file here, in order.
        const ALL: &[Code] = &[$($module::CODE),*];
        /// The file names without extension.
        #[cfg(test)]
        const FILES: &[&str] = &[$(stringify!($module)),*];
        /// The example pairs of each file.
        #[cfg(test)]
        const TWINS: &[&[Twins]] = &[$($module::TWINS),*];
    };
}

all! {
    CHECK_DECIDES_NOTHING = check_decides_nothing,
    CONFLICTING_KEYS = conflicting_keys,
    DUPLICATE_ITEM = duplicate_item,
    DUPLICATE_KEY = duplicate_key,
    ENDLESS_SECTION = endless_section,
    ESCAPES_ROOT = escapes_root,
    FAILURE_COMPLETES = failure_completes,
    FRONT_MATTER_MISMATCH = front_matter_mismatch,
    HANDLER_UNSTARTABLE = handler_unstartable,
    ID_MISMATCH = id_mismatch,
    IMPOSSIBLE_SCHEMA = impossible_schema,
    INTENT_NOT_OF_KIND = intent_not_of_kind,
    INVALID_CONDITION = invalid_condition,
    INVALID_JSON = invalid_json,
    INVALID_VALUE = invalid_value,
    INVALID_YAML = invalid_yaml,
    MALFORMED_TEMPLATE = malformed_template,
    MISSING_EDIT = missing_edit,
    MISSING_KEY = missing_key,
    MISSING_PROMPT = missing_prompt,
    MIXED_GENERATIONS = mixed_generations,
    MIXED_PERMISSIONS = mixed_permissions,
    REPORT_NAME = report_name,
    RESERVED_FLAG = reserved_flag,
    SCHEMA_GATE_MISMATCH = schema_gate_mismatch,
    SELF_NEXT = self_next,
    SHADOWED_VARIABLE = shadowed_variable,
    TOO_DEEP = too_deep,
    UNDECLARED_VARIABLE = undeclared_variable,
    UNKNOWN_KEY = unknown_key,
    UNKNOWN_MODEL = unknown_model,
    UNKNOWN_NAME = unknown_name,
    UNKNOWN_PLACEHOLDER = unknown_placeholder,
    UNKNOWN_TOOL = unknown_tool,
    UNREADABLE_FILE = unreadable_file,
    UNRESOLVED_SCHEMA = unresolved_schema,
    UNSUPPORTED_YET = unsupported_yet,
    UNUSED_DEFINITION = unused_definition,
    UNUSED_KEY = unused_key,
    UNUSED_VARIABLE = unused_variable,
    VERDICT_NEVER_HOLDS = verdict_never_holds,
    WEAK_PERMISSION = weak_permission,
    WRONG_DIRECTION = wrong_direction,
    WRONG_TYPE = wrong_type,
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
    use super::{FILES, list_codes};

    #[test]
    fn every_code_is_unique_kebab_case_and_has_a_page() {
        let codes = list_codes();
        for pair in codes.windows(2) {
            assert!(pair[0].name < pair[1].name, "{} stands before {}", pair[0].name, pair[1].name);
        }
        for (code, file) in codes.into_iter().zip(FILES) {
            assert_eq!(code.name.replace('-', "_"), *file, "a file is called like its code");
            assert!(
                code.name
                    .bytes()
                    .all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-')
            );
            assert!(
                code.page.starts_with(&format!("{}: ", code.name)) && code.page.ends_with('\n'),
                "{}",
                code.name
            );
            assert!(code.page.matches("\n\n").count() >= 2, "{}: what it means, and what to do", code.name);
            assert!(code.page.lines().all(|line| line.chars().count() <= 110), "{}", code.name);
        }
    }
}
