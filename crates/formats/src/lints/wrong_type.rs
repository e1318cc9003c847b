use cuegate_flow::checks::Code;

pub(super) const CODE: Code = Code {
    name: "wrong-type",
    page: "\
wrong-type: a value has the wrong type

What it means: The key is known, but its value is of another type than the format allows, for example a
number in place of a text.

Why it matters: The value cannot be used, so the definition cannot run.

Example:
    - name: implement
      edit: yes      # a text in YAML 1.2

Fix: Write a value of the type that the message names; here `edit: true`.
",
};

#[cfg(test)]
pub(super) const TWINS: &[super::Twins] = &[
    super::twins_of_closing(
        &[(r#""displayName": "Fixer""#, r#""displayName": 7"#)],
        &[(r#""displayName": 7"#, r#""displayName": "7""#)],
    ),
    super::twins_of_piece(
        &[("    edit: true\n", "    edit: yes\n")],
        &[("    edit: yes\n", "    edit: true\n")],
    ),
];
