use cuegate_flow::checks::Code;

pub(super) const CODE: Code = Code {
    name: "invalid-condition",
    page: "\
invalid-condition: the condition of a rule cannot be used

What it means: A condition is a text, `ai(\"…\")`, or, in a rule of a parallel step, `all(\"…\")` or
`any(\"…\")` with quoted outcomes of the members. `all` with several outcomes needs one for each member, in
their order. An error is a call that cannot be read, `all` or `any` in a step without members, or the
wrong number of outcomes. A warning is a text that looks like a call, such as `AI(\"…\")`.

Why it matters: A condition that cannot be read can never hold. A text that only looks like a call is
compared as plain text.

Example:
    rules:
      - condition: ai()
        next: ABORT

Fix: Write the condition in one of these forms: calls in lower case, without white space before `(`, with
straight quotes, and with nothing beside them.
",
};

#[cfg(test)]
pub(super) const TWINS: &[super::Twins] = &[
    super::twins_of_piece(
        &[(r#"ai("the task is impossible")"#, "ai()")],
        &[("ai()", r#"ai("the task is impossible")"#)],
    ),
    super::twins_of_piece(
        &[(r#"ai("the task is impossible")"#, r#"AI("the task is impossible")"#)],
        &[("AI(", "ai(")],
    ),
];
