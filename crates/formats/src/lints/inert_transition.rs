//! Found in `climpt::older::check_flow::transitions`.

use cuegate_flow::checks::Code;

pub(super) const CODE: Code = Code {
    name: "inert-transition",
    page: "\
inert-transition: a part of a transition never acts

A result of a check leads one way. `complete` comes before `next`, `next` before everything else, and `retry`
before `fallback`: what stands behind another that always acts is never come to. `maxRetries` counts retries,
so that without `retry` there is nothing to count; 0 stands for no limit, so that a `fallback` behind it is
never taken.

Remove the part that does not act, or what stands before it.
",
};

#[cfg(test)]
pub(super) const TWINS: &[super::Twins] = &[super::check_flow(
    &[(r#"{ "fallback": "s_a8f3" }"#, r#"{ "fallback": "s_a8f3", "maxRetries": 3 }"#)],
    &[(
        r#"{ "fallback": "s_a8f3", "maxRetries": 3 }"#,
        r#"{ "fallback": "s_a8f3", "retry": true, "maxRetries": 3 }"#,
    )],
)];
