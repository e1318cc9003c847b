use cuegate_flow::checks::Code;

pub(super) const CODE: Code = Code {
    name: "wrong-type",
    page: "\
wrong-type: a value has the wrong type

The key is known, but its value is of another type than the format says, for example a number where a text
belongs.

Correct the value.
",
};

#[cfg(test)]
pub(super) const TWINS: &[super::Twins] = &[
    super::closing(
        &[(r#""displayName": "Fixer""#, r#""displayName": 7"#)],
        &[(r#""displayName": 7"#, r#""displayName": "7""#)],
    ),
    super::piece(&[("    edit: true\n", "    edit: yes\n")], &[("    edit: yes\n", "    edit: true\n")]),
];
