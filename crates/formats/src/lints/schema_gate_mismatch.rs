use cuegate_flow::checks::Code;

pub(super) const CODE: Code = Code {
    name: "schema-gate-mismatch",
    page: "\
schema-gate-mismatch: a step is to leave data that its answer cannot have

A path of `handoffFields` leads to no field of the step's schema. Later steps would wait for it in vain.
Where the author left a nested object open it is a warning: schemas are closed when they are sent, so that
the field stays absent.

Add the field to the schema, or correct the path.

The schema is sent to the agent and tells it which intents there are; the gate reads them. What
`intentSchemaRef` leads to has to list exactly the `allowedIntents` (`abort` counts on neither side), and
`intentField` has to name a field that the schema provides. What is said around that field (`anyOf`, `not`,
`if`, an `enum` of the whole answer) must leave each of them to some answer.

Make them agree.

The schema does not require the field that `intentField` names, or takes `null` there. An answer without
it fits the schema and decides nothing: it is asked again, and then the run has failed.

List the field, and every object on the way to it, in `required`. Or say with `fallbackIntent` what such
an answer means (with `\"failFast\": false`, where there is that key).

The schema of the step lists a step that its `jump` may not lead to: closure steps, steps that the
transition does not name, names of no step. Or it lets an answer leave out where to jump, and there is no
step to jump to then. Such an answer is a bad answer: it is asked again, and then the run has failed.

List in the schema the steps that are allowed, and require the field, or name a target in
`transitions.jump`.

`targetField` is where an answer of this step names the target of its `jump`. The step's schema is closed when
it is sent: an object that has `properties` and does not say `\"additionalProperties\": true` holds only those.
No answer can have this field, so that a jump takes the default target, or is a bad answer where there is
none.

Add the field to the schema, or correct the path.

The schema of a step lists in `stepId` (`const`, or `enum`) which step it belongs to, so that an answer for
another step is refused at once. This one does not list the step. Where its file has one that is called like
the step, that one was meant, which is an error; so is any such schema in the \"complete\" generation, in which
no answer of the step could be right. In that generation a schema without `stepId`, or with one that takes any
text, is a warning.

Name the schema of the step, or list the step in `stepId`: `\"stepId\": { \"const\": … }` among the
`properties` of its schema.

The schema is sent to the agent. Where its answer says what it decides, it takes any text: the agent has
to guess the words, and another one is a bad answer.

List the words in an `enum`.

The schema is sent to the agent and tells it what it can decide, in the words of intents or of their aliases.
Either it lists a word that the gate does not allow: an answer with it is a bad answer. Or it lists no word
for an intent that the gate allows: no agent can decide it.

Make the schema's `enum` and `allowedIntents` agree.
",
};

#[cfg(test)]
pub(super) const TWINS: &[super::Twins] = &[
    super::closing(
        &[(r#""handoffFields": ["status"]"#, r#""handoffFields": ["state"]"#)],
        &[(r#""handoffFields": ["state"]"#, r#""handoffFields": ["status"]"#)],
    ),
    super::closing(
        &[(r#"["plan.approach"]"#, r#"["plan.approach", "plan.risks"]"#)],
        &[(
            r#""approach": { "type": "string" }"#,
            r#""approach": { "type": "string" }, "risks": { "type": "string" }"#,
        )],
    ),
    super::closing(
        &[(r#""enum": ["next", "repeat"]"#, r#""enum": ["next"]"#)],
        &[(r#""enum": ["next"]"#, r#""enum": ["next", "repeat"]"#)],
    ),
    super::complete(
        &[(r#""intentField": "next_action.action""#, r#""intentField": "decision""#)],
        &[(r#""intentField": "decision""#, r#""intentField": "next_action.action""#)],
    ),
    super::closing(
        &[(r#""required": ["next_action", "plan"]"#, r#""required": ["plan"]"#)],
        &[(r#""required": ["plan"]"#, r#""required": ["next_action", "plan"]"#)],
    ),
    super::closing(
        &[
            (r#""enum": ["next", "repeat"]"#, r#""enum": ["next", "jump"]"#),
            (
                r#""allowedIntents": ["next", "repeat"]"#,
                r#""allowedIntents": ["next", "jump"], "targetField": "next_action.reason""#,
            ),
            (r#", "repeat": { "target": "initial.fix" } }"#, " }"),
        ],
        &[("next_action.reason", "plan.approach")],
    ),
    super::closing(
        &[
            (r#""enum": ["next", "repeat"]"#, r#""enum": ["next", "jump"]"#),
            (
                r#""allowedIntents": ["next", "repeat"]"#,
                r#""allowedIntents": ["next", "jump"], "targetField": "plan.approach""#,
            ),
            (r#", "repeat": { "target": "initial.fix" } }"#, " }"),
            (
                r#""approach": { "type": "string" }"#,
                r#""approach": { "enum": ["continuation.fix", "closure.fix"] }"#,
            ),
        ],
        &[(r#"["continuation.fix", "closure.fix"]"#, r#"["continuation.fix"]"#)],
    ),
    super::closing(
        &[
            (r#""enum": ["next", "repeat"]"#, r#""enum": ["next", "jump"]"#),
            (
                r#""allowedIntents": ["next", "repeat"]"#,
                r#""allowedIntents": ["next", "jump"], "targetField": "next_action.to""#,
            ),
            (r#", "repeat": { "target": "initial.fix" } }"#, " }"),
        ],
        &[("next_action.to", "plan.approach")],
    ),
    super::closing(
        &[
            (
                r#""status": { "enum": ["ready", "blocked"] }"#,
                r#""status": { "enum": ["ready", "blocked"] }, "stepId": { "const": "continuation.fix" }"#,
            ),
            (r#""schema": "initial.fix""#, r#""schema": "continuation.fix""#),
        ],
        &[(
            r#""usesStdin": true,
      "outputSchemaRef": { "file": "fix.json", "schema": "continuation.fix" }"#,
            r#""usesStdin": true,
      "outputSchemaRef": { "file": "fix.json", "schema": "initial.fix" }"#,
        )],
    ),
    super::closing(
        &[(
            r#""status": { "enum": ["ready", "blocked"] }"#,
            r#""status": { "enum": ["ready", "blocked"] }, "stepId": { "const": "continuation" }"#,
        )],
        &[(r#"{ "const": "continuation" }"#, r#"{ "const": "continuation.fix" }"#)],
    ),
    super::complete(
        &[(r#""stepId": { "const": "initial.fix" }"#, r#""stepId": { "const": "initial.issue" }"#)],
        &[(r#""const": "initial.issue""#, r#""const": "initial.fix""#)],
    ),
    super::complete(
        &[(r#""stepId": { "const": "initial.fix" }"#, r#""stepId": { "type": "string" }"#)],
        &[(r#""stepId": { "type": "string" }"#, r#""stepId": { "enum": ["initial.fix"] }"#)],
    ),
    super::complete(
        &[(r#"{ "enum": ["next", "wait", "complete"] }"#, r#"{ "type": "string" }"#)],
        &[(r#""action": { "type": "string" }"#, r#""action": { "enum": ["next", "wait", "complete"] }"#)],
    ),
    super::complete(
        &[(r#"["next", "wait", "complete"]"#, r#"["next", "wait", "complete", "done"]"#)],
        &[(r#", "done"]"#, "]")],
    ),
];
