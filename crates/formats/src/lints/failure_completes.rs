use cuegate_flow::checks::Code;

pub(super) const CODE: Code = Code {
    name: "failure-completes",
    page: "\
failure-completes: a failed check completes the run

What it means: `onFail` of this step is `complete`. An answer of the check that cannot be read counts as
not passed, so it completes the run too.

Why it matters: The run is reported as done although its check found the work wanting.

Example:
    \"onPass\": { \"next\": \"s_b2c1de\" },
    \"onFail\": { \"complete\": true }

Fix: Lead `onFail` to the step that can correct the work, or use `retry` with `maxRetries`: after that many
rounds the run fails. If the check asks whether there is more to do, ask the opposite question, so that
`onPass` completes.
",
};

#[cfg(test)]
pub(super) const TWINS: &[super::Twins] = &[super::twins_of_check_flow(
    &[(r#""onFail": { "fallback": "s_a8f3" }"#, r#""onFail": { "complete": true }"#)],
    &[(r#""onFail": { "complete": true }"#, r#""onFail": { "retry": true, "maxRetries": 1 }"#)],
)];
