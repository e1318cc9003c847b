use cuegate_flow::checks::Code;

pub(super) const CODE: Code = Code {
    name: "malformed-template",
    page: "\
malformed-template: a failure prompt is malformed

Blocks are `{{#each name}}…{{/each}}` and `{{#if name}}…{{else}}…{{/if}}`, one inside another as a whole;
`{{this}}` and `{{this.field}}` stand inside an `each`.

Correct the place that the finding shows.
",
};

#[cfg(test)]
pub(super) const TWINS: &[super::Twins] = &[super::closing(
    &[("{{/each}}{{else}}", "{{else}}")],
    &[("{{this}}{{else}}", "{{this}}{{/each}}{{else}}")],
)];
