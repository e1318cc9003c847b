//! Found in `registry::check_flow::definition`.

use cuegate_flow::Code;

pub(super) const CODE: Code = Code {
    name: "empty-transition",
    page: "\
empty-transition: the result of a check leads nowhere

`onPass` and `onFail` say what follows when a check passes and when it does not. This one says nothing, so
that a run could not go on.

Give it one of `next`, `fallback`, `retry` (with `maxRetries`) and `complete`.
",
};
