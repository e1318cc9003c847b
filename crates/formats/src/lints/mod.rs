//! The codes of findings about definitions: one file each, with its manual page and its twins, a definition that shows it
//! and nothing else, and the same one mended.
//!
//! The functions that find them are woven into reading; the head of each file says where. [`ALL`] lists the files: a
//! module that is not in it is unused code, a name that is not in it cannot be reported.

mod agent_id_mismatch;
mod beside_ref;
mod breakdown_config;
mod built_in_prompt;
mod check_decides_nothing;
mod comma_in_list;
mod complete_elsewhere;
mod contradicting_permission;
mod default_permission;
mod duplicate_flag;
mod duplicate_item;
mod duplicate_key;
mod empty_custom_variable;
mod empty_prompt;
mod empty_transition;
mod end_with_target;
mod endless_section;
mod escapes_root;
#[cfg(test)]
mod examples;
mod failure_completes;
#[cfg(test)]
mod flow_examples;
mod foreign_placeholder;
mod front_matter_mismatch;
mod handler_unstartable;
mod handoff_not_in_schema;
mod handoff_to_work;
mod impossible_schema;
mod incomplete_domain;
mod incomplete_step;
mod inert_fallback;
mod inert_path_part;
mod inert_permission;
mod inert_transition;
mod inert_validation;
mod intent_mismatch;
mod intent_not_of_kind;
mod intent_without_transition;
mod invalid_condition;
mod invalid_front_matter;
mod invalid_input;
mod invalid_json;
mod invalid_monitor;
mod invalid_step_id;
mod invalid_value;
mod invalid_yaml;
mod jump_without_target;
mod later_spelling;
mod literal_block;
mod literal_keys;
mod literal_path;
mod malformed_template;
mod missing_edit;
mod missing_facet;
mod missing_key;
mod missing_prompt;
mod mixed_agent;
mod mixed_generations;
mod mixed_permissions;
mod no_fallback;
mod no_rule_left;
mod no_step_kind;
mod not_utf8;
mod null_target;
mod optional_intent;
mod path_for_key;
mod poll_without_resource;
mod refused_jump;
mod report_name;
mod required_with_default;
mod reserved_flag;
mod self_next;
mod shadowed_variable;
mod step_flow_mismatch;
mod step_id_mismatch;
mod stray_key;
mod target_not_in_schema;
mod too_deep;
mod too_large;
mod transition_without_intent;
mod two_instructions;
mod unbound_step_id;
mod undeclared_failure_param;
mod undeclared_variable;
mod unknown_condition;
mod unknown_extractor;
mod unknown_facet;
mod unknown_fallback_key;
mod unknown_key;
mod unknown_model;
mod unknown_outcome;
mod unknown_placeholder;
mod unknown_section;
mod unknown_step;
mod unknown_tool;
mod unknown_validator;
mod unknown_verdict_type;
mod unlisted_intents;
mod unreachable_case;
mod unreadable_file;
mod unresolved_schema;
mod unsupported_yet;
mod unused_base;
mod unused_facet;
mod unused_failure_param;
mod unused_failure_pattern;
mod unused_parameter;
mod unused_section;
mod unused_validator;
mod unused_variable;
mod unused_word;
mod unwritten_report;
mod validator_without_pattern;
mod verdict_never_holds;
mod verdict_past_validators;
mod weak_permission;
mod wrong_direction;
mod wrong_type;

use cuegate_flow::checks::Code;
#[cfg(test)]
use examples::{Twins, check_flow, closing, complete, piece, unguarded};

/// Takes the code of each file, by the name under which it is reported.
macro_rules! all {
    ($($constant:ident = $module:ident,)*) => {
        $(pub(crate) const $constant: &str = $module::CODE.name;)*

        /// Every code that has a file here, in their order.
        const ALL: &[Code] = &[$($module::CODE),*];
        /// The names of their files, without the ending.
        #[cfg(test)]
        const FILES: &[&str] = &[$(stringify!($module)),*];
        /// For each file a definition that shows its code, and the same one mended.
        #[cfg(test)]
        const TWINS: &[&[Twins]] = &[$($module::TWINS),*];
    };
}

