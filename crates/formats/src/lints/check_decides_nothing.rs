use cuegate_flow::checks::Code;

pub(super) const CODE: Code = Code {
    name: "check-decides-nothing",
    page: "\
check-decides-nothing: whether a check passes changes nothing

`onPass` and `onFail` of this step lead the same way, and the step is executed once a round, so that nothing
else follows from the result. The check is asked and paid for, and what it finds is passed over.

Lead `onFail` elsewhere: another round with `retry` and `maxRetries`, or back to the step that can mend what
was found. With `iterations.max` a check that does not pass has the step executed again before `onFail` acts.
",
};

#[cfg(test)]
pub(super) const TWINS: &[super::Twins] = &[super::check_flow(
    &[(r#""onFail": { "retry": true, "maxRetries": 2 }"#, r#""onFail": { "next": "s_b2c1de" }"#)],
    &[(r#""onFail": { "next": "s_b2c1de" }"#, r#""onFail": { "retry": true, "maxRetries": 1 }"#)],
)];
