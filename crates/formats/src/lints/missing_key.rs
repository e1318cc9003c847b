//! Found in `values::json::fields` and `climpt::agent::completion_type`.

use cuegate_flow::checks::Code;

pub(super) const CODE: Code = Code {
    name: "missing-key",
    page: "\
missing-key: a required key is missing

The format requires this key.

Add it.
",
};

#[cfg(test)]
pub(super) const TWINS: &[super::Twins] = &[
    super::closing(
        &[(
            r#"  "c1": "steps",
"#,
            "",
        )],
        &[(r#""agentId": "fixer","#, r#""agentId": "fixer", "c1": "steps","#)],
    ),
    super::piece(&[("max_iterations: 12\n", "")], &[("name: sound\n", "name: sound\nmax_iterations: 9\n")]),
];
