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

- a placeholder is written as another format writes it
- an ordinary prompt holds what only failure prompts know
",
};

#[cfg(test)]
pub(super) const TWINS: &[super::Twins] = &[
    super::piece(&[("Plan {task}.", "Plan {tasks}.")], &[("{tasks}", "{task}")]),
    super::closing(&[("Close #{uv-issue}", "Close #{uv-issue}: {issue}")], &[(": {issue}", ": {uv-issue}")]),
    super::closing(
        &[("Close #{uv-issue}", "Close #{uv-issue}: {uv_issue}")],
        &[("{uv_issue}", "{uv-issue}")],
    ),
    super::closing(&[("Close #{uv-issue}", "Close #{uv-issue}: {uv-a b}")], &[(": {uv-a b}", "")]),
    super::complete(&[("Plan.", "Plan {task}.")], &[("{task}", "{input_text}")]),
    super::check_flow(&[("Implement.", "Implement {topic}.")], &[("{topic}", "{uv-topic}")]),
    super::piece(&[("Plan {task}.", "Plan {{task}}.")], &[("{{task}}", "{task}")]),
    super::piece(&[("Plan {task}.", "Plan ${task}.")], &[("${task}", "{task}")]),
    super::piece(&[("Plan {task}.", "Plan {input_text}.")], &[("{input_text}", "{task}")]),
    super::closing(&[("Be kind. ", "Be kind to {{issue}}.")], &[("{{issue}}", "{uv-issue}")]),
];