all! {
    AGENT_ID_MISMATCH = agent_id_mismatch,
    BESIDE_REF = beside_ref,
    BREAKDOWN_CONFIG = breakdown_config,
    BUILT_IN_PROMPT = built_in_prompt,
    CHECK_DECIDES_NOTHING = check_decides_nothing,
    COMMA_IN_LIST = comma_in_list,
    COMPLETE_ELSEWHERE = complete_elsewhere,
    CONTRADICTING_PERMISSION = contradicting_permission,
    DEFAULT_PERMISSION = default_permission,
    DUPLICATE_FLAG = duplicate_flag,
    DUPLICATE_ITEM = duplicate_item,
    DUPLICATE_KEY = duplicate_key,
    EMPTY_CUSTOM_VARIABLE = empty_custom_variable,
    EMPTY_PROMPT = empty_prompt,
    EMPTY_TRANSITION = empty_transition,
    END_WITH_TARGET = end_with_target,
    ENDLESS_SECTION = endless_section,
    ESCAPES_ROOT = escapes_root,
    FAILURE_COMPLETES = failure_completes,
    FOREIGN_PLACEHOLDER = foreign_placeholder,
    FRONT_MATTER_MISMATCH = front_matter_mismatch,
    HANDLER_UNSTARTABLE = handler_unstartable,
    HANDOFF_NOT_IN_SCHEMA = handoff_not_in_schema,
    HANDOFF_TO_WORK = handoff_to_work,
    IMPOSSIBLE_SCHEMA = impossible_schema,
    INCOMPLETE_DOMAIN = incomplete_domain,
    INCOMPLETE_STEP = incomplete_step,
    INERT_FALLBACK = inert_fallback,
    INERT_PATH_PART = inert_path_part,
    INERT_PERMISSION = inert_permission,
    INERT_TRANSITION = inert_transition,
    INERT_VALIDATION = inert_validation,
    INTENT_MISMATCH = intent_mismatch,
    INTENT_NOT_OF_KIND = intent_not_of_kind,
    INTENT_WITHOUT_TRANSITION = intent_without_transition,
    INVALID_CONDITION = invalid_condition,
    INVALID_FRONT_MATTER = invalid_front_matter,
    INVALID_INPUT = invalid_input,
    INVALID_JSON = invalid_json,
    INVALID_MONITOR = invalid_monitor,
    INVALID_STEP_ID = invalid_step_id,
    INVALID_VALUE = invalid_value,
    INVALID_YAML = invalid_yaml,
    JUMP_WITHOUT_TARGET = jump_without_target,
    LATER_SPELLING = later_spelling,
    LITERAL_BLOCK = literal_block,
    LITERAL_KEYS = literal_keys,
    LITERAL_PATH = literal_path,
    MALFORMED_TEMPLATE = malformed_template,
    MISSING_EDIT = missing_edit,
    MISSING_FACET = missing_facet,
    MISSING_KEY = missing_key,
    MISSING_PROMPT = missing_prompt,
    MIXED_AGENT = mixed_agent,
    MIXED_GENERATIONS = mixed_generations,
    MIXED_PERMISSIONS = mixed_permissions,
    NO_FALLBACK = no_fallback,
    NO_RULE_LEFT = no_rule_left,
    NO_STEP_KIND = no_step_kind,
    NOT_UTF8 = not_utf8,
    NULL_TARGET = null_target,
    OPTIONAL_INTENT = optional_intent,
    PATH_FOR_KEY = path_for_key,
    POLL_WITHOUT_RESOURCE = poll_without_resource,
    REFUSED_JUMP = refused_jump,
    REPORT_NAME = report_name,
    REQUIRED_WITH_DEFAULT = required_with_default,
    RESERVED_FLAG = reserved_flag,
    SELF_NEXT = self_next,
    SHADOWED_VARIABLE = shadowed_variable,
    STEP_FLOW_MISMATCH = step_flow_mismatch,
    STEP_ID_MISMATCH = step_id_mismatch,
    STRAY_KEY = stray_key,
    TARGET_NOT_IN_SCHEMA = target_not_in_schema,
    TOO_DEEP = too_deep,
    TOO_LARGE = too_large,
    TRANSITION_WITHOUT_INTENT = transition_without_intent,
    TWO_INSTRUCTIONS = two_instructions,
    UNBOUND_STEP_ID = unbound_step_id,
    UNDECLARED_FAILURE_PARAM = undeclared_failure_param,
    UNDECLARED_VARIABLE = undeclared_variable,
    UNKNOWN_CONDITION = unknown_condition,
    UNKNOWN_EXTRACTOR = unknown_extractor,
    UNKNOWN_FACET = unknown_facet,
    UNKNOWN_FALLBACK_KEY = unknown_fallback_key,
    UNKNOWN_KEY = unknown_key,
    UNKNOWN_MODEL = unknown_model,
    UNKNOWN_OUTCOME = unknown_outcome,
    UNKNOWN_PLACEHOLDER = unknown_placeholder,
    UNKNOWN_SECTION = unknown_section,
    UNKNOWN_STEP = unknown_step,
    UNKNOWN_TOOL = unknown_tool,
    UNKNOWN_VALIDATOR = unknown_validator,
    UNKNOWN_VERDICT_TYPE = unknown_verdict_type,
    UNLISTED_INTENTS = unlisted_intents,
    UNREACHABLE_CASE = unreachable_case,
    UNREADABLE_FILE = unreadable_file,
    UNRESOLVED_SCHEMA = unresolved_schema,
    UNSUPPORTED_YET = unsupported_yet,
    UNUSED_BASE = unused_base,
    UNUSED_FACET = unused_facet,
    UNUSED_FAILURE_PARAM = unused_failure_param,
    UNUSED_FAILURE_PATTERN = unused_failure_pattern,
    UNUSED_PARAMETER = unused_parameter,
    UNUSED_SECTION = unused_section,
    UNUSED_VALIDATOR = unused_validator,
    UNUSED_VARIABLE = unused_variable,
    UNUSED_WORD = unused_word,
    UNWRITTEN_REPORT = unwritten_report,
    VALIDATOR_WITHOUT_PATTERN = validator_without_pattern,
    VERDICT_NEVER_HOLDS = verdict_never_holds,
    VERDICT_PAST_VALIDATORS = verdict_past_validators,
    WEAK_PERMISSION = weak_permission,
    WRONG_DIRECTION = wrong_direction,
    WRONG_TYPE = wrong_type,
}

