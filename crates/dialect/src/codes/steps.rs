//! Findings about steps, gates, transitions, schemas and inputs.

super::pages::pages! {
STEP_ID_MISMATCH = "step-id-mismatch": "\
a key and the `stepId` below it differ

A step is named by its key. Its `stepId` repeats that name and has to agree.

Make both equal.
"
NO_STEP_KIND = "no-step-kind": "\
nothing says what kind of step this is

The kind decides which intents a step may allow. `stepKind` is absent, and the step's `c2` implies none
(`initial` and `continuation` imply `work`, `verification` and `closure` themselves).

Add `stepKind`.
"
INCOMPLETE_STEP = "incomplete-step": "\
a step of the flow lacks a part

Every step that a run can come to has `structuredGate`, `transitions` and `outputSchemaRef`. Only sections,
whose text other prompts include, have none of them.

Add what is missing, or call the step `section.NAME`.
"
INTENT_NOT_OF_KIND = "intent-not-of-kind": "\
a step allows an intent that its kind does not have

Work steps decide `next`, `repeat`, `jump`, `handoff`; verification steps `next`, `repeat`, `jump`,
`escalate`; closure steps `closing`, `repeat`. `abort` is always allowed. Only a closure step completes the
run, and verification cannot hand off past it.

Take the intent out of `allowedIntents`, or correct `stepKind`.
"
INTENT_MISMATCH = "intent-mismatch": "\
gate and schema disagree about the intents

The schema is sent to the agent and tells it which intents there are; the gate reads them. What
`intentSchemaRef` leads to has to list exactly the `allowedIntents` (`abort` counts on neither side), and
`intentField` has to name a field that the schema provides.

Make them agree.
"
INTENT_WITHOUT_TRANSITION = "intent-without-transition": "\
an allowed intent leads nowhere

The step allows the intent, but `transitions` does not say where it leads. A run that came there could not
go on.

Add the transition, or take the intent out of `allowedIntents`. (`jump` may do without one, `abort` needs
none.)
"
TRANSITION_WITHOUT_INTENT = "transition-without-intent": "\
a transition that is never taken

The step has a transition for an intent that it does not allow.

Add the intent to `allowedIntents` and to the schema, or remove the transition.
"
WRONG_DIRECTION = "wrong-direction": "\
an intent leads to a kind of step that it must not lead to

`next` and `jump` lead to work and verification steps, `escalate` too, `handoff` to closure steps or into
another flow, `repeat` not from work into closure. Otherwise a run could skip its verification.

Lead the intent elsewhere, or use the intent that is meant for it.
"
HANDOFF_TO_WORK = "handoff-to-work": "\
`handoff` leads to an ordinary work step

`handoff` hands the work to a closure step, or to the entry of another flow. This target is a work step that
no flow begins with.

Use `next` between work steps, or lead the handoff to a closure step.
"
SELF_NEXT = "self-next": "\
`next` leads to the same step

The step goes on to itself.

In a registry that works, but `repeat` says so: use `repeat` for another round of the same step. In a piece
a rule that leads back to its own movement asks the same again, with nothing new but the answer before, and
costs an iteration each time: lead to a movement that does what is missing, or let the rule ask a person
with `requires_user_input`.
"
END_WITH_TARGET = "end-with-target": "\
an intent that ends the run has a target

`closing` completes the run, `abort` gives it up. Neither leads to a step.

Write `\"target\": null`.
"
NULL_TARGET = "null-target": "\
a transition leads nowhere

Only `closing` of a closure step has `\"target\": null`: it completes the run. Everything else leads to a
step.

Name the step.
"
JUMP_WITHOUT_TARGET = "jump-without-target": "\
`jump` is allowed but has no target

A jump leads to the step that the answer names in the gate's `targetField`, else to
`transitions.jump.target`. One of them has to be there; with `targetMode` `conditional` both the field and
`transitions.jump.targets`.

Add one, or take `jump` out of `allowedIntents`.
"
TARGET_NOT_IN_SCHEMA = "target-not-in-schema": "\
the target of a jump is a field that the answer cannot have

`targetField` is where an answer of this step names the target of its `jump`. The step's schema is closed when
it is sent: an object that has `properties` and does not say `\"additionalProperties\": true` holds only those.
No answer can have this field, so that a jump takes the default target, or is a bad answer where there is
none.

Add the field to the schema, or correct the path.
"
UNREACHABLE_CASE = "unreachable-case": "\
a target is never selected

The step's schema lists every value that can stand in the field that selects the target, and this one is not
among them.

Add the value to the schema's `enum`, or remove the target.
"
TRANSITION_WITHOUT_DEFAULT = "transition-without-default": "\
a conditional transition does not cover every value

The schema allows values that `targets` does not name, and there is no `default`. An answer with such a
value is a bad answer.

Add `default`, or list in the schema's `enum` exactly the values that `targets` names.
"
UNKNOWN_CONDITION = "unknown-condition": "\
a condition names data that no step leaves

`condition` is the name of a handed-on value: the last segment of one of `handoffFields`, or the whole path
where that is ambiguous. No step leaves a value of this name, so that the condition is never decided: with a
`default` that is always taken (a warning), without one the run cannot go on (an error).

Add the field to `handoffFields`, or correct the name.
"
INERT_FALLBACK = "inert-fallback": "\
`fallbackIntent` has no effect

An unreadable intent ends the run unless `failFast` is false. `fallbackIntent` alone does nothing.

Add `\"failFast\": false`, or remove `fallbackIntent`.
"
NO_FALLBACK = "no-fallback": "\
`failFast` is false, but there is no `fallbackIntent`

Nothing says what an unreadable intent means instead, so that it ends the run all the same.

Add `fallbackIntent`.
"
UNRESOLVED_SCHEMA = "unresolved-schema": "\
the schema of a step cannot be resolved

The file is missing, holds nothing under that name, refers to something that is not there or to itself, or
is no valid JSON Schema. An answer could not be checked.

Correct the reference or the schema. A bare name is looked up in `definitions`, `$defs` and the top level;
`#/$defs/name` is a pointer.
"
BESIDE_REF = "beside-ref": "\
what stands beside a `$ref` has no force

In the draft of JSON Schema that step schemas are written in, a `$ref` stands for the whole schema.
Constraints beside it are dropped: an answer is neither asked to keep them nor checked for them.

Put the `$ref` into an `allOf`, and the rest beside that: `\"allOf\": [{ \"$ref\": … }], \"required\": …`.
(Notes like `description` are dropped as well, which is not reported.)
"
HANDOFF_NOT_IN_SCHEMA = "handoff-not-in-schema": "\
a step is to leave data that its answer cannot have

A path of `handoffFields` leads to no field of the step's schema. Later steps would wait for it in vain.
Where the author left a nested object open it is a warning: schemas are closed when they are sent, so that
the field stays absent.

Add the field to the schema, or correct the path.
"
INVALID_INPUT = "invalid-input": "\
an input says nowhere where it comes from

`from` is the name of a step, a dot, and the name its data is left under: `initial.issue.approach`.

Correct `from`.
"
}

/// A name that leads to no step. The check of the flow has this code and its page; here more is known about the cause.
pub(crate) const UNKNOWN_TARGET: &str = "unknown-target";
