//! Found in `climpt::older::answer_words`.

use cuegate_flow::checks::Code;

pub(super) const CODE: Code = Code {
    name: "unlisted-intents",
    page: "\
unlisted-intents: the schema does not say what an agent can decide

The schema is sent to the agent. Where its answer says what it decides, it takes any text: the agent has
to guess the words, and another one is a bad answer.

List the words in an `enum`.
",
};

#[cfg(test)]
pub(super) const TWINS: &[super::Twins] = &[super::complete(
    &[(r#"{ "enum": ["next", "wait", "complete"] }"#, r#"{ "type": "string" }"#)],
    &[(r#""action": { "type": "string" }"#, r#""action": { "enum": ["next", "wait", "complete"] }"#)],
)];