// The check of the flow has these codes and their pages. Here more is known about the cause, or a text is looked into
// that the flow does not have.

/// No step to begin with.
pub(crate) const NO_ENTRY: &str = "no-entry";
/// A name that cannot be a step's.
pub(crate) const STEP_NAME: &str = "step-name";
/// A value that is read as something that it is not.
pub(crate) const TYPE_MISMATCH: &str = "type-mismatch";
/// A name that leads to no step.
pub(crate) const UNKNOWN_TARGET: &str = "unknown-target";
/// A value that nobody gives.
pub(crate) const UNKNOWN_VARIABLE: &str = "unknown-variable";

/// Whether a code is about a place of a file that cannot be read at all, by the notation of that file.
pub(crate) fn is_of_json(code: &str) -> bool {
    code == INVALID_JSON
}

/// The same of YAML.
pub(crate) fn is_of_yaml(code: &str) -> bool {
    code == INVALID_YAML
}

/// Every code that loading a definition can report, besides `no-entry`, `step-name`, `unknown-target` and
/// `unknown-variable`, which the check of the flow has.
pub fn codes() -> Vec<Code> {
    ALL.to_vec()
}

#[cfg(test)]
mod tests {
    use super::{FILES, codes};

    #[test]
    fn every_code_is_unique_kebab_case_and_has_a_page() {
        let codes = codes();
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
