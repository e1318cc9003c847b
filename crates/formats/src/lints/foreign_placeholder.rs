//! Found in `takt::instruction_template`, `climpt::validation::failure_texts`, `climpt::prompts::foreign_placeholders` and `climpt::prompts::unresolved_placeholders`.

use cuegate_flow::checks::Code;

pub(super) const CODE: Code = Code {
    name: "foreign-placeholder",
    page: "\
foreign-placeholder: a placeholder is written as another format writes it

Prompts of step registries read `{uv-name}` and `{input_text}`; a name in braces without `uv-` is text, also
where a parameter or an input is called so, and `{uv_name}`, `{UV-name}`, `{uv-}` and `{uv-a b}` are text
always. Instructions of pieces read `{task}` and a few others in single
braces: `{{task}}` and `${task}` are filled in, but the braces or the `$` around it stay, and `{uv-name}` is
text.

Write it as this format does; the hint says how. In a registry, what is quoted is not looked at: fences,
indented code and code spans as Markdown has them, and what stands in quotation marks right behind a letter or
behind the `(` of a call, as in programs.
",
};

#[cfg(test)]
pub(super) const TWINS: &[super::Twins] = &[
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
];
