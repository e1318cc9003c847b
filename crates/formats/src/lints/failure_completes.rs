use cuegate_flow::checks::Code;

pub(super) const CODE: Code = Code {
    name: "failure-completes",
    page: "\
failure-completes: a check that does not pass completes the run

`onFail` of this step says `complete`. A check that finds the work wanting ends the run as done, and so does
one whose answer cannot be read, which counts as not passed.

Lead `onFail` to the step that can mend what was found, or use `retry` with `maxRetries`: after so many rounds
the run has failed. Where the check asks whether there is more to do, ask it the other way round, so that
`onPass` completes.
",
};

#[cfg(test)]
pub(super) const TWINS: &[super::Twins] = &[super::check_flow(
    &[(r#""onFail": { "fallback": "s_a8f3" }"#, r#""onFail": { "complete": true }"#)],
    &[(r#""onFail": { "complete": true }"#, r#""onFail": { "retry": true, "maxRetries": 1 }"#)],
)];
