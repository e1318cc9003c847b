//! Found in `climpt::schemas::answer`, `climpt::schemas::unsatisfiable_intents`, `climpt::schemas::satisfiable` and `climpt::older::answer_words`.

use cuegate_flow::checks::Code;

pub(super) const CODE: Code = Code {
    name: "intent-mismatch",
    page: "\
intent-mismatch: gate and schema disagree about the intents

The schema is sent to the agent and tells it which intents there are; the gate reads them. What
`intentSchemaRef` leads to has to list exactly the `allowedIntents` (`abort` counts on neither side), and
`intentField` has to name a field that the schema provides. What is said around that field (`anyOf`, `not`,
`if`, an `enum` of the whole answer) must leave each of them to some answer.

Make them agree.
",
};

#[cfg(test)]
pub(super) const TWINS: &[super::Twins] = &[
    super::closing(
        &[(r#""enum": ["next", "repeat"]"#, r#""enum": ["next"]"#)],
        &[(r#""enum": ["next"]"#, r#""enum": ["next", "repeat"]"#)],
    ),
    super::complete(
        &[(r#""intentField": "next_action.action""#, r#""intentField": "decision""#)],
        &[(r#""intentField": "decision""#, r#""intentField": "next_action.action""#)],
    ),
];
