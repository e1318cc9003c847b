//! Findings about registries of the check flow.

super::pages::pages! {
INVALID_STEP_ID = "invalid-step-id": "\
a step of a check flow has no proper id

Steps of a check flow are called `s_` and four to eight hexadecimal digits, such as `s_a8f3`: names that stay
the same when steps are put between others or change places.

Call it so, in its key, its `id` and in every transition that leads to it.
"
EMPTY_TRANSITION = "empty-transition": "\
the result of a check leads nowhere

`onPass` and `onFail` say what follows when a check passes and when it does not. This one says nothing, so
that a run could not go on.

Give it one of `next`, `fallback`, `retry` (with `maxRetries`) and `complete`.
"
INERT_TRANSITION = "inert-transition": "\
a part of a transition never acts

A result of a check leads one way. `complete` comes before `next`, `next` before everything else, and `retry`
before `fallback`: what stands behind another that always acts is never come to. `maxRetries` counts retries,
so that without `retry` there is nothing to count; 0 stands for no limit, so that a `fallback` behind it is
never taken.

Remove the part that does not act, or what stands before it.
"
STEP_FLOW_MISMATCH = "step-flow-mismatch": "\
agent and registry say different things about what ends a run

A check flow is done when a check leads to `complete`. Its agent says so by the `completionType` `stepFlow`
(or by the verdict `detect:graph`, or not at all). Other completion types belong to registries whose steps
decide themselves, and `stepFlow` to a registry whose steps have a `check`.

Correct `completionType`, or name the registry that it belongs to.
"
}
