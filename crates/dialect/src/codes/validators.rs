//! Findings about validators and failure patterns.

super::pages::pages! {
VALIDATOR_WITHOUT_PATTERN = "validator-without-pattern": "\
a validator has no failure pattern

When the validator fails, the prompt of its failure pattern tells the agent what to mend. `failurePattern`
is missing, or names a pattern that is not there.

Name one of `failurePatterns`.
"
UNKNOWN_VALIDATOR = "unknown-validator": "\
a validation names a validator that is not there

`validationConditions` name entries of `validators`. This one does not exist, so that it could never pass.

Correct the name, or add the validator.
"
UNKNOWN_STEP = "unknown-step": "\
validators belong to a step that is not there

A key of `validationSteps` is the closure step whose `closing` its validators guard. There is no such step,
so that they would never run.

Correct the key.
"
UNUSED_VALIDATOR = "unused-validator": "\
a validator that nothing runs

Validators run where `validationConditions` of `validationSteps` name them. None names this one.

Name it in the validation of a closure step, or remove it.
"
UNUSED_FAILURE_PATTERN = "unused-failure-pattern": "\
a failure pattern that no validator names

A failure pattern chooses the prompt for the failure of the validators whose `failurePattern` it is. There is
none.

Name it in a validator, or remove it.
"
INERT_VALIDATION = "inert-validation": "\
validators belong to a step that never completes the run

A key of `validationSteps` is a step, but one that cannot decide `closing`: no closure step, or one that does
not allow it. Only `closing` is guarded, so that these validators would never run.

Name the closure step, or let it decide `closing`.
"
UNKNOWN_EXTRACTOR = "unknown-extractor": "\
an extractor is not there

`extractParams` name what is taken out of a validator's output. There is no extractor of this name, so that
the value stays empty in the failure prompt.

Correct the name, or use `stdout`, `stderr` or `errorOutput`.
"
UNDECLARED_FAILURE_PARAM = "undeclared-failure-param": "\
a failure prompt reads what its validator does not yield

The failure pattern or its prompt uses a value that `extractParams` of the validator does not have, so that
it stays empty.

Add it to `extractParams`, or remove it from the prompt.
"
UNUSED_FAILURE_PARAM = "unused-failure-param": "\
a value is taken out of a validator's output for nobody

`extractParams` of a validator and `params` of its failure pattern are for the failure prompt, and no failure
prompt of this validator reads the value. Where `onFailure` says `abort` or `skip`, or allows no attempt,
there is no failure prompt at all.

Write `{{name}}` in the prompt, or remove it.
"
}
