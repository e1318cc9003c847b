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
EMPTY_PROMPT = "empty-prompt": "\
a prompt file holds no prompt

The file is empty, or holds nothing but a front matter, which is not part of the prompt. An agent would be
told nothing.

Write the prompt, or remove what uses the file.
"
FRONT_MATTER_MISMATCH = "front-matter-mismatch": "\
a front matter contradicts what uses the prompt

The front matter of a prompt file repeats what the registry says: `stepId`, `stepKind`, `c1`, `c2`, `c3`,
`edition`, `adaptation`, `usesStdin`, in failure prompts `params`. The registry decides, so that the front
matter has no effect where it says otherwise; perhaps the file serves the wrong step. A file that serves
several steps has to agree with one of them.

Correct the front matter, or the registry.
"
INVALID_FRONT_MATTER = "invalid-front-matter": "\
the front matter of a prompt cannot be read

What stands between the two lines of `---` at the beginning of the file is no YAML. Or, as a warning,
something stands before the first of these lines, so that the front matter is part of the prompt.

Correct it, or remove the lines or what stands before them.
"
MALFORMED_TEMPLATE = "malformed-template": "\
a failure prompt is malformed

Blocks are `{{#each name}}…{{/each}}` and `{{#if name}}…{{else}}…{{/if}}`, one inside another as a whole;
`{{this}}` and `{{this.field}}` stand inside an `each`.

Correct the place that the finding shows.
"
LITERAL_BLOCK = "literal-block": "\
an ordinary prompt holds what only failure prompts know

`{{name}}`, `{{#each name}}` and `{{#if name}}` stand for what a failed validator tells. Only the prompts of
`failurePatterns` are filled so. In the prompt of a step, a section or an agent they stay as they are, and
the agent reads the braces.

Write `{uv-name}` for a value of the run, or move the text into a failure prompt.
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
UNUSED_SECTION = "unused-section": "\
a section that no prompt includes

The text of a `section.*` step reaches an agent only where another prompt includes it with `{section.NAME}`.
No prompt does.

Include it, or remove the step. A step that is to be run needs `structuredGate`, `transitions` and
`outputSchemaRef`.
"
INERT_PATH_PART = "inert-path-part": "\
a path template leaves out what tells prompts apart

Steps or failure patterns differ in a part of their prompt's path, but the path template does not have that
part, so that what they say about it has no effect.

Add the placeholder to the template, or write the same everywhere.
"
EMPTY_CUSTOM_VARIABLE = "empty-custom-variable": "\
a custom variable stays empty

The front matter declares `customVariables`, and the prompt uses them as `{name}`. These are filled:
`iteration`, `completed_iterations`, `max_iterations`, `remaining`, `previous_summary`, `remaining_text` (how
many iterations remain) and `summary_section` (the last summary below a heading, where there is one). Nothing
fills others, so that they are replaced by nothing; one that the prompt does not use does nothing at all.

Use `{uv-name}` with a parameter or an input, or remove them.
"
UNDECLARED_VARIABLE = "undeclared-variable": "\
a prompt reads a variable that the step does not list

The step's `uvVariables` list what its prompt reads. This one is not in the list; the prompt or its front
matter has it. A run works all the same when the value is given.

The same goes for `{input_text}` where `usesStdin` is `false`: a run needs the task all the same.

Add it to `uvVariables`, or make `usesStdin` true.
"
UNUSED_VARIABLE = "unused-variable": "\
a value is promised to a prompt that does not read it

`uvVariables` of a step or of a front matter list the value, `inputs` bring it from another step, or
`usesStdin` asks for the task. The prompt does not use it. (For an input, the failure prompts that can stand
in for the step's prompt are looked into as well.)

Write `{uv-name}`, or `{input_text}` for the task, in the prompt, or take the promise back.
"
}

/// A value that nobody gives. The check of the flow has this code and its page; prompts that it does not look into
/// are checked here.
pub(crate) const UNKNOWN_VARIABLE: &str = "unknown-variable";
