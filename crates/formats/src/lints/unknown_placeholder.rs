//! Found in `takt::instruction_template`.

use cuegate_flow::checks::Code;

pub(super) const CODE: Code = Code {
    name: "unknown-placeholder",
    page: "\
unknown-placeholder: a word in braces that is almost a placeholder

Instructions know `{task}`, `{previous_response}`, `{iteration}`, `{max_iterations}`,
`{movement_iteration}`, `{report_dir}`, `{report:file}`, `{user_inputs}` and, for the judges of monitors,
`{cycle_count}`. Every other word in braces is text and stays as it is; this one looks like a typing
error.

Correct it, or write another word.
",
};

#[cfg(test)]
pub(super) const TWINS: &[super::Twins] =
    &[super::piece(&[("Plan {task}.", "Plan {tasks}.")], &[("{tasks}", "{task}")])];
