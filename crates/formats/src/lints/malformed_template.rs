use cuegate_flow::checks::Code;

pub(super) const CODE: Code = Code {
    name: "malformed-template",
    page: "\
malformed-template: a block in a failure prompt is not closed or not allowed

What it means: Failure prompts have the blocks `{{#each name}}…{{/each}}` and
`{{#if name}}…{{else}}…{{/if}}`. A block inside another one ends inside it. `{{this}}` and `{{this.field}}`
are only allowed inside an `each`.

Why it matters: Cuegate cannot build the prompt, so the agent could not be told what failed.

Example:
    {{#if changedFiles}}Commit:{{#each changedFiles}} {{this}}{{else}}Commit all.{{/if}}

Fix: Close or correct the block at the place that the finding shows; here `{{/each}}` is missing.
",
};

#[cfg(test)]
pub(super) const TWINS: &[super::Twins] = &[super::twins_of_closing(
    &[("{{/each}}{{else}}", "{{else}}")],
    &[("{{this}}{{else}}", "{{this}}{{/each}}{{else}}")],
)];
