//! Found in `climpt::agent::completion_lowering`.

use cuegate_flow::checks::Code;

pub(super) const CODE: Code = Code {
    name: "verdict-past-validators",
    page: "\
verdict-past-validators: the verdict can complete the run past its validators

The registry has validators, which guard `closing`. Every verdict but `detect:graph` completes the run as soon
as it holds after a finished visit, whether a closure step was reached or not. Only where a validator has just
failed, its remedy comes first. Such a run is marked as not validated.

Use `detect:graph`, where only `closing` completes the run.
",
};

#[cfg(test)]
pub(super) const TWINS: &[super::Twins] = &[super::closing(
    &[(
        r#"{ "type": "detect:graph" }"#,
        r#"{ "type": "count:iteration", "config": { "maxIterations": 9 } }"#,
    )],
    &[(
        r#"{ "type": "count:iteration", "config": { "maxIterations": 9 } }"#,
        r#"{ "type": "detect:graph", "config": { "maxIterations": 9 } }"#,
    )],
)];
