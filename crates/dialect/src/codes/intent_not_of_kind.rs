//! Found in `registry::gate`.

use cuegate_flow::Code;

pub(super) const CODE: Code = Code {
    name: "intent-not-of-kind",
    page: "\
intent-not-of-kind: a step allows an intent that its kind does not have

Work steps decide `next`, `repeat`, `jump`, `handoff`; verification steps `next`, `repeat`, `jump`,
`escalate`; closure steps `closing`, `repeat`. `abort` is always allowed. Only a closure step completes the
run, and verification cannot hand off past it.

Take the intent out of `allowedIntents`, or correct `stepKind`.
",
};
