//! Found in `climpt::schemas::satisfiable`.

use cuegate_flow::checks::Code;

pub(super) const CODE: Code = Code {
    name: "optional-intent",
    page: "\
optional-intent: an answer that fits need not say what it decides

The schema does not require the field that `intentField` names, or takes `null` there. An answer without
it fits the schema and decides nothing: it is asked again, and then the run has failed.

List the field, and every object on the way to it, in `required`. Or say with `fallbackIntent` what such
an answer means (with `\"failFast\": false`, where there is that key).
",
};

#[cfg(test)]
pub(super) const TWINS: &[super::Twins] = &[super::closing(
    &[(r#""required": ["next_action", "plan"]"#, r#""required": ["plan"]"#)],
    &[(r#""required": ["plan"]"#, r#""required": ["next_action", "plan"]"#)],
)];
