use cuegate_flow::checks::Code;

pub(super) const CODE: Code = Code {
    name: "unresolved-schema",
    page: "\
unresolved-schema: the schema of a step cannot be resolved

What it means: The schema file is missing, has nothing under the name, refers to something that does not
exist or to itself, or is not a valid JSON Schema.

Why it matters: Without its schema an answer of the step cannot be checked.

Example:
    \"outputSchemaRef\": { \"file\": \"fix.json\", \"schema\": \"initial.fx\" }

Fix: Correct the reference or the schema. A name is looked up in `definitions`, in `$defs` and at the top
level; `#/$defs/name` is a pointer.
",
};

#[cfg(test)]
pub(super) const TWINS: &[super::Twins] = &[super::twins_of_closing(
    &[(r#""file": "fix.json", "schema": "initial.fix""#, r#""file": "fix.json", "schema": "initial.fx""#)],
    &[(r#""schema": "initial.fx""#, r##""schema": "#/$defs/initial.fix""##)],
)];
