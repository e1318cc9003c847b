//! Found in `climpt::older::check_flow::transitions`.

use cuegate_flow::checks::Code;

pub(super) const CODE: Code = Code {
    name: "empty-transition",
    page: "\
empty-transition: the result of a check leads nowhere

`onPass` and `onFail` say what follows when a check passes and when it does not. This one says nothing, so
that a run could not go on.

Give it one of `next`, `fallback`, `retry` (with `maxRetries`) and `complete`.
",
};

#[cfg(test)]
pub(super) const TWINS: &[super::Twins] = &[super::check_flow(
    &[(r#""onFail": { "fallback": "s_a8f3" }"#, r#""onFail": {}"#)],
    &[(r#""onFail": {}"#, r#""onFail": { "retry": true, "maxRetries": 1 }"#)],
)];
