//! Found in `piece::join` and `piece::rules`.

use cuegate_flow::Code;

pub(super) const CODE: Code = Code {
    name: "invalid-condition",
    page: "\
invalid-condition: a condition that can never be decided

A condition is a text, `ai(\"…\")`, or, in the rules of a parallel movement, `all(\"…\")` or `any(\"…\")` with
quoted outcomes of its members. `all` with several outcomes has one for each member, in their order.

Correct the condition.
",
};
