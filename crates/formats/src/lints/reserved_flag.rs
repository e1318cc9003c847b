use cuegate_flow::checks::Code;

pub(super) const CODE: Code = Code {
    name: "reserved-flag",
    page: "\
reserved-flag: a parameter has a flag of Cuegate itself

`cuegate run` has a flag of that name, which means something else. The flag stays Cuegate's.

Give the value with `--set NAME=VALUE`, or give the parameter another `cli`.
",
};

#[cfg(test)]
pub(super) const TWINS: &[super::Twins] = &[super::closing(
    &[(r#""cli": "--base-branch""#, r#""cli": "--model""#)],
    &[(r#""cli": "--model""#, r#""cli": "--base-model""#)],
)];
