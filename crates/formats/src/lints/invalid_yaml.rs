use cuegate_flow::checks::Code;

pub(super) const CODE: Code = Code {
    name: "invalid-yaml",
    page: "\
invalid-yaml: a file or a front matter is not valid YAML

What it means: A TAKT workflow is one document of YAML 1.2 that could also be written as JSON: mappings with
text keys, lists, texts, numbers, `true` and `false`, indented with spaces and never with tabs. Anchors and
aliases are allowed; custom tags and merge keys (`<<`) are not. The front matter of a prompt has to be such
YAML too.

Why it matters: What cannot be read can neither be checked nor run.

Example:
    ---
    stepId: [
    ---

Fix: Correct the place that the finding shows.
",
};

#[cfg(test)]
pub(super) const TWINS: &[super::Twins] = &[
    super::twins_of_piece(&[("  - name: plan", "	- name: plan")], &[("	- name: plan", "  - name: plan")]),
    super::twins_of_closing(
        &[("stepId: initial.fix\n", "stepId: [\n")],
        &[("stepId: [\n", "stepId: initial.fix\n")],
    ),
];
