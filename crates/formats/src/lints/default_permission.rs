//! Found in `climpt::agent::permission_mode`.

use cuegate_flow::checks::Code;

pub(super) const CODE: Code = Code {
    name: "default-permission",
    page: "\
default-permission: writing will be denied

The permission mode `default` asks a person before each action. In a run nobody is there, so that every
write is denied.

Use `acceptEdits` for an agent that writes, `plan` for one that only reads.
",
};

#[cfg(test)]
pub(super) const TWINS: &[super::Twins] = &[super::closing(
    &[(r#""acceptEdits""#, r#""default""#)],
    &[(
        r#""default" }
"#,
        r#""acceptEdits" }
"#,
    )],
)];
