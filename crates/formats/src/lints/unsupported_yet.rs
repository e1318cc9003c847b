use cuegate_flow::checks::Code;

pub(super) const CODE: Code = Code {
    name: "unsupported-yet",
    page: "\
unsupported-yet: the definition asks for something that this version does not do yet

As a warning: a run is sound without it, and says at its start what it will not do. As an error: leaving it
out would be unsafe or change what the definition means, so that nothing is started.

Follow the hint, or wait for a version that supports it.
",
};

#[cfg(test)]
pub(super) const TWINS: &[super::Twins] = &[
    super::closing(
        &[(r#""verdict": {"#, r#""integrations": { "github": { "enabled": true } }, "verdict": {"#)],
        &[(r#""enabled": true"#, r#""enabled": false"#)],
    ),
    super::piece(&[("session: refresh", "session: compact")], &[("session: compact", "session: continue")]),
];
