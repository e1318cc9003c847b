use cuegate_flow::checks::Code;

pub(super) const CODE: Code = Code {
    name: "check-decides-nothing",
    page: "\
check-decides-nothing: `onPass` and `onFail` of a check lead to the same place

What it means: `onPass` and `onFail` of this step have the same target, and the step is executed once a
round, so nothing else follows from the result of the check.

Why it matters: The check costs an answer of the agent, and the run ignores the result: work that fails the
check goes on like work that passes it.

Example:
    \"onPass\": { \"next\": \"s_b2c1de\" },
    \"onFail\": { \"next\": \"s_b2c1de\" }

Fix: Lead `onFail` elsewhere: another round with `retry` and `maxRetries`, or back to the step that can
correct the work. With `iterations.max`, a failed check executes the step again before `onFail` acts.
",
};

#[cfg(test)]
pub(super) const TWINS: &[super::Twins] = &[super::twins_of_check_flow(
    &[(r#""onFail": { "retry": true, "maxRetries": 2 }"#, r#""onFail": { "next": "s_b2c1de" }"#)],
    &[(r#""onFail": { "next": "s_b2c1de" }"#, r#""onFail": { "retry": true, "maxRetries": 1 }"#)],
)];
