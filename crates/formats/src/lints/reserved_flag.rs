use cuegate_flow::checks::Code;

pub(super) const CODE: Code = Code {
    name: "reserved-flag",
    page: "\
reserved-flag: the flag of a parameter is a flag of Cuegate

What it means: `cuegate run` has a flag of this name with another meaning, and the flag stays Cuegate's.

Why it matters: The parameter cannot be given by its own flag: `--model` chooses the model of the run and
does not set the parameter.

Example:
    \"model\": { \"type\": \"string\", \"description\": \"Model\", \"cli\": \"--model\" }

Fix: Give the parameter another `cli`, or pass its value with `--set NAME=VALUE`.
",
};

#[cfg(test)]
pub(super) const TWINS: &[super::Twins] = &[super::twins_of_closing(
    &[(r#""cli": "--base-branch""#, r#""cli": "--model""#)],
    &[(r#""cli": "--model""#, r#""cli": "--base-model""#)],
)];
