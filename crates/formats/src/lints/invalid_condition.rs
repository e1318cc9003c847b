use cuegate_flow::checks::Code;

pub(super) const CODE: Code = Code {
    name: "invalid-condition",
    page: "\
invalid-condition: a condition that can never be decided

A condition is a text, `ai(\"…\")`, or, in the rules of a parallel movement, `all(\"…\")` or `any(\"…\")` with
quoted outcomes of its members. `all` with several outcomes has one for each member, in their order.

Correct the condition.
",
};

#[cfg(test)]
pub(super) const TWINS: &[super::Twins] = &[
    super::piece(
        &[(r#"ai("the task is impossible")"#, "ai()")],
        &[("ai()", r#"ai("the task is impossible")"#)],
    ),
    super::piece(
        &[(r#"ai("the task is impossible")"#, r#"AI("the task is impossible")"#)],
        &[("AI(", "ai(")],
    ),
];
