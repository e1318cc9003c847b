//! Found in `registry::step`.

use cuegate_flow::Code;

pub(super) const CODE: Code = Code {
    name: "no-step-kind",
    page: "\
no-step-kind: nothing says what kind of step this is

The kind decides which intents a step may allow. `stepKind` is absent, and the step's `c2` implies none
(`initial` and `continuation` imply `work`, `verification` and `closure` themselves).

Add `stepKind`.
",
};
