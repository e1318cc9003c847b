use cuegate_flow::checks::Code;

pub(super) const CODE: Code = Code {
    name: "unknown-placeholder",
    page: "\
unknown-placeholder: a placeholder stays text

What it means: Text in braces looks like a placeholder but is not filled in. It is misspelt, names no
report, has no closing brace, is written in the syntax of another format or tool (`{input_text}` in a
TAKT workflow, `{task}` in a registry, `{{name}}`, `${name}`), or is a `{{…}}` block outside a failure prompt.

Why it matters: The agent reads the braces literally, and not the value. Around a known name, the extra `$`
or braces stay.

Example:
    instruction_template: |
      Plan {tasks}.

Fix: Correct it. TAKT workflows have `{task}`, `{previous_response}`, `{iteration}`, `{max_iterations}`,
`{step_iteration}`, `{report_dir}`, `{report:file}`, `{user_inputs}` and, for judges of monitors,
`{cycle_count}`. Registries have `{uv-name}`, `{input_text}` and `{section.name}`. Write other words if it
is meant as text.
",
};

#[cfg(test)]
pub(super) const TWINS: &[super::Twins] = &[
    super::twins_of_piece(&[("Plan {task}.", "Plan {tasks}.")], &[("{tasks}", "{task}")]),
    super::twins_of_closing(
        &[("Close #{uv-issue}", "Close #{uv-issue}: {issue}")],
        &[(": {issue}", ": {uv-issue}")],
    ),
    super::twins_of_closing(
        &[("Close #{uv-issue}", "Close #{uv-issue}: {uv_issue}")],
        &[("{uv_issue}", "{uv-issue}")],
    ),
    super::twins_of_closing(&[("Close #{uv-issue}", "Close #{uv-issue}: {uv-a b}")], &[(": {uv-a b}", "")]),
    super::twins_of_complete(&[("Plan.", "Plan {task}.")], &[("{task}", "{input_text}")]),
    super::twins_of_check_flow(&[("Implement.", "Implement {topic}.")], &[("{topic}", "{uv-topic}")]),
    super::twins_of_piece(&[("Plan {task}.", "Plan {{task}}.")], &[("{{task}}", "{task}")]),
    super::twins_of_piece(&[("Plan {task}.", "Plan ${task}.")], &[("${task}", "{task}")]),
    super::twins_of_piece(&[("Plan {task}.", "Plan {input_text}.")], &[("{input_text}", "{task}")]),
    super::twins_of_closing(&[("Be kind. ", "Be kind to {{issue}}.")], &[("{{issue}}", "{uv-issue}")]),
];
