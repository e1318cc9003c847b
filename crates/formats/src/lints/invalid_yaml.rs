use cuegate_flow::checks::Code;

pub(super) const CODE: Code = Code {
    name: "invalid-yaml",
    page: "\
invalid-yaml: a file is not YAML

Definitions are one document of YAML 1.2 that could be written as JSON too: mappings whose keys are names,
lists, texts, numbers, `true`, `false`. Lines are indented with spaces, never with tabs. Anchors and aliases
are read; tags of one's own and merge keys (`<<`) are not.

Correct the place that the finding shows.

- the front matter of a prompt cannot be read
",
};

#[cfg(test)]
pub(super) const TWINS: &[super::Twins] = &[
    super::piece(&[("  - name: plan", "	- name: plan")], &[("	- name: plan", "  - name: plan")]),
    super::closing(&[("stepId: initial.fix\n", "stepId: [\n")], &[("stepId: [\n", "stepId: initial.fix\n")]),
];
