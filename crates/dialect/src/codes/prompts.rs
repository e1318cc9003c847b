//! Findings about prompt files.

super::pages::pages! {
MISSING_PROMPT = "missing-prompt": "\
a prompt file is not there

The finding lists every path that was tried: the path template below `userPromptsBase`, then below
`runner.flow.prompts.fallbackDir`.

Write the file, or correct `c2`, `c3`, `edition`, `adaptation` or the bases.
"
UNKNOWN_FALLBACK_KEY = "unknown-fallback-key": "\
`fallbackKey` names no built-in prompt

The prompt file is there, so that nothing is missing; without it there would be no prompt. Keys are written
with underscores: `initial_issue`, not `initial.issue`.

Correct the key, or remove it.
"
INVALID_FRONT_MATTER = "invalid-front-matter": "\
the front matter of a prompt is no YAML

What stands between the two lines of `---` at the beginning of the file cannot be read.

Correct it, or remove the lines.
"
MALFORMED_TEMPLATE = "malformed-template": "\
a failure prompt is malformed

Blocks are `{{#each name}}…{{/each}}` and `{{#if name}}…{{else}}…{{/if}}`, one inside another as a whole;
`{{this}}` and `{{this.field}}` stand inside an `each`.

Correct the place that the finding shows.
"
UNKNOWN_SECTION = "unknown-section": "\
a prompt includes a section that is not there

`{section.NAME}` stands for the prompt of the step `section.NAME`, which the registry does not have.

Add the step, or correct the name.
"
ENDLESS_SECTION = "endless-section": "\
a section includes itself

Directly or through other sections a section includes itself, or a prompt includes more than 64 sections.
The prompt would have no end.

Remove the inclusion.
"
EMPTY_CUSTOM_VARIABLE = "empty-custom-variable": "\
a custom variable stays empty

The front matter declares `customVariables`, and the prompt uses them as `{name}`. Nothing fills these, so
that they are replaced by nothing.

Use `{uv-name}` with a parameter or an input, or remove them.
"
UNDECLARED_VARIABLE = "undeclared-variable": "\
a prompt reads a variable that the step does not list

The step's `uvVariables` list what its prompt reads. This one is not in the list; the prompt or its front
matter has it. A run works all the same when the value is given.

Add it to `uvVariables`.
"
UNUSED_VARIABLE = "unused-variable": "\
a step lists a variable that its prompt does not read

`uvVariables` promise a value to the prompt, which does not use it.

Write `{uv-name}` in the prompt, or remove it from the list.
"
}

/// A value that nobody gives. The check of the flow has this code and its page; prompts that it does not look into
/// are checked here.
pub(crate) const UNKNOWN_VARIABLE: &str = "unknown-variable";
