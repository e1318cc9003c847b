//! Found in `climpt::registry::jump`.

use cuegate_flow::checks::Code;

pub(super) const CODE: Code = Code {
    name: "jump-without-target",
    page: "\
jump-without-target: `jump` is allowed but has no target

A jump leads to the step that the answer names in the gate's `targetField`, else to
`transitions.jump.target`. One of them has to be there; with `targetMode` `conditional` both the field and
`transitions.jump.targets`.

Add one, or take `jump` out of `allowedIntents`.
",
};

#[cfg(test)]
pub(super) const TWINS: &[super::Twins] = &[super::closing(
    &[
        (r#""enum": ["next", "repeat"]"#, r#""enum": ["next", "jump"]"#),
        (r#""allowedIntents": ["next", "repeat"]"#, r#""allowedIntents": ["next", "jump"]"#),
        (r#", "repeat": { "target": "initial.fix" } }"#, " }"),
    ],
    &[(
        r#""next": { "target": "continuation.fix" }"#,
        r#""next": { "target": "continuation.fix" }, "jump": { "target": "continuation.fix" }"#,
    )],
)];
