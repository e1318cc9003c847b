use cuegate_flow::checks::Code;

pub(super) const CODE: Code = Code {
    name: "unsupported-yet",
    page: "\
unsupported-yet: this version of Cuegate does not support something yet

What it means: The definition asks for something that this version does not do, for example a step that
TAKT itself executes, or a `when(…)` over the state of other steps.

Why it matters: As a warning: the run is sound without it, and says at its start what it leaves out. As an
error: leaving it out would be unsafe or change what the definition means, so nothing is started.

Example:
    - name: enqueue
      kind: system

Fix: Follow the hint, or wait for a version that supports it.
",
};

#[cfg(test)]
pub(super) const TWINS: &[super::Twins] = &[
    super::twins_of_check_flow(
        &[(r#""behavior": {"#, r#""behavior": { "preCloseValidation": { "enabled": true },"#)],
        &[(r#""enabled": true"#, r#""enabled": false"#)],
    ),
    super::twins_of_piece(&[("session: refresh", "arpeggio: {}")], &[("arpeggio: {}", "session: refresh")]),
];
