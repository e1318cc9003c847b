//! Found in `takt::join`.

use cuegate_flow::checks::Code;

pub(super) const CODE: Code = Code {
    name: "unknown-outcome",
    page: "\
unknown-outcome: a condition names an outcome that no member has

`all(…)` and `any(…)` are compared with the conditions of the members' rules as they are written, and with
what stands in their `ai(\"…\")`. No member has a rule with this one. A double quote in it is written with a
backslash before it.

Correct the text; the hint names the nearest one. Or add the rule to the member.
",
};

#[cfg(test)]
pub(super) const TWINS: &[super::Twins] = &[super::piece(
    &[(r#"all("approved")"#, r#"all("aproved")"#)],
    &[(r#"all("aproved")"#, r#"all("approved", "approved")"#)],
)];
